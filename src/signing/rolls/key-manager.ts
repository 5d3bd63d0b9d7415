import { randomUUID } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import { printTime } from '../../base/rfc3339.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { MetricsRegistry } from '../../base/telemetry/metrics.ts'
import type { ProblemGroup } from '../../base/telemetry/problems.ts'
import type { KeyReport } from '../../base/telemetry/status.ts'
import type { Timers } from '../../base/timers.ts'
import type { HostPort } from '../../dns/host-port.ts'
import { nameKey } from '../../dns/name/name.ts'
import type { KeyStore, StoredKey } from '../keys/key-store.ts'
import type { KeySource, ZoneKeys } from '../zone-keys.ts'
import { notifyParent } from './notify-parent.ts'
import { askParentDs } from './parent-ds.ts'
import type { RollPolicy } from './policy.ts'
import { SteadyClock } from './steady-clock.ts'
import { ZoneRolls, type ZoneRollsParts } from './zone-rolls.ts'

/** Longest list of notes. */
const NOTES_MAX = 10

export interface KeyManagerOptions {
  readonly store: KeyStore
  /** Apexes, lower-case wire form. */
  readonly zones: readonly Uint8Array[]
  readonly policy: RollPolicy
  /** All servers of the parent to ask for the DS; empty = a user confirms changes of the DS. */
  readonly parents: readonly HostPort[]
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  readonly metrics: MetricsRegistry
  /** Asked before each change. False = another server changes the keys, and this one follows. Absent = always true. */
  readonly mayChange?: () => boolean
  /** True if another instance in this process signs the zone with keys of the store. Absent = never. */
  readonly isInUse?: (zone: Uint8Array) => boolean
  /** Called with each step of a roll, for events. */
  readonly onStep?: (zone: Uint8Array, text: string) => void
  /** Replaced by tests. */
  readonly askParentDs?: ZoneRollsParts['askParentDs']
  readonly notifyParent?: ZoneRollsParts['notifyParent']
}

/**
 * The keys of zones, which it makes and rolls. Servers with the same key store may run at the same time: each step is a
 * change of the state in the store, which only one of them can make.
 */
export class KeyManager implements KeySource {
  readonly #options: KeyManagerOptions
  readonly #clock: SteadyClock
  readonly #server = randomUUID()
  readonly #zones = new Map<string, ZoneRolls>()
  readonly #listeners = new Set<(zone: Uint8Array) => void>()
  readonly #stops: (() => void)[] = []
  #storeFaults: readonly string[] = []
  #isStarted = false
  #reading: Promise<void> | undefined
  /** It begins after `#reading`. */
  #nextReading: Promise<void> | undefined

  constructor(options: KeyManagerOptions) {
    this.#options = options
    this.#clock = new SteadyClock(options.clock)
    for (const zone of options.zones) this.#add(zone)
  }

  find(zone: Uint8Array): ZoneKeys | undefined {
    return this.#zones.get(nameKey(zone))?.keys
  }

  subscribe(listener: (zone: Uint8Array) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  notePublished(zone: Uint8Array, keys: ZoneKeys, ttlSecondsMax: number): void {
    this.#zones.get(nameKey(zone))?.notePublished(keys, ttlSecondsMax)
  }

  /** Loads keys, makes those that are missing, and begins to roll. */
  async start(): Promise<void> {
    const { store, metrics } = this.#options
    this.#isStarted = true
    this.#stops.push(store.watch(() => void this.#reloadAndRun()))
    const gauge = metrics.gauge(
      'sextant_key_roll_next_step_timestamp_seconds',
      'When the next step of the key rolls of a zone is due; 0 = not planned.',
      ['zone'],
    )
    this.#stops.push(
      metrics.onCollect(() => {
        for (const rolls of this.#zones.values()) {
          gauge.set({ zone: rolls.name }, rolls.next?.atSeconds ?? 0)
        }
      }),
    )
    await this.#reloadAndRun()
  }

