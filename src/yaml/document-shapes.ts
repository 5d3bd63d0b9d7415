import { type ScalarSlot, scanScalar, type YamlValue } from './scan-block-yaml.ts'

/**
 * Maximum number of stored shapes. More than one, because records of some kinds alternate in one
 * directory.
 */
const SHAPES_MAX = 4
/**
 * Only one shape of a larger document is stored. Such documents are rarely alike, but one may be
 * edited repeatedly.
 */
const LARGE_OCTETS = 16384
/** Larger documents are not stored, to save memory. */
const SHAPE_OCTETS_MAX = 262144
const NEWLINE = 0x0a

/**
 * Documents read before, as patterns for later ones, because records of one controller differ only
 * in their scalars. If all other octets are equal, so is the tree, and only the changed scalars are
 * put into it.
 */
export class DocumentShapes {
  /** The shape that matched last comes first. */
  readonly #shapes: Shape[] = []

  /**
   * Returns the value of the document in `octets` `start`..`end`-1, ASCII only; undefined = no
   * shape matches. The value is valid until the next call, because the next document of that shape
   * reuses the tree.
   */
  read(octets: Buffer, start: number, end: number): YamlValue | undefined {
    const words = wordsOf(octets)
    for (let i = 0; i < this.#shapes.length; i++) {
      const shape = this.#shapes[i]!
      if (!shape.fill({ octets, words, start, end })) continue
      if (i > 0) this.#shapes.unshift(...this.#shapes.splice(i, 1))
      return shape.tree
    }
    return undefined
  }

  /** Stores a document and its tree. The caller must not use the tree afterwards. ASCII only. */
  learn(octets: Buffer, slots: readonly ScalarSlot[], tree: YamlValue): void {
    if (octets.length > SHAPE_OCTETS_MAX) return
    const isLarge = octets.length > LARGE_OCTETS
    const alike = this.#shapes.filter((shape) => shape.isLarge === isLarge)
    if (alike.length === (isLarge ? 1 : SHAPES_MAX)) {
      this.#shapes.splice(this.#shapes.indexOf(alike.at(-1)!), 1)
    }
    this.#shapes.unshift(new Shape(Buffer.from(octets), slots, tree))
  }
}

/** Position of a document. */
interface DocumentOctets {
  readonly octets: Buffer
  readonly words: DataView
  readonly start: number
  readonly end: number
}

/** One document with the positions of its scalars, and the tree that similar documents reuse. */
class Shape {
  readonly tree: YamlValue
  readonly #octets: Buffer
  readonly #words: DataView
  readonly #slots: readonly ScalarSlot[]
  /** The scalars of the stored document. */
  readonly #values: readonly YamlValue[]
  /** 1 = the tree has the scalar of another document. */
  readonly #isForeign: Uint8Array
  /** The last scalar that was read; the next scalar is often the same. */
  #lastStart = 0
  #lastEnd = 0
  #lastValue: YamlValue | undefined

  constructor(octets: Buffer, slots: readonly ScalarSlot[], tree: YamlValue) {
    this.tree = tree
    this.#octets = octets
    this.#words = wordsOf(octets)
    this.#slots = slots
    this.#values = slots.map(({ holder, key }) => holder[key]!)
    this.#isForeign = new Uint8Array(slots.length)
  }

  get isLarge(): boolean {
    return this.#octets.length > LARGE_OCTETS
  }

  /** Puts a document into the tree; false = it has another shape. */
  fill(document: DocumentOctets): boolean {
    const { words, start, end } = document
    const { length } = this.#octets
    this.#lastValue = undefined
    let at = start
    let own = 0
    let filled = 0
    for (;;) {
      const room = Math.min(length - own, end - at)
      const same = countSame(this.#words, own, words, at, room)
      own += same
      at += same
      if (own === length && at === end) break
      while (filled < this.#slots.length && this.#slots[filled]!.end < own) this.#restore(filled++)
      const slot = this.#slots[filled]
      if (slot === undefined || own < slot.start) return false
      at = this.#put(filled++, document, at - (own - slot.start))
      own = slot.end
      if (at < 0) return false
    }
    while (filled < this.#slots.length) this.#restore(filled++)
    return true
  }

  /** Puts the scalar at `start` into a slot; returns the end of its line, or -1. */
  #put(index: number, { octets, words, end }: DocumentOctets, start: number): number {
    let lineEnd = start
    while (lineEnd < end && octets[lineEnd] !== NEWLINE) lineEnd++
    const length = lineEnd - start
    const isLast =
      this.#lastValue !== undefined &&
      length === this.#lastEnd - this.#lastStart &&
      countSame(words, this.#lastStart, words, start, length) === length
    if (!isLast) {
      this.#lastValue = scanScalar(octets.toString('latin1', start, lineEnd))
      this.#lastStart = start
      this.#lastEnd = lineEnd
      if (this.#lastValue === undefined) return -1
    }
    const { holder, key } = this.#slots[index]!
    holder[key] = this.#lastValue!
    this.#isForeign[index] = 1
    return lineEnd
  }

  #restore(index: number): void {
    if (this.#isForeign[index] === 0) return
    const { holder, key } = this.#slots[index]!
    holder[key] = this.#values[index]!
    this.#isForeign[index] = 0
  }
}

function wordsOf({ buffer, byteOffset, length }: Buffer): DataView {
  return new DataView(buffer, byteOffset, length)
}

/**
 * Returns how many of `max` octets from `atA` and `atB` are equal. Comparing eight at a time takes
 * a quarter of the time.
 */
function countSame(a: DataView, atA: number, b: DataView, atB: number, max: number): number {
  let count = 0
  while (
    count + 8 <= max &&
    a.getInt32(atA + count) === b.getInt32(atB + count) &&
    a.getInt32(atA + count + 4) === b.getInt32(atB + count + 4)
  ) {
    count += 8
  }
  while (count < max && a.getUint8(atA + count) === b.getUint8(atB + count)) count++
  return count
}
