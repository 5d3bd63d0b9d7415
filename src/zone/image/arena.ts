import { assert } from '../../base/assert.ts'
import { InputError } from '../../base/errors.ts'
import { NAME_ROOM_OCTETS } from '../../dns/message/query.ts'
import { useHugePages } from './huge-pages.ts'
import { HEADER_LENGTH, HEADER_MAGIC, HEADER_TAIL, HEADER_WORDS, MAGIC } from './layout.ts'

/** An arena doubles when it grows, but by at most this many octets. */
const GROWTH_OCTETS_MAX = 64 * 1024 * 1024

/** The pages of a smaller arena fit into the TLB. Below that, koffi need not be loaded either. */
const HUGE_PAGES_OCTETS_MIN = 8 * 1024 * 1024

/** Readers take the slow path to a SOA with room for fewer than three names behind its place. */
const READ_AHEAD_OCTETS = 4 * NAME_ROOM_OCTETS

/** Octet offsets of a response's records are 32 bits wide. */
export const ARENA_OCTETS_MAX = 2 ** 32

/** The writer's side of an arena: appends blocks and grows the buffer (see layout.ts). */
export class Arena {
  readonly buffer: SharedArrayBuffer
  /**
   * Views of fixed length, replaced after growth. Views that track a growable buffer take V8's slow
   * path, which needs ten times the time per access (bench/lookup.mjs, "views").
   */
  words!: Uint32Array
  bytes!: Uint8Array
  /** First free word. */
  tail = HEADER_WORDS
  #hasHugePages = false

  /** @throws InputError if the system can't allocate even the initial octets. */
  constructor(initialOctets: number, maxOctets: number, buffer?: SharedArrayBuffer) {
    assert(maxOctets <= ARENA_OCTETS_MAX, 'arena addressable by 32 bits')
    const initial = Math.min(roundUp(Math.max(initialOctets, 4096)), maxOctets)
    this.buffer = buffer ?? reserve(initial, maxOctets)
    this.#view()
    this.words[HEADER_MAGIC] = MAGIC
  }

  /** Returns an arena that continues one in this memory, as of its last publish. */
  static adopt(buffer: SharedArrayBuffer): Arena {
    const arena = new Arena(buffer.byteLength, buffer.maxByteLength, buffer)
    arena.tail = arena.words[HEADER_TAIL]!
    return arena
  }

  /**
   * Returns an arena with the `octets` octets that `fill` reads into its argument. Returns
   * undefined if `fill` fails, which it reports with false. @throws InputError if memory is short.
   */
  static *restore(
    octets: number,
    fill: (target: Buffer) => Generator<void, boolean>,
  ): Generator<void, Arena | undefined> {
    const arena = new Arena(octets, ARENA_OCTETS_MAX)
    if (!(yield* fill(Buffer.from(arena.buffer, 0, octets)))) return undefined
    arena.tail = octets / 4
    arena.#view()
    return arena
  }

  /**
   * Makes room for `words` more words, so that `allocate` cannot fail half-way through a change.
   * @throws InputError if the arena would exceed its maximum.
   */
  reserve(words: number): void {
    const needed = (this.tail + words) * 4
    if (needed <= this.buffer.byteLength) return
    const max = this.buffer.maxByteLength
    if (needed > max) {
      throw new InputError(
        undefined,
        `zone data needs more than the ${max} octets reserved for it; serve fewer names or raise the limit`,
      )
    }
    const step = Math.min(this.buffer.byteLength, GROWTH_OCTETS_MAX)
    this.buffer.grow(Math.min(roundUp(Math.max(needed, this.buffer.byteLength + step)), max))
    this.#view()
  }

  /** Returns the offset of a new block; all its words are zero. */
  allocate(words: number): number {
    this.reserve(words)
    const offset = this.tail
    this.tail += words
    return offset
  }

  /**
   * Returns a copy of the arena that has no room to grow, but enough behind its last word for readers that copy
   * names by four octets. It is ordinary memory: a buffer that can grow takes two mappings of the process, which may
   * have 65 530.
   */
  copyFixed(): SharedArrayBuffer {
    const length = this.tail + READ_AHEAD_OCTETS / 4
    const words = new Uint32Array(new SharedArrayBuffer(length * 4))
    words.set(this.words.subarray(0, this.tail))
    words[HEADER_LENGTH] = length
    return words.buffer
  }

  /** Removes all blocks, so that the arena can be used again. No reader may have its buffer. */
  clear(): void {
    this.words.fill(0, 0, this.tail)
    this.tail = HEADER_WORDS
    this.words[HEADER_MAGIC] = MAGIC
    this.words[HEADER_LENGTH] = this.words.length
  }

  /** Call it after each change of the buffer's length. */
  #view(): void {
    if (!this.#hasHugePages && this.buffer.byteLength >= HUGE_PAGES_OCTETS_MIN) {
      this.#hasHugePages = true
      useHugePages(this.buffer)
    }
    const length = Math.floor(this.buffer.byteLength / 4)
    this.words = new Uint32Array(this.buffer, 0, length)
    this.bytes = new Uint8Array(this.buffer, 0, length * 4)
    Atomics.store(this.words, HEADER_LENGTH, length)
  }
}

function roundUp(octets: number): number {
  return Math.ceil(octets / 65536) * 65536
}

/** Reserves address space, and less if the system refuses. Reserved space costs no memory until it is used. */
function reserve(initialOctets: number, maxOctets: number): SharedArrayBuffer {
  for (let max = maxOctets; ; max = Math.floor(max / 2)) {
    try {
      return new SharedArrayBuffer(Math.min(initialOctets, max), { maxByteLength: max })
    } catch (error) {
      if (!(error instanceof RangeError) || max / 2 < initialOctets) {
        throw new InputError(
          undefined,
          `cannot reserve ${maxOctets} octets for zone data; give the process more address space`,
          error,
        )
      }
    }
  }
}
