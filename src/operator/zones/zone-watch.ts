import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import { printHostPort } from '../../dns/host-port.ts'
import type { TsigKey } from '../../dns/tsig/key.ts'
import { TokenBucket } from '../../kube/token-bucket.ts'
import type { Publishing } from '../plan/decide.ts'
import { keyIdOf } from '../provider/key-id.ts'
import type { Nameserver } from '../provider/nameserver.ts'
import type { Provider } from '../provider/provider-secret.ts'
import type { ZoneAnswer } from './ask-zone.ts'
import {
  NO_ZONE_FAULT,
  printZoneFault,
  printZoneNote,
  recallZone,
  type ZoneState,
} from './zone-state.ts'

const CHECK_MS = 1000
/** Time between two checks of a zone: one that is served, one that is not, and before a first report. */
const SERVED_MS = 5 * 60_000
const UNSERVED_MS = 60_000
const CONFIRM_MS = 10_000
/** Checks in a row that must find the same before it is reported. */
const CHECKS_MIN = 3
/** Queries: at once, and the time for one more. */
const QUERIES_MAX = 20
const QUERY_EVERY_MS = 100
/** Zones that are asked for at once. */
const RUNNING_MAX = 8

/** Whether nameservers serve the zones of records. */
export interface ServedZones {
  /**
   * What is known of the zone of a record. Until the nameservers have been asked, that is what its Ready condition
   * says. The record is reconciled when the result changes.
   */
  stateOf(publishing: Pick<Publishing, 'record' | 'zone' | 'provider'>): ZoneState
  /** The record needs no zone any more. */
  forget(key: string): void
}

export const NO_ZONES: ServedZones = { stateOf: () => NO_ZONE_FAULT, forget: () => {} }

interface AskOptions {
  readonly key: TsigKey | undefined
  readonly signal: AbortSignal
}

interface ZoneWatchParts {
  readonly ask: (nameserver: Nameserver, zone: string, options: AskOptions) => Promise<ZoneAnswer>
  readonly onEvent: (key: string) => void
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
}

/**
 * What a check found. `refused`: no nameserver that answers serves the zone. `exchange`: some only serve kdrnt, so
 * other nameservers may serve the zone. `silent`: none answers, or the one that served the zone does not.
 */
type Finding = 'served' | 'refused' | 'exchange' | 'silent'

/** What checks found. Without a fault: nothing is proved yet, so what each record recalls counts. */
type Found = Pick<ZoneState, 'note'> & Partial<ZoneState>

interface Entry {
  readonly zone: string
  readonly provider: Pick<Provider, 'nameservers' | 'tsigKey'>
  /** Identifies the nameservers. */
  readonly group: string
  /** The records, with what their Ready conditions said when they came. */
  readonly records: Map<string, ZoneState>
  state: Found | undefined
  /** As reported; undefined = nothing yet. */
  finding: Finding | undefined
  /** What the last checks found, and how many of them. */
  last: { readonly finding: Finding; readonly count: number } | undefined
  /** The nameserver that served the zone when it last answered; '' = none. */
  servedBy: string
  dueMs: number
  isRunning: boolean
}

type Answers = ReadonlyMap<string, ZoneAnswer>

/**
 * Asks the nameservers of each provider for the SOA of the zones that records use, at a bounded rate. A zone is not
 * served if in three checks in a row no nameserver that answers is authoritative. Records are still published: a
 * nameserver may get the zone later.
 */
export class ZoneWatch implements ServedZones {
  readonly #parts: ZoneWatchParts
  readonly #entries = new Map<string, Entry>()
  readonly #byRecord = new Map<string, string>()
  readonly #queries: TokenBucket
  readonly #abort = new AbortController()
  readonly #stop: () => void
  #running = 0

  constructor(parts: ZoneWatchParts) {
    this.#parts = parts
    this.#queries = new TokenBucket(parts.clock, QUERIES_MAX, QUERY_EVERY_MS)
    this.#stop = parts.timers.every(CHECK_MS, () => this.#check())
  }

