import type { Clock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import { printTime } from '../../base/rfc3339.ts'
import { guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { MetricsRegistry } from '../../base/telemetry/metrics.ts'
import type { Timers } from '../../base/timers.ts'
import { ask as askServer } from '../../client/ask.ts'
import { type HostPort, printHostPort } from '../../dns/host-port.ts'
import { nameKey, printName } from '../../dns/name/name.ts'
import type { TsigKey } from '../../dns/tsig/key.ts'
import { ZoneRefresher } from '../../xfr/zone-refresher.ts'
import type { KeyDirectory } from '../keys/key-directory.ts'
import { type AnsweredKeys, askKeys } from './ask-keys.ts'
import { scanSharedKeys } from './shared-keys.ts'

/** From a round of questions to the next one, if the last one was successful. */
const PAUSE_MS = 5000
/** After the first failed round; it doubles with each further one. */
const RETRY_MS = 250
const RETRY_MS_MAX = 10_000
/** A pause is shorter by up to this part, so that servers do not ask at the same time. */
const JITTER = 0.1
/** Zones that a message names. */
const NAMES_MAX = 3

export interface KeyFollowerParts {
  readonly servers: readonly HostPort[]
  /** Returns the source address for a server; '' = any. */
  readonly sourceFor: (server: HostPort) => string
  readonly key: TsigKey
  /** Apexes, lower-case wire form. */
  readonly zones: () => readonly Uint8Array[]
  readonly store: KeyDirectory
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  readonly metrics: MetricsRegistry
  /** Uniform over 0..1. */
  readonly random: () => number
  /** Longest time that the servers assume until this one has a change. */
  readonly delaySeconds: number
  /** Replaced by tests. */
  readonly ask?: typeof askServer
}

/** What is known of a zone. */
interface Followed {
  readonly zone: Uint8Array
  /** What was stored last; '' = nothing since the start. */
  held: string
  /** When a server last confirmed it, Unix milliseconds; 0 = not since the start. */
  confirmedMs: number
  /** Monotonic milliseconds of the same, or of the start. */
  sinceMs: number
  fault: string
}

/**
 * Makes the keys of zones in a directory those of other servers, which it asks every few seconds. So this server signs
 * with a new key in time, and starts without the others.
 */
export class KeyFollower {
  readonly #parts: KeyFollowerParts
  readonly #refresher: ZoneRefresher
  readonly #zones = new Map<string, Followed>()
  readonly #listeners = new Set<() => void>()
  readonly #stops: (() => void)[] = []
  /** The server to ask first. */
  #first = 0
  #faults: readonly string[] = []

  constructor(parts: KeyFollowerParts) {
    this.#parts = parts
    const { clock, timers, log, random } = parts
    this.#refresher = new ZoneRefresher({
      clock,
      timers,
      guarded: guarding(log, 'Following the keys of another server'),
      refresh: () => this.#refresh(),
      pauseMs: (failures) => {
        const retryMs = Math.min(RETRY_MS * 2 ** Math.min(failures - 1, 10), RETRY_MS_MAX)
        return (failures === 0 ? PAUSE_MS : retryMs) * (1 - JITTER * random())
      },
      gapMs: PAUSE_MS,
    })
  }

  /** Asks now, and from then on every few seconds. */
  start(): void {
    const { store, metrics } = this.#parts
    const gauge = metrics.gauge(
      'sextant_key_follow_confirmed_timestamp_seconds',
      'When another server last confirmed that the keys of a zone are its own; 0 = not since the start.',
      ['zone'],
    )
    this.#stops.push(
      metrics.onCollect(() => {
        for (const { zone, confirmedMs } of this.#all())
          gauge.set({ zone: printName(zone) }, confirmedMs / 1000)
      }),
      // Missing files are restored.
      store.watch(() => {
        for (const one of this.#all()) one.held = ''
      }),
    )
    this.#refresher.start()
  }

  /** Asks once. Resolves to what is wrong with each zone, as one text; '' = the directory has all keys. */
  async followOnce(): Promise<string> {
    await this.#refresh()
    return this.fault
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops.splice(0)) stop()
    this.#refresher.stop()
    await this.#refresher.settled()
  }

  /** Why the keys may be out of date; '' = they are current. */
  get fault(): string {
    return this.#faults.join('; ')
  }

  /** The servers, as a text. */
  get serversText(): string {
    return printServers(this.#parts.servers)
  }

  /** Calls `listener` after each change of keys, until the returned function is called. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #all(): Followed[] {
    return this.#parts.zones().map((zone) => {
      const key = nameKey(zone)
      const sinceMs = this.#parts.clock.monotonic()
      const known = this.#zones.get(key) ?? { zone, held: '', confirmedMs: 0, sinceMs, fault: '' }
      this.#zones.set(key, known)
      return known
    })
  }

  /** Returns true if all zones are current. */
  async #refresh(): Promise<boolean> {
    const silent = new Map<HostPort, string>()
    let isChanged = false
    for (const one of this.#all()) {
      if (this.#refresher.signal.aborted) return false
      if (await this.#follow(one, silent)) isChanged = true
    }
    this.#report()
    if (isChanged) for (const listener of this.#listeners) listener()
    return this.#all().every(({ fault }) => fault === '')
  }

  /** `silent`: servers that do not answer in this round. Returns true if the keys of the zone may have changed. */
  async #follow(one: Followed, silent: Map<HostPort, string>): Promise<boolean> {
    const { servers, clock } = this.#parts
    const faults: string[] = []
    for (let i = 0; i < servers.length; i++) {
      const index = (this.#first + i) % servers.length
      const server = servers[index]!
      const answered = await this.#ask(one, server, silent)
      if (this.#refresher.signal.aborted) return false
      const fault = answered.kind === 'failed' ? answered.reason : await this.#store(one, answered)
      if (fault === '') {
        this.#first = index
        one.confirmedMs = clock.now()
        one.sinceMs = clock.monotonic()
        one.fault = ''
        return answered.kind === 'keys'
      }
      faults.push(fault)
    }
    one.fault = faults.join('; ')
    return false
  }

  async #ask(
    { zone, held }: Followed,
    server: HostPort,
    silent: Map<HostPort, string>,
  ): Promise<AnsweredKeys> {
    const known = silent.get(server)
    if (known !== undefined) return { kind: 'failed', reason: known, isSilent: true }
    const { key, sourceFor, ask = askServer } = this.#parts
    const { signal } = this.#refresher
    const answered = await askKeys(
      { zone, server, source: sourceFor(server), key, held, signal },
      ask,
    )
    if (answered.kind === 'failed' && answered.isSilent) silent.set(server, answered.reason)
    return answered
  }

  /** Returns why the keys can't be stored; '' = they are. */
  async #store(one: Followed, answered: AnsweredKeys): Promise<string> {
    if (answered.kind !== 'keys') return ''
    const { store, log } = this.#parts
    const { zone } = one
    try {
      const keys = scanSharedKeys(zone, answered.text, this.serversText)
      if (await store.follow(keys))
        log.info(`keys of ${printName(zone)}: copied from ${this.serversText}`, 'keys-followed')
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      return error.print()
    }
    one.held = answered.text
    return ''
  }

  /** Logs faults that are new. */
  #report(): void {
    const { log } = this.#parts
    const zonesOf = new Map<string, string[]>()
    for (const one of this.#all()) {
      if (one.fault === '') continue
      const reason = `${one.fault}${this.#effectOf(one)}`
      const names = zonesOf.get(reason) ?? []
      zonesOf.set(reason, names)
      names.push(printName(one.zone))
    }
    const faults = [...zonesOf].map(([reason, names]) => `keys of ${printNames(names)}: ${reason}`)
    for (const fault of faults)
      if (!this.#faults.includes(fault)) log.warning(fault, 'keys-not-followed')
    this.#faults = faults
  }

  /** What it means that no server confirms the keys of a zone. */
  #effectOf({ confirmedMs, sinceMs }: Followed): string {
    const { clock, delaySeconds } = this.#parts
    if (clock.monotonic() - sinceMs <= delaySeconds * 1000) return ''
    const since = confirmedMs === 0 ? 'the start' : printTime(confirmedMs)
    const delay = `not confirmed since ${since}, which is longer than zone-propagation-delay`
    return `; ${delay}: after a roll, signatures of this server may be invalid`
  }
}

/** Returns the servers as messages name them. */
export function printServers(servers: readonly HostPort[]): string {
  return servers.map(printHostPort).join(' ')
}

function printNames(names: readonly string[]): string {
  const more = names.length - NAMES_MAX
  const first = names.slice(0, NAMES_MAX).join(', ')
  return more <= 0 ? first : `${first} and ${more} more zones`
}
