import { InputError, InputErrors } from '../../base/errors.ts'
import { lazyKey } from '../../base/shared-values.ts'
import { EventLog } from '../../base/telemetry/event-log.ts'
import type { ProblemGroup } from '../../base/telemetry/problems.ts'
import { discouragements } from '../../dns/dnssec/algorithms.ts'
import { isSubdomain, nameKey, printName } from '../../dns/name/name.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import type { KeyStore } from '../../signing/keys/key-store.ts'
import type { KeyManager } from '../../signing/rolls/key-manager.ts'
import type { ZoneKeys } from '../../signing/zone-keys.ts'
import type { DnssecOptions, KeyOrigin } from './options.ts'
import type { KeyWarning, ServedKeys } from './served-keys.ts'

/** The zones whose keys may be in a directory, by its path: those of all server blocks. */
const ZONES_OF = lazyKey('zones of key directories', () => new Map<string, Uint8Array[]>())

type DirectoryOrigin = Extract<KeyOrigin, { kind: 'directory' }>

/** The keys of `keys DIR`, which are made and rolled. */
export class DirectoryKeys implements ServedKeys {
  readonly #origin: DirectoryOrigin
  readonly #options: DnssecOptions
  readonly #c: SetupContext
  readonly #managed = new Map<string, Uint8Array>()
  readonly #listeners = new Set<(zone: Uint8Array) => void>()
  #manager: KeyManager | undefined = undefined

  constructor(origin: DirectoryOrigin, options: DnssecOptions, c: SetupContext) {
    this.#origin = origin
    this.#options = options
    this.#c = c
    const zones = c.shared.acquire(ZONES_OF)
    zones.set(origin.path, [...(zones.get(origin.path) ?? []), ...options.zones])
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
    const { KeyManager } = await import('../../signing/rolls/key-manager.ts')
    const { clock, timers, log, metrics, resources } = this.#c
    const { policy, parents } = this.#options
    const zones = [...this.#managed.values()]
    const store = await this.#open()
    const onStep = (apex: Uint8Array, text: string): void => {
      const zone = printName(apex)
      resources.find(EventLog, '')?.add({ actor: { kind: 'key', name: zone }, zone, text })
    }
    const parts = { clock, timers, log, metrics, onStep }
    const manager = new KeyManager({ store, zones, policy, parents, ...parts })
    this.#manager = manager
    manager.subscribe((zone) => {
      for (const listener of this.#listeners) listener(zone)
    })
    await manager.start()
    const without = zones.filter((zone) => manager.find(zone) === undefined)
    if (without.length > 0) throw this.#absenceOf(without)
    const dnskeys = zones.flatMap((zone) => manager.find(zone)?.dnskeys ?? [])
    this.#warnOfAlgorithms(dnskeys, warn)
  }

  stop(): void {
    this.#manager?.stop()
  }

  problems(): readonly ProblemGroup[] {
    return this.#manager?.problems ?? []
  }

  note(): string {
    return this.#manager?.notes.join('; ') ?? ''
  }

  async check(warn: KeyWarning): Promise<number> {
    const { path, position } = this.#origin
    const { keys, faults } = await (await this.#open()).load()
    const zones = this.#c.shared.acquire(ZONES_OF).get(path) ?? []
    const foreign = keys
      .filter(({ zone }) => !zones.some((one) => isSubdomain(zone, one)))
      .map(({ zone, id }) => {
        const fix = `move ${id} to another directory, or add the zone to a line with dnssec`
        const message = `${path}: no directive signs zone ${printName(zone)}; ${fix}`
        return new InputError(position, message)
      })
    const [first, ...others] = [...faults, ...foreign]
    if (first !== undefined) throw new InputErrors(this.#placed(first), others)
    const own = keys.filter(({ zone }) => this.#options.zones.some((one) => isSubdomain(zone, one)))
    const dnskeys = own.map(({ dnskey }) => dnskey)
    this.#warnOfAlgorithms(dnskeys, warn)
    return own.length
  }

  #warnOfAlgorithms(dnskeys: readonly Uint8Array[], warn: KeyWarning): void {
    const { path, position } = this.#origin
    for (const advice of discouragements(dnskeys))
      warn(new InputError(position, `${path}: ${advice}`))
  }

  /** Only the control thread has a store. */
  async #open(): Promise<KeyStore> {
    const { KeyDirectory } = await import('../../signing/keys/key-directory.ts')
    const { clock, timers } = this.#c
    return new KeyDirectory({ path: this.#origin.path, clock, timers })
  }

  #absenceOf(zones: readonly Uint8Array[]): InputError {
    const names = zones.map((zone) => printName(zone)).join(', ')
    const reasons = [...this.problems()].flatMap(({ problems }) => [...problems])
    const texts = [...new Set(reasons.map(({ reason }) => reason))]
    const { position } = this.#origin
    return new InputError(position, `no usable keys for ${names}: ${texts.join('; ')}`)
  }

  #placed(error: InputError): InputError {
    if (error.position !== undefined) return error
    return new InputError(this.#origin.position, error.message, error)
  }
}
