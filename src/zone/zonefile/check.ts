import { InputError, type Position } from '../../base/errors.ts'
import { nsec3Excess } from '../../dns/dnssec/nsec3.ts'
import { printType, RRType } from '../../dns/iana/index.ts'
import { concatNames, isSubdomain, lowerName, printName } from '../../dns/name/name.ts'
import { delegationDigestFault } from '../../dns/rdata/digests.ts'
import { NodeRecords } from './node-records.ts'
import type { ZoneRecords } from './records.ts'

/** Maximum of errors and of warnings that are kept per zone; the rest is only counted. */
const REPORTS_MAX = 100
/** Maximum of RRsets of one name in the zone image. */
export const RRSETS_MAX = 255
/** Owners between two pauses. */
const SLICE_NODES = 1024
/** Octets before the target in the rdata of the types whose targets are checked. */
export const TARGET_AT: ReadonlyMap<number, number> = new Map([
  [RRType.NS, 0],
  [RRType.CNAME, 0],
  [RRType.MX, 2],
  [RRType.SRV, 6],
])

/** The results of the checks. Without errors, the zone can be served. */
interface ZoneFindings {
  readonly errors: InputError[]
  /** Problems that were repaired or tolerated, each with its place. */
  readonly warnings: InputError[]
}

/**
 * Checks the zone as a whole, which needs all of its lines, and repairs what can be repaired:
 *
 *     no SOA, two SOAs, SOA below the apex            error
 *     CNAME beside other data, two CNAMEs or DNAMEs   error (RFC 1034 section 3.6.2, RFC 6672)
 *     NSEC3 with too many iterations                  error (RFC 9276 section 3.2)
 *     equal records                                   all but the first dropped (RFC 2181 section 5)
 *     TTLs that differ in one RRset                   the lowest for all (RFC 2181 section 5.2)
 *     no NS at the apex                               warning
 *     a DS or CDS whose digest has a wrong length     warning
 *     a target in the zone that repeats its name      warning: a final dot is missing
 *
 * Dropped records get type 0. `apex`: lower-case wire form. `file`: the place of errors that
 * concern the whole zone.
 */
export function* checkZone(
  records: ZoneRecords,
  apex: Uint8Array,
  file: string,
): Generator<void, ZoneFindings> {
  const checker = new ZoneChecker(records, apex)
  checker.checkApex(file)
  for (let node = 0; node < records.nodeCount && !checker.isFull; node++) {
    checker.checkNode(node)
    if (node % SLICE_NODES === SLICE_NODES - 1) yield
  }
  checker.finish()
  return checker.findings
}

/** Returns the end of the targets that lack a final dot; undefined = a zone of one label can have it: org.org. */
export function repeatedApex(apex: Uint8Array): Uint8Array | undefined {
  return apex.length > 1 && apex[apex[0]! + 1] !== 0 ? concatNames(apex, apex) : undefined
}

class ZoneChecker {
  readonly findings: ZoneFindings = { errors: [], warnings: [] }
  readonly #records: ZoneRecords
  readonly #apex: Uint8Array
  readonly #apexNode: number
  readonly #node: NodeRecords
  /** `www.example.org.example.org.` is below this name. */
  readonly #repeated: Uint8Array | undefined
  #duplicateCount = 0
  #firstDuplicate = -1
  #firstDuplicateNode = -1
  #hasIterations = false
  /** The current node. */
  #current = -1

  constructor(records: ZoneRecords, apex: Uint8Array) {
    this.#records = records
    this.#apex = apex
    this.#apexNode = records.find(apex, apex.length)
    this.#node = new NodeRecords(records)
    this.#repeated = repeatedApex(apex)
  }

  get isFull(): boolean {
    return this.findings.errors.length >= REPORTS_MAX
  }

  checkApex(file: string): void {
    const at = { file, line: 1 }
    const zone = printName(this.#apex)
    if (!this.#apexHas(RRType.SOA)) {
      const message = `file "${file}" has no SOA record for origin ${zone}; add one at the apex, or name the zone that the file is for`
      this.#error(at, message)
    } else if (!this.#apexHas(RRType.NS)) {
      this.#warn(at, `zone ${zone} has no NS records at its apex; add its name servers`)
    }
  }

  #apexHas(type: number): boolean {
    if (this.#apexNode === -1) return false
    this.#node.read(this.#apexNode)
    return this.#node.index.some((i) => this.#records.type[i] === type)
  }

  checkNode(node: number): void {
    const { index } = this.#node
    this.#current = node
    this.#node.read(node)
    if (index.length > 1) {
      this.#mendSets()
      this.#node.read(node)
    }
    for (const record of index) this.#checkType(record)
    if (index.length > 1) this.#checkAlone()
  }

  /** Drops duplicates and sets equal TTLs, RRset by RRset. */
  #mendSets(): void {
    const { index } = this.#node
    let setCount = 0
    for (let from = 0; from < index.length; setCount++) {
      const end = this.#node.setEnd(from)
      for (const record of this.#node.duplicates(from, end)) this.#drop(record)
      this.#levelTtls(from, end)
      from = end
    }
    if (setCount > RRSETS_MAX) this.#reportTooMany(index.at(-1)!)
  }

  #reportTooMany(record: number): void {
    const type = printType(this.#records.type[record]!)
    const message = `${this.#owner()} has more than ${RRSETS_MAX} types (here: ${type}); spread them over more names`
    this.#error(this.#position(record), message)
  }

  #drop(record: number): void {
    this.#records.type[record] = 0
    if (this.#duplicateCount === 0) {
      this.#firstDuplicate = record
      this.#firstDuplicateNode = this.#current
    }
    this.#duplicateCount++
  }

