import * as packets from '../../base/packet-memory.ts'
import { putOctets } from '../../base/packet-memory.ts'
import * as lower from '../name/lower.ts'
import * as parsing from './parse-query.ts'
import { LABELS_MAX, type Query } from './query.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { packetOctets, packetView } = packets
const { HEADER_OCTETS } = parsing
const { LOWER } = lower

/** Maximum of labels in one message that pointers can target. Later names are written uncompressed. */
const COMPRESSION_TARGETS_MAX = 128

/** Pointers hold 14 bits (RFC 1035 section 4.1.4). */
const POINTER_TARGET_MAX = 0x3fff

const LABEL_OCTETS_MAX = 63
const NAME_OCTETS_MAX = 255
/** Represents the position of the root, which needs no pointer. */
const ROOT = 0

/**
 * Writes names to a message in the packet memory, with compression (RFC 1035 section 4.1.4) and
 * without allocation. A target is an uncompressed label in the message, identified by its position and
 * by the position of the rest of its name:
 *
 *     positions:  octets from the message's start; 12..POINTER_TARGET_MAX, ascending
 *     parents:    position of the label to its right, or ROOT
 *
 * So the written names form a tree, and the question is its first branch. A lookup starts at the
 * root of a name and ends at the first label without a target; it needs no hash. Case is ignored.
 */
export class Compressor {
  /** Offset of the message in the packet memory. */
  #base = 0
  #count = 0
  readonly #positions: Uint16Array = new Uint16Array(COMPRESSION_TARGETS_MAX)
  readonly #parents: Uint16Array = new Uint16Array(COMPRESSION_TARGETS_MAX)
  /** Offset of each label from the name's start, leftmost first, and of the root behind them. */
  readonly #labelOffset: Uint8Array = new Uint8Array(LABELS_MAX + 1)
  /** Position of the longest suffix of that name in the message, or ROOT. */
  #suffix = ROOT
  /** The name written last and the owner written last, with positions for pointers to them; ROOT = none. */
  #lastName: Uint8Array | undefined = undefined
  #lastOffset = 0
  #lastPosition = ROOT
  #ownerName: Uint8Array | undefined = undefined
  #ownerOffset = 0
  #ownerPosition = ROOT

  /** Starts a message at `base`. */
  reset(base: number): void {
    this.#base = base
    this.#count = 0
    this.#lastName = undefined
    this.#ownerName = undefined
  }

  /** Removes targets at `at` and behind it: the caller removed these octets from the message. */
  rollBack(at: number): void {
    const position = at - this.#base
    while (this.#count > 0 && this.#positions[this.#count - 1]! >= position) this.#count--
    this.#lastName = undefined
    this.#ownerName = undefined
  }

  /** Writes a record's owner as `writeName` does. Most records have the same owner as the record before. */
  writeOwner(query: Query, name: Uint8Array, offset: number, at: number, end: number): number {
    if (name === query.qname && query.questionOctets > 0 && name[offset] !== 0) {
      return writePointer(HEADER_OCTETS + offset, at, end)
    }
    if (name === this.#ownerName && offset === this.#ownerOffset) {
      return writePointer(this.#ownerPosition, at, end)
    }
    const next = this.writeName(query, name, offset, at, end)
    this.#ownerName = this.#lastName
    this.#ownerOffset = this.#lastOffset
    this.#ownerPosition = this.#lastPosition
    return next
  }

  /**
   * Writes the uncompressed wire name at `name[offset]` to `at`, compressed. Returns the
   * offset behind it, or -1 if it would pass `end` or is invalid. The query's question is at octet
   * 12 of the message, uncompressed.
   */
  writeName(query: Query, name: Uint8Array, offset: number, at: number, end: number): number {
    if (name === query.qname && query.questionOctets > 0 && name[offset] !== 0) {
      return writePointer(HEADER_OCTETS + offset, at, end)
    }
    if (name === this.#lastName && offset === this.#lastOffset) {
      return writePointer(this.#lastPosition, at, end)
    }
    const labels = this.#findLabels(name, offset)
    if (labels === -1) return -1
    const left = this.#matchQuestion(query, name, offset, labels)
    const own = this.#count === 0 ? left : this.#matchWritten(name, offset, left)
    const next = this.#write(name, offset, own, at, end)
    const position = own === 0 ? this.#suffix : at - this.#base
    if (position !== ROOT && position <= POINTER_TARGET_MAX) {
      this.#lastName = name
      this.#lastOffset = offset
      this.#lastPosition = position
    }
    return next
  }

  /** Fills `#labelOffset` and returns the number of labels, or -1 if the name is invalid. */
  #findLabels(name: Uint8Array, offset: number): number {
    const labelOffset = this.#labelOffset
    let labels = 0
    let octets = 0
    for (;;) {
      labelOffset[labels] = octets
      const length = name[offset + octets]!
      if (length === 0) return labels
      if (!(length <= LABEL_OCTETS_MAX)) return -1
      octets += length + 1
      if (octets >= NAME_OCTETS_MAX) return -1
      labels++
    }
  }

  /**
   * Returns how many of the name's `labels` precede the suffix that it shares with the question.
   * Sets `#suffix`.
   */
  #matchQuestion(query: Query, name: Uint8Array, offset: number, labels: number): number {
    this.#suffix = ROOT
    if (query.questionOctets === 0) return labels
    const root = this.#labelOffset[labels]!
    const qroot = query.qnameOctets - 1
    const common = countCommon(name, offset + root, query.qname, qroot, Math.min(root, qroot))
    // Equal octets are equal labels only if a label starts at the same place in both names.
    const extra = query.labelCount - labels
    for (let own = extra < 0 ? -extra : 0; own < labels; own++) {
      const octets = root - this.#labelOffset[own]!
      if (octets > common || query.labelOffset[own + extra] !== qroot - octets) continue
      this.#suffix = HEADER_OCTETS + qroot - octets
      return own
    }
    return labels
  }

  /**
   * Continues to the left of the question's suffix, while labels were written below `#suffix`.
   * Returns how many of the first `own` labels are new.
   */
  #matchWritten(name: Uint8Array, offset: number, own: number): number {
    let left = own
    while (left > 0) {
      const position = this.#findChild(name, offset + this.#labelOffset[left - 1]!)
      if (position === -1) break
      this.#suffix = position
      left--
    }
    return left
  }

