import { mmdbFault } from './fault.ts'

/** Octets between the search tree and the data section, all zero. */
const SEPARATOR_OCTETS = 16

interface SearchTreeLayout {
  readonly file: string
  readonly bytes: Uint8Array
  /** Offset of the metadata: tree, separator and data end before it. */
  readonly metadataOffset: number
  readonly nodeCount: number
  readonly recordBits: number
  readonly ipVersion: number
}

/**
 * The binary search tree of a MaxMind DB (MaxMind DB File Format Specification 2.0), read in place.
 * A record is a number. Below `nodeCount` it is a node; equal to it, it means "no data"; above it,
 * it is an entry of the data section.
 *
 *     24 bits   │ zero: 3 octets        │ one: 3 octets │
 *     28 bits   │ zero: low 24 bits     │ high nibbles: zero, one │ one: low 24 bits │
 *     32 bits   │ zero: 4 octets        │ one: 4 octets │
 */
export class SearchTree {
  readonly file: string
  readonly nodeCount: number
  /** Bits of the longest address: 32 or 128. */
  readonly depthMax: number
  /** Octets of the data section, which follows the separator. */
  readonly dataOctets: number
  readonly dataOffset: number
  /** Record where IPv4 addresses start. */
  readonly ipv4Root: number
  readonly #bytes: Uint8Array
  readonly #recordBits: number

  /** Throws InputError if the tree doesn't fit into the file. */
  constructor(layout: SearchTreeLayout) {
    const { nodeCount, recordBits } = layout
    this.file = layout.file
    this.nodeCount = nodeCount
    this.depthMax = layout.ipVersion === 4 ? 32 : 128
    this.dataOffset = (nodeCount * recordBits) / 4 + SEPARATOR_OCTETS
    this.dataOctets = layout.metadataOffset - this.dataOffset
    this.#bytes = layout.bytes
    this.#recordBits = recordBits
    if (this.dataOctets < 0) {
      throw mmdbFault(layout.file, 'is truncated: its search tree ends after the file')
    }
    this.ipv4Root = layout.ipVersion === 4 ? 0 : this.#findIPv4Root()
  }

  /** Returns the record of `node` (below nodeCount) for `bit` 0 or 1. */
  child(node: number, bit: number): number {
    const bytes = this.#bytes
    if (this.#recordBits === 24) {
      const at = node * 6 + bit * 3
      return (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!
    }
    if (this.#recordBits === 28) {
      const at = node * 7
      const low = at + bit * 4
      const high = bit === 0 ? bytes[at + 3]! >> 4 : bytes[at + 3]! & 0x0f
      return (high << 24) | (bytes[low]! << 16) | (bytes[low + 1]! << 8) | bytes[low + 2]!
    }
    const at = node * 8 + bit * 4
    const low = (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
    return bytes[at]! * 0x1000000 + low
  }

  /**
   * Returns the offset, within the data section, of the entry of `record` (nodeCount or above); -1
   * for "no data". Throws InputError if it lies outside the section.
   */
  entryOf(record: number): number {
    if (record === this.nodeCount) return -1
    const offset = record - this.nodeCount - SEPARATOR_OCTETS
    if (offset < 0 || offset >= this.dataOctets) {
      throw mmdbFault(this.file, `is corrupt: a search tree record points outside its data`)
    }
    return offset
  }

  /** Returns the entry of an address, or -1. `family` 1 or 2. An IPv4-only tree has no IPv6 addresses. */
  findEntry(address: Uint8Array, family: number): number {
    const bits = family === 1 ? 32 : 128
    if (bits > this.depthMax) return -1
    let record = family === 1 ? this.ipv4Root : 0
    for (let depth = 0; record < this.nodeCount; depth++) {
      if (depth === bits) throw this.tooDeep()
      record = this.child(record, (address[depth >> 3]! >> (7 - (depth & 7))) & 1)
    }
    return this.entryOf(record)
  }

  /** Returns the length of the longest prefix around an address that has one entry, or none. `family` 1 or 2. */
  prefixBits(address: Uint8Array, family: number): number {
    const bits = family === 1 ? 32 : 128
    if (bits > this.depthMax) return 0
    let record = family === 1 ? this.ipv4Root : 0
    let depth = 0
    for (; record < this.nodeCount && depth < bits; depth++) {
      record = this.child(record, (address[depth >> 3]! >> (7 - (depth & 7))) & 1)
    }
    return depth
  }

  /** Returns the error for a node below the last bit of an address: the tree is corrupt, perhaps a loop. */
  tooDeep(): Error {
    return mmdbFault(this.file, 'is corrupt: its search tree is deeper than an address has bits')
  }

  /** Returns the record where IPv4 addresses start: they lie in ::/96. */
  #findIPv4Root(): number {
    let record = 0
    for (let depth = 0; depth < 96 && record < this.nodeCount; depth++) {
      record = this.child(record, 0)
    }
    return record
  }
}
