import { scanAddress } from '../../dns/text/address.ts'
import { OBSERVED_ADDRESSES_MAX, RECORD_ADDRESSES_MAX } from '../../health/observed-addresses.ts'
import type { ProbePolicy } from '../../health/probes/probe-policy.ts'
import type { HealthCheck } from '../../records/health-check.ts'
import { type AllDownPolicy, CLOSED } from '../../steering/rules.ts'
import { groupBy } from '../merge/part.ts'
import { type PeerEndpoint, printTargets, type TargetTexts } from '../peer-endpoint.ts'
import { findProbed } from '../quorum/probed-addresses.ts'
import { printSpan } from './span.ts'

/** A removal that takes longer is too slow for most applications. */
const SLOW_MS = 5 * 60_000
/** What a site has to notice the death of another one, in addition to its checks. */
const NOTICE_MS = 10_000
/** Failures that make an address down, and the interval in which the site died, in addition to the threshold. */
const MORE_INTERVALS = 2
/** What a line advises. */
const ADVISED = { intervalMs: 10_000, failureThreshold: 3 }
const ALONE = 'no other site has an address'

/** The health check that the sites apply to each other's addresses. */
type DeathCheck = Pick<HealthCheck, 'protocol' | 'intervalMs' | 'failureThreshold'> & {
  readonly command?: string
}

/** A host with the endpoints that all sites have of it. */
export interface HostOfSites {
  /** Without `*.`. */
  readonly host: string
  /** Of all sites, whatever their health. */
  readonly endpoints: readonly Pick<PeerEndpoint, 'site' | 'endpoint'>[]
  /** That of our record of the host; undefined = none of our records has one. */
  readonly check: DeathCheck | undefined
  /** That of the oldest record with this setting; undefined = the zone's. */
  readonly allDown: AllDownPolicy | undefined
}

/** Counts the addresses of peers that are probed, over all hosts. */
export class ProbeRoom {
  readonly max: number
  #taken = 0
  /** Addresses for which there is no room. */
  beyond = 0

  constructor(max = OBSERVED_ADDRESSES_MAX) {
    this.max = max
  }

