import { SetsByKey } from '../../../base/sets-by-key.ts'
import type { ApiObject } from '../../../kube/api.ts'
import { keyOf } from '../../../kube/object-key.ts'
import { isObjectGone, keysIn } from '../object-fields.ts'
import type { ObjectReader, ObjectRecords, ObjectReference } from '../object-kind.ts'
import type { ParentKey } from './attachment.ts'
import { GatewayHosts } from './gateway-hosts.ts'
import {
  type Gateway,
  type Parent,
  readGateway,
  readListenerSet,
  type SetOfListeners,
} from './parents.ts'
import { type GatewayRoute, readRoute } from './route.ts'

const GATEWAYS = 'gateways'
const LISTENER_SETS = 'listenersets'

/** What has to be settled of a Gateway: all of it, or only some routes. */
interface Pending {
  isWhole: boolean
  /** By id. */
  readonly routes: Set<string>
}

/**
 * Gateways with the host names of their routes. A change of a route concerns its host names only; a change of a
 * Gateway or ListenerSet concerns all host names of the Gateway.
 */
export class GatewayReader implements ObjectReader {
  /** Each of these is by `namespace/name`. */
  readonly #gateways = new Map<string, Gateway>()
  readonly #listenerSets = new Map<string, SetOfListeners>()
  readonly #setsOfGateway = new SetsByKey()
  readonly #hosts = new Map<string, GatewayHosts>()
  /** Gateways whose records were returned. */
  readonly #settled = new Map<string, ObjectReference>()
  readonly #pending = new Map<string, Pending>()
  /** By id: the plural and `namespace/name`. */
  readonly #routes = new Map<string, GatewayRoute>()
  /** Ids by parent. */
  readonly #routesOfParent = new SetsByKey()

  put(plural: string, object: ApiObject): void {
    const key = keyOf(object)
    if (isObjectGone(object)) this.remove(plural, key)
    else if (plural === GATEWAYS) this.#putGateway(key, readGateway(object))
    else if (plural === LISTENER_SETS) this.#putListenerSet(key, readListenerSet(object))
    else this.#putRoute(idOf(plural, key), readRoute(object))
  }

  remove(plural: string, key: string): void {
    if (plural === GATEWAYS) this.#putGateway(key, undefined)
    else if (plural === LISTENER_SETS) this.#putListenerSet(key, undefined)
    else this.#putRoute(idOf(plural, key), undefined)
  }

  keys(plural: string, namespace: string): Iterable<string> {
    return keysIn(this.#keysOf(plural), namespace)
  }

  *#keysOf(plural: string): Iterable<string> {
    if (plural === GATEWAYS) yield* this.#gateways.keys()
    else if (plural === LISTENER_SETS) yield* this.#listenerSets.keys()
    else {
      const start = idOf(plural, '')
      for (const id of this.#routes.keys()) if (id.startsWith(start)) yield id.slice(start.length)
    }
  }

  settle(): readonly ObjectRecords[] {
    const changed = [...this.#pending].flatMap(([key, pending]) => this.#settle(key, pending))
    this.#pending.clear()
    return changed
  }

  #settle(key: string, { isWhole, routes }: Pending): ObjectRecords[] {
    const gateway = this.#gateways.get(key)
    const of = gateway?.of ?? this.#settled.get(key)
    if (of === undefined) return []
    if (gateway === undefined) {
      this.#hosts.delete(key)
      this.#settled.delete(key)
      return [{ of, records: [], problems: [] }]
    }
    const known = this.#hosts.get(key)
    const hosts = known ?? new GatewayHosts()
    this.#hosts.set(key, hosts)
    this.#settled.set(key, of)
    const ids = new Set(routes)
    if (isWhole || known === undefined) {
      const parents = this.#parentsOf(key, gateway)
      hosts.setParents(gateway, parents)
      for (const id of hosts.routeIds) ids.add(id)
      for (const parent of parents)
        for (const id of this.#routesOfParent.of(parent.key)) ids.add(id)
    }
    for (const id of ids) hosts.attach(id, this.#routes.get(id))
    return [hosts.settle(of)]
  }

  #parentsOf(key: string, gateway: Gateway): Parent[] {
    const sets = [...this.#setsOfGateway.of(key)].map((set) => this.#listenerSets.get(set)!)
    return [gateway, ...sets]
  }

  #putGateway(key: string, gateway: Gateway | undefined): void {
    if (gateway === undefined) this.#gateways.delete(key)
    else this.#gateways.set(key, gateway)
    this.#pendingOf(key).isWhole = true
  }

  #putListenerSet(key: string, set: SetOfListeners | undefined): void {
    const before = this.#listenerSets.get(key)
    if (before !== undefined) {
      this.#setsOfGateway.delete(before.gateway, key)
      this.#pendingOf(before.gateway).isWhole = true
    }
    if (set === undefined) {
      this.#listenerSets.delete(key)
      return
    }
    this.#listenerSets.set(key, set)
    this.#setsOfGateway.add(set.gateway, key)
    this.#pendingOf(set.gateway).isWhole = true
  }

  #putRoute(id: string, route: GatewayRoute | undefined): void {
    const before = this.#routes.get(id)
    for (const parent of before?.parents ?? []) {
      this.#routesOfParent.delete(parent, id)
      this.#noteRoute(parent, id)
    }
    if (route === undefined) {
      this.#routes.delete(id)
      return
    }
    this.#routes.set(id, route)
    for (const parent of route.parents) {
      this.#routesOfParent.add(parent, id)
      this.#noteRoute(parent, id)
    }
  }

  #noteRoute(parent: ParentKey, id: string): void {
    const [kind, key = ''] = parent.split(' ')
    const gateway = kind === 'Gateway' ? key : this.#listenerSets.get(key)?.gateway
    if (gateway !== undefined) this.#pendingOf(gateway).routes.add(id)
  }

  #pendingOf(gateway: string): Pending {
    const known = this.#pending.get(gateway)
    if (known !== undefined) return known
    const pending = { isWhole: false, routes: new Set<string>() }
    this.#pending.set(gateway, pending)
    return pending
  }
}

function idOf(plural: string, key: string): string {
  return `${plural} ${key}`
}
