import * as nsec3 from '../../dns/dnssec/nsec3.ts'
import * as types from '../../dns/iana/types.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
import { ChainCursor } from '../image/chain-cursor.ts'
import * as layout from '../image/layout.ts'
import type { ZoneReader } from '../image/reader.ts'
import { scratch } from './scratch.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { RRType } = types
const { CHAIN_REST, CHAIN_TYPE } = layout

/** Finds, in the chain of a zone, the node whose record matches or covers a name. */
export class ChainSearch {
  readonly #reader: ZoneReader
  readonly #order = scratch.order
  readonly #cursor = new ChainCursor()
  /** Made for the first NSEC3 proof: it remembers hashes, and few zones need it. */
  #hasher: nsec3.Nsec3Hasher | undefined = undefined
  /** 0 = the zone has no chain. */
  chain = 0
  /** The node found last. */
  node = 0

  constructor(reader: ZoneReader) {
    this.#reader = reader
  }

  /** Moves to the chain of a zone; false = it has no chain. @hot */
  enter(zone: number): boolean {
    this.chain = this.#reader.findChain(zone)
    return this.chain !== 0
  }

  /** NSEC or NSEC3. */
  get type(): number {
    return this.#reader.words[this.chain + CHAIN_TYPE]!
  }

  get isHashed(): boolean {
    return this.type === RRType.NSEC3
  }

  /**
   * Finds the name at `label` of `name`, or the `*` below it, in a chain of NSEC. True = that name owns the record
   * found, else the record covers it. @hot
   */
  findName(name: HashedName, label: number, zoneLabel: number, wildcard: boolean): boolean {
    this.#order.setName(name, label, zoneLabel, wildcard)
    return this.#search()
  }

  /** The same in a chain of NSEC3. @hot */
  findHash(name: HashedName, label: number, wildcard: boolean): boolean {
    const { bytes } = this.#reader
    const { qname, qnameOctets, labelOffset } = name
    const parameters = (this.chain + CHAIN_REST) * 4
    this.#hasher ??= new nsec3.Nsec3Hasher()
    this.#hasher.hash(qname, labelOffset[label]!, qnameOctets, wildcard, bytes, parameters)
    this.#order.setLabel(this.#hasher.label)
    return this.#search()
  }

  /**
   * Finds the last node of the chain that is not after the name in `#order`. The last node precedes
   * the first node.
   */
  #search(): boolean {
    const { words, bytes } = this.#reader
    const cursor = this.#cursor
    cursor.enter(words, this.chain)
    const isFound = cursor.seek(words, bytes, this.#order)
    this.node = cursor.index < 0 ? cursor.last(words) : cursor.node(words)
    return isFound
  }
}
