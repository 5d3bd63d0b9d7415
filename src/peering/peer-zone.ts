import { printLatin1 } from '../base/latin1.ts'
import { RRType } from '../dns/iana/index.ts'
import { lowerName, printName } from '../dns/name/name.ts'
import { ENDPOINTS_MAX } from '../records/dns-record.ts'
import { OBSERVED_LABEL, V2_LABEL } from '../records/kdrnt.ts'
import { KDRNT } from '../records/local-zone.ts'
import { type ReceivedStep, TransferFault } from '../xfr/in/transfer-reader.ts'
import type { ZoneRecords } from '../zone/zonefile/records.ts'
import type { SiteState } from './peer-endpoint.ts'
import {
  isObservation,
  readObservations,
  type SiteObservation,
} from './quorum/observation-codec.ts'
import { PEER_ENDPOINTS_MAX, readV2Host, type V2Host } from './read-v2.ts'
import { siteOf } from './v2-codec.ts'

/** Octets of all data of one peer: rdata plus RECORD_OCTETS for each record. */
export const PEER_OCTETS_MAX = 128 * 1024 * 1024
const RECORD_OCTETS = 64
/** Maximum of site names reported for a peer. */
const NAMED_MAX = 16
/** Records between two pauses. */
const SLICE_RECORDS = 256
/** Types that peers of all generations have for each host. */
const ENDPOINT_TYPES: ReadonlySet<number> = new Set([RRType.A, RRType.AAAA, RRType.CNAME])
const PREFIXES = [`${V2_LABEL}.`, `${OBSERVED_LABEL}.`]
const SUFFIX = `.${KDRNT}.`

/**
 * True for a record of the zone kdrnt that `PeerZone` uses: one that contains a whole endpoint or an
 * observation.
 */
export function isV2Record({ owner, type }: { owner: Uint8Array; type: number }): boolean {
  if (type !== RRType.TXT || owner[0] !== 2 || owner[2] !== 0x32) return false
  const first = owner[1]! | 0x20
  return first === 0x76 || first === 0x6f
}

/** True for a type that every peer has of each host, whatever its generation. */
export function isEndpointType(type: number): boolean {
  return ENDPOINT_TYPES.has(type)
}

/**
 * The TXT records of one peer's zone kdrnt that contain whole endpoints (v2) or observations, by
 * host. No other records are kept. They are parsed only when a caller reads them.
 */
export class PeerZone {
  readonly #exporter: string
  /** By the name behind `v2.` or `o2.`: rdata, one character per octet. */
  #exported: Map<string, ReadonlySet<string>> = new Map()
  /** Parsed observations of each set of `#exported`, which does not change once it is there. */
  readonly #observed = new WeakMap<ReadonlySet<string>, readonly SiteObservation[]>()
  /** Number of records per site, with observations. */
  #sites: Map<string, number> = new Map()
  #count = 0
  #observations = 0
  #octets = 0
  /** The zone has, or had, addresses and aliases. */
  #hasOthers = false
  /** The zone contains, or contained, whole endpoints. */
  #isWhole = false
  #ownSite = ''

  /** `exporter`: address of the peer. */
  constructor(exporter: string) {
    this.#exporter = exporter
  }

  /** Number of endpoints. */
  get count(): number {
    return this.#count
  }

  get observationCount(): number {
    return this.#observations
  }

  /** True if the zone has records but no whole endpoints. An empty zone belongs to neither generation. */
  get isOld(): boolean {
    return this.#hasOthers && !this.#isWhole
  }

