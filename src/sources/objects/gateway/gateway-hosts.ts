import type { RecordDocument } from '../../../records/record-document.ts'
import { SETTING_PREFIX } from '../../../records/validate/settings.ts'
import type { ObjectProblem, ObjectRecords, ObjectReference } from '../object-kind.ts'
import { makeHost } from './host-document.ts'
import { intersectHosts } from './host-names.ts'
import { isAttached } from './listeners.ts'
import type { Gateway, Parent } from './parents.ts'
import type { GatewayRoute } from './route.ts'

/** A route with a host name, at one or several parents. */
interface HostRoute {
  readonly route: GatewayRoute
  readonly parents: Set<Parent>
}

/** The host names that one route gives a Gateway. */
interface Attachment {
  readonly hosts: ReadonlyMap<string, HostRoute>
  readonly problems: readonly ObjectProblem[]
}

const NO_PROBLEMS: readonly ObjectProblem[] = []

/** The host names of one Gateway, and their records. */
export class GatewayHosts {
  #gateway: Gateway | undefined
  /** The Gateway and its ListenerSets, by key. */
  #parents: ReadonlyMap<string, Parent> = new Map()
  /** By id of the route. */
  readonly #attached = new Map<string, Attachment>()
  /** The routes of each host name, by id. */
  readonly #byHost = new Map<string, Map<string, HostRoute>>()
  readonly #documents = new Map<string, RecordDocument>()
  /** What is wrong with routes and host names: only those that have problems. */
  readonly #routeProblems = new Map<string, readonly ObjectProblem[]>()
  readonly #hostProblems = new Map<string, readonly ObjectProblem[]>()
  readonly #changed = new Set<string>()

