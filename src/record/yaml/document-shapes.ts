import { type ScalarSlot, scanScalar, type YamlValue } from './scan-block-yaml.ts'

/** Shapes that are remembered: records of some kinds alternate in one directory. */
const SHAPES_MAX = 4
/** Of larger documents one shape is remembered: hardly any two are alike, but one is edited again and again. */
const LARGE_OCTETS = 16384
/** Shapes of documents beyond this are not worth their memory. */
const SHAPE_OCTETS_MAX = 262144
const NEWLINE = 0x0a

/**
 * Documents that were read before, as patterns for those to come: records of one controller differ in
 * their scalars alone. All octets beside those of scalars must be the same, so the tree is the
 * same too, and only the scalars that differ are put into it.
 */
export class DocumentShapes {
  /** The latest to have fitted first. */
  readonly #shapes: Shape[] = []

  /**
   * The value of the document in `octets` `start`..`end`-1, ASCII alone; undefined where no shape fits.
   * It is valid until the next call: the next document of that shape is put into the same tree.
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

  /** Remembers a document and its tree, which is ours from now on. Takes ASCII alone. */
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

/** Where a document is. */
interface DocumentOctets {
  readonly octets: Buffer
  readonly words: DataView
  readonly start: number
  readonly end: number
}

/** One document, with the places of its scalars, and the tree that documents like it are put into. */
class Shape {
  readonly tree: YamlValue
  readonly #octets: Buffer
  readonly #words: DataView
  readonly #slots: readonly ScalarSlot[]
  /** The scalars of the document itself. */
  readonly #values: readonly YamlValue[]
  /** 1 where the tree holds the scalar of another document than ours. */
  readonly #isForeign: Uint8Array
  /** The scalar of this document that was read last, which is the next one as well as often as not. */
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

  /** Puts a document into the tree; false where it has another shape. */
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

  /** Puts the scalar that starts at `start` into a slot; returns where its line ends, or -1. */
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

/** How many of `max` octets from `atA` and `atB` are the same: eight at a time take a quarter of the time. */
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
