import { RRClass } from '../iana/classes.ts'
import { RRType } from '../iana/types.ts'
import { DirectAnswer, type SectionSignatures } from './direct-answer.ts'
import type { Query } from './query.ts'
import { Section } from './section.ts'

/** Receives records: see `Response`. */
interface RecordSink {
  readonly synthesized: Uint8Array
  synthesizedOctets: number
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

const NO_ANSWER = new DirectAnswer()
const NO_RECORDS: RecordSink = {
  synthesized: new Uint8Array(0),
  synthesizedOctets: 0,
  add: () => {},
}

/** Moves records of a direct answer to one section of a response. Reused. */
class Expansion {
  readonly #section: Section
  #direct = NO_ANSWER
  #response: RecordSink = NO_RECORDS
  #signatures: SectionSignatures = NO_ANSWER.answerSignatures
  #nextSignature = 0
  // The owner of the next records.
  owner: Uint8Array = NO_ANSWER.bytes
  ownerOffset = 0

  constructor(section: Section) {
    this.#section = section
  }

  begin(direct: DirectAnswer, response: RecordSink, query: Query): void {
    this.#direct = direct
    this.#response = response
    const { answerSignatures, authoritySignatures } = direct
    this.#signatures = this.#section === Section.Answer ? answerSignatures : authoritySignatures
    this.#nextSignature = 0
    this.owner = query.qname
    this.ownerOffset = 0
  }

  add(type: number, ttlSeconds: number, offset: number): void {
    const { bytes } = this.#direct
    const { owner, ownerOffset } = this
    const octets = this.#direct.rdataOctets(offset)
    const section = this.#section
    const rrclass = RRClass.IN
    const at = offset + 2
    this.#response.add(section, owner, ownerOffset, type, rrclass, ttlSeconds, bytes, at, octets)
  }

  addSignatures(count: number, ttlSeconds: number): void {
    for (let i = 0; i < count; i++) {
      this.add(RRType.RRSIG, ttlSeconds, this.#signatures.offset[this.#nextSignature++]!)
    }
  }

  /** Makes the owner of proof `i` that of the next records. */
  setProofOwner(query: Query, i: number): void {
    const { bytes, proofOwner, proofOwnerOctets, proofLabel } = this.#direct
    if (proofOwner[i] === 0) {
      this.owner = query.qname
      this.ownerOffset = query.labelOffset[proofOwnerOctets[i]!]!
      return
    }
    const response = this.#response
    const { synthesized } = response
    const start = response.synthesizedOctets
    let at = start
    const from = proofOwner[i]!
    for (let k = 0; k < proofOwnerOctets[i]!; k++) synthesized[at++] = bytes[from + k]!
    for (let k = query.labelOffset[proofLabel]!; k < query.qnameOctets; k++) {
      synthesized[at++] = query.qname[k]!
    }
    response.synthesizedOctets = at
    this.owner = synthesized
    this.ownerOffset = start
  }
}

const answer = new Expansion(Section.Answer)
const authority = new Expansion(Section.Authority)

/**
 * Moves a direct answer to the records of a response, which has none. Returns the index of the last CNAME,
 * or -1. @hot
 */
export function expandDirect(direct: DirectAnswer, response: RecordSink, query: Query): number {
  answer.begin(direct, response, query)
  authority.begin(direct, response, query)
  const { aliasCount, aliasOffset, aliasTtlSeconds, aliasSignatures, setCount } = direct
  let lastAlias = -1
  for (let i = 0, next = 0; i < aliasCount; i++) {
    lastAlias = next
    next += 1 + aliasSignatures[i]!
    const offset = aliasOffset[i]!
    answer.add(RRType.CNAME, aliasTtlSeconds[i]!, offset)
    answer.addSignatures(aliasSignatures[i]!, aliasTtlSeconds[i]!)
    answer.owner = direct.bytes
    answer.ownerOffset = offset + 2
  }
  for (let i = 0; i < setCount; i++) {
    answer.add(query.qtype, direct.setTtlSeconds, direct.setOffset[i]!)
  }
  answer.addSignatures(direct.setSignatures, direct.setTtlSeconds)
  if (direct.soaOffset !== 0) {
    const soa = direct.soaSection === Section.Answer ? answer : authority
    soa.ownerOffset = query.labelOffset[direct.soaLabel]!
    soa.add(RRType.SOA, direct.soaTtlSeconds, direct.soaOffset)
    soa.addSignatures(direct.soaSignatures, direct.soaTtlSeconds)
  }
  for (let i = 0; i < direct.proofCount; i++) {
    authority.setProofOwner(query, i)
    authority.add(direct.proofType, direct.proofTtlSeconds[i]!, direct.proofOffset[i]!)
    authority.addSignatures(direct.proofSignatures[i]!, direct.proofTtlSeconds[i]!)
  }
  direct.clear()
  return lastAlias
}
