import * as frames from './frame.ts'
import type { XdpTarget } from './program.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { IPV4_DESTINATION, IPV4_MESSAGE, IPV4_SOURCE, IPV6_DESTINATION, IPV6_MESSAGE, IPV6_SOURCE } =
  frames

/** The UDP header ends where the message starts; the destination port is in its octets 2 and 3. */
const PORT_BEFORE_MESSAGE = 6
const ADDRESS_WORDS = 4

/** A target, and the index of the lane that answers it. */
export interface LaneTarget extends XdpTarget {
  readonly lane: number
}

/** Finds the lane of a frame by its destination. Few targets are expected: a linear search is quick. */
export class Targets {
  readonly #ports: Int32Array
  readonly #lanes: Int32Array
  /** Four words per target; IPv4 in the first. */
  readonly #words: Int32Array
  /** IPv4 targets are before this index, IPv6 targets from there on. */
  readonly #firstIPv6: number
  /** As `#words`. */
  readonly #refused: Int32Array
  readonly #refusedIPv6: number

  /** `refused`: source addresses that no reply may go to, such as our own. */
  constructor(
    targets: readonly LaneTarget[],
    refused: readonly Pick<XdpTarget, 'family' | 'address'>[],
  ) {
    const sorted = byFamily(targets)
    this.#ports = Int32Array.from(sorted, ({ port }) => port)
    this.#lanes = Int32Array.from(sorted, ({ lane }) => lane)
    this.#words = addressWords(sorted)
    this.#firstIPv6 = targets.filter(({ family }) => family === 1).length
    this.#refused = addressWords(byFamily(refused))
    this.#refusedIPv6 = refused.filter(({ family }) => family === 1).length
  }

  /** Returns the lane of the IPv4 frame at `at`; -1 = none, or its source is refused. @hot */
  findIPv4(view: DataView, at: number): number {
    const source = view.getInt32(at + IPV4_SOURCE)
    for (let i = 0; i < this.#refusedIPv6; i++) {
      if (this.#refused[i * ADDRESS_WORDS] === source) return -1
    }
    const address = view.getInt32(at + IPV4_DESTINATION)
    const port = view.getUint16(at + IPV4_MESSAGE - PORT_BEFORE_MESSAGE)
    for (let i = 0; i < this.#firstIPv6; i++) {
      if (this.#words[i * ADDRESS_WORDS] === address && this.#ports[i] === port) {
        return this.#lanes[i]!
      }
    }
    return -1
  }

  /** As `findIPv4`. @hot */
  findIPv6(view: DataView, at: number): number {
    const refused = this.#refused.length / ADDRESS_WORDS
    for (let i = this.#refusedIPv6; i < refused; i++) {
      if (isSame(this.#refused, i * ADDRESS_WORDS, view, at + IPV6_SOURCE)) return -1
    }
    const port = view.getUint16(at + IPV6_MESSAGE - PORT_BEFORE_MESSAGE)
    for (let i = this.#firstIPv6; i < this.#ports.length; i++) {
      if (this.#ports[i] !== port) continue
      if (isSame(this.#words, i * ADDRESS_WORDS, view, at + IPV6_DESTINATION)) {
        return this.#lanes[i]!
      }
    }
    return -1
  }
}

function isSame(words: Int32Array, index: number, view: DataView, at: number): boolean {
  return (
    words[index + 3] === view.getInt32(at + 12) &&
    words[index + 2] === view.getInt32(at + 8) &&
    words[index + 1] === view.getInt32(at + 4) &&
    words[index] === view.getInt32(at)
  )
}

function byFamily<T extends { readonly family: number }>(all: readonly T[]): T[] {
  return [...all].sort((a, b) => a.family - b.family)
}

function addressWords(all: readonly Pick<XdpTarget, 'address'>[]): Int32Array {
  const words = new Int32Array(all.length * ADDRESS_WORDS)
  all.forEach(({ address }, i) => {
    const view = new DataView(address.buffer, address.byteOffset, address.byteLength)
    for (let w = 0; w < ADDRESS_WORDS; w++) words[i * ADDRESS_WORDS + w] = view.getInt32(w * 4)
  })
  return words
}