  /** Sites that it reports, or reported last; the first sixteen of many. */
  get sites(): readonly string[] {
    if (this.#sites.size === 0 && this.#ownSite !== '') return [this.#ownSite]
    return [...this.#sites.keys()].sort().slice(0, NAMED_MAX)
  }

  /**
   * The site that the peer is a nameserver of: the only site in its zone, or the last one before
   * the zone became empty. '' = several sites, or none yet.
   */
  get ownSite(): string {
    return this.#ownSite
  }

  /** TXT rdata by host, one character per octet. */
  get exported(): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#exported
  }

  /**
   * Loads the data of another process or follower, as far as it fits. `ownSite`: undefined = not
   * known, so it is derived from the data.
   */
  recall(exported: ReadonlyMap<string, ReadonlySet<string>>, ownSite: string | undefined): void {
    const tally = new Tally(this.#count, this.#octets, this.#observations)
    try {
      for (const [host, records] of exported) {
        const of = new Set(this.#exported.get(host))
        this.#exported.set(host, of)
        for (const rdata of records) tally.add(of, rdata)
      }
    } catch (error) {
      if (!(error instanceof TransferFault)) throw error
    }
    this.#settle(tally)
    if (ownSite !== undefined) this.#ownSite = ownSite
  }

  /** Hosts without their `*.`. */
  hosts(): IterableIterator<string> {
    return this.#exported.keys()
  }

  /**
   * Returns what the peer reports for `host` and its wildcard, one state per site. For the peer's
   * own site, this includes the state without endpoints. `host`: without `*.`. `nowSeconds`: Unix
   * time.
   */
  read(host: string, seenMs: number, nowSeconds?: number): V2Host {
    const exported = [...(this.#exported.get(host) ?? [])].filter((text) => !isObservation(text))
    const records = exported.map((text) => Buffer.from(text, 'latin1'))
    const [exporter, site] = [this.#exporter, this.#ownSite]
    const { siteStates, problems: refused } = readV2Host(records, {
      host,
      seenMs,
      nowSeconds,
      exporter: exporter,
      ownSite: site,
    })
    const problems = [...refused, ...this.#findOdd(host)]
    if (site === '') return { siteStates: siteStates, problems }
    const about = {
      site,
      exporter: exporter,
      isOwn: true,
      endpoints: [],
      seenMs,
      generation: 'v2',
    } as const
    const nothing: SiteState[] = [host, `*.${host}`]
      .filter((rootHost) => !siteStates.some((s) => s.site === site && s.rootHost === rootHost))
      .map((rootHost) => ({ ...about, rootHost }))
    return { siteStates: [...siteStates, ...nothing], problems }
  }

  /** Observations of unknown form decide nothing. */
  #findOdd(host: string): string[] {
    const of = [...(this.#exported.get(host) ?? [])].filter(isObservation)
    const odd = Math.min(of.length, ENDPOINTS_MAX) - this.observationsOf(host).length
    return odd > 0 ? [`${host}: ${odd} health reports of unknown form are ignored`] : []
  }

  /** Returns what the peer observed of addresses of other sites. `host`: without `*.`. */
  observationsOf(host: string): readonly SiteObservation[] {
    const exported = this.#exported.get(host)
    if (exported === undefined) return []
    // A host is merged at each change of any site, and most of its peers have not changed.
    const known = this.#observed.get(exported)
    if (known !== undefined) return known
    const observed = readObservations(exported)
    this.#observed.set(exported, observed)
    return observed
  }

  /**
   * Replaces the content with a whole zone; adds the hosts that differ to `changed`. Pauses at
   * intervals; the change takes effect at the end. Throws TransferFault if the zone is too large.
   */
  *replace(records: ZoneRecords, changed: Set<string>): Generator<void, void> {
    const exported = new Map<string, Set<string>>()
    const tally = new Tally(0, 0, 0)
    let hasOthers = false
    let visited = 0
    for (let node = 0; node < records.nodeCount; node++) {
      const host = hostOf(records.owner(node))
      if (++visited % SLICE_RECORDS === 0) yield
      if (host === '') {
        hasOthers ||= hasEndpoints(records, node)
        continue
      }
      for (let i = records.firstRecord[node]!; i !== -1; i = records.nextRecord[i]!) {
        if (records.type[i] === RRType.TXT) {
          const of = exported.get(host) ?? new Set()
          tally.add(of, printLatin1(records.rdata(i)))
          exported.set(host, of)
        }
        if (++visited % SLICE_RECORDS === 0) yield
      }
    }
    const differing: string[] = []
    for (const [host, of] of exported) {
      if (!sameSets(of, this.#exported.get(host))) differing.push(host)
      if (++visited % SLICE_RECORDS === 0) yield
    }
    for (const host of this.#exported.keys()) if (!exported.has(host)) differing.push(host)
    for (const host of differing) changed.add(host)
    this.#exported = exported
    this.#sites = new Map()
    this.#hasOthers = hasOthers
    this.#settle(tally)
  }

  /** As `replace`, for differences: applies all of them, or none if the result is too large. */
  *advance(steps: readonly ReceivedStep[], changed: Set<string>): Generator<void, void> {
    const touched = new Map<string, Set<string>>()
    const tally = new Tally(this.#count, this.#octets, this.#observations)
    let hasOthers = this.#hasOthers
    let visited = 0
    for (const { removed, added } of steps) {
      for (const [records, isAdded] of [[removed, false] as const, [added, true] as const]) {
        for (const { owner, type, rdata } of records) {
          hasOthers ||= isAdded && ENDPOINT_TYPES.has(type)
          if (++visited % SLICE_RECORDS === 0) yield
          const host = type === RRType.TXT ? hostOf(lowerName(owner)) : ''
          if (host === '') continue
          const of = touched.get(host) ?? new Set(this.#exported.get(host))
          touched.set(host, of)
          if (isAdded) tally.add(of, printLatin1(rdata))
          else tally.remove(of, printLatin1(rdata))
        }
      }
    }
    for (const [host, of] of touched) {
      if (of.size === 0) this.#exported.delete(host)
      else this.#exported.set(host, of)
      changed.add(host)
    }
    this.#hasOthers = hasOthers
    this.#settle(tally)
  }

  /** Notes that the zone has addresses and aliases. Their records themselves are not kept. */
  noteOthers(): void {
    this.#hasOthers = true
  }

  #settle(tally: Tally): void {
    this.#count = tally.count
    this.#observations = tally.observations
    this.#octets = tally.octets
    this.#isWhole ||= tally.count > 0
    for (const [site, change] of tally.sites) {
      const count = (this.#sites.get(site) ?? 0) + change
      if (count > 0) this.#sites.set(site, count)
      else this.#sites.delete(site)
    }
    if (this.#sites.size === 1) this.#ownSite = [...this.#sites.keys()][0]!
    else if (this.#sites.size > 1) this.#ownSite = ''
  }
}

/** Counts records while edits are prepared that are not in effect yet. */
class Tally {
  /** Number of endpoints. */
  count: number
  octets: number
  observations: number
  /** Change of the number of records per site. */
  readonly sites = new Map<string, number>()

  constructor(count: number, octets: number, observations: number) {
    this.count = count
    this.octets = octets
    this.observations = observations
  }

  add(exported: Set<string>, rdata: string): void {
    if (exported.has(rdata)) return
    exported.add(rdata)
    this.#note(rdata, 1)
    if (this.count + this.observations > PEER_ENDPOINTS_MAX) {
      throw new TransferFault(`it exports more than ${PEER_ENDPOINTS_MAX} endpoints`)
    }
    if (this.octets > PEER_OCTETS_MAX) {
      throw new TransferFault(`its endpoints have more than ${PEER_OCTETS_MAX} octets`)
    }
  }

  remove(exported: Set<string>, rdata: string): void {
    if (exported.delete(rdata)) this.#note(rdata, -1)
  }

  #note(rdata: string, change: 1 | -1): void {
    if (isObservation(rdata)) this.observations += change
    else this.count += change
    this.octets += change * (rdata.length + RECORD_OCTETS)
    const site = siteOf(rdata)
    if (site !== '') this.sites.set(site, (this.sites.get(site) ?? 0) + change)
  }
}

/** Returns the host of `v2.<host>.kdrnt` or `o2.<host>.kdrnt`, lower case, without a final dot; '' = another name. */
function hostOf(owner: Uint8Array): string {
  // Nearly all names are different and need no conversion to text.
  if (owner[0] !== 2 || owner[2] !== 0x32) return ''
  const name = printName(owner)
  const prefix = PREFIXES.find((one) => name.startsWith(one))
  if (prefix === undefined || !name.endsWith(SUFFIX)) return ''
  return name.slice(prefix.length, -SUFFIX.length)
}

function sameSets(a: ReadonlySet<string>, b: ReadonlySet<string> | undefined): boolean {
  if (b === undefined || a.size !== b.size) return false
  for (const text of a) if (!b.has(text)) return false
  return true
}

function hasEndpoints(records: ZoneRecords, node: number): boolean {
  for (let i = records.firstRecord[node]!; i !== -1; i = records.nextRecord[i]!) {
    if (ENDPOINT_TYPES.has(records.type[i]!)) return true
  }
  return false
}
