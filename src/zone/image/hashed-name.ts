import { LABELS_MAX } from '../../dns/message/query.ts'
import { copyLabel, hashLabel, joinHash, NAME_HASH_SEED } from '../../dns/name/hash.ts'

/** A lower-case wire name with its labels and suffix hashes. `Query` implements it. */
export interface HashedName {
  readonly qname: Uint8Array
  /** The same octets by four, little endian. Octets behind the name have no meaning. */
  readonly nameWords: Uint32Array
  /** 1..255, root included. */
  readonly qnameOctets: number
  /** Labels without the root: 0..LABELS_MAX. */
  readonly labelCount: number
  /** Offset in `qname` of label i, leftmost first; entry `labelCount` is the root. */
  readonly labelOffset: Uint8Array
  /** Unfinished hash (see dns/name/hash) of the suffix that starts at label i. */
  readonly suffixHash: Int32Array
}

/** A reusable HashedName that is filled from any uncompressed wire name. */
export class NameBuffer implements HashedName {
  readonly qname = new Uint8Array(new ArrayBuffer(256))
  readonly nameWords = new Uint32Array(this.qname.buffer)
  qnameOctets = 1
  labelCount = 0
  readonly labelOffset = new Uint8Array(LABELS_MAX + 1)
  readonly suffixHash = new Int32Array(LABELS_MAX + 1)

  /**
   * Copies and hashes the name at `bytes[offset]` in lower case. Returns false if it is not an
   * uncompressed name of at most 255 octets that ends before `end`; the buffer is then undefined.
   * @hot
   */
  set(bytes: Uint8Array, offset: number, end: number): boolean {
    let octets = 0
    let labels = 0
    for (;;) {
      const at = offset + octets
      const length = at < end ? bytes[at]! : 64
      this.labelOffset[labels] = octets
      if (length === 0) break
      if (length > 63 || octets + length + 2 > 255 || at + length >= end) return false
      this.suffixHash[labels++] = copyLabel(bytes, at, this.qname, octets)
      octets += length + 1
    }
    this.qname[octets] = 0
    this.qnameOctets = octets + 1
    this.labelCount = labels
    let hash = NAME_HASH_SEED
    this.suffixHash[labels] = hash
    while (labels > 0) {
      labels--
      hash = joinHash(hash, this.suffixHash[labels]!)
      this.suffixHash[labels] = hash
    }
    return true
  }

  /**
   * Sets this to the first `prefixLabels` labels of `name`, followed by the name at
   * `bytes[offset]`: the substitution of a DNAME (RFC 6672 section 2.2). Returns false if the
   * result is longer than 255 octets. @hot
   */
  setSubstituted(
    name: HashedName,
    prefixLabels: number,
    bytes: Uint8Array,
    offset: number,
    end: number,
  ): boolean {
    if (!this.set(bytes, offset, end)) return false
    const shift = name.labelOffset[prefixLabels]!
    if (shift + this.qnameOctets > 255) return false
    this.qname.copyWithin(shift, 0, this.qnameOctets)
    for (let i = 0; i < shift; i++) this.qname[i] = name.qname[i]!
    for (let i = this.labelCount; i >= 0; i--) {
      this.labelOffset[i + prefixLabels] = this.labelOffset[i]! + shift
    }
    for (let i = 0; i < prefixLabels; i++) this.labelOffset[i] = name.labelOffset[i]!
    this.#finish(shift + this.qnameOctets, prefixLabels + this.labelCount)
    return true
  }

  #finish(octets: number, labels: number): void {
    this.qnameOctets = octets
    this.labelCount = labels
    let hash = NAME_HASH_SEED
    this.suffixHash[labels] = hash
    for (let i = labels - 1; i >= 0; i--) {
      hash = hashLabel(hash, this.qname, this.labelOffset[i]!)
      this.suffixHash[i] = hash
    }
  }
}

/** True if both are the same name. @hot */
export function equalHashedNames(a: HashedName, b: HashedName): boolean {
  if (a.qnameOctets !== b.qnameOctets || a.suffixHash[0] !== b.suffixHash[0]) return false
  for (let i = 0; i < a.qnameOctets; i++) if (a.qname[i] !== b.qname[i]) return false
  return true
}
