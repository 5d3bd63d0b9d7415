import { InputError } from '../../base/errors.ts'
import { printTime } from '../../base/rfc3339.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { KeyReport } from '../../base/telemetry/status.ts'
import type { Timers } from '../../base/timers.ts'
import { DELAY_MAX_MS } from '../../base/timers.ts'
import { FLAGS_KSK, FLAGS_ZSK } from '../../dns/dnssec/dnskey.ts'
import { matchesDs } from '../../dns/dnssec/ds.ts'
import type { HostPort } from '../../dns/host-port.ts'
import { printName } from '../../dns/name/name.ts'
import type { KeyStore, StoredKey } from '../keys/key-store.ts'
import type { ZoneKeys } from '../zone-keys.ts'
import { composeKeys, equalZoneKeys } from './compose-keys.ts'
import { describeKey } from './describe-key.ts'
import { dsFaults, needsDs } from './ds-faults.ts'
import { type NextStep, nextStep } from './next-step.ts'
import { noteParent, notePublished, type SeenParent } from './observe.ts'
import type { ParentDs } from './parent-ds.ts'
import { type NewKey, type PlanInput, plan, type RollPlan } from './plan.ts'
import type { RollPolicy } from './policy.ts'
import { printRollState, type RollState, scanRollState } from './roll-state.ts'
import type { SteadyClock } from './steady-clock.ts'
import { equalIds } from './timeline.ts'

/** What the rolls of a zone need of its manager. */
export interface ZoneRollsParts {
  readonly zone: Uint8Array
  readonly store: KeyStore
  readonly policy: RollPolicy
  readonly parents: readonly HostPort[]
  readonly clock: SteadyClock
  readonly timers: Timers
  readonly log: Logger
  /** Identifies this server among those with the same keys. */
  readonly server: string
  readonly mayChange: () => boolean
  /** Another instance signs the zone with keys that the store should have, as during a reload. */
  readonly isInUse: () => boolean
  readonly askParentDs: (
    zone: Uint8Array,
    parents: readonly HostPort[],
  ) => Promise<ParentDs | string>
  /** Notifies the parent of new CDS. Never rejects. */
  readonly notifyParent: (zone: Uint8Array) => Promise<void>
  /** Reads the store again, and calls `setStored` of all zones. */
  readonly reload: () => Promise<void>
  readonly onKeys: (zone: Uint8Array) => void
  readonly onStep: (zone: Uint8Array, text: string) => void
}

/** How often the parent is asked while a roll waits for it, at least, and otherwise. */
const POLL_SECONDS = 60
const IDLE_POLL_SECONDS = 3600
const RETRY_SECONDS = 60
/** How long another server may take to make a key. */
const CLAIM_SECONDS = 60
/** Plans in a row: one more after each change of the store. */
const PASSES_MAX = 10
/** Longest time from new keys to a version that they signed. */
const PUBLISH_SECONDS_MAX = 3600

interface Decided {
  readonly made: RollPlan
  readonly text: string
  /** This server makes the keys that are missing. */
  readonly isClaimed: boolean
  /** New CDS are served since now. */
  readonly isAnnounced: boolean
}

/** Runs the rolls of one zone: carries out plans, and observes their effect. */
export class ZoneRolls {
  readonly #parts: ZoneRollsParts
  /** With the final dot. */
  readonly name: string
  /** Keys of the zone. Those in use stay if the store loses them. */
  #stored: ReadonlyMap<string, StoredKey> = new Map()
  #storeIds: ReadonlySet<string> = new Set()
  #state: RollState | undefined
  /** TTL of the version that `keys` signed, while the state does not know it. */
  #publishedTtl: number | undefined
  #reportedTtl = -1
  #seen: SeenParent | undefined
  #pollSeconds = 0
  #retrySeconds = 0
  #running: Promise<void> | undefined
  #isWanted = false
  #isStopped = false
  #loggedNext = ''
  #cancelTimer: (() => void) | undefined
  #faults: { step: string; parent: string; keys: string } = { step: '', parent: '', keys: '' }
  keys: ZoneKeys | undefined
  next: NextStep | undefined

  constructor(parts: ZoneRollsParts) {
    this.#parts = parts
    this.name = printName(parts.zone)
  }

