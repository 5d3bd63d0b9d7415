import { InputError, InputErrors } from '../../base/errors.ts'
import type { ResourceLease } from '../../base/resource-registry.ts'
import { lazyKey } from '../../base/shared-values.ts'
import { EventLog } from '../../base/telemetry/event-log.ts'
import { oneProblem, type ProblemGroup } from '../../base/telemetry/problems.ts'
import type { KeyReport } from '../../base/telemetry/status.ts'
import { discouragements } from '../../dns/dnssec/algorithms.ts'
import { equalNames, isSubdomain, nameKey, printName } from '../../dns/name/name.ts'
import { placeOf } from '../../plugin/block-place.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import type { KeyStore, StoredKey } from '../../signing/keys/key-store.ts'
import type { KeyManager } from '../../signing/rolls/key-manager.ts'
import type { ZoneKeys } from '../../signing/zone-keys.ts'
import {
  type ManagedOrigin,
  type OpenKeyStore,
  openPlace,
  openToRead,
  placeKey,
  printPlace,
} from './key-place.ts'
import type { DnssecOptions } from './options.ts'
import type { KeyWarning, ServedKeys } from './served-keys.ts'

/** The zones whose keys may be in a place: those of all server blocks. */
const ZONES_OF = lazyKey('zones of key stores', () => new Map<string, Uint8Array[]>())

/** Who signs with the keys of a place: blocks, and during a reload those of both instances. */
class KeyUsers {
  readonly users = new Set<ManagedKeys>()
}

/** The keys of `keys`, which are made and rolled. */
export class ManagedKeys implements ServedKeys {
  readonly #origin: ManagedOrigin
  readonly #options: DnssecOptions
  readonly #c: SetupContext
  readonly #managed = new Map<string, Uint8Array>()
  readonly #listeners = new Set<(zone: Uint8Array) => void>()
  #place: OpenKeyStore | undefined = undefined
  #manager: KeyManager | undefined = undefined
  #users: ResourceLease<KeyUsers> | undefined = undefined
  #stopListening: () => void = () => {}
  #checked: readonly StoredKey[] = []
  /** Zones without keys at the start, for which another server makes them. */
  #waiting: readonly Uint8Array[] = []

  constructor(origin: ManagedOrigin, options: DnssecOptions, c: SetupContext) {
    this.#origin = origin
    this.#options = options
    this.#c = c
    const zones = c.shared.acquire(ZONES_OF)
    const key = placeKey(origin)
    zones.set(key, [...(zones.get(key) ?? []), ...options.zones])
  }

  find(zone: Uint8Array): ZoneKeys | undefined {
    return this.#manager?.find(zone)
  }

