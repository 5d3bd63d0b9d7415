import { Algorithm } from '../../../src/dns/dnssec/algorithms.ts'
import {
  FLAGS_KSK,
  FLAGS_ZSK,
  generatePrivateKey,
  type SigningKey,
  signingKey,
} from '../../../src/dns/dnssec/dnskey.ts'
import { composeDs } from '../../../src/dns/dnssec/ds.ts'
import { coveredType } from '../../../src/dns/dnssec/rrsig.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import type { SignatureMaker } from '../../../src/signing/zone/sign-in-thread.ts'
import {
  packRequests,
  signBatch,
  unpackSignatures,
} from '../../../src/signing/zone/signature-batch.ts'
import { ZoneSigner } from '../../../src/signing/zone/zone-signer.ts'
import {
  DEFAULT_SIGNING,
  type KeySource,
  type SigningPolicy,
  type ZoneKeys,
} from '../../../src/signing/zone-keys.ts'
import type { ZoneId } from '../../../src/zone/image/types.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { printRecord } from '../../support/print-zone.ts'
import { FakeTimers, SleepyClock } from '../../support/setup.ts'
import { listRRsets, type OwnedRRset } from '../../support/zone-contents.ts'
import { wire } from '../../support/zone-text.ts'

export const APEX = wire('example.')

/** A new key of ECDSA P-256. */
export async function newKey(flags: number): Promise<SigningKey> {
  const { EcdsaP256 } = Algorithm
  return signingKey(await generatePrivateKey(EcdsaP256), EcdsaP256, flags)
}

export const KSK = await newKey(FLAGS_KSK)
export const ZSK = await newKey(FLAGS_ZSK)

/** The keys of a zone that has one KSK and one ZSK. */
export const KEYS: ZoneKeys = {
  dnskeys: [KSK.dnskey, ZSK.dnskey],
  dnskeyTtlSeconds: 3600,
  cds: [composeDs(APEX, KSK.dnskey, 2)],
  cdnskeys: [KSK.dnskey],
  keySigners: [KSK],
  zoneSigners: [ZSK],
}

/** Keys that the test changes. */
export class TestKeys implements KeySource {
  keys: ZoneKeys | undefined = KEYS
  readonly #listeners = new Set<(zone: Uint8Array) => void>()

  find(): ZoneKeys | undefined {
    return this.keys
  }

  subscribe(listener: (zone: Uint8Array) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** What the signer reported as served. */
  readonly published: ZoneKeys[] = []

  notePublished(_zone: Uint8Array, keys: ZoneKeys): void {
    this.published.push(keys)
  }

  change(keys: ZoneKeys | undefined): void {
    this.keys = keys
    for (const listener of this.#listeners) listener(APEX)
  }
}

/** A signer of an image of the zone `example.`, without threads and with a clock that the test moves. */
export class SigningStage {
  image: ZoneImage
  zone: ZoneId
  readonly keys = new TestKeys()
  readonly clock = new SleepyClock()
  readonly timers = new FakeTimers()
  readonly signer: ZoneSigner
  /** Owner and type of each RRset that the signer put or removed, as text. */
  readonly changes: string[] = []
  /** Calls of the maker of many signatures. */
  batches = 0
  /** Runs before each of them; may reject. */
  beforeBatch: (batch: number) => Promise<void> = async () => {}
  serial = 0
  /** It signs before it raises the serial too. */
  signsTwice = false

  constructor(
    policy: Partial<SigningPolicy> = {},
    image = new ZoneImage(),
    signaturesMax: number | undefined = undefined,
  ) {
    this.image = image
    this.zone = image.findZone(APEX) ?? image.addZone(APEX)
    const make: SignatureMaker = async (apex, requests) => {
      await this.beforeBatch(++this.batches)
      return unpackSignatures(signBatch(packRequests(apex, requests)))
    }
    this.signer = new ZoneSigner(
      image,
      this.zone,
      APEX,
      { keys: this.keys, policy: { ...DEFAULT_SIGNING, ...policy } },
      {
        clock: this.clock,
        timers: this.timers,
        ...(signaturesMax === undefined ? {} : { signaturesMax }),
        make,
        onChanged: (owner, type) => this.changes.push(printRecord(owner, 0, type, NO_OCTETS)),
      },
    )
  }

  put(
    owner: string,
    type: number,
    rdata: readonly Uint8Array[],
    ttlSeconds = 300,
    steering?: Uint32Array,
  ): void {
    this.image.putRRset(this.zone, wire(owner), { type, ttlSeconds, rdata, steering })
    this.signer.note(wire(owner), type)
  }

  remove(owner: string, type: number): void {
    this.image.removeRRset(this.zone, wire(owner), type)
    this.signer.note(wire(owner), type)
  }

  /** Puts the SOA with the next serial, signs and publishes. */
  async publish({ minimum = 60, ttlSeconds = 3600 } = {}): Promise<void> {
    if (this.signsTwice) await this.#sign()
    this.put('example.', RRType.SOA, [soaOf(++this.serial, minimum)], ttlSeconds)
    await this.#sign()
    this.image.publish()
    this.signer.notePublished()
  }

  async #sign(): Promise<void> {
    for (let work = this.signer.sign(); work !== undefined; work = this.signer.sign()) await work
  }

  contents(): OwnedRRset[] {
    return [...listRRsets(this.image.reader(), this.zone)]
  }
}

const NO_OCTETS = new Uint8Array(0)

function soaOf(serial: number, minimum: number): Uint8Array {
  const numbers = Buffer.alloc(20)
  for (const [i, n] of [serial, 7200, 900, 86_400, minimum].entries())
    numbers.writeUInt32BE(n, i * 4)
  return Buffer.concat([wire('ns.example.'), wire('admin.example.'), numbers])
}

/** The types that a signer makes. */
export const MADE: readonly number[] = [
  RRType.RRSIG,
  RRType.NSEC,
  RRType.NSEC3,
  RRType.NSEC3PARAM,
  RRType.DNSKEY,
  RRType.CDS,
  RRType.CDNSKEY,
]

/** Lines of all RRsets, sorted; of signatures without their octets and times, but with their directory. */
export function linesOf(contents: readonly OwnedRRset[]): string[] {
  return contents
    .flatMap((set) => {
      if (set.type !== RRType.RRSIG) {
        return set.rdata.map((rdata) => printRecord(set.owner, set.ttlSeconds, set.type, rdata))
      }
      const covered = set.rdata.map((rdata) => `${coveredType(rdata)}/${rdata[3]}/${rdata[16]}`)
      const owner = printRecord(set.owner, set.ttlSeconds, set.type, NO_OCTETS)
      return [`${owner} ${covered.join()} ${set.steering?.join(' ')}`]
    })
    .sort()
}
