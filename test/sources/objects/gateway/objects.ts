import type { ApiObject, JsonValue } from '../../../../src/kube/api.ts'

const API = 'gateway.networking.k8s.io/v1'

/** An object with a creation time, `day` of January 2026. */
function object(kind: string, key: string, day: number, more: ApiObject): ApiObject {
  const [namespace = '', name = ''] = key.split('/')
  const creationTimestamp = `2026-01-${String(day).padStart(2, '0')}T00:00:00Z`
  const { annotations = {}, ...rest } = more
  return {
    ...{ apiVersion: API, kind, ...rest },
    metadata: { namespace, name, uid: `${kind}-${key}`, creationTimestamp, annotations },
  }
}

interface GatewayParts {
  readonly listeners?: JsonValue
  readonly addresses?: readonly string[]
  readonly accepted?: string
  readonly statuses?: JsonValue
  readonly annotations?: ApiObject
}

export const ALL: ApiObject = { namespaces: { from: 'All' } }

export function listener(name: string, more: ApiObject = {}): ApiObject {
  return { name, port: 80, protocol: 'HTTP', allowedRoutes: ALL, ...more }
}

export function gateway(
  key: string,
  {
    listeners = [listener('all')],
    addresses = ['192.0.2.1'],
    accepted = 'True',
    statuses = [],
    annotations = {},
  }: GatewayParts = {},
): ApiObject {
  const status = {
    conditions: [{ type: 'Accepted', status: accepted, reason: 'Toy', message: 'says the test' }],
    addresses: addresses.map((value) => {
      return { type: /^[\d.]+$|:/.test(value) ? 'IPAddress' : 'Hostname', value }
    }),
    listeners: statuses,
  }
  return object('Gateway', key, 10, { spec: { listeners }, status, annotations })
}

export function listenerSet(
  key: string,
  of: string,
  listeners: readonly ApiObject[],
  { accepted = 'True', entries = 'True', annotations = {} } = {},
): ApiObject {
  const [namespace = '', name = ''] = of.split('/')
  const spec = { parentRef: { namespace, name }, listeners }
  const status = {
    conditions: [{ type: 'Accepted', status: accepted }],
    listeners: listeners.map((one) => {
      return { name: one.name!, conditions: [{ type: 'Accepted', status: entries }] }
    }),
  }
  return object('ListenerSet', key, 10, { spec, status, annotations })
}

interface RouteParts {
  readonly kind?: string
  readonly day?: number
  /** References to parents. */
  readonly parents?: readonly ApiObject[]
  readonly accepted?: string
  readonly annotations?: ApiObject
}

export function route(
  key: string,
  hostnames: readonly string[],
  {
    kind = 'HTTPRoute',
    day = 1,
    parents = [{ namespace: 'infra', name: 'shop' }],
    accepted = 'True',
    annotations = {},
  }: RouteParts = {},
): ApiObject {
  const conditions = [{ type: 'Accepted', status: accepted, reason: 'NotAllowed', message: '' }]
  const status = {
    parents: parents.map((parentRef) => ({
      parentRef,
      controllerName: 'example.org/toy',
      conditions,
    })),
  }
  return object(kind, key, day, { spec: { hostnames, parentRefs: parents }, status, annotations })
}

/** A condition of a listener. */
export function listenerStatus(name: string, accepted: string): ApiObject {
  return { name, conditions: [{ type: 'Accepted', status: accepted }] }
}
