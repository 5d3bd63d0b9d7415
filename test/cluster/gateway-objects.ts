import type { Cluster } from '../support/cluster.ts'
import { GATEWAY_API } from './source-definitions.ts'

export interface ListenerSpec {
  readonly name: string
  readonly port: number
  readonly protocol: string
  readonly hostname?: string
}

interface Address {
  readonly type: string
  readonly value: string
}

const TIME = '2026-01-01T00:00:00Z'
const CONTROLLER = 'example.org/toy'

/** Gateways and routes, and the statuses that their controller writes. */
export class Gateways {
  readonly #cluster: Cluster

  constructor(cluster: Cluster) {
    this.#cluster = cluster
  }

  async create(
    namespace: string,
    name: string,
    listeners: readonly ListenerSpec[],
    annotations: object = {},
  ): Promise<void> {
    const allowedRoutes = { namespaces: { from: 'All' } }
    await this.#cluster.must('POST', pathOf('gateways', namespace), {
      ...typeOf('Gateway'),
      metadata: { name, annotations },
      spec: {
        gatewayClassName: 'toy',
        listeners: listeners.map((one) => ({ allowedRoutes, ...one })),
      },
    })
  }

  /** Writes the status of a Gateway that is accepted; `addresses`: IP addresses and host names. */
  async accept(namespace: string, name: string, addresses: readonly string[]): Promise<void> {
    await this.gatewayStatus(namespace, name, 'True', addresses)
  }

  async gatewayStatus(
    namespace: string,
    name: string,
    status: string,
    addresses: readonly string[],
  ): Promise<void> {
    await this.#writeStatus('gateways', namespace, name, {
      conditions: [conditionOf('Accepted', status)],
      addresses: addresses.map((value): Address => {
        return { type: /^[\d.]+$|:/.test(value) ? 'IPAddress' : 'Hostname', value }
      }),
    })
  }

  /** Creates an HTTPRoute of the Gateway `infra/shop`. */
  async route(
    namespace: string,
    name: string,
    hostnames: readonly string[],
    { annotations = {}, plural = 'httproutes', kind = 'HTTPRoute', parent = {} }: RouteOptions = {},
  ): Promise<void> {
    await this.#cluster.must('POST', pathOf(plural, namespace), {
      ...typeOf(kind),
      metadata: { name, annotations },
      spec: { hostnames, parentRefs: [{ ...PARENT, ...parent }] },
    })
  }

  /** Writes whether the parent of a route accepts it. */
  async acceptRoute(
    namespace: string,
    name: string,
    status: string,
    { plural = 'httproutes', parent = {} }: RouteOptions = {},
  ): Promise<void> {
    const parentRef = { ...PARENT, ...parent }
    const conditions = [conditionOf('Accepted', status)]
    const parents = [{ parentRef, controllerName: CONTROLLER, conditions }]
    await this.#writeStatus(plural, namespace, name, { parents })
  }

  async annotate(
    plural: string,
    namespace: string,
    name: string,
    annotations: object,
  ): Promise<void> {
    const path = `${pathOf(plural, namespace)}/${name}`
    await this.#cluster.must('PATCH', path, { metadata: { annotations } })
  }

  async #writeStatus(
    plural: string,
    namespace: string,
    name: string,
    status: object,
  ): Promise<void> {
    await this.#cluster.must('PATCH', `${pathOf(plural, namespace)}/${name}/status`, { status })
  }
}

export interface RouteOptions {
  readonly annotations?: object
  readonly plural?: string
  readonly kind?: string
  /** Fields of the reference to its parent. */
  readonly parent?: object
}

const PARENT = { name: 'shop', namespace: 'infra' }

export function pathOf(plural: string, namespace: string): string {
  return `${GATEWAY_API}/namespaces/${namespace}/${plural}`
}

function typeOf(kind: string): object {
  return { apiVersion: 'gateway.networking.k8s.io/v1', kind }
}

function conditionOf(type: string, status: string): object {
  return { type, status, reason: 'Toy', message: 'as the test says', lastTransitionTime: TIME }
}
