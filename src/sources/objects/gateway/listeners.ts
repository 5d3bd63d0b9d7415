import { type ApiObject, textOf } from '../../../kube/api.ts'
import { itemsOf, partOf } from '../object-fields.ts'
import { findCondition, GATEWAY_GROUP, type ParentSection } from './attachment.ts'
import { scanHostName } from './host-names.ts'

/** A listener of a Gateway or a ListenerSet. */
export interface GatewayListener {
  readonly name: string
  readonly port: number
  readonly protocol: string
  /** '' = any host; undefined = it is no DNS name. */
  readonly host: string | undefined
  /** False: only routes in the namespace of the listener. Selectors of namespaces are left to the controller. */
  readonly allowsOthers: boolean
  /** Kinds of routes; empty = all that the protocol has. */
  readonly kinds: readonly string[]
}

/** The part of a route that decides which listeners it can use. */
interface RouteKind {
  readonly kind: string
  readonly namespace: string
}

const PROTOCOLS: ReadonlyMap<string, readonly string[]> = new Map([
  ['HTTPRoute', ['HTTP', 'HTTPS']],
  ['GRPCRoute', ['HTTP', 'HTTPS']],
  ['TLSRoute', ['TLS']],
])

/**
 * Returns the listeners of a Gateway or ListenerSet that its controller did not refuse. `needsStatus`: only those that
 * it accepted.
 */
export function readListeners(
  { spec, status }: ApiObject,
  needsStatus: boolean,
): readonly GatewayListener[] {
  const statuses = new Map(
    itemsOf(status, 'listeners').map((one) => [
      textOf(one, 'name'),
      findCondition(one, 'Accepted'),
    ]),
  )
  return itemsOf(spec, 'listeners').flatMap((listener): GatewayListener[] => {
    const name = textOf(listener, 'name')
    const accepted = statuses.get(name)?.status
    if (accepted === 'False' || (needsStatus && accepted !== 'True')) return []
    const allowed = partOf(listener, 'allowedRoutes')
    return [
      {
        name,
        port: typeof listener.port === 'number' ? listener.port : 0,
        protocol: textOf(listener, 'protocol'),
        host: scanHostName(textOf(listener, 'hostname')),
        allowsOthers: (textOf(partOf(allowed, 'namespaces'), 'from') || 'Same') !== 'Same',
        kinds: itemsOf(allowed, 'kinds').flatMap((one) => {
          return (one.group ?? GATEWAY_GROUP) === GATEWAY_GROUP ? [textOf(one, 'kind')] : ['']
        }),
      },
    ]
  })
}

/** True if a route in that section of a parent in `namespace` is attached to the listener. */
export function isAttached(
  route: RouteKind,
  { sectionName, port }: ParentSection,
  listener: GatewayListener,
  namespace: string,
): boolean {
  const { kind } = route
  if (sectionName !== '' && sectionName !== listener.name) return false
  if (port !== undefined && port !== listener.port) return false
  if (PROTOCOLS.get(kind)?.includes(listener.protocol) !== true) return false
  if (listener.kinds.length > 0 && !listener.kinds.includes(kind)) return false
  return listener.allowsOthers || route.namespace === namespace
}
