import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import { printHostPort } from '../../dns/host-port.ts'
import { TokenBucket } from '../../kube/token-bucket.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { Nameserver } from '../provider/nameserver.ts'
import type { Provider } from '../provider/provider-secret.ts'
import type { ZoneAnswer } from './ask-zone.ts'

const CHECK_MS = 1000
/** Time between two checks of a zone: one that is served, one that is not, and before a first report. */
const SERVED_MS = 5 * 60_000
const UNSERVED_MS = 60_000
const CONFIRM_MS = 10_000
/** Queries: at once, and the time for one more. */
const QUERIES_MAX = 20
const QUERY_EVERY_MS = 100
/** Zones that are asked for at once. */
const RUNNING_MAX = 8
/** How each fault begins. */
const FAULT = 'no nameserver of its Secret serves the zone'

/** Whether nameservers serve the zones of records. */
export interface ServedZones {
  /**
   * Why the nameservers do not serve the zone of the record `key`; '' = one of them does, or some
   * do not answer; undefined = not known yet. The record is reconciled when the result changes.
   */
  faultOf(key: string, zone: string, provider: Provider): string | undefined
  /** The record needs no zone any more. */
  forget(key: string): void
}

export const NO_ZONES: ServedZones = { faultOf: () => '', forget: () => {} }

export interface ZoneWatchParts {
  readonly ask: (nameserver: Nameserver, zone: string, signal: AbortSignal) => Promise<ZoneAnswer>
  readonly onEvent: (key: string) => void
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
}

interface Entry {
  readonly zone: string
  readonly nameservers: readonly Nameserver[]
  readonly keys: Set<string>
  fault: string | undefined
  /** The last answers were refusals, which are reported if they repeat. */
  isSuspect: boolean
  dueMs: number
  isRunning: boolean
}

/**
 * Asks the nameservers of each provider for the SOA of the zones that records use, at a bounded
 * rate. A zone is not served if all nameservers answer and none of them is authoritative, twice in
 * a row. Records are still published: the nameserver may get the zone later.
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

  faultOf(key: string, zone: string, { nameservers }: Provider): string | undefined {
    if (nameservers.length === 0) {
      this.forget(key)
      return ''
    }
    const id = `${zone} ${nameservers.map(printHostPort).join(' ')}`
    if (this.#byRecord.get(key) !== id) this.forget(key)
    this.#byRecord.set(key, id)
    const known = this.#entries.get(id)
    const dueMs = this.#parts.clock.monotonic()
    const rest = { fault: undefined, isSuspect: false, dueMs, isRunning: false }
    const entry = known ?? { zone, nameservers, keys: new Set<string>(), ...rest }
    this.#entries.set(id, entry)
    entry.keys.add(key)
    return entry.fault
  }

  forget(key: string): void {
    const id = this.#byRecord.get(key)
    if (id === undefined) return
    this.#byRecord.delete(key)
    const entry = this.#entries.get(id)
    entry?.keys.delete(key)
    if (entry?.keys.size === 0) this.#entries.delete(id)
  }

  /** The zones that no nameserver serves, for the ready page. */
  get faults(): readonly string[] {
    return [...this.#entries.values()]
      .map(({ fault = '' }) => fault)
      .filter((fault) => fault !== '')
  }

  close(): void {
    this.#stop()
    this.#abort.abort()
    this.#entries.clear()
    this.#byRecord.clear()
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
    const refusals = await this.#findRefusals(entry)
    this.#running--
    entry.isRunning = false
    if (this.#abort.signal.aborted) return
    const { nameservers, isSuspect, fault = '' } = entry
    const isServed = refusals === 'served'
    const isRefused = !isServed && refusals.length === nameservers.length
    const isConfirmed = isRefused && (isSuspect || fault !== '')
    const pauseMs = isServed ? SERVED_MS : isRefused && !isConfirmed ? CONFIRM_MS : UNSERVED_MS
    entry.dueMs = this.#parts.clock.monotonic() + pauseMs
    entry.isSuspect = isRefused
    if (isRefused && !isConfirmed) return
    // Silence proves nothing: what was found before counts.
    if (isRefused) this.#settle(entry, `${FAULT} ${entry.zone}: ${printReasons(refusals)}`)
    else this.#settle(entry, isServed ? '' : fault)
  }

  /** What the nameservers that answer say; `served`: one of them serves the zone. */
  async #findRefusals({ zone, nameservers }: Entry): Promise<readonly string[] | 'served'> {
    const { signal } = this.#abort
    const refusals: string[] = []
    for (const [i, nameserver] of nameservers.entries()) {
      // The bucket limits the rate of zones; it pays for their further nameservers where it can.
      if (i > 0) this.#queries.take()
      const answer = await this.#parts.ask(nameserver, zone, signal)
      if (answer === 'served') return answer
      if (signal.aborted) break
      if (typeof answer === 'object')
        refusals.push(`${printHostPort(nameserver)} (${answer.refusal})`)
    }
    return refusals
  }

  #settle(entry: Entry, fault: string): void {
    const { log, onEvent } = this.#parts
    const before = entry.fault
    entry.fault = fault
    if (before === fault) return
    const reasons = fault.slice(`${FAULT} ${entry.zone}: `.length)
    if (fault !== '')
      log.warning(`no nameserver of its Secret serves the zone ${entry.zone}: ${reasons}`)
    else if (before !== undefined) log.info(`zone ${entry.zone}: a nameserver serves it again`)
    for (const key of entry.keys) onEvent(key)
  }
}

/** The fault of the zone that the message of a condition contains; '' = none. */
export function readFault(message: string): string {
  return message.split('; ').find((part) => part.startsWith(FAULT)) ?? ''
}

function printReasons(refusals: readonly string[]): string {
  return `${refusals.join(', ')}: add the zone to their Corefiles, or remove it from ZONES`
}