  /** Also before the start. */
  subscribe(listener: (zone: Uint8Array) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  notePublished(zone: Uint8Array, keys: ZoneKeys, ttlSecondsMax: number): void {
    this.#manager?.notePublished(zone, keys, ttlSecondsMax)
  }

  manage(zone: Uint8Array): void {
    this.#managed.set(nameKey(zone), zone)
    this.#manager?.manage(zone)
  }

  async start(warn: KeyWarning): Promise<void> {
    const zones = [...this.#managed.values()]
    const managed = (): Uint8Array[] => [...this.#managed.values()]
    const place = await openPlace(this.#origin, this.#options, managed, this.#c)
    this.#place = place
    const key = placeKey(this.#origin)
    this.#users = this.#c.resources.acquire(KeyUsers, key, () => new KeyUsers())
    this.#users.item.users.add(this)
    const manager = await this.#openManager(zones, place)
    this.#manager = manager
    manager.subscribe((zone) => {
      for (const listener of this.#listeners) listener(zone)
    })
    this.#stopListening = place.leader?.subscribe(() => void manager.check()) ?? (() => {})
    await manager.start()
    const dnskeys = zones.flatMap((zone) => manager.find(zone)?.dnskeys ?? [])
    this.#warnOfAlgorithms(dnskeys, warn)
    this.#waiting = this.#without(zones)
    if (this.#waiting.length === 0) return
    const { faults } = await place.store.load()
    const isLoss = this.#waiting.some((zone) => this.#isInUse(zone))
    if (isLoss || !place.mayWait(faults)) throw this.#absence()
  }

  async #openManager(
    zones: readonly Uint8Array[],
    { store, leader }: OpenKeyStore,
  ): Promise<KeyManager> {
    const { KeyManager } = await import('../../signing/rolls/key-manager.ts')
    const { clock, timers, log, metrics, resources } = this.#c
    const { policy, parents } = this.#options
    const onStep = (apex: Uint8Array, text: string): void => {
      const zone = printName(apex)
      resources.find(EventLog, '')?.add({ actor: { kind: 'key', name: zone }, zone, text })
    }
    const mayChange = (): boolean => leader === undefined || leader.mayChange
    const isInUse = (zone: Uint8Array): boolean => this.#isInUse(zone)
    const parts = { clock, timers, log, metrics, onStep, mayChange, isInUse }
    return new KeyManager({ store, zones, policy, parents, ...parts })
  }

  /** True if another user of the place has keys of the zone. */
  #isInUse(zone: Uint8Array): boolean {
    const users = [...(this.#users?.item.users ?? [])]
    return users.some((one) => one !== this && one.find(zone) !== undefined)
  }

  async stop(): Promise<void> {
    this.#stopListening()
    this.#users?.item.users.delete(this)
    this.#users?.release()
    this.#manager?.stop()
    await this.#place?.close()
  }

  problems(): readonly ProblemGroup[] {
    const groups = this.#manager?.problems ?? []
    const { fault: reason = '', what = '' } = this.#place?.leader ?? {}
    if (reason === '') return groups
    // Blocks share a lease, and each of them asks the servers on its own.
    const of = what === 'key lease' ? what : `${what} of ${placeOf(this.#c.block)}`
    return [...groups, oneProblem('zone-key', of, { place: '', object: what, reason })]
  }

  reports(): readonly KeyReport[] {
    return this.#manager?.reports ?? []
  }

  note(): string {
    return this.#manager?.notes.join('; ') ?? ''
  }

  unreadyReason(): string {
    this.#waiting = this.#without(this.#waiting)
    return this.#waiting.length === 0 ? '' : this.#absence().message
  }

  /** Resolves to undefined if only the server can read the keys. */
  async check(warn: KeyWarning, isOffline: boolean): Promise<number | undefined> {
    try {
      const store = await openToRead(this.#origin, this.#options, isOffline, this.#c)
      if (store === undefined) return undefined
      const { keys, faults } = await store.load()
      const foreign = this.#foreign(keys)
      const [first, ...others] = [...faults, ...foreign]
      if (first !== undefined) throw new InputErrors(this.#placed(first), others)
      const { zones } = this.#options
      const own = keys.filter(({ zone }) => zones.some((one) => isSubdomain(zone, one)))
      this.#checked = own
      this.#warnOfAlgorithms(
        own.map(({ dnskey }) => dnskey),
        warn,
      )
      if (isOffline) return own.length
      await this.#checkParent(store, own, warn)
      if (this.#options.from === undefined) return own.length
      const { askServers } = await import('./followed-keys.ts')
      for (const fault of await askServers(this.#options, this.#c)) warn(fault)
      return own.length
    } catch (error) {
      if (!(error instanceof InputError) || error instanceof InputErrors) throw error
      throw this.#placed(error)
    }
  }

  publicOnly(): readonly string[] {
    return this.#checked.filter(({ privateKey }) => privateKey === undefined).map(({ id }) => id)
  }

  checkedKeys(zone: Uint8Array): readonly Uint8Array[] {
    const own = this.#checked.filter((key) => equalNames(key.zone, zone))
    return own.map(({ dnskey }) => dnskey)
  }

  async #checkParent(store: KeyStore, keys: readonly StoredKey[], warn: KeyWarning): Promise<void> {
    const { checkParent } = await import('./check-parent.ts')
    const nowSeconds = Math.floor(this.#c.clock.now() / 1000)
    await checkParent(store, keys, this.#options.parents, nowSeconds, (fault) => {
      warn(new InputError(this.#origin.position, fault))
    })
  }

  /** Returns an error for each key that no server block needs. */
  #foreign(keys: readonly { readonly zone: Uint8Array; readonly id: string }[]): InputError[] {
    const zones = this.#c.shared.acquire(ZONES_OF).get(placeKey(this.#origin)) ?? []
    const kind = this.#origin.kind === 'directory' ? 'directory' : 'Secret'
    return keys
      .filter(({ zone }) => !zones.some((one) => isSubdomain(zone, one)))
      .map(({ zone, id }) => {
        const fix = `move ${id} to another ${kind}, or add the zone to a line with dnssec`
        const message = `${printPlace(this.#origin)}: no directive signs zone ${printName(zone)}; ${fix}`
        return new InputError(this.#origin.position, message)
      })
  }

  #warnOfAlgorithms(dnskeys: readonly Uint8Array[], warn: KeyWarning): void {
    for (const advice of discouragements(dnskeys))
      warn(new InputError(this.#origin.position, `${printPlace(this.#origin)}: ${advice}`))
  }

  #without(zones: readonly Uint8Array[]): readonly Uint8Array[] {
    return zones.filter((zone) => this.find(zone) === undefined)
  }

  #absence(): InputError {
    const names = this.#waiting.map((zone) => printName(zone)).join(', ')
    const reasons = this.problems().flatMap(({ problems }) => [...problems])
    const texts = new Set(reasons.map(({ reason }) => reason))
    const leader = this.#place?.leader
    if (leader !== undefined) texts.add(leader.text)
    const { position } = this.#origin
    return new InputError(position, `no usable keys for ${names}: ${[...texts].join('; ')}`)
  }

  #placed(error: InputError): InputError {
    if (error.position !== undefined) return error
    return new InputError(this.#origin.position, error.message, error)
  }
}
