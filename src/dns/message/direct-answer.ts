import { type HashedName, NameBuffer } from '../name/hashed-name.ts'
import type { Query } from './query.ts'
import { Section } from './section.ts'

/** Most CNAMEs that are followed for one question, inside and across zones. */
export const ALIASES_MAX = 16

/** Initial capacity of the set. */
const SET_COUNT_START = 16

/** Initial capacity for the signatures of one section. */
const SIGNATURE_COUNT_START = 64

/** Most proofs: NSEC3 of the closest encloser, of the next closer name and of the wildcard. */
const PROOFS_MAX = 3

const NO_BYTES = new Uint8Array(0)
const NO_VIEW = new DataView(new ArrayBuffer(0))
const NO_NAME = new NameBuffer()

/** Offsets of the signatures in one section, in the order of the RRsets that they sign. */
export class SectionSignatures {
  count = 0
  offset: Uint32Array = new Uint32Array(SIGNATURE_COUNT_START)

  add(offset: number): void {
    if (this.count === this.offset.length) this.#grow()
    this.offset[this.count++] = offset
  }

  #grow(): void {
    const larger = new Uint32Array(this.offset.length * 2)
    larger.set(this.offset)
    this.offset = larger
  }
}

/**
 * An answer that is sent straight from a zone image, without a list of its records. Most answers have
 * this form:
 *
 *     qname ─CNAME─▶ target 0 ─CNAME─▶ target 1 ─▶ set: A, AAAA or TXT records of the last name
 *     or: the SOA of the zone, as the answer or as the proof of a negative one
 *     authority section, with DO: proofs, which are NSEC or NSEC3 records
 *
 * With DO, its signatures follow each RRset. All names are in the zone of the qname. `bytes` is the image, as is
 * `view`; an offset is that of the 16-bit length of rdata, which the rdata follows.
 */
export class DirectAnswer {
  /** Records of the answer, without signatures and proofs; 0 = the answer does not have this form. */
  count = 0
  bytes: Uint8Array = NO_BYTES
  view: DataView = NO_VIEW

  /** CNAMEs, from the qname on. */
  aliasCount = 0
  readonly aliasOffset: Uint32Array = new Uint32Array(ALIASES_MAX)
  readonly aliasTtlSeconds: Uint32Array = new Uint32Array(ALIASES_MAX)
  /** The names that they lead to. */
  readonly targets: HashedName[] = new Array(ALIASES_MAX).fill(NO_NAME)
  /** How many signatures each has. */
  readonly aliasSignatures: Uint16Array = new Uint16Array(ALIASES_MAX)
  /** Of the CNAMEs; then of the set, or of a SOA that is the answer. */
  readonly answerSignatures: SectionSignatures = new SectionSignatures()

  setCount = 0
  setTtlSeconds = 0
  setOffset: Uint32Array = new Uint32Array(SET_COUNT_START)
  /** Octets of all rdata of the set. */
  setOctets = 0
  /** How many signatures it has. */
  setSignatures = 0

  /** 0 = no SOA. */
  soaOffset = 0
  soaTtlSeconds = 0
  soaSection: Section = Section.Authority
  /** How many signatures it has. */
  soaSignatures = 0
  /** Label of the qname at which the zone starts. */
  soaLabel = 0
  /** The names in the SOA at `soaParsed` of `soaBytes`. They stay valid for later answers. */
  soaBytes: Uint8Array = NO_BYTES
  soaParsed = 0
  readonly soaServer: NameBuffer = new NameBuffer()
  readonly soaMailbox: NameBuffer = new NameBuffer()

  /** A wildcard that matched the qname has a proof without a SOA. */
  proofCount = 0
  /** NSEC or NSEC3. */
  proofType = 0
  readonly proofOffset: Uint32Array = new Uint32Array(PROOFS_MAX)
  readonly proofTtlSeconds: Uint32Array = new Uint32Array(PROOFS_MAX)
  /** Where the owner's labels before the apex are; 0 = the owner is the qname, from a label on. */
  readonly proofOwner: Uint32Array = new Uint32Array(PROOFS_MAX)
  /** Octets of these labels; otherwise that label. */
  readonly proofOwnerOctets: Uint8Array = new Uint8Array(PROOFS_MAX)
  /** Label of the qname at which the zone of the proofs starts. */
  proofLabel = 0
  readonly proofSignatures: Uint16Array = new Uint16Array(PROOFS_MAX)
  /** Of a SOA in the authority section, then of the proofs. */
  readonly authoritySignatures: SectionSignatures = new SectionSignatures()

  clear(): void {
    this.count = 0
    this.aliasCount = 0
    this.setCount = 0
    this.setSignatures = 0
    this.soaOffset = 0
    this.proofCount = 0
    this.answerSignatures.count = 0
    this.authoritySignatures.count = 0
  }

  /** Removes everything but the CNAMEs, with their signatures and proofs. */
  keepAliases(): void {
    const { aliasCount, aliasSignatures } = this
    if (aliasCount === 0) {
      this.clear()
      return
    }
    let signatures = 0
    for (let i = 0; i < aliasCount; i++) signatures += aliasSignatures[i]!
    this.answerSignatures.count = signatures
    this.setSignatures = 0
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
}
