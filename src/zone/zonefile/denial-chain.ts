import {
  hasSameNsec3Parameters,
  NSEC3_ITERATIONS_SAFE,
  NSEC3_SHA1,
  Nsec3Hasher,
  nsec3Iterations,
  nsec3NextLabel,
} from '../../dns/dnssec/nsec3.ts'
import { printType, RRType } from '../../dns/iana/index.ts'
import { compareNames, lowerName, printName } from '../../dns/name/name.ts'
import type { ZoneRecords } from './records.ts'

/**
 * Checks the chain of NSEC or NSEC3 records of a zone: every link must lead to the next name, and
 * the last to the first.
 */
export class DenialChain {
  readonly #records: ZoneRecords
  readonly #type: number
  /** The NSEC3PARAM record; -1 for NSEC. */
  readonly #parameters: number
  /** One bit per node: a link leads there. */
  readonly #reached: Uint8Array
  /** Number of links that lead back to the start. */
  #wraps = 0
  /** First record of a name that needs a link and has none. */
  #unlinked = -1
  #unlinkedOwner = ''
  #unlinkedCount = 0
  /** First link whose next name has no link, or was reached before. */
  #broken = -1
  #brokenOwner = ''
  /**
   * First link beside another link of the same owner. Two names with one hash would cause it (RFC
   * 5155 section 7.1).
   */
  #second = -1
  #secondOwner = ''

  constructor(records: ZoneRecords, type: number, parameters: number) {
    this.#records = records
    this.#type = type
    this.#parameters = parameters
    this.#reached = new Uint8Array((records.nodeCount >> 3) + 1)
  }

  /** Checks one node. `index`: the records of the node. The node must be authoritative data or a zone cut. */
  checkNode(node: number, index: readonly number[]): void {
    const { type } = this.#records
    const link = index.find((record) => this.#isLink(record))
    if (link !== undefined) {
      const second = index.find((record) => record !== link && this.#isLink(record))
      if (second !== undefined && this.#second === -1) {
        this.#second = second
        this.#secondOwner = printName(this.#records.owner(node))
      }
      this.#follow(node, link)
      return
    }
    // Which names need an NSEC3 depends on opt-out; `faults` checks the apex. An owner of NSEC3 has
    // no NSEC: such a zone is in transition from one to the other (RFC 5155 section 10.4).
    const isNeeded =
      this.#type === RRType.NSEC &&
      index.some((i) => type[i] !== RRType.RRSIG && type[i] !== RRType.NSEC3)
    if (!isNeeded) return
    if (this.#unlinkedCount++ > 0) return
    this.#unlinked = index[0]!
    this.#unlinkedOwner = printName(this.#records.owner(node))
  }

  #isLink(record: number): boolean {
    const { octets, rdataOffset, type } = this.#records
    if (type[record] !== this.#type) return false
    const own = rdataOffset[record]!
    const wanted = rdataOffset[this.#parameters]
    return wanted === undefined || hasSameNsec3Parameters(octets, own, octets, wanted)
  }

  #follow(node: number, link: number): void {
    const owner = this.#records.owner(node)
    const next = this.#nextOf(owner, link)
    const nextNode = this.#records.find(next, next.length)
    const isForward = compareNames(owner, next) < 0
    if (!isForward) this.#wraps++
    const isFirst = nextNode !== -1 && !this.#isReached(nextNode) && this.#wraps <= 1
    if (isFirst && this.#hasLink(nextNode)) {
      this.#reached[nextNode >> 3]! |= 1 << (nextNode & 7)
      return
    }
    if (this.#broken !== -1) return
    this.#broken = link
    this.#brokenOwner = printName(owner)
  }

  /** Returns the owner of the next link. */
  #nextOf(owner: Uint8Array, link: number): Uint8Array {
    const rdata = this.#records.rdata(link)
    if (this.#type === RRType.NSEC) {
      let end = 0
      while (rdata[end] !== 0) end += rdata[end]! + 1
      return lowerName(rdata.subarray(0, end + 1))
    }
    return Buffer.concat([nsec3NextLabel(rdata), owner.subarray(owner[0]! + 1)])
  }

  #isReached(node: number): boolean {
    return (this.#reached[node >> 3]! & (1 << (node & 7))) !== 0
  }

  #hasLink(node: number): boolean {
    const { firstRecord, nextRecord } = this.#records
    for (let i = firstRecord[node]!; i !== -1; i = nextRecord[i]!) if (this.#isLink(i)) return true
    return false
  }

  /** Returns each fault with the record that shows it. `apexNode`: the apex of the zone. */
  faults(apexNode: number): [string, number][] {
    const faults: [string, number][] = []
    const type = printType(this.#type)
    if (this.#unlinkedCount > 0) {
      const text = `${this.#unlinkedCount} name(s) without ${type} (first: ${this.#unlinkedOwner})`
      faults.push([text, this.#unlinked])
    }
    if (this.#broken !== -1) {
      faults.push([`the ${type} chain is broken at ${this.#brokenOwner}`, this.#broken])
    }
    if (this.#second !== -1) {
      faults.push([`${this.#secondOwner} has two ${type} records of one chain`, this.#second])
    }
    if (this.#type === RRType.NSEC3 && !this.hasApexHash(apexNode)) {
      faults.push(['no NSEC3 record fits the apex and its NSEC3PARAM', this.#parameters])
    } else if (this.#type === RRType.NSEC3 && !this.isUsable) {
      faults.push(['NSEC3PARAM has flags or an unknown algorithm', this.#parameters])
    }
    return faults
  }

  /**
   * True if servers can use the NSEC3PARAM: they ignore one with flags or of another algorithm (RFC
   * 5155 section 4.1.2).
   */
  get isUsable(): boolean {
    const { octets, rdataOffset } = this.#records
    const at = rdataOffset[this.#parameters]!
    return octets[at] === NSEC3_SHA1 && octets[at + 1] === 0
  }

  /** True if the chain has a record for the apex; answers do not use a chain without it. */
  hasApexHash(apexNode: number): boolean {
    const records = this.#records
    const apex = records.owner(apexNode)
    const { octets, rdataOffset } = records
    const hasher = new Nsec3Hasher()
    hasher.hash(apex, 0, apex.length, false, octets, rdataOffset[this.#parameters]!)
    const owner = Buffer.concat([hasher.label, apex])
    const node = records.find(owner, owner.length)
    return node !== -1 && this.#hasLink(node)
  }

  /** Returns advice about parameters that are valid but not recommended; '' = none. */
  get advice(): string {
    if (this.#parameters === -1) return ''
    const { octets, rdataOffset } = this.#records
    const iterations = nsec3Iterations(octets, rdataOffset[this.#parameters]!)
    if (iterations === 0) return ''
    const effect =
      iterations > NSEC3_ITERATIONS_SAFE
        ? 'resolvers do not validate its negative answers'
        : 'each costs processor time and protects nothing'
    return `NSEC3 with ${iterations} iterations; it should have 0 (RFC 9276): ${effect}`
  }
}
