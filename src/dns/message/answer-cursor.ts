import { RRType } from '../iana/index.ts'
import { LOWER } from '../name/lower.ts'
import { NAME_OCTETS_MAX } from '../name/name.ts'
import { NameParser } from '../name/parse-name.ts'
import { readRdata } from '../rdata/index.ts'
import { OctetReader, OctetWriter } from '../rdata/octets.ts'
import type { ResourceRecord } from './message.ts'
import { type MessageHead, parseHead, parseRest } from './parse-message.ts'

/** Octets of a record between its owner and its rdata. */
const FIXED_OCTETS = 10

/**
 * Reads the answer records of messages one after the other, without an object for each: transfers have millions. It
 * finds the same faults as `parseMessage`.
 */
export class AnswerCursor {
  /** The owner of the current record: uncompressed wire form in 0..ownerOctets-1, in lower case. */
  readonly owner: Uint8Array = new Uint8Array(NAME_OCTETS_MAX)
  ownerOctets = 0
  type = 0
  rrclass = 0
  ttlSeconds = 0
  /** True after `next` or `end` found a fault. */
  isMalformed = false
  readonly #name = new NameParser()
  readonly #rdata = new OctetWriter()
  #input = new OctetReader(this.owner, 0, 0)
  #head: MessageHead | undefined
  #left = 0

  /** Begins with a message; undefined = its header or its question is malformed. */
  open(bytes: Uint8Array): MessageHead | undefined {
    this.#input = new OctetReader(bytes, 0, bytes.length)
    this.#head = parseHead(this.#input)
    this.#left = this.#head?.answers ?? 0
    this.isMalformed = false
    return this.#head
  }

  /** Octets of the message. */
  get messageOctets(): number {
    return this.#input.bytes.length
  }

  /** Moves to the next record of the answer section. Returns false if none is left, or it is malformed. */
  next(): boolean {
    if (this.#left === 0) return false
    this.#left--
    this.isMalformed = !this.#readRecord()
    return !this.isMalformed
  }

  #readRecord(): boolean {
    const input = this.#input
    const { bytes } = input
    const name = this.#name
    if (!name.parse(bytes, input.at, bytes.length)) return false
    const at = name.end
    const rdataAt = at + FIXED_OCTETS
    if (rdataAt > bytes.length) return false
    const end = rdataAt + ((bytes[at + 8]! << 8) | bytes[at + 9]!)
    if (end > bytes.length) return false
    this.type = (bytes[at]! << 8) | bytes[at + 1]!
    if (this.type === RRType.OPT) return false
    this.rrclass = (bytes[at + 2]! << 8) | bytes[at + 3]!
    const ttl =
      (bytes[at + 4]! << 24) | (bytes[at + 5]! << 16) | (bytes[at + 6]! << 8) | bytes[at + 7]!
    // A TTL of 32 bits, which is negative here, counts as 0 (RFC 2181 section 8).
    this.ttlSeconds = Math.max(0, ttl)
    this.ownerOctets = name.octets
    for (let i = 0; i < name.octets; i++) this.owner[i] = LOWER[name.name[i]!]!
    input.at = rdataAt
    input.end = end
    const isWellFormed = readRdata(this.type, input, this.#rdata)
    input.at = end
    input.end = bytes.length
    return isWellFormed
  }

  /** Has the uncompressed rdata of the current record from `rdataOffset` on, until the next record. */
  get rdata(): Uint8Array {
    return this.#rdata.memory
  }

  readonly rdataOffset = 0

  get rdataOctets(): number {
    return this.#rdata.length
  }

  /** Returns a copy of the current record. */
  copy(): ResourceRecord {
    const { type, rrclass, ttlSeconds } = this
    const owner = this.owner.slice(0, this.ownerOctets)
    return { owner, type, rrclass, ttlSeconds, rdata: this.#rdata.octets() }
  }

  /** Returns the rcode of the message, once no record is left; -1 = the message is malformed. */
  end(): number {
    const rest = this.isMalformed ? undefined : parseRest(this.#input, this.#head!)
    return rest?.rcode ?? -1
  }
}