  #levelTtls(from: number, end: number): void {
    const { ttlSeconds, type } = this.#records
    const { index } = this.#node
    let lowest = ttlSeconds[index[from]!]!
    let odd = -1
    for (let i = from + 1; i < end; i++) {
      const ttl = ttlSeconds[index[i]!]!
      if (ttl !== lowest && odd === -1) odd = index[i]!
      lowest = Math.min(lowest, ttl)
    }
    if (odd === -1) return
    const rrtype = type[index[from]!]!
    for (let i = from; i < end; i++) ttlSeconds[index[i]!] = lowest
    // TTLs of signatures over different RRsets may differ (RFC 4034 section 3).
    if (rrtype === RRType.RRSIG || this.findings.warnings.length >= REPORTS_MAX) return
    const message = `TTLs differ in the ${printType(rrtype)} records of ${this.#owner()}; all get the lowest, ${lowest}; write the same TTL at each`
    this.#warn(this.#position(odd), message)
  }

  #checkType(record: number): void {
    const type = this.#records.type[record]!
    if (type === RRType.SOA && this.#current !== this.#apexNode) {
      const message = `SOA at ${this.#owner()} is not at the apex of ${printName(this.#apex)}; move it there, or name the right zone`
      this.#error(this.#position(record), message)
    }
    if (type === RRType.NSEC3 || type === RRType.NSEC3PARAM) this.#checkIterations(record)
    if (type === RRType.DS || type === RRType.CDS) this.#checkDigest(record)
    const targetAt = TARGET_AT.get(type)
    if (targetAt !== undefined) this.#checkTarget(record, targetAt)
  }

  /** `targetAt`: where the target begins in the rdata. */
  #checkTarget(record: number, targetAt: number): void {
    const target = this.#records.rdata(record).subarray(targetAt)
    if (this.#repeated === undefined || !isSubdomain(target, this.#repeated)) return
    const name = lowerName(target)
    if (this.#records.find(name, name.length) !== -1) return
    const text = printName(target)
    const meant = text.slice(0, -printName(this.#apex).length)
    const type = printType(this.#records.type[record]!)
    const message = `${type} of ${this.#owner()} leads to ${text}, which is not in the file; if ${meant} is meant, write the final dot`
    this.#warn(this.#position(record), message)
  }

  #checkDigest(record: number): void {
    const { octets, rdataOffset, rdataOctets, type } = this.#records
    const fault = delegationDigestFault(octets, rdataOffset[record]!, rdataOctets[record]!)
    if (fault === undefined) return
    const message = `${printType(type[record]!)} of ${this.#owner()}: ${fault}; BIND rejects replies that contain it; copy the record again`
    this.#warn(this.#position(record), message)
  }

  #checkIterations(record: number): void {
    const { rdataOffset, octets } = this.#records
    const excess = nsec3Excess(octets, rdataOffset[record]!)
    if (this.#hasIterations || excess === '') return
    this.#hasIterations = true
    this.#error(this.#position(record), `NSEC3 with ${excess}`)
  }

  /** Checks types that allow one record only, and CNAME, which allows no other type at its owner. */
  #checkAlone(): void {
    const { type } = this.#records
    const { index } = this.#node
    for (let i = 1; i < index.length; i++) {
      const record = index[i]!
      const isRepeat = type[record] === type[index[i - 1]!]
      if (isRepeat && isSingle(type[record]!)) this.#reportSecond(index[i - 1]!, record)
    }
    const cname = index.find((record) => type[record] === RRType.CNAME)
    if (cname === undefined) return
    const other = index.find((record) => !goesWithCname.has(type[record]!))
    if (other !== undefined) this.#reportBesideCname(cname, other)
  }

  #reportSecond(first: number, second: number): void {
    const type = printType(this.#records.type[second]!)
    const message = `a second ${type} for ${this.#owner()}, the first is at ${this.#place(first)}; remove one`
    this.#error(this.#position(second), message)
  }

  #reportBesideCname(cname: number, other: number): void {
    const type = printType(this.#records.type[other]!)
    const message = `${this.#owner()} has a CNAME (${this.#place(cname)}) beside ${type} (${this.#place(other)}); remove one of them`
    this.#error(this.#position(Math.max(cname, other)), message)
  }

  finish(): void {
    if (this.#duplicateCount === 0) return
    const first = this.#firstDuplicate
    const message = `${this.#duplicateCount} record(s) written twice, the first for ${this.#owner(this.#firstDuplicateNode)}; each is served once; remove the copies`
    this.#warn(this.#position(first), message)
  }

  #owner(node = this.#current): string {
    return printName(this.#records.owner(node))
  }

  #position(record: number): Position {
    const { files, file, line } = this.#records
    return { file: files[file[record]!]!, line: line[record]! }
  }

  #place(record: number): string {
    const { file, line } = this.#position(record)
    return `${file}:${line}`
  }

  #error(at: Position, message: string): void {
    if (!this.isFull) this.findings.errors.push(new InputError(at, message))
  }

  #warn(at: Position, message: string): void {
    const { warnings } = this.findings
    if (warnings.length < REPORTS_MAX) warnings.push(new InputError(at, message))
  }
}

function isSingle(type: number): boolean {
  return type === RRType.SOA || type === RRType.CNAME || type === RRType.DNAME
}

/** CNAME itself, and the DNSSEC types allowed at its owner (RFC 2181 section 10.1, RFC 4034 sections 3 and 4). */
const goesWithCname: ReadonlySet<number> = new Set([
  RRType.CNAME,
  RRType.RRSIG,
  RRType.NSEC,
  RRType.KEY,
  RRType.SIG,
  RRType.NXT,
])
