import { NAME_HASH_SEED } from '../name/hash.ts'
import { LOWER } from '../name/lower.ts'
import { HEADER_OCTETS } from './parse-query.ts'
import { LABELS_MAX, type Query } from './query.ts'

/** Most name suffixes one message remembers as targets of pointers. Later names go out whole. */
export const COMPRESSION_TARGETS_MAX = 128

/** Pointers hold 14 bits (RFC 1035 section 4.1.4). */
const POINTER_TARGET_MAX = 0x3fff

/**
 * Writes names with compression (RFC 1035 section 4.1.4) and without allocation. Targets are the
 * suffixes of the question, compared label by label from the root, and the suffixes written so far:
 *
 *     hashes:     hash of the suffix, as in dns/name/hash over lower case
 *     labels:     its labels, root not counted; 1..LABELS_MAX
 *     positions:  octets from the message's start; 12..POINTER_TARGET_MAX, ascending
 *
 * A hash only proposes: octets are compared before a pointer is written. Case does not matter.
 */
export class Compressor {
  #count = 0
  readonly #hashes: Int32Array = new Int32Array(COMPRESSION_TARGETS_MAX)
  readonly #labels: Uint8Array = new Uint8Array(COMPRESSION_TARGETS_MAX)
  readonly #positions: Uint16Array = new Uint16Array(COMPRESSION_TARGETS_MAX)
  /** Of the name being written: offset and suffix hash of each label, leftmost first. */
  readonly #labelOffset: Uint32Array = new Uint32Array(LABELS_MAX + 1)
  readonly #suffixHash: Int32Array = new Int32Array(LABELS_MAX + 1)
  /** The owner written last and where it can be pointed to: records of one RRset share it. */
  #lastName: Uint8Array | undefined = undefined
  #lastOffset = 0
  #lastPosition = 0

  reset(): void {
    this.#count = 0
    this.#lastName = undefined
  }

  /** Forgets targets at `position` and behind it: what was written there is taken back. */
  rollBack(position: number): void {
    while (this.#count > 0 && this.#positions[this.#count - 1]! >= position) this.#count--
    this.#lastName = undefined
  }

  /**
   * Writes the uncompressed wire name at `name[offset]` to `out[at]`, compressed, and returns the
   * offset behind it, or -1 where it would pass `end` or is no name. The query's question stands raw
   * at octet 12 of `out`.
   */
  writeName(
    query: Query,
    name: Uint8Array,
    offset: number,
    out: Uint8Array,
    at: number,
    end: number,
  ): number {
    if (name === query.qname && query.questionOctets > 0 && name[offset] !== 0) {
      return writePointer(HEADER_OCTETS + offset, out, at, end)
    }
    if (name === this.#lastName && offset === this.#lastOffset) {
      return writePointer(this.#lastPosition, out, at, end)
    }
    const labels = this.#findLabels(name, offset)
    if (labels === -1) return -1
    const own = labels - this.#countShared(query, name, labels)
    this.#hashOwn(query, name, own, labels)
    return this.#write(query, name, own, labels, out, at, end)
  }

  /** Fills `#labelOffset` and returns the number of labels, or -1 if this is no name. */
  #findLabels(name: Uint8Array, offset: number): number {
    let labels = 0
    let at = offset
    while (name[at] !== 0) {
      const length = name[at]!
      if (labels === LABELS_MAX || !(length <= 63)) return -1
      this.#labelOffset[labels++] = at
      at += length + 1
    }
    this.#labelOffset[labels] = at
    return labels
  }

  /** How many labels from the root the name has in common with the question. */
  #countShared(query: Query, name: Uint8Array, labels: number): number {
    if (query.questionOctets === 0) return 0
    const most = Math.min(labels, query.labelCount)
    for (let shared = 0; shared < most; shared++) {
      const at = this.#labelOffset[labels - shared - 1]!
      const inQname = query.labelOffset[query.labelCount - shared - 1]!
      if (!equalsLabel(name, at, query.qname, inQname)) return shared
    }
    return most
  }