  /** Replaces the Gateway and its parents. All its routes have to be attached again. */
  setParents(gateway: Gateway, parents: readonly Parent[]): void {
    this.#gateway = gateway
    this.#parents = new Map(parents.map((parent) => [parent.key, parent]))
    for (const host of this.#byHost.keys()) this.#changed.add(host)
  }

  /** The ids of routes that have host names or problems. */
  get routeIds(): Iterable<string> {
    return this.#attached.keys()
  }

  /** Attaches a route again; undefined = it was removed. */
  attach(id: string, route: GatewayRoute | undefined): void {
    for (const host of this.#attached.get(id)?.hosts.keys() ?? []) {
      const routes = this.#byHost.get(host)
      routes?.delete(id)
      if (routes?.size === 0) this.#byHost.delete(host)
      this.#changed.add(host)
    }
    const { hosts, problems } = route === undefined ? NOTHING : this.#attachmentOf(route)
    if (hosts.size + problems.length === 0) this.#attached.delete(id)
    else this.#attached.set(id, { hosts, problems })
    for (const [host, hostRoute] of hosts) {
      const routes = this.#byHost.get(host)
      if (routes === undefined) this.#byHost.set(host, new Map([[id, hostRoute]]))
      else routes.set(id, hostRoute)
      this.#changed.add(host)
    }
    replace(this.#routeProblems, id, problems)
  }

  /** Returns the records of the Gateway. */
  settle(of: ObjectReference): ObjectRecords {
    const gateway = this.#gateway
    if (gateway === undefined || !gateway.isOurs) return { of, records: [], problems: [] }
    const { refusal } = gateway
    if (refusal !== undefined) {
      const isUsed = this.#documents.size + this.#attached.size > 0
      return { of, records: isUsed ? undefined : [], problems: isUsed ? [refusal] : [] }
    }
    for (const host of this.#changed) this.#make(gateway, host)
    this.#changed.clear()
    const problems = [
      ...(this.#byHost.size === 0 ? [] : gateway.problems),
      ...[...this.#routeProblems.values(), ...this.#hostProblems.values()].flat(),
    ]
    return { of, records: [...this.#documents.values()], problems }
  }

  #make(gateway: Gateway, host: string): void {
    const held = this.#byHost.get(host)
    if (held === undefined) {
      this.#documents.delete(host)
      this.#hostProblems.delete(host)
      return
    }
    const all = [...held.values()].sort((a, b) => compareRoutes(a.route, b.route))
    const { ofHost, ignored } = splitByOwner(all, host)
    const parents = new Set(ofHost.flatMap((one) => [...one.parents]))
    const targets = new Set([...parents].flatMap((parent) => targetsOf(parent, gateway)))
    const routes = ofHost.map(({ route }) => route)
    const { document, problems } = makeHost({ gateway, host, routes, targets: [...targets] })
    if (document !== undefined) this.#documents.set(host, document)
    const effect = this.#documents.has(host)
      ? 'its last valid record is served'
      : 'it is not served'
    const suffix = document === undefined ? `; ${host}: ${effect}` : ''
    const noted = problems.map((one) => ({ ...one, message: `${one.message}${suffix}` }))
    replace(this.#hostProblems, host, [...noted, ...ignored])
  }

  #attachmentOf(route: GatewayRoute): Attachment {
    const hosts = new Map<string, HostRoute>()
    const problems: ObjectProblem[] = []
    for (const [index, section] of route.reported.entries()) {
      const parent = this.#parents.get(section.parent)
      if (parent === undefined || !parent.isOurs || section.isAccepted === undefined) continue
      if (!section.isAccepted) {
        const why = section.reason === '' ? '' : `: ${section.reason}`
        const message = `${section.parent} does not accept the route${why}`
        problems.push({ of: route.of, path: ['status', 'parents', index], message })
        continue
      }
      for (const listener of parent.listeners) {
        if (!isAttached(route.of, section, listener, parent.of.namespace)) continue
        for (const name of route.hosts) {
          const host = listener.host === undefined ? '' : intersectHosts(listener.host, name)
          if (host === undefined || host === '') continue
          const known = hosts.get(host)
          if (known === undefined) hosts.set(host, { route, parents: new Set([parent]) })
          else known.parents.add(parent)
        }
      }
    }
    if (hosts.size > 0) problems.push(...route.problems)
    return { hosts, problems }
  }
}

/**
 * Returns the routes that decide about a host name, and what is wrong with the others. `all`: the oldest first. A host
 * name belongs to the namespace of its oldest route: another one must not add settings or targets to it.
 */
function splitByOwner(
  all: readonly HostRoute[],
  host: string,
): { readonly ofHost: readonly HostRoute[]; readonly ignored: readonly ObjectProblem[] } {
  const { namespace } = all[0]!.route.of
  const ofHost = all.filter(({ route }) => route.of.namespace === namespace)
  const others = all.filter(({ route }) => route.of.namespace !== namespace)
  const ignored = others.flatMap(({ route }): ObjectProblem[] => {
    if (!Object.keys(route.annotations).some((name) => name.startsWith(SETTING_PREFIX))) return []
    const message = `annotations ${SETTING_PREFIX} do not count for ${host}, because namespace ${namespace} had it first`
    return [{ of: route.of, path: ['metadata', 'annotations'], message }]
  })
  return { ofHost, ignored }
}

const NOTHING: Attachment = { hosts: new Map(), problems: NO_PROBLEMS }

function targetsOf(parent: Parent, gateway: Gateway): readonly string[] {
  if (parent.targets.length > 0) return parent.targets
  return gateway.targets.length > 0 ? gateway.targets : gateway.addresses
}

/** Older routes come first. */
function compareRoutes(a: GatewayRoute, b: GatewayRoute): number {
  const [one, other] = [sortKeyOf(a), sortKeyOf(b)]
  if (one === other) return 0
  return one < other ? -1 : 1
}

function sortKeyOf({ created, of }: GatewayRoute): string {
  return [created, of.namespace, of.name, of.kind].join(' ')
}

function replace<T>(map: Map<string, readonly T[]>, key: string, values: readonly T[]): void {
  if (values.length === 0) map.delete(key)
  else map.set(key, values)
}
