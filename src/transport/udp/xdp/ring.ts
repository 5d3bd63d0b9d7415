/** A ring that the kernel and this process share, as it is mapped. Offsets in octets. */
export interface RingPlace {
  readonly address: number
  readonly octets: number
  readonly producer: number
  readonly consumer: number
  readonly flags: number
  /** The first entry. */
  readonly entries: number
}

/** Number of entries of each ring. A power of two. */
export const RING_ENTRIES = 2048
const MASK = RING_ENTRIES - 1

/** Octets of an entry: `struct xdp_desc` of RX and TX, the offset of a frame in the others. */
export const DESCRIPTOR_OCTETS = 16
export const FRAME_ENTRY_OCTETS = 8
const NEED_WAKEUP = 1

/**
 * One side of a ring. Its counters run freely; the entry of a counter is at `counter % RING_ENTRIES`:
 *
 *     u32 producer, u32 consumer, u32 flags ‥ entries: u64 frame [, u32 octets, u32 options]
 *
 * `Atomics` order the counters and the entries; the kernel's side has the matching barriers. As many
 * frames exist as a ring has entries, so no ring ever lacks room.
 */
export class Ring {
  readonly #words: Int32Array
  readonly #producer: number
  readonly #consumer: number
  readonly #flags: number
  readonly #entries: number
  readonly #entryWords: number

  /** `entryOctets`: DESCRIPTOR_OCTETS or FRAME_ENTRY_OCTETS. `memory`: starts at the ring. */
  constructor(memory: ArrayBuffer, place: RingPlace, entryOctets: number) {
    this.#words = new Int32Array(memory, 0, place.octets >> 2)
    this.#producer = place.producer >> 2
    this.#consumer = place.consumer >> 2
    this.#flags = place.flags >> 2
    this.#entries = place.entries >> 2
    this.#entryWords = entryOctets >> 2
  }

  /** The counter of the producer. Entries before it may be read. */
  get producer(): number {
    return Atomics.load(this.#words, this.#producer)
  }

  /** Publishes the entries before `counter`. */
  set producer(counter: number) {
    Atomics.store(this.#words, this.#producer, counter)
  }

  get consumer(): number {
    return Atomics.load(this.#words, this.#consumer)
  }

  /** Gives the entries before `counter` back. */
  set consumer(counter: number) {
    Atomics.store(this.#words, this.#consumer, counter)
  }

  /** Whether the kernel requires a system call to go on. */
  get needsWakeup(): boolean {
    return (Atomics.load(this.#words, this.#flags) & NEED_WAKEUP) !== 0
  }

  /** Offset in the frames of the entry of `counter`. */
  frameAt(counter: number): number {
    return this.#words[this.#entries + (counter & MASK) * this.#entryWords]!
  }

  /** Octets of the frame; only RX. */
  octetsAt(counter: number): number {
    return this.#words[this.#entries + (counter & MASK) * this.#entryWords + 2]!
  }

  /** Writes an entry of the fill ring. */
  putFrame(counter: number, frame: number): void {
    const at = this.#entries + (counter & MASK) * this.#entryWords
    this.#words[at] = frame
    this.#words[at + 1] = 0
  }

  /** Writes an entry of the TX ring. */
  putDescriptor(counter: number, frame: number, octets: number): void {
    this.putFrame(counter, frame)
    const at = this.#entries + (counter & MASK) * this.#entryWords
    this.#words[at + 2] = octets
    this.#words[at + 3] = 0
  }
}
