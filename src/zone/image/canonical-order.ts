import { LABELS_MAX } from '../../dns/message/query.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
import { NODE_KEY, NODE_NAME } from './layout.ts'

/** Octets of the longest relative name with the label `*` before it. */
const OCTETS_MAX = 257

/**
 * Compares one name with the names of nodes of the same zone in canonical order (RFC 4034 section
 * 6.1). Reused; does not allocate.
 */
export class CanonicalOrder {
  /** The name, relative to the apex, lower case. */
  readonly #octets = new Uint8Array(OCTETS_MAX)
  /** Offset of each label, leftmost first. */
  readonly #starts = new Uint16Array(LABELS_MAX + 1)
  #labels = 0
  readonly #otherStarts = new Uint32Array(LABELS_MAX + 1)

  /**
   * Sets the name to the labels of `name` from `label` to before the apex at `zoneLabel`, with `*`
   * before them if `wildcard`. @hot
   */
  setName(name: HashedName, label: number, zoneLabel: number, wildcard: boolean): void {
    let octets = 0
    this.#labels = 0
    if (wildcard) {
      this.#octets[0] = 1
      this.#octets[1] = 0x2a
      octets = 2
      this.#starts[this.#labels++] = 0
    }
    const shift = octets - name.labelOffset[label]!
    for (let i = label; i < zoneLabel; i++)
      this.#starts[this.#labels++] = name.labelOffset[i]! + shift
    const end = name.labelOffset[zoneLabel]!
    for (let i = name.labelOffset[label]!; i < end; i++) this.#octets[octets++] = name.qname[i]!
  }

  /** Sets the name to the one label at `label[0]`, which must be lower case. @hot */
  setLabel(label: Uint8Array): void {
    this.#labels = 1
    this.#starts[0] = 0
    for (let i = 0; i <= label[0]!; i++) this.#octets[i] = label[i]!
  }

  /** Sets the name to that of a node. */
  setNode(words: Uint32Array, bytes: Uint8Array, node: number): void {
    this.setRelative(bytes, (node + NODE_NAME) * 4, words[node + NODE_KEY]! & 0xffff)
  }

  /** Sets the name to the labels in `octets` octets from `bytes[at]` on, relative to the apex and lower case. */
  setRelative(bytes: Uint8Array, at: number, octets: number): void {
    this.#labels = 0
    for (let i = 0; i < octets; i += bytes[at + i]! + 1) this.#starts[this.#labels++] = i
    for (let i = 0; i < octets; i++) this.#octets[i] = bytes[at + i]!
  }

  /**
   * Returns a number below 0 if the name is before the node's name, 0 if they are equal, above 0 if
   * it is after. @hot
   */
  compare(words: Uint32Array, bytes: Uint8Array, node: number): number {
    const at = (node + NODE_NAME) * 4
    const end = at + (words[node + NODE_KEY]! & 0xffff)
    const labels = this.#labels
    // Most names have one label below the apex, as do all NSEC3 records.
    if (labels > 0 && at + bytes[at]! + 1 === end) {
      const order = this.#compareLabels(this.#starts[labels - 1]!, bytes, at)
      return order === 0 ? labels - 1 : order
    }
    const others = this.#otherStarts
    let otherLabels = 0
    for (let i = at; i < end; i += bytes[i]! + 1) others[otherLabels++] = i
    for (let i = labels - 1, k = otherLabels - 1; i >= 0 && k >= 0; i--, k--) {
      const order = this.#compareLabels(this.#starts[i]!, bytes, others[k]!)
      if (order !== 0) return order
    }
    return labels - otherLabels
  }

  #compareLabels(own: number, bytes: Uint8Array, other: number): number {
    const ownOctets = this.#octets[own]!
    const otherOctets = bytes[other]!
    const shared = Math.min(ownOctets, otherOctets)
    for (let i = 1; i <= shared; i++) {
      const order = this.#octets[own + i]! - bytes[other + i]!
      if (order !== 0) return order
    }
    return ownOctets - otherOctets
  }
}
