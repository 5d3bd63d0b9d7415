import { ArenaCopy, type WrittenArena } from './compact.ts'
import type { NodeStore, ZoneEntry } from './node-store.ts'
import type { ZoneReader } from './reader.ts'
import type { ZoneId } from './types.ts'

/** A node without much content takes as long as so many words. */
const NODE_WORDS = 64

/** What a compaction is of. */
interface CompactedImage {
  /** Reads the published version. */
  readonly reader: ZoneReader
  readonly nodes: NodeStore
  readonly zones: ReadonlyMap<ZoneId, ZoneEntry>
  readonly maxOctets: number
}

/** A compaction in steps, between which the image changes: copying a large image takes much longer than a change. */
export class Compaction {
  readonly #image: CompactedImage
  readonly #copy: ArenaCopy
  readonly #work: Generator<void, void>
  /** First free word of the arena at the start. */
  readonly startTail: number

  /** All changes are published, here and at each step. */
  constructor(image: CompactedImage) {
    const { reader, nodes, zones, maxOctets } = image
    this.#image = image
    this.#copy = new ArenaCopy(reader, zones, reader.version, maxOctets)
    this.#work = this.#copy.run(zones)
    this.startTail = nodes.arena.tail
    nodes.changed = this.#copy.changed
  }

  /** Copies on, about `words` words; returns the copy of the present version if it is complete. */
  step(words: number): WrittenArena | undefined {
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
