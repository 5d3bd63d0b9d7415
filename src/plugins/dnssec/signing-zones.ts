import { isSubdomain } from '../../dns/name/name.ts'
import type { SignedZone, ZoneSigning } from '../../signing/registry.ts'
import type { DenialKind, KeySource, SigningPolicy, ZoneKeys } from '../../signing/zone-keys.ts'
import { countLabels, ZoneSet } from '../../zone/lookup/zone-set.ts'

/** A zone as the link finds it for a name. */
export interface LinkedZone {
  /** Lower-case wire form. */
  readonly apex: Uint8Array
  readonly labels: number
  /** A source signs the zone in its image: the link signs only its proofs, if they are compact. */
  readonly isClaimed: boolean
  readonly isCompact: boolean
  /** Undefined until they are loaded. */
  readonly keys: ZoneKeys | undefined
  /** A different number for other keys. */
  readonly generation: number
  /** SOA rdata for replies of sources that have none; undefined = not needed yet. */
  soa: Uint8Array | undefined
}

/** The keys of a zone; undefined = it has none. */
export interface KeysOfZone {
  readonly zone: Uint8Array
  readonly keys: ZoneKeys | undefined
}

interface SigningSettings {
  /** The zones of the directive, lower-case wire form. Sources may sign these, and zones below them. */
  readonly zones: readonly Uint8Array[]
  /** Those that are signed on demand if no source claims them. */
  readonly linked: readonly Uint8Array[]
  readonly policy: SigningPolicy
}

/** The zones of one directive, and those below them that a source signs. */
export class SigningZones implements ZoneSigning {
  readonly #settings: SigningSettings
  readonly #keys: KeySource
  readonly #claimed = new Map<string, Uint8Array>()
  readonly #onClaim: (zone: Uint8Array) => void
  #onClaims: (() => void) | undefined = undefined
  #isNotifying = false
  #generation = 0
  /** Undefined: a source has claimed a zone, or keys have changed, since they were listed. */
  #all: LinkedZone[] | undefined = undefined
  /** No zone is served by the link. */
  #isIdle = false
  /** Directives of the block change answers, also of zones that sources claim. */
  #signsChanges = false
  #keysOf = new Map<string, Pick<LinkedZone, 'keys' | 'generation'>>()
  #set = new ZoneSet([])

  constructor(settings: SigningSettings, keys: KeySource, onClaim: (zone: Uint8Array) => void) {
    this.#settings = settings
    this.#keys = keys
    this.#onClaim = onClaim
  }

  of(zone: Uint8Array): SignedZone | undefined {
    const { zones, policy } = this.#settings
    if (!zones.some((one) => isSubdomain(zone, one))) return undefined
    return { keys: this.#keys, policy, claim: () => this.#claim(zone) }
  }

  /** The zones that are signed. */
  get apexes(): readonly Uint8Array[] {
    return this.#list().map(({ apex }) => apex)
  }

  get denial(): DenialKind {
    return this.#settings.policy.denial
  }

  /** True: the link also serves zones that sources claim. */
  get isCompact(): boolean {
    return this.denial === 'compact'
  }

  /** Directives of the block change answers: all zones need keys in every thread. */
  signChanges(): void {
    this.#signsChanges = true
  }

  /** Returns the zones that need keys in every thread: those that links sign, or whose proofs they sign. */
  served(): readonly LinkedZone[] {
    if (this.#signsChanges) return this.#list()
    return this.#list().filter(({ isClaimed, isCompact }) => isCompact || !isClaimed)
  }

  /** Returns the zone of a name, also if a source signs it in its image. Its keys may be missing. */
  findAny(name: Parameters<ZoneSet['match']>[0]): LinkedZone | undefined {
    const all = this.#all ?? this.#list()
    const index = this.#set.match(name)
    return index === -1 ? undefined : all[index]
  }

  /** Returns the zone that the link serves for a name, whose keys may be missing. @hot */
  find(name: Parameters<ZoneSet['match']>[0]): LinkedZone | undefined {
    const all = this.#all ?? this.#list()
    if (this.#isIdle) return undefined
    const index = this.#set.match(name)
    if (index === -1) return undefined
    const zone = all[index]!
    return zone.isClaimed && !zone.isCompact ? undefined : zone
  }

  /**
   * Calls `listener` after sources claimed zones whose proofs the link signs, once for all that they claim at one time,
   * until the returned function is called.
   */
  onClaims(listener: () => void): () => void {
    this.#onClaims = listener
    return () => {
      this.#onClaims = undefined
    }
  }

  /** Replaces the keys of all zones. Zones with the same keys as before keep their signatures. */
  useKeys(all: readonly KeysOfZone[]): void {
    const before = this.#keysOf
    this.#keysOf = new Map()
    for (const { zone, keys } of all) {
      const key = keyOf(zone)
      const old = before.get(key)
      const isSame = old !== undefined && areEqual(old.keys, keys)
      const generation = isSame ? old.generation : ++this.#generation
      this.#keysOf.set(key, { keys, generation })
    }
    this.#all = undefined
  }

  #claim(zone: Uint8Array): void {
    const key = keyOf(zone)
    if (this.#claimed.has(key)) return
    this.#claimed.set(key, zone)
    this.#all = undefined
    this.#onClaim(zone)
    const needsKeys = this.isCompact || this.#signsChanges
    if (!needsKeys || this.#onClaims === undefined || this.#isNotifying) return
    this.#isNotifying = true
    queueMicrotask(() => {
      this.#isNotifying = false
      this.#onClaims?.()
    })
  }

  #list(): LinkedZone[] {
    if (this.#all !== undefined) return this.#all
    const { linked } = this.#settings
    const apexes = new Map([
      ...linked.map((zone) => [keyOf(zone), zone] as const),
      ...this.#claimed,
    ])
    const zones = new Map<string, LinkedZone>()
    for (const [key, apex] of apexes) {
      zones.set(key, {
        apex,
        labels: countLabels(apex),
        isClaimed: this.#claimed.has(key),
        isCompact: this.isCompact,
        keys: this.#keysOf.get(key)?.keys,
        generation: this.#keysOf.get(key)?.generation ?? 0,
        soa: undefined,
      })
    }
    this.#all = [...zones.values()]
    this.#set = new ZoneSet(this.#all.map(({ apex }) => apex))
    this.#isIdle = !this.isCompact && this.#all.every(({ isClaimed }) => isClaimed)
    return this.#all
  }
}

function keyOf(zone: Uint8Array): string {
  return Buffer.from(zone).toString('latin1')
}

/** True if the same keys sign the same. */
function areEqual(a: ZoneKeys | undefined, b: ZoneKeys | undefined): boolean {
  return a !== undefined && b !== undefined && print(a) === print(b)
}

function print({ zoneSigners, keySigners }: ZoneKeys): string {
  const texts = [zoneSigners, keySigners].map((keys) => {
    return keys.map(({ dnskey }) => Buffer.from(dnskey).toString('base64')).join()
  })
  return texts.join(' ')
}
