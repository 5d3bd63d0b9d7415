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
 *     marks:      what is cheap to know of the suffix, as `markOf` has it
 *     positions:  octets from the message's start; 12..POINTER_TARGET_MAX, ascending
 *
 * A mark only proposes: octets are compared before a pointer is written. Case does not matter. Marks
 * beat hashes of whole suffixes, since most messages have few names: bench/compose.mjs.
 */
export class Compressor {
  #count = 0
  readonly #marks: Int32Array = new Int32Array(COMPRESSION_TARGETS_MAX)
  readonly #positions: Uint16Array = new Uint16Array(COMPRESSION_TARGETS_MAX)
  /** Of the name being written: offset of each label, leftmost first, and of the root. */
  readonly #labelOffset: Uint32Array = new Uint32Array(LABELS_MAX + 1)
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
      const mark = markOf(name, offset, labels - i)
      const target = this.#count === 0 ? -1 : this.#find(name, offset, mark, out)
      if (target !== -1) {
        this.#rememberWhole(name, start, i === 0 ? target : start)
        return writePointer(target, out, at, end)
      }
      const octets = name[offset]! + 1
      if (at + octets > end) return -1
      this.#add(mark, at)
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

  #add(mark: number, position: number): void {
    const i = this.#count
    if (i === COMPRESSION_TARGETS_MAX || position > POINTER_TARGET_MAX) return
    this.#marks[i] = mark
    this.#positions[i] = position
    this.#count = i + 1
  }

  /** Position of a suffix written earlier that equals the one at `name[offset]`, or -1. */
  #find(name: Uint8Array, offset: number, mark: number, out: Uint8Array): number {
    for (let i = 0; i < this.#count; i++) {
      if (this.#marks[i] !== mark) continue
      if (equalsWritten(out, this.#positions[i]!, name, offset)) return this.#positions[i]!
    }
    return -1
  }
}

/** Labels of a suffix (7 bits), and its first label's length (6), first and last octet (8 each). */
function markOf(name: Uint8Array, offset: number, labels: number): number {
  const length = name[offset]!
  const first = LOWER[name[offset + 1]!]!
  const last = LOWER[name[offset + length]!]!
  return (labels << 22) | (length << 16) | (first << 8) | last
}

function writePointer(target: number, out: Uint8Array, at: number, end: number): number {
  if (at + 2 > end) return -1
  out[at] = 0xc0 | (target >> 8)
  out[at + 1] = target & 0xff
  return at + 2
}

/** True if the label at `name[at]` equals the lower-case one at `qname[inQname]`, case aside. */
function equalsLabel(name: Uint8Array, at: number, qname: Uint8Array, inQname: number): boolean {
  const length = name[at]!
  for (let i = 0; i <= length; i++) {
    const octet = name[at + i]!
    if (octet !== qname[inQname + i] && LOWER[octet] !== qname[inQname + i]) return false
  }
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
      const octet = out[at + i]!
      const other = name[want + i]!
      if (octet !== other && LOWER[octet] !== LOWER[other]) return false
    }
    at += length + 1
    want += length + 1
  }
}
