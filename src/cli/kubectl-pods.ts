import { InputError } from '../base/errors.ts'
import { systemTimers } from '../base/timers.ts'
import { type ApiClient, type ApiObject, collectionPath, isObject, textOf } from '../kube/api.ts'
import { Lister } from '../kube/list.ts'
import type { Objects } from '../kube/objects.ts'
import type { KubectlArgs } from './kubectl-args.ts'

/** The labels that `deploy/base/server` and the chart give to Pods that answer clients. */
const LABELS = 'app.kubernetes.io/name=sextant,app.kubernetes.io/component=server'
const PODS = { group: '', version: 'v1', plural: 'pods' }
/** The volume of these Pods whose ConfigMap has the Corefile. */
const COREFILE_VOLUME = 'corefile'

/** A Pod of the servers. */
interface ServerPod {
  readonly name: string
  /** The ConfigMap with its Corefile; '' = none. */
  readonly configMap: string
}

/** Returns the Pods that the arguments choose: at least one. Throws InputError. */
export async function findServers(
  api: ApiClient,
  { namespace, pod, all }: Pick<KubectlArgs, 'namespace' | 'pod' | 'all'>,
): Promise<readonly ServerPod[]> {
  const query = `?labelSelector=${encodeURIComponent(LABELS)}`
  const found: ApiObject[] = []
  const lister = new Lister(api, systemTimers, `${collectionPath(PODS, namespace)}${query}`)
  await lister.list((page) => found.push(...page))
  const pods = found.map(scanPod).sort((a, b) => (a.name < b.name ? -1 : 1))
  if (pods.length === 0) {
    const message = `namespace ${namespace} has no Pod with the labels ${LABELS}: use -n NAMESPACE`
    throw new InputError(undefined, message)
  }
  if (pod !== '') {
    const named = pods.filter(({ name }) => name === pod)
    if (named.length > 0) return named
    const names = pods.map(({ name }) => name).join(', ')
    throw new InputError(undefined, `no server is the Pod ${pod}: the Pods are ${names}`)
  }
  return all ? pods : [pods.find(({ isReady }) => isReady) ?? pods[0]!]
}

function scanPod({ metadata, spec, status }: ApiObject): ServerPod & { readonly isReady: boolean } {
  const conditions = isObject(status) ? listOf(status.conditions) : []
  const volumes = isObject(spec) ? listOf(spec.volumes) : []
  const corefile = volumes.find((volume) => volume.name === COREFILE_VOLUME)
  return {
    name: textOf(metadata, 'name'),
    configMap: textOf(corefile?.configMap, 'name'),
    isReady: conditions.some((one) => one.type === 'Ready' && one.status === 'True'),
  }
}

function listOf(value: ApiObject[string] | undefined): readonly ApiObject[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

/** Returns the Corefile of a Pod. Throws InputError if it is in no ConfigMap. */
export async function corefileOf(
  objects: Objects,
  namespace: string,
  { name, configMap }: ServerPod,
): Promise<string> {
  const resource = { group: '', version: 'v1', plural: 'configmaps' }
  const object =
    configMap === '' ? undefined : await objects.get({ resource, namespace, name: configMap })
  const text = textOf(object?.data, 'Corefile')
  if (text !== '') return text
  const message = `the Pod ${name} has no ConfigMap with the key Corefile: use -conf FILE`
  throw new InputError(undefined, message)
}