  stop(): void {
    for (const stop of this.#stops.splice(0)) stop()
    for (const rolls of this.#zones.values()) rolls.stop()
  }

  /** Reads the store, asks the parent, and does what is due, now. */
  async check(): Promise<void> {
    for (const rolls of this.#zones.values()) rolls.pollSoon()
    await this.#reloadAndRun()
  }

  /** Manages the keys of one more zone. */
  manage(zone: Uint8Array): void {
    if (this.#zones.has(nameKey(zone))) return
    this.#add(zone)
    if (this.#isStarted) void this.#reloadAndRun()
  }

  get problems(): readonly ProblemGroup[] {
    const groups: ProblemGroup[] = []
    const add = (of: string, faults: readonly string[]): void => {
      const problems = faults.map((reason) => ({ place: '', object: of, reason }))
      if (faults.length > 0) groups.push({ kind: 'zone-key', of, count: faults.length, problems })
    }
    add('key store', this.#storeFaults)
    for (const rolls of this.#zones.values()) {
      add(
        `zone ${rolls.name}`,
        rolls.faults.map((fault) => `keys of ${rolls.name}: ${fault}`),
      )
    }
    return groups
  }

  /** The next step of each zone whose keys wait for something; the first ones if they are many. */
  get notes(): readonly string[] {
    const waiting = [...this.#zones.values()]
      .filter(({ next }) => next !== undefined)
      .sort((a, b) => atOf(a) - atOf(b))
    const notes = waiting.slice(0, NOTES_MAX).flatMap(({ name, next }) => {
      if (next === undefined) return []
      const at = next.atSeconds === undefined ? '' : ` at ${printTime(next.atSeconds * 1000)}`
      return [`keys of ${name}: next: ${next.text}${at}`]
    })
    const more = waiting.length - notes.length
    return more === 0 ? notes : [...notes, `and ${more} more zones`]
  }

  get reports(): readonly KeyReport[] {
    return [...this.#zones.values()].flatMap(({ reports }) => reports)
  }

  #add(zone: Uint8Array): void {
    const { store, policy, parents, timers, log, mayChange = () => true } = this.#options
    const { onStep = () => {}, isInUse = () => false, ...rest } = this.#options
    const rolls = new ZoneRolls({
      zone,
      store,
      policy,
      parents,
      timers,
      log,
      mayChange,
      isInUse: () => isInUse(zone),
      onStep,
      clock: this.#clock,
      server: this.#server,
      askParentDs: rest.askParentDs ?? askParentDs,
      notifyParent: rest.notifyParent ?? ((apex) => notifyParent(apex, log)),
      reload: () => this.#reload(),
      onKeys: (changed) => {
        for (const listener of this.#listeners) listener(changed)
      },
    })
    this.#zones.set(nameKey(zone), rolls)
  }

  async #reloadAndRun(): Promise<void> {
    await this.#reload()
    await Promise.all([...this.#zones.values()].map((rolls) => rolls.run()))
  }

  /** Calls share a reading of the store that has not begun: the zones make their keys at one time. */
  #reload(): Promise<void> {
    this.#nextReading ??= (this.#reading ?? Promise.resolve()).then(() => {
      this.#nextReading = undefined
      this.#reading = this.#readStore()
      return this.#reading
    })
    return this.#nextReading
  }

  async #readStore(): Promise<void> {
    const loaded = await this.#options.store.load().catch((error: unknown) => {
      if (!(error instanceof InputError)) throw error
      return error
    })
    const isLoaded = !(loaded instanceof InputError)
    const faults = isLoaded ? loaded.faults : [loaded]
    const texts = faults.map((fault) => fault.print())
    const { log } = this.#options
    for (const text of texts) {
      if (!this.#storeFaults.includes(text)) log.warning(text, 'key-fault')
    }
    this.#storeFaults = texts
    if (!isLoaded) return
    const keysOf = new Map<string, StoredKey[]>()
    for (const key of loaded.keys) {
      const zone = nameKey(key.zone)
      const own = keysOf.get(zone)
      if (own === undefined) keysOf.set(zone, [key])
      else own.push(key)
    }
    for (const [zone, rolls] of this.#zones)
      rolls.setStored(keysOf.get(zone) ?? [], faults.length === 0)
  }
}

/** When the next step is due; steps of others, who need to act, come first. */
function atOf({ next }: ZoneRolls): number {
  return next?.atSeconds ?? 0
}
