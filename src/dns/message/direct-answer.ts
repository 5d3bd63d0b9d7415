import { RRClass } from '../iana/classes.ts'
import { RRType } from '../iana/types.ts'
import { type HashedName, NameBuffer } from '../name/hashed-name.ts'
import type { Query } from './query.ts'
import { Section } from './section.ts'

/** Most CNAMEs that are followed for one question, inside and across zones. */
export const ALIASES_MAX = 16

/** Initial capacity of the set. */
const SET_COUNT_START = 16

const NO_BYTES = new Uint8Array(0)
const NO_NAME = new NameBuffer()

/** Receives records: see `Response.add`. */
interface RecordSink {
  add(
    section: Section,
    owner: Uint8Array,
    ownerOffset: number,
    type: number,
    rrclass: number,
    ttlSeconds: number,
    rdata: Uint8Array,
    rdataOffset: number,
    rdataOctets: number,
  ): void
}

/**
 * An answer that is sent straight from a zone image, without a list of its records. Most answers have
 * this form:
 *
 *     qname ─CNAME─▶ target 0 ─CNAME─▶ target 1 ─▶ set: A, AAAA or TXT records of the last name
 *     or: the SOA of the zone, as the answer or as the proof of a negative one
 *
 * All names are in the zone of the qname. `bytes` is the image; an offset is that of the 16-bit
 * length of rdata, which the rdata follows.
 */
export class DirectAnswer {
  /** Records of the answer; 0 = the answer does not have this form. */
  count = 0
  bytes: Uint8Array = NO_BYTES

  /** CNAMEs, from the qname on. */
  aliasCount = 0
  readonly aliasOffset: Uint32Array = new Uint32Array(ALIASES_MAX)
  readonly aliasTtlSeconds: Uint32Array = new Uint32Array(ALIASES_MAX)
  /** The names that they lead to. */
  readonly targets: HashedName[] = new Array(ALIASES_MAX).fill(NO_NAME)

  setCount = 0
  setTtlSeconds = 0
  setOffset: Uint32Array = new Uint32Array(SET_COUNT_START)
  /** Octets of all rdata of the set. */
  setOctets = 0

  /** 0 = no SOA. */
  soaOffset = 0
  soaTtlSeconds = 0
  soaSection: Section = Section.Authority
  /** Label of the qname at which the zone starts. */
  soaLabel = 0
  /** The names in the SOA at `soaParsed` of `soaBytes`. They stay valid for later answers. */
  soaBytes: Uint8Array = NO_BYTES
  soaParsed = 0
  readonly soaServer: NameBuffer = new NameBuffer()
  readonly soaMailbox: NameBuffer = new NameBuffer()

  clear(): void {
    this.count = 0
    this.aliasCount = 0
    this.setCount = 0
    this.soaOffset = 0
  }

  /** True if the SOA proves a negative answer. */
  get isNegative(): boolean {
    return this.soaOffset !== 0 && this.soaSection === Section.Authority
  }

  /** The owner of the set. */
  lastName(query: Query): HashedName {
    return this.aliasCount === 0 ? query : this.targets[this.aliasCount - 1]!
  }

  /** Makes room for a set of `count` records. */
  growSet(count: number): void {
    this.setOffset = new Uint32Array(count)
  }

  rdataOctets(offset: number): number {
    return (this.bytes[offset]! << 8) | this.bytes[offset + 1]!
  }

  /** Moves the answer to the records of the response, which has none. */
  moveTo(response: RecordSink, query: Query): void {
    let owner = query.qname
    let ownerOffset = 0
    for (let i = 0; i < this.aliasCount; i++) {
      const offset = this.aliasOffset[i]!
      const ttl = this.aliasTtlSeconds[i]!
      this.#addRecord(response, Section.Answer, owner, ownerOffset, RRType.CNAME, ttl, offset)
      owner = this.bytes
      ownerOffset = offset + 2
    }
    for (let i = 0; i < this.setCount; i++) {
      const offset = this.setOffset[i]!
      const ttl = this.setTtlSeconds
      this.#addRecord(response, Section.Answer, owner, ownerOffset, query.qtype, ttl, offset)
    }
    if (this.soaOffset !== 0) {
      const apex = query.labelOffset[this.soaLabel]!
      const { soaSection, soaTtlSeconds, soaOffset } = this
      this.#addRecord(response, soaSection, query.qname, apex, RRType.SOA, soaTtlSeconds, soaOffset)
    }
    this.clear()
  }

  #addRecord(
    response: RecordSink,
    section: Section,
    owner: Uint8Array,
    ownerOffset: number,
    type: number,
    ttlSeconds: number,
    offset: number,
  ): void {
    const { bytes } = this
    const octets = this.rdataOctets(offset)
    const at = offset + 2
    response.add(section, owner, ownerOffset, type, RRClass.IN, ttlSeconds, bytes, at, octets)
  }
}
