import { ArenaCopy, type WrittenArena } from './compact.ts'
import type { NodeStore, ZoneEntry } from './node-store.ts'
import type { ZoneReader } from './reader.ts'
import type { ZoneId } from './types.ts'

/** A node without much content takes as long as so many words. */
const NODE_WORDS = 64

/** A step copies more than so many words for each word of the publish, so that a compaction ends. */
const STEP_WORDS_PER_WORD = 4
/** But no more than so many steps at once. */
const STEPS_AT_ONCE = 4

/** What a compaction is of. */
interface CompactedImage {
  /** Reads the published version. */
  readonly reader: ZoneReader
  readonly nodes: NodeStore
  readonly zones: ReadonlyMap<ZoneId, ZoneEntry>
  readonly maxOctets: number
  /** Words that a step copies, or some more. */
  readonly stepWords: number
}

/** A compaction in steps, between which the image changes: copying a large image takes much longer than a change. */
export class Compaction {
  readonly #image: CompactedImage
  readonly #copy: ArenaCopy
  readonly #work: Generator<void, void>
  /** First free word of the arena at the start. */
  readonly #startTail: number
  #isFirst = true

  /** All changes are published, here and at each step. */
  constructor(image: CompactedImage) {
    const { reader, nodes, zones, maxOctets } = image
    this.#image = image
    this.#copy = new ArenaCopy(reader, zones, reader.version, maxOctets)
    this.#work = this.#copy.run(zones)
    this.#startTail = nodes.arena.tail
    nodes.changed = this.#copy.changed
  }

  /** Copies on after a publish of so many words; returns the copy of the present version if it is complete. */
  step(publishedWords: number): WrittenArena | undefined {
    return this.#copyOn(this.#stepWords(publishedWords))
  }

  /** Copies all that is left. */
  finish(): WrittenArena {
    return this.#copyOn(Number.POSITIVE_INFINITY)!
  }

  #stepWords(publishedWords: number): number {
    const { nodes, stepWords } = this.#image
    const isFirst = this.#isFirst
    this.#isFirst = false
    // Making the new arena took as long as a step.
    if (isFirst) return 0
    if (nodes.arena.tail > this.#startTail * 2) return Number.POSITIVE_INFINITY
    const words = Math.max(publishedWords * STEP_WORDS_PER_WORD, stepWords)
    return Math.min(words, stepWords * STEPS_AT_ONCE)
  }

  #copyOn(words: number): WrittenArena | undefined {
    const { reader, zones } = this.#image
    const copy = this.#copy
    reader.refresh()
    const end = copy.words + words
    for (let nodes = 0; copy.words + nodes * NODE_WORDS < end; nodes++) {
      if (this.#work.next().done === true) return copy.finish(zones, reader.version)
    }
    return undefined
  }
}