  stateOf({ record, zone, provider }: Parameters<ServedZones['stateOf']>[0]): ZoneState {
    const { key } = record
    const { nameservers, tsigKey } = provider
    if (nameservers.length === 0) {
      this.forget(key)
      return NO_ZONE_FAULT
    }
    const group = nameservers.map(printHostPort).join(' ')
    const id = `${zone} ${group} ${tsigKey === undefined ? '' : keyIdOf(tsigKey)}`
    if (this.#byRecord.get(key) !== id) this.forget(key)
    this.#byRecord.set(key, id)
    const entry = this.#entries.get(id) ?? this.#newEntry({ zone, provider, group })
    this.#entries.set(id, entry)
    const recalled = entry.records.get(key) ?? recallZone(record, zone)
    entry.records.set(key, recalled)
    return { ...recalled, ...entry.state }
  }

  forget(key: string): void {
    const id = this.#byRecord.get(key)
    if (id === undefined) return
    this.#byRecord.delete(key)
    const entry = this.#entries.get(id)
    entry?.records.delete(key)
    if (entry?.records.size === 0) this.#entries.delete(id)
  }

  /** The zones that no nameserver serves, for the ready page. */
  get faults(): readonly string[] {
    const faults = [...this.#entries.values()].map(faultOf)
    return [...new Set(faults)].filter((fault) => fault !== '')
  }

  close(): void {
    this.#stop()
    this.#abort.abort()
    this.#entries.clear()
    this.#byRecord.clear()
  }

  #newEntry(about: Pick<Entry, 'zone' | 'provider' | 'group'>): Entry {
    const dueMs = this.#parts.clock.monotonic()
    const found = { state: undefined, finding: undefined, last: undefined, servedBy: '' }
    return { ...about, ...found, records: new Map<string, ZoneState>(), dueMs, isRunning: false }
  }

  #check(): void {
    const nowMs = this.#parts.clock.monotonic()
    for (const entry of this.#entries.values()) {
      if (entry.isRunning || nowMs < entry.dueMs) continue
      if (this.#running >= RUNNING_MAX || !this.#queries.take()) return
      void this.#ask(entry)
    }
  }

  async #ask(entry: Entry): Promise<void> {
    entry.isRunning = true
    this.#running++
    const answers = await this.#askAll(entry)
    this.#running--
    entry.isRunning = false
    if (this.#abort.signal.aborted) return
    const finding = this.#find(entry, answers)
    const count = entry.last?.finding === finding ? entry.last.count + 1 : 1
    entry.last = { finding, count }
    const isSure = finding === 'served' || finding === entry.finding || count >= CHECKS_MIN
    const pauseMs = finding === 'served' ? SERVED_MS : isSure ? UNSERVED_MS : CONFIRM_MS
    entry.dueMs = this.#parts.clock.monotonic() + pauseMs
    // Other rcodes are no news: they may change with each check.
    if (!isSure || finding === entry.finding) return
    entry.finding = finding
    this.#settle(entry, stateAfter(entry, finding, answers))
  }

  /** Asks one nameserver after the other, until one serves the zone. */
  async #askAll({ zone, provider }: Entry): Promise<Answers> {
    const { nameservers, tsigKey: key } = provider
    const { signal } = this.#abort
    const answers = new Map<string, ZoneAnswer>()
    for (const [i, nameserver] of nameservers.entries()) {
      // The bucket limits the rate of zones; it pays for their further nameservers where it can.
      if (i > 0) this.#queries.take()
      const answer = await this.#parts.ask(nameserver, zone, { key, signal })
      if (signal.aborted) break
      answers.set(printHostPort(nameserver), answer)
      if (answer === 'served') break
    }
    return answers
  }

  #find(entry: Entry, answers: Answers): Finding {
    const server = [...answers].find(([, answer]) => answer === 'served')
    if (server !== undefined) {
      entry.servedBy = server[0]
      return 'served'
    }
    if (entry.servedBy !== '' && answers.get(entry.servedBy) === 'silent') return 'silent'
    entry.servedBy = ''
    const refusals = [...answers.values()].filter((answer) => typeof answer === 'object')
    if (refusals.length === 0) return 'silent'
    const isExchange = refusals.some(({ hasRecords }) => hasRecords) && !this.#serveAny(entry)
    return isExchange ? 'exchange' : 'refused'
  }

  /** True if these nameservers serve another zone, which exchanges do not. */
  #serveAny({ group }: Entry): boolean {
    return [...this.#entries.values()].some((one) => one.group === group && one.servedBy !== '')
  }

  #settle(entry: Entry, state: Found): void {
    const { log, onEvent } = this.#parts
    const { zone, finding } = entry
    const before = faultOf(entry)
    entry.state = state
    const { fault = before, note } = state
    const reasonsOf = (text: string): string =>
      text.slice(text.indexOf(`${zone}: `) + zone.length + 2)
    if (fault !== before && fault !== '')
      log.warning(
        `no nameserver of its Secret serves the zone ${zone}: ${reasonsOf(fault)}`,
        'zone-unserved',
      )
    if (note !== '')
      log.info(
        `not known whether a nameserver serves the zone ${zone}: ${reasonsOf(note)}`,
        'zone-service-unknown',
      )
    if (finding === 'served' && before !== '')
      log.info(`zone ${zone}: a nameserver serves it again`, 'zone-served')
    for (const key of entry.records.keys()) onEvent(key)
  }
}

/** Why no nameserver serves the zone, as the last check or else some record says; '' = it is not known. */
function faultOf({ state, records }: Entry): string {
  if (state?.fault !== undefined) return state.fault
  return [...records.values()].find(({ fault }) => fault !== '')?.fault ?? ''
}

/** Silence and exchanges prove nothing: what was found before counts. */
function stateAfter({ zone, state }: Entry, finding: Finding, answers: Answers): Found {
  if (finding === 'served') return NO_ZONE_FAULT
  const isExchange = finding === 'exchange'
  const texts = [...answers].map(([address, answer]) => `${address} (${print(answer, isExchange)})`)
  const list = texts.join(', ')
  if (finding === 'refused') return { fault: printZoneFault(zone, list), note: '' }
  const note = printZoneNote(zone, list)
  return state?.fault === undefined ? { note } : { fault: state.fault, note }
}

function print(answer: ZoneAnswer, isExchange: boolean): string {
  if (typeof answer === 'string') return 'no answer'
  return answer.hasRecords && isExchange ? `${answer.refusal}, only kdrnt` : answer.refusal
}
