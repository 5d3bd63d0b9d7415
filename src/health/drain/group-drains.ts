import { assert } from '../../base/assert.ts'
import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import { ask, questionOf } from '../../client/ask.ts'
import { type HostPort, printHostPort } from '../../dns/host-port.ts'
import { printRcode, Rcode, RRType } from '../../dns/iana/index.ts'
import { HeaderFlag } from '../../dns/message/message.ts'
import { lowerName, nameKey, printName } from '../../dns/name/name.ts'
import { unpackRecord } from '../../dnsrecord/pack.ts'
import type { RecordChange, RecordSource, StoredRecord } from '../../dnsrecord/record-source.ts'
import { type Guarded, guarding } from '../../telemetry/guard.ts'
import type { Logger } from '../../telemetry/log.ts'
import { ACTIVE_GROUPS_LABEL, scanActiveGroups } from './active-groups.ts'
import type { EndpointDrain } from './drain.ts'
import { type DrainFeed, DrainSchedule, type DrainsChange } from './drain-schedule.ts'
import { scanDrainSelector } from './selector.ts'

/** Bounds on the interval between two queries, which is the TTL otherwise. */
const POLL_MS_MIN = 5000
const POLL_MS_MAX = 60_000
/** Wait after a failed query. */
const RETRY_MS = 15_000
/** Of one server: attempts over UDP, the wait for each reply, and for the exchange over TCP. */
const TRIES = 2
const TIMEOUT_MS = 1500
/** The start waits so long for the active groups. */
const START_MS_MAX = 3000

export interface GroupDrainsOptions {
  /** The records that are served: the TXT record may be one of them. */
  readonly source: RecordSource
  readonly group: string
  /** Our own site. */
  readonly site: string
  /** Wire names. */
  readonly zones: readonly Uint8Array[]
  /** Asked one after the other until one knows the TXT record. */
  readonly servers: readonly HostPort[]
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
}

/** The active groups of a zone. */
interface ZoneGroups {
  readonly zone: string
  /** Name of the TXT record. */
  readonly name: Uint8Array
  /** As it may appear in a packed record. */
  readonly needle: string
  /** Undefined = not known yet. */
  active: readonly string[] | undefined
  /** Why the last query failed; '' = it did not. */
  fault: string
  cancel: () => void
  /** Number of the last lookup: an earlier one does not count. */
  lookup: number
}

/** The active groups of a zone, or the reason why the lookup failed. */
type Found =
  | { readonly groups: readonly string[]; readonly ttlSeconds: number }
  | { readonly fault: string }

/**
 * Drains the endpoints of our site in each zone whose active groups do not include our group, as
 * Kuadrant does for active/passive sites. The TXT record `kuadrant-active-groups.ZONE` names the
 * active groups. It comes from the served records, or else from DNS. Without a valid TXT record, the
 * last known groups count; before that, the group is active.
 */
export class GroupDrains implements DrainFeed {
  readonly #options: GroupDrainsOptions
  readonly #schedule: DrainSchedule
  readonly #guarded: Guarded
  readonly #zones: readonly ZoneGroups[]
  readonly #unsubscribe: () => void
  readonly #abort = new AbortController()
  /** Resolves once the first attempt for each zone has ended, or takes too long. */
  readonly firstAttempt: Promise<void>

  constructor(options: GroupDrainsOptions) {
    const { source, zones, log } = options
    this.#options = options
    this.#schedule = new DrainSchedule(options)
    this.#guarded = guarding(log, 'Following the active groups')
    this.#zones = zones.map(groupsOf)
    this.#unsubscribe = source.subscribe(
      (changes) => void this.#guarded(() => this.#follow(changes)),
    )
    const attempts = Promise.all(this.#zones.map((zone) => this.#poll(zone)))
    this.firstAttempt = new Promise((resolve) => {
      const cancel = options.timers.after(START_MS_MAX, resolve)
      void attempts.then(cancel).then(resolve)
    })
  }

  get drains(): readonly EndpointDrain[] {
    return this.#schedule.active
  }

  get fault(): string {
    const faults = this.#zones.filter(({ fault }) => fault !== '')
    return faults.map(({ zone, fault }) => `active groups of ${zone}: ${fault}`).join('; ')
  }

  subscribe(listener: (change: DrainsChange) => void): () => void {
    return this.#schedule.subscribe(listener)
  }

  close(): void {
    this.#abort.abort()
    this.#unsubscribe()
    for (const zone of this.#zones) zone.cancel()
    this.#schedule.close()
  }

  #follow(changes: readonly RecordChange[]): void {
    for (const zone of this.#zones) {
      const concerns = (record: StoredRecord | undefined): boolean => {
        return record?.packed.includes(zone.needle) === true
      }
      if (!changes.some(({ before, after }) => concerns(before) || concerns(after))) continue
      void this.#poll(zone)
    }
  }

