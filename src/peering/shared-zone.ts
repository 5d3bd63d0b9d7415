import { RRType } from '../dns/iana/index.ts'
import { lowerName, printName } from '../dns/name/name.ts'
import { KDRNT, TOLD_LABEL } from '../record/kdrnt.ts'
import { printLatin1 } from '../record/latin1.ts'
import { type ReceivedStep, TransferFault } from '../zone/inbound/transfer-reader.ts'
import type { ZoneRecords } from '../zone/zonefile/records.ts'
import { PEER_ENDPOINTS_MAX, readTold } from './read-told.ts'
import type { SiteShare } from './shared-endpoint.ts'

/** Sites that one peer may speak for. */
const SITES_MAX = 64
/** Records between two pauses. */
const SLICE_RECORDS = 256
/** What peers of every generation have of each host. */
const ENDPOINT_TYPES: ReadonlySet<number> = new Set([RRType.A, RRType.AAAA, RRType.CNAME])
const PREFIX = `${TOLD_LABEL}.`
const SUFFIX = `.${KDRNT}.`

/**
 * The TXT records of the zone kdrnt of one peer in which it tells endpoints whole (v2), by host; nothing else of the
 * zone is kept. They are read when somebody wants to know.
 */
export class SharedZone {
  /** By the name behind `v2.`: rdata, a character an octet. */
  #told = new Map<string, Set<string>>()
  #count = 0
  /** It has, or had, addresses and aliases. */
  #hasOthers = false
  /** Once heard of they stay: a site without endpoints is not silent. */
  readonly #sites = new Set<string>()

  /** Endpoints. */
  get count(): number {
    return this.#count
  }

  /** True if it has something to tell, and tells nothing whole. An empty zone is nobody's in particular. */
  get isOld(): boolean {
    return this.#hasOthers && this.#count === 0 && this.#sites.size === 0
  }

  /** Sites that were read of so far. */
  get sites(): readonly string[] {
    return [...this.#sites]
  }

  /** TXT rdata by host, a character an octet. */
  get told(): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#told
  }

  /** Takes up what another process, or follower, was told, as far as there is room for it. */
  recall(told: ReadonlyMap<string, ReadonlySet<string>>): void {
    try {
      for (const [host, records] of told) for (const rdata of records) this.#add(host, rdata)
    } catch (error) {
      if (!(error instanceof TransferFault)) throw error
    }
  }

  /** Hosts without their `*.`. */
  hosts(): IterableIterator<string> {
    return this.#told.keys()
  }

  /**
   * What each site says of `host` and of its wildcard; of the host itself also that it says nothing. `host`: without
   * `*.`.
   */
  sharesOf(host: string, seenMs: number): SiteShare[] {
    const records = [...(this.#told.get(host) ?? [])].map((text) => Buffer.from(text, 'latin1'))
    const { shares } = readTold(records, { host, seenMs })
    const known = shares.filter(({ site }) => this.#addSite(site))
    for (const site of this.#sites) {
      if (known.some((share) => share.site === site && share.rootHost === host)) continue
      known.push({ site, rootHost: host, endpoints: [], seenMs, generation: 'v2' })
    }
    return known
  }

  /**
   * Takes a whole zone in place of what there was; `changed` gets the hosts that differ. Pauses now and then, and
   * nothing is in force before the end. Throws TransferFault if it tells of too much.
   */
  *replace(records: ZoneRecords, changed: Set<string>): Generator<void, void> {
    const next = new SharedZone()
    let visited = 0
    for (let node = 0; node < records.nodeCount; node++) {
      const host = hostOf(records.owner(node))
      if (++visited % SLICE_RECORDS === 0) yield
      if (host === '') {
        next.#hasOthers ||= hasEndpoints(records, node)
        continue
      }
      for (let i = records.firstRecord[node]!; i !== -1; i = records.nextRecord[i]!) {
        if (records.type[i] === RRType.TXT) next.#add(host, printLatin1(records.rdata(i)))
        if (++visited % SLICE_RECORDS === 0) yield
      }
    }
    for (const [host, told] of next.#told) {
      if (!sameSets(told, this.#told.get(host))) changed.add(host)
      if (++visited % SLICE_RECORDS === 0) yield
    }
    for (const host of this.#told.keys()) if (!next.#told.has(host)) changed.add(host)
    this.#told = next.#told
    this.#count = next.#count
    this.#hasOthers = next.#hasOthers
  }

  /** As `replace`, of differences. */
  *advance(steps: readonly ReceivedStep[], changed: Set<string>): Generator<void, void> {
    const edits: { readonly host: string; readonly rdata: string; readonly isAdded: boolean }[] = []
    let visited = 0
    for (const { removed, added } of steps) {
      for (const [records, isAdded] of [[removed, false] as const, [added, true] as const]) {
        for (const { owner, type, rdata } of records) {
          this.#hasOthers ||= isAdded && ENDPOINT_TYPES.has(type)
          const host = type === RRType.TXT ? hostOf(lowerName(owner)) : ''
          if (host !== '') edits.push({ host, rdata: printLatin1(rdata), isAdded })
          if (++visited % SLICE_RECORDS === 0) yield
        }
      }
    }
    for (const { host, rdata, isAdded } of edits) {
      if (isAdded) this.#add(host, rdata)
      else this.#remove(host, rdata)
      changed.add(host)
    }
  }

  #add(host: string, rdata: string): void {
    const told = this.#told.get(host) ?? new Set()
    if (!told.has(rdata)) this.#count++
    if (this.#count > PEER_ENDPOINTS_MAX) {
      throw new TransferFault(`it tells of over ${PEER_ENDPOINTS_MAX} endpoints`)
    }
    told.add(rdata)
    this.#told.set(host, told)
  }

  #remove(host: string, rdata: string): void {
    const told = this.#told.get(host)
    if (told === undefined || !told.delete(rdata)) return
    this.#count--
    if (told.size === 0) this.#told.delete(host)
  }

  /** False: there are too many. */
  #addSite(site: string): boolean {
    if (this.#sites.size >= SITES_MAX && !this.#sites.has(site)) return false
    this.#sites.add(site)
    return true
  }
}

/** The host of `v2.<host>.kdrnt`, lower case, without a final dot; '' = another name. */
function hostOf(owner: Uint8Array): string {
  // Nearly all names are others: their text is not needed.
  if (owner[0] !== 2 || owner[1] !== 0x76) return ''
  const name = printName(owner)
  if (!name.startsWith(PREFIX) || !name.endsWith(SUFFIX)) return ''
  return name.slice(PREFIX.length, -SUFFIX.length)
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
