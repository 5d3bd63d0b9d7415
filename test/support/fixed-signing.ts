import { Algorithm } from '../../src/dns/dnssec/algorithms.ts'
import {
  FLAGS_KSK,
  FLAGS_ZSK,
  generatePrivateKey,
  signingKey,
} from '../../src/dns/dnssec/dnskey.ts'
import { composeDs } from '../../src/dns/dnssec/ds.ts'
import { printName } from '../../src/dns/name/name.ts'
import type { Directive } from '../../src/plugin/directive.ts'
import { ZONE_SIGNING } from '../../src/signing/registry.ts'
import {
  DEFAULT_SIGNING,
  type KeySource,
  type SigningPolicy,
  type ZoneKeys,
} from '../../src/signing/zone-keys.ts'
import { wire } from './zone-text.ts'

/** Signs all zones as `dnssec` would, with keys that the test makes. */
export class FixedSigning implements KeySource {
  /** Undefined = there are no keys yet. */
  keys: ZoneKeys | undefined
  /** Texts of the zones that a source signs, with the greatest TTL that was served; -1 = nothing was served. */
  readonly claimed = new Map<string, number>()
  readonly #policy: SigningPolicy
  readonly #listeners = new Set<(zone: Uint8Array) => void>()

  constructor(policy: Partial<SigningPolicy> = {}) {
    this.#policy = { ...DEFAULT_SIGNING, ...policy }
  }

  /** Replaces the keys by a new CSK. `zone`: the CDS is its. */
  async makeKey(zone: string): Promise<void> {
    const { EcdsaP256 } = Algorithm
    const key = signingKey(await generatePrivateKey(EcdsaP256), EcdsaP256, FLAGS_KSK)
    const { dnskey } = key
    this.keys = {
      dnskeys: [dnskey],
      dnskeyTtlSeconds: 3600,
      cds: [composeDs(wire(zone), dnskey, 2)],
      cdnskeys: [dnskey],
      keySigners: [key],
      zoneSigners: [key],
    }
    for (const listener of this.#listeners) listener(wire(zone))
  }

  /** Replaces the keys by a new KSK and a new ZSK, without CDS. */
  async makeSplitKeys(): Promise<void> {
    const { EcdsaP256 } = Algorithm
    const [ksk, zsk] = [FLAGS_KSK, FLAGS_ZSK].map(async (flags) => {
      return signingKey(await generatePrivateKey(EcdsaP256), EcdsaP256, flags)
    })
    const [keySigners, zoneSigners] = [[await ksk!], [await zsk!]]
    const dnskeys = [...keySigners, ...zoneSigners].map(({ dnskey }) => dnskey)
    this.keys = { dnskeys, dnskeyTtlSeconds: 3600, cds: [], cdnskeys: [], keySigners, zoneSigners }
  }

  find(): ZoneKeys | undefined {
    return this.keys
  }

  subscribe(listener: (zone: Uint8Array) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  notePublished(zone: Uint8Array, keys: ZoneKeys, ttlSecondsMax: number): void {
    if (keys === this.keys) this.claimed.set(printName(zone), ttlSecondsMax)
  }

  /** Returns a directive whose zones are signed. */
  around(directive: Directive): Directive {
    return {
      name: directive.name,
      setup: (c) => {
        c.block.shared.provide(ZONE_SIGNING, {
          of: (zone) => ({
            keys: this,
            policy: this.#policy,
            claim: () => {
              const text = printName(zone)
              this.claimed.set(text, this.claimed.get(text) ?? -1)
            },
          }),
        })
        return directive.setup(c)
      },
    }
  }
}
