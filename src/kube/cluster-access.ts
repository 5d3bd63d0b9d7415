import { assert } from '../base/assert.ts'
import { InputError, type Position } from '../base/errors.ts'
import type { ResourceLease, ResourceRegistry } from '../base/resource-registry.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { ApiClient } from './api.ts'
import type { ApiPlace } from './kubeconfig.ts'
import { type OpenedApi, openApi } from './open-api.ts'
import type { EndpointFiles } from './open-endpoint.ts'

/** A cluster that a directive names. */
export interface ClusterPlace extends ApiPlace {
  /** Name of the directive, for errors. */
  readonly directive: string
  readonly position: Position
  /** URL of the API server, used if `kubeconfig` is ''; '' = none. */
  readonly endpoint: string
  /** For `endpoint`; undefined = no client certificate. */
  readonly tls: EndpointFiles | undefined
}

/** A resource that works with the API of a cluster. */
interface ClusterResource<T extends object> {
  readonly type: abstract new (...args: never[]) => T
  /** The options that it depends on, besides the cluster. */
  readonly options: unknown
  readonly create: (api: ApiClient) => T
}

/** What `acquireAt` needs of the instance of the server. */
interface Instance {
  readonly resources: ResourceRegistry
  readonly log: Logger
}

/**
 * Returns the resource of a cluster that all users with the same options share. Throws InputError if
 * the configuration is invalid. Sends nothing to the API server.
 */
export async function acquireAt<T extends object>(
  place: ClusterPlace,
  { resources, log }: Instance,
  { type, options, create }: ClusterResource<T>,
): Promise<ResourceLease<T>> {
  // The Kubernetes modules are loaded with the first cluster.
  const { digestOf } = await import('./kubeconfig.ts')
  const { kubeconfig, context, endpoint, tls } = place
  // Before the configuration is loaded: the next reload then applies an edit in between.
  const digest = digestOf(place)
  const key = JSON.stringify([kubeconfig, context, endpoint, tls, digest, options])
  const opened = resources.find(type, key) === undefined ? await open(place) : undefined
  return resources.acquire(type, key, () => {
    assert(opened !== undefined, 'the API was opened for a new resource')
    if (opened.warning !== '') log.warning(opened.warning, 'kubeconfig-warning')
    return create(opened.api)
  })
}

/** Returns the faults of the configuration, for `sextant check`. */
export async function faultsOfAccess(place: ClusterPlace): Promise<readonly InputError[]> {
  // The service account exists only in the Pod.
  if (place.kubeconfig === '' && place.endpoint === '') return []
  try {
    await open(place)
    return []
  } catch (error) {
    if (error instanceof InputError) return [error]
    throw error
  }
}

async function open(place: ClusterPlace): Promise<OpenedApi> {
  const { directive, position, endpoint, kubeconfig, tls } = place
  try {
    if (endpoint !== '' && kubeconfig === '') {
      const { openEndpoint } = await import('./open-endpoint.ts')
      return { api: await openEndpoint(endpoint, tls), warning: '' }
    }
    return await openApi(place)
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    throw new InputError(position, `plugin/${directive}: ${error.message}`, error)
  }
}
