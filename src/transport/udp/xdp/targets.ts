import * as frames from './frame.ts'
import type { XdpTarget } from './program.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { IPV4_DESTINATION, IPV4_PORTS, IPV4_SOURCE, IPV6_DESTINATION, IPV6_PORTS, IPV6_SOURCE } =
  frames

const ADDRESS_WORDS = 4

/** A target, and the index of the lane that answers it. */
export interface LaneTarget extends XdpTarget {
  readonly lane: number
}

/**
 * Finds the lane of a frame by its destination. Few targets are expected: a linear search is quick.
 * Ports and addresses are as the words of a frame have them (see frame.ts).
 */
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
    this.#ports = Int32Array.from(sorted, ({ port }) => ((port & 0xff) << 8) | (port >> 8))
    this.#lanes = Int32Array.from(sorted, ({ lane }) => lane)
    this.#words = addressWords(sorted)
    this.#firstIPv6 = targets.filter(({ family }) => family === 1).length
    this.#refused = addressWords(byFamily(refused))
    this.#refusedIPv6 = refused.filter(({ family }) => family === 1).length
  }

  /** Returns the lane of the IPv4 frame `ip`; -1 = none, or its source is refused. @hot */
  findIPv4(words: Int32Array, ip: number): number {
    const source = words[ip + IPV4_SOURCE]!
    for (let i = 0; i < this.#refusedIPv6; i++) {
      if (this.#refused[i * ADDRESS_WORDS] === source) return -1
    }
    const address = words[ip + IPV4_DESTINATION]!
    const port = words[ip + IPV4_PORTS]! >>> 16
    for (let i = 0; i < this.#firstIPv6; i++) {
      if (this.#words[i * ADDRESS_WORDS] === address && this.#ports[i] === port) {
        return this.#lanes[i]!
      }
    }
    return -1
  }

  /** As `findIPv4`. @hot */
  findIPv6(words: Int32Array, ip: number): number {
    const refused = this.#refused.length / ADDRESS_WORDS
    for (let i = this.#refusedIPv6; i < refused; i++) {
      if (isSame(this.#refused, i * ADDRESS_WORDS, words, ip + IPV6_SOURCE)) return -1
    }
    const port = words[ip + IPV6_PORTS]! >>> 16
    for (let i = this.#firstIPv6; i < this.#ports.length; i++) {
      if (this.#ports[i] !== port) continue
      if (isSame(this.#words, i * ADDRESS_WORDS, words, ip + IPV6_DESTINATION)) {
        return this.#lanes[i]!
      }
    }
    return -1
  }
}

function isSame(own: Int32Array, index: number, words: Int32Array, at: number): boolean {
  return (
    own[index + 3] === words[at + 3] &&
    own[index + 2] === words[at + 2] &&
    own[index + 1] === words[at + 1] &&
    own[index] === words[at]
  )
}

function byFamily<T extends { readonly family: number }>(all: readonly T[]): T[] {
  return [...all].sort((a, b) => a.family - b.family)
}

function addressWords(all: readonly Pick<XdpTarget, 'address'>[]): Int32Array {
  const words = new Int32Array(all.length * ADDRESS_WORDS)
  all.forEach(({ address }, i) => {
    const view = new DataView(address.buffer, address.byteOffset, address.byteLength)
    for (let w = 0; w < ADDRESS_WORDS; w++)
      words[i * ADDRESS_WORDS + w] = view.getInt32(w * 4, true)
  })
  return words
}