  /** Returns how many of so many addresses of one host are probed. */
  take(count: number): number {
    const taken = Math.min(count, this.max - this.#taken)
    this.#taken += taken
    this.beyond += count - taken
    return taken
  }

  /** '' = all addresses are probed. */
  get text(): string {
    if (this.beyond === 0) return ''
    const verb = this.beyond === 1 ? 'is' : 'are'
    return `${plainCount(this.beyond)} of peers ${verb} not probed: this site probes at most ${this.max}`
  }
}

/** What holds for all hosts. */
export interface DeathRules {
  /** Our own site. */
  readonly site: string
  /** Number of sites, with our own. */
  readonly sites: number
  /** False = only our own records are known. */
  readonly knowsOthers: boolean
  /** How long the addresses of a silent site are served that no check covers. */
  readonly silentMs: number
  /** Why this site does not probe addresses of peers; '' = it does. */
  readonly unprobed: string
  /** Room for the probes of this site; one for all hosts. Missing = there is enough. */
  readonly room?: Pick<ProbeRoom, 'take'>
  /** Number of sites that must find an address down; 0 = the default. */
  readonly quorum: number
  readonly holdDownMs: number
  readonly policy: Pick<ProbePolicy, 'refusal'>
  /** Names of the commands that health checks may run. */
  readonly commands: Pick<ReadonlySet<string>, 'has'>
  /** That of the zone; undefined = it is not known here. */
  readonly allDown: AllDownPolicy | undefined
}

/** What happens to a host when one of its sites dies. */
export interface SiteDeath {
  readonly site: string
  readonly host: string
  /** `2 of 3 addresses are removed within 40 s`. */
  readonly text: string
  /** Changes only if the reasons or times do, and not with the number of addresses. */
  readonly cause: string
  /**
   * - `setting`: addresses with a health check are kept, because of a setting.
   * - `unchecked`: addresses are kept, because no check covers them.
   * - `slow`: the removal takes longer than 5 minutes.
   * - `alone`: no other site serves the host.
   * - `fine`: none of these.
   */
  readonly kind: 'setting' | 'unchecked' | 'slow' | 'alone' | 'fine'
}

/** What happens to one address. */
interface Fate {
  /** Undefined = checks remove it; Infinity = it is kept while no other address is there. */
  readonly keptMs: number | undefined
  readonly reason: string
  readonly kind: SiteDeath['kind']
}

/** An endpoint of a site, with its texts. */
type Addressed = HostOfSites['endpoints'][number] & TargetTexts

/**
 * Returns what happens to a host when each of its sites dies. For another site: in our answers. For our own site: in
 * those of other sites that have the same settings and health check. A site without addresses of its own is left out.
 */
export function ifSiteDies(host: HostOfSites, rules: DeathRules): readonly SiteDeath[] {
  const printed = host.endpoints.map(
    (one): Addressed => ({ ...one, ...printTargets(one.endpoint) }),
  )
  const addressed = printed.filter(({ recordType }) => isAddressType(recordType))
  const names = new Set(printed.map(({ dnsName }) => dnsName))
  const isChain = addressed.some(({ targets }) => targets.some((target) => names.has(target)))
  const holders = new Map<string, Set<string>>()
  for (const { site, targets } of addressed) {
    for (const target of targets) {
      if (names.has(target)) continue
      const sites = holders.get(target) ?? new Set()
      holders.set(target, sites.add(site))
    }
  }
  const sites = [...new Set([...holders.values()].flatMap((of) => [...of]))].sort()
  const byUs = probedBy(
    addressed,
    rules.site,
    names,
    isProbing(host, rules) ? rules.room : undefined,
  )
  return sites.flatMap((site) => {
    const own = [...holders].filter(([, of]) => of.size === 1 && of.has(site))
    if (own.length === 0) return []
    const gone = new Set(own.map(([address]) => address))
    const served = servedWithout(addressed, site, isChain)
    const probed = site === rules.site ? probedBy(addressed, '', names) : byUs
    const fates = new Map<string, Fate>()
    for (const endpoint of addressed) {
      if (endpoint.site !== site) continue
      const isAlone = rules.knowsOthers && !served(endpoint)
      for (const target of endpoint.targets) {
        if (gone.has(target)) fates.set(target, fateOf(target, isAlone, { host, rules, probed }))
      }
    }
    const isEmptied = rules.knowsOthers && sites.length === 1
    return [describe(site, fates, { host, rules, total: holders.size, isEmptied })]
  })
}

function isAddressType(type: string): boolean {
  return type === 'A' || type === 'AAAA' || type === 'CNAME'
}

/**
 * Returns a function that finds out whether clients of an endpoint of a dead site get one of another site. In a record
 * with CNAMEs between its names, each site has names of its own, so there the host as a whole counts.
 */
function servedWithout(
  addressed: readonly Addressed[],
  site: string,
  isChain: boolean,
): (endpoint: Addressed) => boolean {
  const left = addressed.filter((other) => other.site !== site)
  return ({ dnsName, recordType }) => {
    return left.some((other) => {
      const isSameName = isChain || other.dnsName === dnsName
      const isSameType = other.recordType === recordType
      return isSameName && (isSameType || other.recordType === 'CNAME' || recordType === 'CNAME')
    })
  }
}

/** Why an address is not probed by other sites; '' = it is. */
type Unprobed = (address: string, policy: DeathRules['policy']) => string

/** True if this site probes addresses of peers with the health check of its own record of the host. */
function isProbing({ check }: HostOfSites, rules: DeathRules): boolean {
  return check !== undefined && rules.unprobed === ''
}

/** `site`: probes the addresses of all others; '' = any other one. */
function probedBy(
  addressed: readonly Addressed[],
  site: string,
  names: ReadonlySet<string>,
  room?: DeathRules['room'],
): Unprobed {
  const foreign = new Map<string, Addressed[]>()
  for (const endpoint of addressed) {
    if (endpoint.site === site) continue
    for (const target of endpoint.targets) {
      if (names.has(target)) continue
      const known = foreign.get(target)
      if (known === undefined) foreign.set(target, [endpoint])
      else known.push(endpoint)
    }
  }
  const places = new Map<string, { readonly place: string; readonly rank: number }>()
  for (const [rank, { address, probeAt }] of findProbed(foreign).entries()) {
    places.set(address, { place: probeAt?.address || address, rank })
  }
  const wanted = Math.min(places.size, RECORD_ADDRESSES_MAX)
  const probed = room?.take(wanted) ?? wanted
  return (address, policy) => {
    const found = places.get(address)
    if (found === undefined) return 'only its own site can probe its health-address'
    if (found.rank >= RECORD_ADDRESSES_MAX) return `only ${RECORD_ADDRESSES_MAX} are probed`
    if (found.rank >= probed) return 'this site probes too many other addresses'
    const refusal = scanAddress(found.place) === undefined ? '' : policy.refusal(found.place)
    return refusal.slice(refusal.indexOf('not probed'))
  }
}

interface Facts {
  readonly host: HostOfSites
  readonly rules: DeathRules
}

function fateOf(
  address: string,
  isAlone: boolean,
  { host, rules, probed }: Facts & { readonly probed: Unprobed },
): Fate {
  const allDown = host.allDown ?? rules.allDown
  if (isAlone && allDown !== CLOSED) {
    const unless = allDown === undefined ? ', unless all-down of its nameservers is closed' : ''
    return { keptMs: Infinity, reason: `${ALONE}${unless}`, kind: 'alone' }
  }
  const { check } = host
  if (check === undefined) {
    const isOurs = host.endpoints.some(({ site }) => site === rules.site)
    const others = rules.sites > 2 ? ' (unless others find it down)' : ''
    const reason = isOurs ? 'no health check' : `this site has no record of the host${others}`
    return keep(reason, 'unchecked', rules)
  }
  const setting = settingOf(check, rules)
  if (setting !== '') return keep(setting, 'setting', rules)
  const unprobed = probed(address, rules.policy)
  if (unprobed !== '') return keep(unprobed, 'unchecked', rules)
  const isSlow = removalMs(check, rules) > SLOW_MS
  return { keptMs: undefined, reason: '', kind: isSlow ? 'slow' : 'fine' }
}

function keep(reason: string, kind: Fate['kind'], { silentMs }: DeathRules): Fate {
  return { keptMs: silentMs, reason, kind }
}

/** Returns the setting that prevents that other sites find an address down; '' = none does. */
function settingOf(
  { protocol, command }: DeathCheck,
  { unprobed, sites, quorum, commands }: DeathRules,
): string {
  if (unprobed !== '') return unprobed
  if (protocol === 'EXEC' && !commands.has(command ?? '')) {
    return `no probe-exec defines command ${command}`
  }
  const left = sites - 1
  return quorum > left ? `quorum needs ${quorum} sites, and ${left} would be left` : ''
}

/** Returns the time until other sites have removed an address of a dead site, in milliseconds. */
export function removalMs(
  { intervalMs, failureThreshold }: Pick<DeathCheck, 'intervalMs' | 'failureThreshold'>,
  { holdDownMs }: Pick<DeathRules, 'holdDownMs'>,
): number {
  return (failureThreshold + MORE_INTERVALS) * intervalMs + NOTICE_MS + holdDownMs
}

const KINDS: readonly SiteDeath['kind'][] = ['setting', 'unchecked', 'slow', 'alone', 'fine']

function describe(
  site: string,
  fates: ReadonlyMap<string, Fate>,
  more: Facts & { readonly total: number; readonly isEmptied: boolean },
): SiteDeath {
  const { host, rules, isEmptied } = more
  const groups = groupBy([...fates], ([, { keptMs, reason }]) => `${keptMs} ${reason}`)
  const parts = [...groups.values()].map((members) => {
    const addresses = members.map(([address]) => address)
    return printFate(addresses, members[0]![1], more)
  })
  const isEmpty = isEmptied && (host.allDown ?? rules.allDown) === CLOSED
  if (isEmpty) parts.push(`then the answer is empty: ${ALONE}, and all-down is closed`)
  const kinds = new Set([...fates.values()].map(({ kind }) => kind))
  const kind = KINDS.find((one) => kinds.has(one))!
  const times = host.check === undefined ? '' : removalMs(host.check, rules)
  const cause = `${[...groups.keys()].sort().join('; ')} ${times} ${isEmpty}`
  return { site, host: host.host, text: parts.join('; '), cause, kind }
}

function printFate(
  addresses: readonly string[],
  { keptMs, reason }: Fate,
  { host, rules, total }: Facts & { readonly total: number },
): string {
  const count = addresses.length
  const all = rules.knowsOthers ? `${count} of ${total} addresses` : plainCount(count)
  const verb = count === 1 ? 'is' : 'are'
  if (keptMs === undefined) {
    const advice = adviseFaster(host.check!, rules)
    const span = printSpan(removalMs(host.check!, rules))
    return `${all} ${verb} removed within ${span}${advice === '' ? '' : `: ${advice}`}`
  }
  const what = count === 1 ? addresses[0]! : all
  const span = keptMs === Infinity ? '' : ` for ${printSpan(keptMs)}`
  return `${what} ${verb} kept${span}: ${reason}`
}

function plainCount(count: number): string {
  return count === 1 ? '1 address' : `${count} addresses`
}

/** Returns what to set for a faster removal, with numbers; '' = it is fast. */
export function adviseFaster(
  check: Pick<DeathCheck, 'intervalMs' | 'failureThreshold'>,
  rules: Pick<DeathRules, 'holdDownMs'>,
): string {
  if (removalMs(check, rules) <= SLOW_MS) return ''
  if (removalMs(check, { holdDownMs: 0 }) <= SLOW_MS) return 'set a shorter hold-down'
  const { intervalMs, failureThreshold } = ADVISED
  const values = `${intervalMs / 1000}s and ${failureThreshold}`
  const span = printSpan(removalMs(ADVISED, rules))
  return `set spec.healthCheck.interval and failureThreshold, for example ${values} for ${span}`
}
