import { algorithmOf, coveredType, expirationOf, tagOf } from '../../dns/dnssec/rrsig.ts'
import { RRType } from '../../dns/iana/types.ts'
import { signaturesPerAnswer } from '../../zone/image/signature-directory.ts'
import type { SigningPolicy, ZoneKeys } from '../zone-keys.ts'
import { signersOf } from './signers-of.ts'
import type { ImageSet, ZoneView } from './zone-view.ts'

/** What a scan of all names found. */
export interface ScanResult {
  /** The first expiration, in seconds since the Unix epoch; undefined = the zone has no signature. */
  readonly expiresSeconds: number | undefined
  /** True if all signatures are of the keys that sign, and none needs to be made again. */
  readonly isCurrent: boolean
}

/**
 * Goes over the names of a zone in small steps, and finds those that have signatures to make again. It keeps its place
 * by node, so it starts again after a compaction. A heap of all expirations would need more memory than the signatures.
 */
export class RefreshScan {
  #buffer: SharedArrayBuffer | undefined
  /** The node to go on with; 0 = the end. */
  #node = 0
  #expiresSeconds: number | undefined
  #found = 0

  restart(): void {
    this.#buffer = undefined
  }

  /**
   * Checks up to `limit` nodes, or until `found` has `foundMax` keys of names. Returns the result of the whole scan at
   * its end; the next step starts again then.
   */
  step(
    view: ZoneView,
    check: NameCheck,
    { found, foundMax, limit }: { found: string[]; foundMax: number; limit: number },
  ): ScanResult | undefined {
    if (this.#buffer !== view.buffer) this.#begin(view)
    let left = limit
    for (const node of view.nodes(this.#node)) {
      this.#node = node
      if (left-- === 0 || found.length >= foundMax) return undefined
      const rrsigs = view.set(view.bodyOf(node), RRType.RRSIG)
      if (rrsigs === undefined) continue
      const key = view.keyOf(node)
      const isDue = check.isDue(rrsigs, key === '')
      const { expiresSeconds } = check
      this.#expiresSeconds = Math.min(this.#expiresSeconds ?? expiresSeconds, expiresSeconds)
      if (!isDue) continue
      this.#found++
      found.push(key)
    }
    this.#buffer = undefined
    return { expiresSeconds: this.#expiresSeconds, isCurrent: this.#found === 0 }
  }

  #begin(view: ZoneView): void {
    this.#buffer = view.buffer
    this.#node = view.newestNode
    this.#expiresSeconds = undefined
    this.#found = 0
  }
}

/** Checks the signatures of names at one time, for the present keys. */
export class NameCheck {
  readonly #keys: ZoneKeys
  readonly #nowSeconds: number
  readonly #refreshSeconds: number
  /** Of the name checked last: its first expiration. */
  expiresSeconds = 0

  constructor(keys: ZoneKeys, nowSeconds: number, { refreshSeconds }: SigningPolicy) {
    this.#keys = keys
    this.#nowSeconds = nowSeconds
    this.#refreshSeconds = refreshSeconds
  }

  /** True if a signature of a name must be made again: it expires soon, is of another key, or is missing. */
  isDue(rrsigs: ImageSet, isApex: boolean): boolean {
    let isDue = !this.#hasAll(rrsigs, isApex)
    let leftSeconds = Number.POSITIVE_INFINITY
    for (const rrsig of rrsigs.rdata) {
      if (!this.#isOfSigner(rrsig, isApex)) isDue = true
      // Times have 32 bits and wrap (RFC 4034 section 3.1.5).
      leftSeconds = Math.min(leftSeconds, (expirationOf(rrsig) - this.#nowSeconds) | 0)
    }
    this.expiresSeconds = this.#nowSeconds + leftSeconds
    return isDue || leftSeconds <= this.#refreshSeconds
  }

  #isOfSigner(rrsig: Uint8Array, isApex: boolean): boolean {
    return signersOf(this.#keys, coveredType(rrsig), isApex).some((key) => {
      return key.tag === tagOf(rrsig) && key.algorithm === algorithmOf(rrsig)
    })
  }

  /** True if each answer has as many signatures as keys sign. */
  #hasAll({ steering }: ImageSet, isApex: boolean): boolean {
    if (steering === undefined) return false
    const blocks = Array.from(steering.subarray(1, 1 + steering[0]!))
    return blocks.every((block) => {
      const type = steering[block]! >>> 16
      return signaturesPerAnswer(steering, block) === signersOf(this.#keys, type, isApex).length
    })
  }
}