  /** Returns the position of the label at `name[at]` directly before `#suffix`, or -1. */
  #findChild(name: Uint8Array, at: number): number {
    const parents = this.#parents
    const parent = this.#suffix
    for (let i = 0; i < this.#count; i++) {
      if (parents[i] !== parent) continue
      const position = this.#positions[i]!
      if (equalsLabel(this.#base + position, name, at)) return position
    }
    return -1
  }

  /** Writes the first `own` labels, then a pointer to `#suffix` or the root. */
  #write(name: Uint8Array, offset: number, own: number, start: number, end: number): number {
    const suffix = this.#suffix
    const octets = this.#labelOffset[own]!
    const at = start + octets
    if (at + (suffix === ROOT ? 1 : 2) > end) return -1
    putOctets(name, offset, octets, start)
    if (own > 0) this.#addTargets(own, start - this.#base)
    if (suffix !== ROOT) return writePointer(suffix, at, end)
    packetOctets[at] = 0
    return at + 1
  }

  /** Registers the first `own` labels of the name written at `start` as targets. */
  #addTargets(own: number, start: number): void {
    let count = this.#count
    for (let i = 0; i < own; i++) {
      const position = start + this.#labelOffset[i]!
      if (count === COMPRESSION_TARGETS_MAX || position > POINTER_TARGET_MAX) break
      this.#positions[count] = position
      this.#parents[count] = i + 1 === own ? this.#suffix : start + this.#labelOffset[i + 1]!
      count++
    }
    this.#count = count
  }
}

function writePointer(target: number, at: number, end: number): number {
  if (at + 2 > end) return -1
  packetView.setInt16(at, 0xc000 | target)
  return at + 2
}

/** Returns how many octets, at most `most`, are equal before `name[end]` and the lower-case `qname[qend]`. */
function countCommon(
  name: Uint8Array,
  end: number,
  qname: Uint8Array,
  qend: number,
  most: number,
): number {
  let i = 1
  while (i + 3 <= most) {
    if (name[end - i] !== qname[qend - i] || name[end - i - 1] !== qname[qend - i - 1]) break
    if (name[end - i - 2] !== qname[qend - i - 2]) break
    if (name[end - i - 3] !== qname[qend - i - 3]) break
    i += 4
  }
  for (; i <= most; i++) {
    const octet = name[end - i]!
    const other = qname[qend - i]!
    if (octet !== other && LOWER[octet] !== other) return i - 1
  }
  return most
}

/** True if the label at `at` of the packet memory and that at `name[offset]` are equal, ignoring case. */
function equalsLabel(at: number, name: Uint8Array, offset: number): boolean {
  const length = packetOctets[at]!
  if (length !== name[offset]) return false
  for (let i = 1; i <= length; i++) {
    const octet = packetOctets[at + i]!
    const other = name[offset + i]!
    if (octet !== other && LOWER[octet] !== LOWER[other]) return false
  }
  return true
}