  async #poll(zone: ZoneGroups): Promise<void> {
    zone.cancel()
    const lookup = ++zone.lookup
    const own = this.#findOwn(zone)
    const found = own ?? (await this.#query(zone))
    if (this.#abort.signal.aborted || lookup !== zone.lookup) return
    const { log, timers } = this.#options
    if ('fault' in found) {
      const kept =
        zone.active === undefined ? 'the group counts as active' : 'the last known groups count'
      const fault = `${found.fault}; ${kept}`
      if (fault !== zone.fault) log.warning(`active groups of ${zone.zone}: ${fault}`)
      zone.fault = fault
    } else {
      const text = found.groups.join(', ')
      const isNew = zone.fault !== '' || text !== zone.active?.join(', ')
      zone.fault = ''
      zone.active = found.groups
      if (isNew) log.info(`active groups of ${zone.zone}: ${text === '' ? 'none' : text}`)
      this.#apply()
    }
    // The changes of a record of this server are followed.
    if (own !== undefined) return
    const ttlMs = 'fault' in found ? RETRY_MS : found.ttlSeconds * 1000
    const waitMs = Math.min(POLL_MS_MAX, Math.max(POLL_MS_MIN, ttlMs))
    zone.cancel = timers.after(waitMs, () => void this.#poll(zone))
  }

  #apply(): void {
    const { group, site } = this.#options
    const passive = this.#zones.filter(({ active }) => active?.includes(group) === false)
    this.#schedule.set(passive.map(({ zone }) => drainOf(group, site, zone)))
    void this.#guarded(() => this.#schedule.check())
  }

  /** Undefined = no served record has the TXT record. */
  #findOwn({ name, needle }: ZoneGroups): Found | undefined {
    const key = nameKey(name)
    for (const { packed } of this.#options.source.records()) {
      if (!packed.includes(needle)) continue
      for (const { owner, type, rdata, ttlSeconds } of unpackRecord(packed).endpoints) {
        if (type !== RRType.TXT || nameKey(lowerName(owner)) !== key) continue
        return foundIn(rdata, ttlSeconds, 'the record')
      }
    }
    return undefined
  }

  async #query({ name }: ZoneGroups): Promise<Found> {
    const { servers } = this.#options
    const query = { ...questionOf(name, RRType.TXT), flags: HeaderFlag.RD }
    let fault = 'no server to query'
    for (const server of servers) {
      const { signal } = this.#abort
      const how = { timeoutMs: TIMEOUT_MS, tries: TRIES, signal }
      const answered = await ask({ server, query, ...how })
      if (signal.aborted) return { fault: 'closed' }
      const at = printHostPort(server)
      if (answered.kind === 'failed') {
        fault = `${at}: ${answered.reason}`
        continue
      }
      const { rcode, answer } = answered.message
      const texts = answer.filter(({ type }) => type === RRType.TXT)
      if (rcode !== Rcode.NOERROR || texts.length === 0) {
        fault = `${at} answered ${rcode === Rcode.NOERROR ? 'no TXT record' : printRcode(rcode)}`
        continue
      }
      const ttlSeconds = Math.min(...answer.map((record) => record.ttlSeconds))
      const found = foundIn(
        texts.map(({ rdata }) => rdata),
        ttlSeconds,
        at,
      )
      if (!('fault' in found)) return found
      fault = found.fault
    }
    return { fault }
  }
}

function groupsOf(zone: Uint8Array): ZoneGroups {
  const label = Buffer.from(ACTIVE_GROUPS_LABEL)
  const name = Buffer.concat([Buffer.from([label.length]), label, zone])
  const text = printName(zone)
  const needle = ACTIVE_GROUPS_LABEL
  return { zone: text, name, needle, active: undefined, fault: '', cancel: () => {}, lookup: 0 }
}

/** Reads the first valid TXT record. `place`: where it comes from. */
function foundIn(rdata: readonly Uint8Array[], ttlSeconds: number, place: string): Found {
  for (const one of rdata) {
    const groups = scanActiveGroups(joinStrings(one))
    if (groups !== undefined) return { groups, ttlSeconds }
  }
  return { fault: `${place} has no text of the form version=1;groups=g1&&g2` }
}

/** Returns the strings of a TXT record as one text (RFC 1035 section 3.3.14). */
function joinStrings(rdata: Uint8Array): string {
  let text = ''
  for (let at = 0; at < rdata.length; at += rdata[at]! + 1) {
    text += Buffer.from(rdata.subarray(at + 1, at + 1 + rdata[at]!)).toString('latin1')
  }
  return text
}

function drainOf(group: string, site: string, zone: string): EndpointDrain {
  const selector = scanDrainSelector([`site:${site}`, `zone:${zone}`])
  assert(typeof selector !== 'string', 'a site and a zone are valid terms')
  const reason = `group ${group} is not active`
  const actor = `${ACTIVE_GROUPS_LABEL}.${zone}`
  return { selector, reason, actor, createdMs: undefined, untilMs: undefined }
}
