import { assert } from '../../base/assert.ts'
import { copyOctets } from '../../base/octets.ts'
import { LABELS_MAX, NAME_ROOM_OCTETS } from '../message/query.ts'
import { addWord, hashLabel, joinHash, LABEL_SEED, NAME_HASH_SEED } from './hash.ts'
import { lowerWord } from './lower.ts'

const LABEL_OCTETS_MAX = 63
const NAME_OCTETS_MAX = 255

/** A lower-case wire name with its labels and suffix hashes. `Query` implements it. */
export interface HashedName {
  readonly qname: Uint8Array
  /** The same octets by four, little endian. Octets behind the name have no meaning. */
  readonly nameWords: Uint32Array
  readonly nameView: DataView
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
  readonly qname: Uint8Array<ArrayBuffer> = new Uint8Array(new ArrayBuffer(NAME_ROOM_OCTETS))
  readonly nameWords: Uint32Array<ArrayBuffer> = new Uint32Array(this.qname.buffer)
  readonly nameView: DataView<ArrayBuffer> = new DataView(this.qname.buffer)
  qnameOctets = 1
  labelCount = 0
  readonly labelOffset: Uint8Array = new Uint8Array(LABELS_MAX + 1)
  readonly suffixHash: Int32Array = new Int32Array(LABELS_MAX + 1)

  /**
   * Copies and hashes the name at `bytes[offset]` in lower case. Returns false if it is not an
   * uncompressed name of at most 255 octets that ends before `end`; the buffer is then undefined.
   * @hot
   */
  set(bytes: Uint8Array, offset: number, end: number): boolean {
    const octets = Math.max(0, Math.min(end - offset, NAME_OCTETS_MAX))
    copyOctets(bytes, offset, this.qname, 0, octets)
    // No label has this length. A label before it may lead past it.
    this.qname[octets] = 0xff
    return this.setFrom(this.nameView, 0) && this.qnameOctets <= octets
  }

  /** Sets this to the name that has this key, as `nameKey` returns it. */
  setKey(key: string): void {
    for (let i = 0; i < key.length; i++) this.qname[i] = key.charCodeAt(i)
    const isName = this.setFrom(this.nameView, 0)
    assert(isName && this.qnameOctets === key.length, 'a key is a name')
  }

  /**
   * As `set`, for a name that ends at least NAME_ROOM_OCTETS before the end of `view`. Reads and
   * writes by four octets. Returns false if it is not an uncompressed name. @hot
   */
  setFrom(view: DataView, offset: number): boolean {
    const { nameView, labelOffset, suffixHash } = this
    let at = 0
    let labels = 0
    for (;;) {
      const length = view.getUint8(offset + at)
      labelOffset[labels] = at
      if (length === 0) break
      const next = at + length + 1
      if (length > LABEL_OCTETS_MAX || next >= NAME_OCTETS_MAX) return false
      let hash = LABEL_SEED
      for (; at + 4 <= next; at += 4) {
        const word = lowerWord(view.getInt32(offset + at, true))
        nameView.setInt32(at, word, true)
        hash = addWord(hash, word)
      }
      // Whole words are stored: the octets behind the label are the next ones, if this is in place.
      const rest = lowerWord(view.getInt32(offset + at, true))
      nameView.setInt32(at, rest, true)
      suffixHash[labels++] = addWord(hash, rest & ((1 << ((next - at) << 3)) - 1))
      at = next
    }
    this.qname[at] = 0
    this.qnameOctets = at + 1
    this.labelCount = labels
    let hash = NAME_HASH_SEED
    suffixHash[labels] = hash
    while (labels > 0) {
      labels--
      hash = joinHash(hash, suffixHash[labels]!)
      suffixHash[labels] = hash
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
    this.qnameOctets += shift
    this.labelCount += prefixLabels
    hashSuffixes(this)
    return true
  }
}

/** Fills `suffixHash` from `qname`, `labelOffset` and `labelCount`. @hot */
export function hashSuffixes({ qname, labelOffset, labelCount, suffixHash }: HashedName): void {
  let hash = NAME_HASH_SEED
  suffixHash[labelCount] = hash
  for (let label = labelCount - 1; label >= 0; label--) {
    hash = hashLabel(hash, qname, labelOffset[label]!)
    suffixHash[label] = hash
  }
}

/**
 * True if the names are equal from label `label` of `a` and from label `other` of `b` on. @hot
 */
export function equalSuffixes(a: HashedName, label: number, b: HashedName, other: number): boolean {
  if (a.suffixHash[label] !== b.suffixHash[other]) return false
  const start = a.labelOffset[label]!
  const otherStart = b.labelOffset[other]!
  const octets = a.qnameOctets - start
  if (b.qnameOctets - otherStart !== octets) return false
  const { nameView } = a
  const otherView = b.nameView
  let i = 0
  for (; i + 4 <= octets; i += 4) {
    if (nameView.getInt32(start + i) !== otherView.getInt32(otherStart + i)) return false
  }
  // Octets behind the names do not count.
  const rest = nameView.getInt32(start + i, true) ^ otherView.getInt32(otherStart + i, true)
  return (rest & ((1 << ((octets & 3) << 3)) - 1)) === 0
}

/**
 * Returns how many labels, without the root, `a` and `b` have in common at their ends according to
 * their hashes. Different labels may have the same hash, so check the result with `equalSuffixes`.
 * @hot
 */
export function countCommonLabels(a: HashedName, b: HashedName): number {
  const most = Math.min(a.labelCount, b.labelCount)
  const { labelCount, suffixHash } = a
  const otherCount = b.labelCount
  const otherHash = b.suffixHash
  let common = 0
  while (common < most) {
    const next = common + 1
    if (suffixHash[labelCount - next] !== otherHash[otherCount - next]) break
    common = next
  }
  return common
}

/** True if both are the same name. @hot */
export function equalHashedNames(a: HashedName, b: HashedName): boolean {
  return equalSuffixes(a, 0, b, 0)
}