  /** What is wrong, each with its fix. */
  get faults(): readonly string[] {
    const { step, parent, keys } = this.#faults
    return [step, keys, parent, this.#publishFault()].filter((fault) => fault !== '')
  }

  /** The keys of the zone, and what becomes of them. */
  get reports(): readonly KeyReport[] {
    const keys = [...this.#stored.values()]
    const state = { rolls: this.#state, next: this.next, nowSeconds: this.#now() }
    return keys.map((key) => describeKey(key, keys, state))
  }

  get state(): RollState | undefined {
    return this.#state
  }

  /** `areAll`: false = some files could not be read, so a missing key may still exist. */
  setStored(keys: readonly StoredKey[], areAll: boolean): void {
    const stored = new Map(keys.map((key) => [key.id, key]))
    this.#storeIds = new Set(stored.keys())
    const used = new Set(this.#state?.keys.map(({ id }) => id))
    for (const [id, key] of this.#stored) {
      if (!stored.has(id) && (used.has(id) || !areAll)) stored.set(id, key)
    }
    this.#stored = stored
  }

  notePublished(keys: ZoneKeys, ttlSeconds: number): void {
    if (keys !== this.keys || ttlSeconds <= this.#reportedTtl) return
    this.#reportedTtl = ttlSeconds
    this.#publishedTtl = ttlSeconds
    void this.run()
  }

  /** Plans and carries out what is due now. Calls while it runs are answered by one more run. Never rejects. */
  async run(): Promise<void> {
    this.#isWanted = true
    this.#running ??= this.#runAll().finally(() => {
      this.#running = undefined
    })
    await this.#running
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelTimer?.()
  }

  /** Asks the parent with the next run. */
  pollSoon(): void {
    this.#pollSeconds = 0
  }

  async #runAll(): Promise<void> {
    while (this.#isWanted && !this.#isStopped) {
      this.#isWanted = false
      try {
        await this.#poll()
        await this.#carryOut()
        this.#setFault('step', '')
      } catch (error) {
        if (!(error instanceof InputError)) throw error
        this.#retrySeconds = this.#now() + RETRY_SECONDS
        const effect = this.keys === undefined ? '' : '; the zone stays signed with the keys it has'
        this.#setFault('step', `${error.message}${effect}`)
        if (this.keys === undefined && this.#state !== undefined) this.#adopt(this.#state)
      }
    }
    this.#wakeLater()
  }

  #now(): number {
    return this.#parts.clock.nowSeconds()
  }

  /** Until the parent is asked again. A parent that is faster than most is asked more often. */
  get #waitSeconds(): number {
    return Math.max(1, Math.min(POLL_SECONDS, this.#parts.policy.parentPropagationSeconds))
  }

  async #carryOut(): Promise<void> {
    const { mayChange } = this.#parts
    for (let pass = 0; pass < PASSES_MAX && !this.#isStopped; pass++) {
      if (!mayChange()) return this.#follow()
      const decided = await this.#decideAndWrite()
      if (!(await this.#changeStore(decided))) return
      await this.#parts.reload()
    }
  }

  /** Does what the server that changes the keys wrote. */
  async #follow(): Promise<void> {
    const { store, zone, reload } = this.#parts
    // It may be out of date when this server may change the keys.
    this.#seen = undefined
    const state = this.#scanStored(await store.readState(zone))
    if (state === undefined) return
    if (state.keys.some(({ id }) => !this.#storeIds.has(id))) await reload()
    this.#accept(state)
  }

  /** @throws InputError if the state is invalid, or the store has lost it. */
  #scanStored(text: string | undefined): RollState | undefined {
    if (text !== undefined) return scanRollState(text)
    const isEmpty = this.#stored.size === 0
    if (this.#state === undefined && !(isEmpty && this.#parts.isInUse())) return undefined
    const fix = 'restore a backup of it, or restart all servers to begin with its keys or new ones'
    throw new InputError(undefined, `the key store has lost the state of the rolls; ${fix}`)
  }

  /** The plan is made again if another server changed the state meanwhile. */
  async #decideAndWrite(): Promise<Decided> {
    const { store, zone, log } = this.#parts
    let decided: Decided | undefined
    const [publishedTtl, seen] = [this.#publishedTtl, this.#seen]
    await store.editState(zone, (text) => {
      decided = this.#decide(text)
      return decided.text === text ? undefined : decided.text
    })
    const { made, isAnnounced } = decided!
    if (this.#publishedTtl === publishedTtl) this.#publishedTtl = undefined
    if (this.#seen === seen) this.#seen = undefined
    this.#accept(made.state)
    const next = this.#printNext()
    const steps = made.steps.join(', ')
    // The time of the next step is known only when the version of this one is served.
    const texts = [steps, next === this.#loggedNext && steps === '' ? '' : next].filter(Boolean)
    if (texts.length > 0) log.info(`keys of ${this.name}: ${texts.join('; ')}`, 'key-roll-step')
    if (steps !== '') this.#parts.onStep(zone, steps)
    this.#loggedNext = next
    if (isAnnounced && made.state.ds.keys.length > 0) void this.#parts.notifyParent(zone)
    return decided!
  }

  #printNext(): string {
    if (this.next === undefined) return ''
    const { atSeconds, text } = this.next
    return `next: ${text}${atSeconds === undefined ? '' : ` at ${printTime(atSeconds * 1000)}`}`
  }

  #decide(text: string | undefined): Decided {
    const { policy } = this.#parts
    const nowSeconds = this.#now()
    const before = this.#scanStored(text)
    let state = before
    if (state !== undefined && this.#publishedTtl !== undefined && this.#isComposedOf(state)) {
      const ttls = {
        dnskeySeconds: this.keys!.dnskeyTtlSeconds,
        zoneSeconds: this.#publishedTtl,
      }
      state = notePublished(state, ttls, policy, nowSeconds)
    }
    if (state !== undefined && this.#seen !== undefined) {
      state = noteParent(state, this.#seen, policy, nowSeconds)
    }
    const isAnnounced = before?.askedSeconds === Infinity && state?.askedSeconds !== Infinity
    const made = plan({ ...this.#input(nowSeconds), state })
    const { claim } = made.state
    const isFree =
      claim === undefined ||
      claim.server === this.#parts.server ||
      claim.untilSeconds <= nowSeconds ||
      claim.untilSeconds > nowSeconds + CLAIM_SECONDS
    const isClaimed = made.create.length > 0 && isFree
    const next = isClaimed
      ? { server: this.#parts.server, untilSeconds: nowSeconds + CLAIM_SECONDS }
      : made.create.length > 0
        ? claim
        : undefined
    const claimed = { ...made.state, claim: next }
    return {
      made: { ...made, state: claimed },
      text: printRollState(claimed),
      isClaimed,
      isAnnounced,
    }
  }

  /** True if `keys` is what the state says. */
  #isComposedOf({ dnskey, signers, ds }: RollState): boolean {
    const known = this.#state
    return (
      known !== undefined &&
      equalIds(known.dnskey.keys, dnskey.keys) &&
      equalIds(known.signers.keys, signers.keys) &&
      equalIds(known.ds.keys, ds.keys)
    )
  }

  #input(nowSeconds: number): Omit<PlanInput, 'state'> {
    const usable = [...this.#stored.values()].filter(({ id, privateKey, times }) => {
      if (privateKey === undefined || !this.#storeIds.has(id)) return false
      // BIND keeps the files of keys that are out of use.
      const endSeconds = Math.min(times?.Inactive ?? Infinity, times?.Delete ?? Infinity)
      return endSeconds > nowSeconds || this.#state?.keys.some((key) => key.id === id) === true
    })
    return { usable, policy: this.#parts.policy, nowSeconds }
  }

  /** Returns true if the store changed. */
  async #changeStore({ made, isClaimed }: Decided): Promise<boolean> {
    const { store } = this.#parts
    for (const id of made.retire) await store.retire(id)
    if (isClaimed) for (const key of made.create) await this.#create(key)
    else if (made.create.length > 0) {
      this.#retrySeconds = made.state.claim!.untilSeconds
    }
    return made.retire.length > 0 || isClaimed
  }

  async #create({ role, algorithm }: NewKey): Promise<void> {
    const { store, zone, policy } = this.#parts
    const flags = role === 'zsk' ? FLAGS_ZSK : FLAGS_KSK
    await store.create(zone, algorithm, flags, policy.rsaBits)
  }

  #accept(state: RollState): void {
    const isNew = !state.ds.isKnown && this.#state?.ds.isKnown !== false
    if (isNew) this.#pollSeconds = Math.min(this.#pollSeconds, this.#now() + this.#waitSeconds)
    this.#state = state
    this.#adopt(state)
    const nowSeconds = this.#now()
    const quiet: RollPlan = { state, steps: [], create: [], retire: [] }
    this.next = nextStep(this.#input(nowSeconds), quiet)
  }

  #adopt(state: RollState): void {
    const { zone, policy, onKeys } = this.#parts
    const { keys, missing } = composeKeys(zone, state, this.#stored, policy)
    const lost = state.keys.map(({ id }) => id).filter((id) => !this.#storeIds.has(id))
    const absent = [...new Set([...missing, ...lost])]
    const fix = 'restore them, or replace the keys with sextant keys roll'
    this.#setFault(
      'keys',
      absent.length === 0
        ? ''
        : `the store lacks private keys in use: ${absent.join(', ')}; ${fix}`,
    )
    if (keys === undefined || equalZoneKeys(keys, this.keys)) return
    this.keys = keys
    this.#publishedTtl = undefined
    this.#reportedTtl = -1
    onKeys(zone)
  }

  async #poll(): Promise<void> {
    const { zone, parents, askParentDs } = this.#parts
    const nowSeconds = this.#now()
    if (parents.length === 0 || nowSeconds < this.#pollSeconds || this.#state === undefined) return
    const found = await askParentDs(zone, parents)
    if (typeof found === 'string') {
      this.#pollSeconds = nowSeconds + this.#waitSeconds
      const effect = 'a roll waits until all of them answer'
      this.#setFault('parent', `the DS in the parent is not known: ${found}; ${effect}`)
      return
    }
    const isWaiting = !this.#state.ds.isKnown
    this.#pollSeconds = nowSeconds + (isWaiting ? this.#waitSeconds : IDLE_POLL_SECONDS)
    const { state, rdata } = { state: this.#state, ...found }
    const owners = rdata.map((ds) =>
      [...this.#stored.values()].filter((key) => matchesDs(zone, key.dnskey, ds)),
    )
    const ids = new Set(owners.flat().map(({ id }) => id))
    const keys = state.keys.map(({ id }) => id).filter((id) => ids.has(id))
    this.#seen = { keys: keys.sort(), ttlSeconds: found.ttlSeconds, atSeconds: nowSeconds }
    const dnskeys = [...this.#stored.values()].map(({ dnskey }) => dnskey)
    const isNeeded = needsDs(state, nowSeconds)
    this.#setFault('parent', dsFaults(zone, rdata, { dnskeys, isNeeded }).join('; '))
  }

  #publishFault(): string {
    if (this.#state === undefined || this.keys === undefined) return ''
    const { dnskey, signers } = this.#state
    const since = Math.max(dnskey.sinceSeconds, signers.sinceSeconds)
    if ((dnskey.isKnown && signers.isKnown) || this.#now() - since < PUBLISH_SECONDS_MAX) return ''
    const text = 'no version of the zone that the current keys signed is served'
    return `${text} since ${printTime(since * 1000)}; the roll waits for it`
  }

  #setFault(kind: 'step' | 'parent' | 'keys', fault: string): void {
    if (this.#faults[kind] === fault) return
    this.#faults[kind] = fault
    const { log } = this.#parts
    if (fault !== '') log.warning(`keys of ${this.name}: ${fault}`, 'key-roll-fault')
  }

  #wakeLater(): void {
    this.#cancelTimer?.()
    if (this.#isStopped) return
    const nowSeconds = this.#now()
    const { parents } = this.#parts
    const times = [
      this.next?.atSeconds ?? Infinity,
      parents.length > 0 && this.#state !== undefined ? this.#pollSeconds : Infinity,
      this.#retrySeconds > nowSeconds ? this.#retrySeconds : Infinity,
      nowSeconds + IDLE_POLL_SECONDS,
    ]
    const delayMs = Math.max(1, Math.min(...times) - nowSeconds) * 1000
    this.#cancelTimer = this.#parts.timers.after(Math.min(delayMs, DELAY_MAX_MS), () => {
      void this.run()
    })
  }
}
