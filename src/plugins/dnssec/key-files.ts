import { InputError, InputErrors, type Position } from '../../base/errors.ts'
import type { KeyReport } from '../../base/telemetry/status.ts'
import { discouragement, printAlgorithm } from '../../dns/dnssec/algorithms.ts'
import { equalNames, isSubdomain, nameKey, printName } from '../../dns/name/name.ts'
import { type KeyPair, readKeyFile } from '../../signing/keys/key-file.ts'
import { keyId } from '../../signing/keys/key-name.ts'
import { roleOf } from '../../signing/rolls/describe-key.ts'
import type { ZoneKeys } from '../../signing/zone-keys.ts'
import type { KeyWarning, ServedKeys } from './served-keys.ts'
import { zoneKeysOf } from './zone-keys-of.ts'

/** As in CoreDNS. */
const DNSKEY_TTL_SECONDS = 3600

/** A key pair that a line of the Corefile names. */
interface NamedKey {
  /** With or without `.key` or `.private`. */
  readonly path: string
  readonly position: Position
}

/** The key pairs of `key file`. They never change. */
export class KeyFiles implements ServedKeys {
  readonly #files: readonly NamedKey[]
  readonly #zones: readonly Uint8Array[]
  #pairs: readonly KeyPair[] = []
  readonly #found = new Map<string, ZoneKeys | undefined>()

  /** `zones`: the keys must be able to sign one of these, or a zone below them. */
  constructor(files: readonly NamedKey[], zones: readonly Uint8Array[]) {
    this.#files = files
    this.#zones = zones
  }

  manage(): void {}

  stop(): void {}

  check(warn: KeyWarning): number {
    this.start(warn)
    return this.#pairs.length
  }

  checkedKeys(zone: Uint8Array): readonly Uint8Array[] {
    return this.find(zone)?.dnskeys ?? []
  }

  /** Reads the files. @throws InputError. */
  start(warn: KeyWarning): void {
    const faults: InputError[] = []
    const pairs: KeyPair[] = []
    for (const file of this.#files) {
      try {
        const pair = readKeyFile(file.path)
        this.#check(pair, pairs, file, warn)
        pairs.push(pair)
      } catch (error) {
        if (!(error instanceof InputError)) throw error
        const { position } = file
        faults.push(...error.all().map((one) => withPosition(one, position)))
      }
    }
    const [first, ...others] = faults
    if (first !== undefined) throw new InputErrors(first, others)
    this.#pairs = pairs
    this.#found.clear()
  }

  find(zone: Uint8Array): ZoneKeys | undefined {
    const key = nameKey(zone)
    if (!this.#found.has(key)) this.#found.set(key, this.#keysOf(zone))
    return this.#found.get(key)
  }

  subscribe(): () => void {
    return () => {}
  }

  /** No step of a roll waits for it. */
  notePublished(): void {}

  reports(): readonly KeyReport[] {
    return this.#pairs.map(({ zone, flags, algorithm, tag }) => ({
      zone: printName(zone),
      id: keyId(zone, algorithm, tag),
      algorithm: printAlgorithm(algorithm),
      tag,
      role: roleOf({ zone, flags }, this.#pairs),
      state: 'active',
      nextStep: null,
      nextStepText: null,
    }))
  }

  #keysOf(zone: Uint8Array): ZoneKeys | undefined {
    const keys = this.#pairs.filter((pair) => isSubdomain(zone, pair.zone))
    if (keys.length === 0) return undefined
    return zoneKeysOf(keys, [], DNSKEY_TTL_SECONDS)
  }

  /** @throws InputError if the key cannot be used. */
  #check(
    pair: KeyPair,
    others: readonly KeyPair[],
    { position }: NamedKey,
    warn: KeyWarning,
  ): void {
    const { zone, tag, algorithm } = pair
    const name = `key ${printName(zone)} ${printAlgorithm(algorithm)} ${tag}`
    const zones = this.#zones.map((one) => printName(one)).join(', ')
    const isRelated = (one: Uint8Array): boolean => isSubdomain(one, zone) || isSubdomain(zone, one)
    if (!this.#zones.some(isRelated)) {
      const fix = `make a key for the zone, such as sextant keys generate ${zones}`
      throw new InputError(position, `${name} cannot sign ${zones}: it is of another zone; ${fix}`)
    }
    const isSame = (one: KeyPair): boolean => {
      return one.tag === tag && one.algorithm === algorithm && equalNames(one.zone, zone)
    }
    if (others.some(isSame)) {
      const fix = 'name each key once, and replace one of two keys with the same tag'
      throw new InputError(position, `${name}: two keys have this tag; ${fix}`)
    }
    const advice = discouragement(algorithm)
    if (advice !== '') warn(new InputError(position, `${name}: ${advice}`))
    const foreign = this.#zones.filter((one) => isSubdomain(one, zone) && !equalNames(one, zone))
    if (foreign.length === 0) return
    const signed = foreign.map((one) => printName(one)).join(', ')
    warn(new InputError(position, `${name} also signs ${signed}, but is a key of another zone`))
  }
}

function withPosition(error: InputError, position: Position): InputError {
  return error.position === undefined ? new InputError(position, error.message, error) : error
}