  /** Hashes the suffixes that begin with the name's own labels; those of the question are known. */
  #hashOwn(query: Query, name: Uint8Array, own: number, labels: number): void {
    const shared = labels - own
    let hash = shared === 0 ? NAME_HASH_SEED : query.suffixHash[query.labelCount - shared]!
    for (let i = own - 1; i >= 0; i--) {
      hash = hashLabelAnyCase(hash, name, this.#labelOffset[i]!)
      this.#suffixHash[i] = hash
    }
  }

  /** Writes the first `own` of `labels` labels, then a pointer into the question or the root. */
  #write(
    query: Query,
    name: Uint8Array,
    own: number,
    labels: number,
    out: Uint8Array,
    start: number,
    end: number,
  ): number {
    let at = start
    for (let i = 0; i < own; i++) {
      const offset = this.#labelOffset[i]!
      const target = this.#find(name, offset, labels - i, this.#suffixHash[i]!, out)
      if (target !== -1) {
        this.#rememberWhole(name, start, i === 0 ? target : start)
        return writePointer(target, out, at, end)
      }
      const octets = name[offset]! + 1
      if (at + octets > end) return -1
      this.#add(this.#suffixHash[i]!, labels - i, at)
      for (let k = 0; k < octets; k++) out[at + k] = name[offset + k]!
      at += octets
    }
    if (own < labels) {
      const target = HEADER_OCTETS + query.labelOffset[query.labelCount - (labels - own)]!
      this.#rememberWhole(name, start, own === 0 ? target : start)
      return writePointer(target, out, at, end)
    }
    if (at >= end) return -1
    out[at] = 0
    if (labels > 0) this.#rememberWhole(name, start, start)
    return at + 1
  }

  #rememberWhole(name: Uint8Array, start: number, position: number): void {
    if (start > POINTER_TARGET_MAX) return
    this.#lastName = name
    this.#lastOffset = this.#labelOffset[0]!
    this.#lastPosition = position
  }

  #add(hash: number, labels: number, position: number): void {
    const i = this.#count
    if (i === COMPRESSION_TARGETS_MAX || position > POINTER_TARGET_MAX) return
    this.#hashes[i] = hash
    this.#labels[i] = labels
    this.#positions[i] = position
    this.#count = i + 1
  }

  /** Position of a suffix written earlier that equals the `labels` labels at `name[offset]`, or -1. */
  #find(name: Uint8Array, offset: number, labels: number, hash: number, out: Uint8Array): number {
    for (let i = 0; i < this.#count; i++) {
      if (this.#hashes[i] !== hash || this.#labels[i] !== labels) continue
      if (equalsWritten(out, this.#positions[i]!, name, offset)) return this.#positions[i]!
    }
    return -1
  }
}

function writePointer(target: number, out: Uint8Array, at: number, end: number): number {
  if (at + 2 > end) return -1
  out[at] = 0xc0 | (target >> 8)
  out[at + 1] = target & 0xff
  return at + 2
}

/** `hashLabel` over the lower case of a label that may be in any case. */
function hashLabelAnyCase(hash: number, name: Uint8Array, offset: number): number {
  const end = offset + name[offset]!
  let h = hash
  for (let i = offset; i <= end; i++) h = Math.imul(h ^ LOWER[name[i]!]!, 0x01000193)
  return h
}

/** True if the label at `name[at]` equals the lower-case one at `qname[inQname]`, case aside. */
function equalsLabel(name: Uint8Array, at: number, qname: Uint8Array, inQname: number): boolean {
  const length = name[at]!
  for (let i = 0; i <= length; i++) if (LOWER[name[at + i]!] !== qname[inQname + i]) return false
  return true
}

/**
 * True if the name that `compose` wrote at `out[position]` equals the one at `name[offset]`, case
 * aside. Pointers of ours only ever point back, so following them ends.
 */
function equalsWritten(
  out: Uint8Array,
  position: number,
  name: Uint8Array,
  offset: number,
): boolean {
  let at = position
  let want = offset
  for (;;) {
    while (out[at]! >= 0xc0) at = ((out[at]! & 0x3f) << 8) | out[at + 1]!
    const length = out[at]!
    if (length !== name[want]) return false
    if (length === 0) return true
    for (let i = 1; i <= length; i++) {
      if (LOWER[out[at + i]!] !== LOWER[name[want + i]!]) return false
    }
    at += length + 1
    want += length + 1
  }
}
