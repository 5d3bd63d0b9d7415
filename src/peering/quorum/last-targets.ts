import { printHost } from '../../records/print-endpoint.ts'
import { type PeerEndpoint, printTargets } from '../peer-endpoint.ts'

/** What all sites have of one host. A drained endpoint of ours has the health `down`. */
interface HostEndpoints {
  /** Without `*.`. */
  readonly host: string
  readonly own: readonly PeerEndpoint[]
  readonly siteStates: readonly { readonly endpoints: readonly PeerEndpoint[] }[]
}

/** The endpoints of one name and type. */
interface NamedSet {
  readonly type: string
  /** Each target, and true if it is out whatever its name has. */
  readonly targets: (readonly [target: string, isOut: boolean])[]
}

/**
 * Finds each name and type that clients reach and whose targets are all down or drained. Returns these targets. Clients
 * reach the host, names that are no CNAME target of the host, and names to which a CNAME leads. If a name has only such
 * targets, the CNAMEs to it are left out and lead no clients there. `isDown`: of an address of other sites.
 */
export function findLastTargets(
  facts: HostEndpoints,
  isDown: (target: string) => boolean,
): ReadonlySet<string> {
  const names = groupSets(facts, isDown)
  const out = findNamesOut(names)
  const isOut = ([target, isOut]: NamedSet['targets'][number]): boolean => {
    return names.has(target) ? isOut || out.has(target) : isOut
  }
  const last = new Set<string>()
  const reached = new Set([facts.host, ...findEntries(names)])
  for (const name of reached) {
    for (const { type, targets } of names.get(name) ?? []) {
      const isLast = targets.every(isOut)
      const followed = isLast ? targets : targets.filter((one) => !isOut(one))
      if (isLast) for (const [target] of targets) last.add(target)
      if (type === 'CNAME') for (const [target] of followed) reached.add(target)
    }
  }
  return last
}

/** Returns the sets of each name. */
function groupSets(
  { own, siteStates }: HostEndpoints,
  isDown: (target: string) => boolean,
): ReadonlyMap<string, readonly NamedSet[]> {
  const others = siteStates.flatMap(({ endpoints }) => endpoints)
  const owners = new Set([...own, ...others].map(({ endpoint }) => printHost(endpoint.owner)))
  const names = new Map<string, NamedSet[]>()
  const add = (one: PeerEndpoint, isOut: (target: string) => boolean): void => {
    const { dnsName, recordType, targets } = printTargets(one.endpoint)
    const sets = names.get(dnsName) ?? []
    const known = sets.find(({ type }) => type === recordType)
    const set = known ?? { type: recordType, targets: [] }
    if (known === undefined) names.set(dnsName, [...sets, set])
    const isDrained = one.settings?.drain !== undefined
    // Whether a name of the host is out depends on what all sites have there.
    const isInside = (target: string): boolean => recordType === 'CNAME' && owners.has(target)
    for (const target of targets)
      set.targets.push([target, isDrained || (!isInside(target) && isOut(target))])
  }
  for (const one of own) add(one, () => one.health === 'down')
  for (const one of others) add(one, isDown)
  return names
}

/** Returns the names whose targets are all out, of all types. */
function findNamesOut(names: ReadonlyMap<string, readonly NamedSet[]>): ReadonlySet<string> {
  const out = new Set<string>()
  for (let before = -1; before < out.size; ) {
    before = out.size
    for (const [name, sets] of names) {
      const isOut = sets.every(({ type, targets }) => {
        return targets.every(([target, isOut]) => isOut || (type === 'CNAME' && out.has(target)))
      })
      if (isOut) out.add(name)
    }
  }
  return out
}

/** Returns the names to which no CNAME of the host leads. */
function findEntries(names: ReadonlyMap<string, readonly NamedSet[]>): string[] {
  const inner = new Set<string>()
  for (const { type, targets } of [...names.values()].flat()) {
    if (type === 'CNAME') for (const [target] of targets) inner.add(target)
  }
  return [...names.keys()].filter((name) => !inner.has(name))
}
