import { InputError, InputErrors } from '../../base/errors.ts'
import { lazyKey } from '../../base/shared-values.ts'
import { guarding } from '../../base/telemetry/guard.ts'
import { FLAGS_KSK, FLAGS_ZSK } from '../../dns/dnssec/dnskey.ts'
import { equalNames, isSubdomain, nameKey, printName } from '../../dns/name/name.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import type { KeyStore, StoredKey } from '../../signing/keys/key-store.ts'
import type { ZoneKeys } from '../../signing/zone-keys.ts'
import type { DnssecOptions, KeyOrigin } from './options.ts'
import type { KeyWarning, ServedKeys } from './served-keys.ts'
import { zoneKeysOf } from './zone-keys-of.ts'

/** The zones whose keys may be in a directory, by its path: those of all server blocks. */
const ZONES_OF = lazyKey('zones of key directories', () => new Map<string, Uint8Array[]>())

type DirectoryOrigin = Extract<KeyOrigin, { kind: 'directory' }>

/** The keys of `keys DIR`. Makes the first keys of a zone. */
export class DirectoryKeys implements ServedKeys {
  readonly #place: DirectoryOrigin
  readonly #options: DnssecOptions
  readonly #c: SetupContext
  readonly #managed = new Map<string, Uint8Array>()
  readonly #listeners = new Set<(zone: Uint8Array) => void>()
  #found = new Map<string, ZoneKeys>()
  #store: KeyStore | undefined = undefined
  #unwatch: () => void = () => {}
  /** The last of the loads, which run one after the other. */
  #loads: Promise<void> = Promise.resolve()

  constructor(place: DirectoryOrigin, options: DnssecOptions, c: SetupContext) {
    this.#place = place
    this.#options = options
    this.#c = c
    const zones = c.shared.acquire(ZONES_OF)
    zones.set(place.path, [...(zones.get(place.path) ?? []), ...options.zones])
  }

  find(zone: Uint8Array): ZoneKeys | undefined {
    return this.#found.get(nameKey(zone))
  }

  subscribe(listener: (zone: Uint8Array) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** No step of a roll waits for it. */
  notePublished(): void {}

  manage(zone: Uint8Array): void {
    const key = nameKey(zone)
    if (this.#managed.has(key)) return
    this.#managed.set(key, zone)
    if (this.#store !== undefined) this.#reload()
  }

  async start(warn: KeyWarning): Promise<void> {
    const store = await this.#open()
    this.#store = store
    await this.#load(store, warn)
    this.#unwatch = store.watch(() => this.#reload())
  }

  stop(): void {
    this.#unwatch()
    this.#store = undefined
  }

  async check(): Promise<number> {
    const { path, position } = this.#place
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
    if (first !== undefined) throw new InputErrors(this.#placed([first]), others)
    const { zones: own } = this.#options
    return keys.filter(({ zone }) => own.some((one) => isSubdomain(zone, one))).length
  }

  /** Only the control thread reads keys. */
  async #open(): Promise<KeyStore> {
    const { KeyDirectory } = await import('../../signing/keys/key-directory.ts')
    const { clock, timers } = this.#c
    return new KeyDirectory({ path: this.#place.path, clock, timers })
  }

  #reload(): void {
    const { log } = this.#c
    const warn: KeyWarning = (warning) => log.warning(warning.print(), 'dnssec-key-warning')
    const load = async (): Promise<void> => {
      if (this.#store !== undefined) await this.#load(this.#store, warn)
    }
    const guarded = guarding(log, `Reading keys of ${this.#place.path}`)
    this.#loads = this.#loads.then(() => guarded(load))
  }

  /** Reads the keys, makes missing ones, and reports changes. @throws InputError if a zone has no keys. */
  async #load(store: KeyStore, warn: KeyWarning): Promise<void> {
    const { keys, faults } = await store.load()
    for (const fault of faults) warn(fault)
    const { dnskeyTtlSeconds } = this.#options.policy
    const before = this.#found
    const found = new Map<string, ZoneKeys>()
    for (const [key, zone] of this.#managed) {
      const stored = keys.filter((one) => equalNames(one.zone, zone))
      // A file that cannot be read is not replaced by a new key.
      if (stored.length === 0 && faults.length > 0 && !before.has(key)) throw this.#placed(faults)
      const own = stored.length > 0 ? stored : await this.#create(store, zone)
      const now = zoneKeysOf(own.filter(hasPrivateKey), ownedByOthers(own), dnskeyTtlSeconds)
      const old = before.get(key)
      // A key that is unreadable now stays in use, and one that is new waits until all can be read.
      const isUnusable = now.zoneSigners.length === 0 || faults.length > 0
      if (old !== undefined && (isUnusable || isSame(old, now))) found.set(key, old)
      else if (now.zoneSigners.length > 0) found.set(key, now)
    }
    this.#found = found
    for (const [key, zone] of this.#managed) {
      if (before.get(key) === found.get(key)) continue
      for (const listener of this.#listeners) listener(zone)
    }
  }

  async #create(store: KeyStore, zone: Uint8Array): Promise<StoredKey[]> {
    const { split, algorithm, rsaBits } = this.#options.policy
    const made: StoredKey[] = []
    for (const flags of split ? [FLAGS_KSK, FLAGS_ZSK] : [FLAGS_KSK]) {
      const key = await store.create(zone, algorithm, flags, rsaBits)
      this.#c.log.info(`key made: ${key.id}`, 'dnssec-key-made')
      made.push(key)
    }
    return made
  }

  #placed([first]: readonly InputError[]): InputError {
    const { position } = this.#place
    return first!.position === undefined ? new InputError(position, first!.message, first) : first!
  }
}

type PrivateKey = StoredKey & { readonly privateKey: NonNullable<StoredKey['privateKey']> }

function hasPrivateKey(key: StoredKey): key is PrivateKey {
  return key.privateKey !== undefined
}

function ownedByOthers(keys: readonly StoredKey[]): Uint8Array[] {
  return keys.filter((key) => !hasPrivateKey(key)).map(({ dnskey }) => dnskey)
}

function isSame(a: ZoneKeys, b: ZoneKeys): boolean {
  const print = ({ dnskeys, zoneSigners, keySigners }: ZoneKeys): string => {
    const signers = [...zoneSigners, ...keySigners].map(({ dnskey }) => dnskey)
    return [...dnskeys, ...signers].map((one) => Buffer.from(one).toString('base64')).join(' ')
  }
  return print(a) === print(b)
}
