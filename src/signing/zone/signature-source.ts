import type { SigningKey } from '../../dns/dnssec/dnskey.ts'
import { keyTag } from '../../dns/dnssec/key-tag.ts'
import {
  algorithmOf,
  coveredType,
  expirationOf,
  inceptionOf,
  originalTtlOf,
  type SignatureTimes,
  tagOf,
} from '../../dns/dnssec/rrsig.ts'
import { RRType } from '../../dns/iana/types.ts'
import { decodeDirectory, type SignedType } from '../../zone/image/signature-directory.ts'
import type { SigningPolicy, ZoneKeys } from '../zone-keys.ts'
import { answersOf, contentKey, type SetAnswer, type SetData } from './set-answers.ts'
import { timesOf } from './signature-times.ts'
import { isKeySet, signersOf } from './signers-of.ts'
import type { ImageSet, ZoneView } from './zone-view.ts'

/** A signature that is not due is still reused if more of its refresh time is left than this share. */
const LENIENT_SHARE = 0.5

/** Returns the signatures of answer `i`. `key`: its content key; missing = it is made if it is needed. */
type FindSignatures = (answer: SetAnswer, i: number, key?: string) => Uint8Array[]

/** The signatures that a name has in the published version. */
export class OldName {
  readonly #view: ZoneView | undefined
  readonly #body: number
  readonly #rrsigs: readonly Uint8Array[]
  readonly #directory: readonly SignedType[] | undefined

  constructor(view: ZoneView | undefined, owner: Uint8Array) {
    this.#view = view
    this.#body = view?.find(owner) ?? 0
    const set = view?.set(this.#body, RRType.RRSIG)
    this.#rrsigs = set?.rdata ?? []
    const words = set?.steering
    this.#directory = words === undefined ? undefined : decodeDirectory(words, 0)
  }

  /** Returns how to find the signatures of the answers of an RRset that is now as `set`. */
  finder(set: SetData, buffer: SharedArrayBuffer): FindSignatures {
    const old = this.#view?.set(this.#body, set.type)
    if (old === undefined || this.#rrsigs.length === 0) return () => []
    const block = this.#directory?.find(({ type }) => type === set.type)
    const isSame = set.place === old.place && this.#view?.buffer === buffer
    if (isSame) return (_, i) => this.#signaturesOf(set.type, block, i)
    const byContent = this.#byContent(old, block)
    return (answer, _, key = contentKey(set.type, answer)) => byContent.get(key) ?? []
  }

  #byContent(old: ImageSet, block: SignedType | undefined): Map<string, Uint8Array[]> {
    const byContent = new Map<string, Uint8Array[]>()
    for (const [i, answer] of answersOf(old).answers.entries()) {
      if (answer.rdata.length === 0) continue
      byContent.set(contentKey(old.type, answer), this.#signaturesOf(old.type, block, i))
    }
    return byContent
  }

  #signaturesOf(type: number, block: SignedType | undefined, answer: number): Uint8Array[] {
    if (block === undefined) return this.#rrsigs.filter((rrsig) => coveredType(rrsig) === type)
    const first = block.answers.length === 0 ? block.default.signature : block.answers[answer]
    if (first === undefined) return []
    return this.#rrsigs.slice(first, first + block.signaturesPerAnswer)
  }
}

/** The keys that sign an RRset. */
export interface Signers {
  readonly keys: readonly SigningKey[]
  /** The RRset is one of DNSKEY, CDS and CDNSKEY. */
  readonly signsKeys: boolean
}

interface SourceParts {
  readonly keys: ZoneKeys
  readonly policy: SigningPolicy
  readonly nowSeconds: number
  /** The arena of the names that are signed. */
  readonly buffer: SharedArrayBuffer
  /** The published version; undefined = the zone has not been published. */
  readonly old: ZoneView | undefined
}

/** Which signatures of the published version a new one can reuse, and what new signatures are like. */
export class SignatureSource {
  readonly #parts: SourceParts
  /** Signers whose key was published with the old signatures, so that no other key with their tag made these. */
  readonly #trusted = new Set<SigningKey>()
  /** Tag and algorithm of keys that no longer sign, but were and are published. */
  readonly #retained = new Set<number>()
  /** True: only signatures of present signers that are not due are reused. */
  isStrict = false
  /** A signature of a key that no longer signs was reused. */
  hasRetained = false
  reused = 0
  /** The first expiration of all signatures reused; undefined = none was. */
  expiresSeconds: number | undefined

  constructor(parts: SourceParts) {
    this.#parts = parts
    const { keys, old } = parts
    const before = old?.set(old.find(old.apex), RRType.DNSKEY)?.rdata.map(toHex) ?? []
    const published = new Set(before)
    for (const key of [...keys.keySigners, ...keys.zoneSigners]) {
      if (published.has(toHex(key.dnskey))) this.#trusted.add(key)
    }
    const signing = new Set(keys.zoneSigners.map((key) => toHex(key.dnskey)))
    for (const dnskey of keys.dnskeys) {
      const hex = toHex(dnskey)
      if (published.has(hex) && !signing.has(hex)) {
        this.#retained.add(keyNumber(keyTag(dnskey), dnskey[3]!))
      }
    }
  }

  oldName(owner: Uint8Array): OldName {
    return new OldName(this.#parts.old, owner)
  }

  get buffer(): SharedArrayBuffer {
    return this.#parts.buffer
  }

  /** Returns the keys that sign an RRset. */
  signersOf(type: number, isApex: boolean): Signers {
    return { signsKeys: isApex && isKeySet(type), keys: signersOf(this.#parts.keys, type, isApex) }
  }

  timesOf(key: string, type: number): SignatureTimes {
    const { policy, nowSeconds } = this.#parts
    return timesOf(policy, nowSeconds, key, type)
  }

  /** Returns by signer the signature that is reused; undefined = one must be made. `candidates`: of equal content. */
  select(
    candidates: readonly Uint8Array[],
    signers: Signers,
    ttlSeconds: number,
  ): (Uint8Array | undefined)[] {
    const good = candidates.filter((one) => originalTtlOf(one) === ttlSeconds && this.#isGood(one))
    const selected = signers.keys.map((key) => {
      if (!this.#trusted.has(key)) return undefined
      return good.find((one) => tagOf(one) === key.tag && algorithmOf(one) === key.algorithm)
    })
    if (!this.isStrict && !signers.signsKeys) this.#addRetained(good, signers.keys, selected)
    for (const one of selected) if (one !== undefined) this.#note(one)
    return selected
  }

  #addRetained(
    good: readonly Uint8Array[],
    signers: readonly SigningKey[],
    selected: (Uint8Array | undefined)[],
  ): void {
    for (const [i, key] of signers.entries()) {
      if (selected[i] !== undefined) continue
      const retained = good.find((one) => {
        const isOfIt = algorithmOf(one) === key.algorithm && this.#isRetained(one)
        return isOfIt && !selected.includes(one)
      })
      if (retained === undefined) continue
      selected[i] = retained
      this.hasRetained = true
    }
  }

  #isRetained(rrsig: Uint8Array): boolean {
    return this.#retained.has(keyNumber(tagOf(rrsig), algorithmOf(rrsig)))
  }

  /** Times have 32 bits and wrap (RFC 4034 section 3.1.5). */
  #isGood(rrsig: Uint8Array): boolean {
    const { nowSeconds, policy } = this.#parts
    const share = this.isStrict ? 1 : LENIENT_SHARE
    const isCurrent = ((nowSeconds - inceptionOf(rrsig)) | 0) >= 0
    return isCurrent && ((expirationOf(rrsig) - nowSeconds) | 0) > policy.refreshSeconds * share
  }

  #note(rrsig: Uint8Array): void {
    this.reused++
    const { nowSeconds } = this.#parts
    const expiresSeconds = nowSeconds + ((expirationOf(rrsig) - nowSeconds) | 0)
    this.expiresSeconds = Math.min(this.expiresSeconds ?? expiresSeconds, expiresSeconds)
  }
}

function keyNumber(tag: number, algorithm: number): number {
  return tag * 256 + algorithm
}

function toHex(octets: Uint8Array): string {
  return Buffer.from(octets).toString('hex')
}
