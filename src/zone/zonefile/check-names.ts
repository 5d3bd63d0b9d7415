import { InputError } from '../../base/errors.ts'
import { printType, RRType } from '../../dns/iana/index.ts'
import {
  concatNames,
  isSubdomain,
  NAME_OCTETS_MAX,
  parentName,
  printName,
} from '../../dns/name/name.ts'
import { scanAddress } from '../../dns/text/address.ts'
import { findHiding, hasType } from './hidden-names.ts'
import type { ZoneRecords } from './records.ts'

/** Maximum of warnings per zone. */
const REPORTS_MAX = 100
/** Owners between two pauses. */
const SLICE_NODES = 1024
const ASTERISK = 0x2a
const COLON = 0x3a
const DIGIT_0 = 0x30
const DIGIT_9 = 0x39
const CAPITAL_A = 0x41
const CAPITAL_Z = 0x5a
/** Octets before the target in the rdata of the types that lead to a host. */
const TARGET_AT: ReadonlyMap<number, number> = new Map([
  [RRType.NS, 0],
  [RRType.CNAME, 0],
  [RRType.DNAME, 0],
  [RRType.MX, 2],
  [RRType.SRV, 6],
  [RRType.SVCB, 2],
  [RRType.HTTPS, 2],
])
/** Types whose targets must not be the owners of CNAMEs (RFC 2181 section 10.3, RFC 2782). */
const NO_ALIAS: ReadonlySet<number> = new Set([RRType.NS, RRType.MX, RRType.SRV])
/** Types that the parent zone serves at a delegated name. */
const AT_CUT: ReadonlySet<number> = new Set([RRType.NS, RRType.DS, RRType.RRSIG, RRType.NSEC])
/** Types of signers, which may leave them at any name. */
const OF_SIGNERS: ReadonlySet<number> = new Set([RRType.RRSIG, RRType.NSEC])

interface NameCheckOptions {
  /** False: other directives or server blocks may answer for names that the file lacks. Missing = true. */
  readonly isWhole?: boolean
}

/**
 * Finds records that are served, or kept, and cannot work:
 *
 *     a target that is an address                        `MX 10 192.0.2.1`
 *     NS, MX or SRV that leads to a CNAME of the zone    RFC 2181 section 10.3
 *     NS whose host in the zone has no address           resolvers do not find it
 *     CNAME to a name of the zone that does not exist    only if the file is the whole zone
 *     data below a delegation or a DNAME                 answers never contain it
 *
 * Pauses now and then. `apex`: lower-case wire form.
 */
export function* checkNames(
  records: ZoneRecords,
  apex: Uint8Array,
  options: NameCheckOptions,
): Generator<void, readonly InputError[]> {
  const checker = new NameChecker(records, apex, options)
  for (let node = 0; node < records.nodeCount; node++) {
    checker.checkTargets(node)
    if (node % SLICE_NODES === SLICE_NODES - 1) yield
  }
  for (let node = 0; node < records.nodeCount && checker.hasCuts; node++) {
    checker.checkHidden(node)
    if (node % SLICE_NODES === SLICE_NODES - 1) yield
  }
  return checker.warnings
}

class NameChecker {
  readonly warnings: InputError[] = []
  /** True once a record hides the names below its owner. */
  hasCuts = false
  readonly #records: ZoneRecords
  readonly #apex: Uint8Array
  readonly #apexNode: number
  readonly #options: NameCheckOptions
  /** Names below it lack a final dot, which `checkZone` reports. */
  readonly #repeated: Uint8Array | undefined
  /** Fewest labels of a name that hides others. */
  #cutLabels = 256
  /** 1 = NS records lead to the node. */
  readonly #isServer: Uint8Array
  /** The current target, in lower case. */
  readonly #target = new Uint8Array(NAME_OCTETS_MAX)

  constructor(records: ZoneRecords, apex: Uint8Array, options: NameCheckOptions) {
    this.#records = records
    this.#apex = apex
    this.#apexNode = records.find(apex, apex.length)
    this.#options = options
    this.#repeated = concatNames(apex, apex)
    this.#isServer = new Uint8Array(records.nodeCount)
  }

  /** Checks where the records of a node lead to, and notes whether they hide names. */
  checkTargets(node: number): void {
    const { firstRecord, nextRecord, type } = this.#records
    for (let i = firstRecord[node]!; i !== -1; i = nextRecord[i]!) {
      const targetAt = TARGET_AT.get(type[i]!)
      if (targetAt === undefined) continue
      if (type[i] === RRType.DNAME || (type[i] === RRType.NS && node !== this.#apexNode)) {
        this.#noteCut(this.#records.owner(node))
      }
      this.#checkTarget(node, i, targetAt)
    }
  }

  #noteCut(owner: Uint8Array): void {
    // NS and DNAME of a wildcard hide nothing.
    if (isWildcard(owner)) return
    this.hasCuts = true
    this.#cutLabels = Math.min(this.#cutLabels, countLabels(owner))
  }

  /** `targetAt`: where the target begins in the rdata. */
  #checkTarget(node: number, record: number, targetAt: number): void {
    const octets = this.#readTarget(this.#records.rdataOffset[record]! + targetAt)
    if (!this.#isInside(octets)) {
      const address = mayBeAddress(this.#target)
        ? addressIn(this.#target.slice(0, octets), 1)
        : undefined
      if (address !== undefined) this.#reportAddress(node, record, address)
      return
    }
    const type = this.#records.type[record]!
    const found = this.#records.find(this.#target, octets)
    if (found === -1) this.#checkMissing(node, record, this.#target.slice(0, octets))
    else if (NO_ALIAS.has(type) && hasType(this.#records, found, RRType.CNAME)) {
      this.#reportAlias(node, record, found)
    } else if (type === RRType.NS) {
      this.#isServer[found] = 1
      if (!this.#hasAddress(found)) this.#checkServer(node, record, this.#records.owner(found))
    }
  }

  /** Copies the name at `offset` to `#target`, in lower case. Returns its length. */
  #readTarget(offset: number): number {
    const { octets } = this.#records
    const target = this.#target
    for (let at = 0; ; ) {
      const labelOctets = octets[offset + at]!
      target[at++] = labelOctets
      if (labelOctets === 0) return at
      for (const end = at + labelOctets; at < end; at++) {
        const octet = octets[offset + at]!
        target[at] = octet >= CAPITAL_A && octet <= CAPITAL_Z ? octet + 32 : octet
      }
    }
  }

  /** True if `#target`, of so many octets, is in the zone. */
  #isInside(octets: number): boolean {
    const target = this.#target
    const start = octets - this.#apex.length
    let at = 0
    while (at < start) at += target[at]! + 1
    if (at !== start) return false
    for (let i = 0; i < this.#apex.length; i++)
      if (target[start + i] !== this.#apex[i]) return false
    return true
  }

  /** Checks a target in the zone that has no records. */
  #checkMissing(node: number, record: number, name: Uint8Array): void {
    const address = this.#findAddress(name)
    const isRepeated = this.#repeated !== undefined && isSubdomain(name, this.#repeated)
    if (address !== undefined) this.#reportAddress(node, record, address)
    else if (this.#records.type[record] === RRType.NS) this.#checkServer(node, record, name)
    else if (
      this.#records.type[record] === RRType.CNAME &&
      !isRepeated &&
      this.#options.isWhole !== false
    ) {
      if (this.#isElsewhere(name) || this.#findWildcard(name) !== -1) return
      const text = printName(name)
      this.#warn(
        record,
        `CNAME of ${this.#owner(node)} leads to ${text}, which the zone does not have; add ${text}, or correct the target`,
      )
    }
  }

  /** Returns the address in place of a name of the zone; undefined = none, or the zone has names below its labels. */
  #findAddress(name: Uint8Array): string | undefined {
    const address = addressIn(name, this.#apex.length)
    if (address === undefined || this.#isElsewhere(name)) return undefined
    const wildcard = this.#findWildcard(name)
    const isOfZone =
      wildcard === -1 || this.#records.owner(wildcard).length === this.#apex.length + 2
    return isOfZone ? address : undefined
  }

  /** Checks a name server in the zone that has no address of its own. */
  #checkServer(node: number, record: number, name: Uint8Array): void {
    const owner = this.#records.owner(node)
    const isOwn = node !== this.#apexNode && isSubdomain(name, owner)
    // The other zone has the address.
    if (!isOwn && (this.#options.isWhole === false || this.#isElsewhere(name))) return
    const wildcard = this.#findWildcard(name)
    const effect =
      isOwn || !this.#hasAddress(wildcard)
        ? ''
        : `; clients get the addresses of ${this.#owner(wildcard)}`
    const server = printName(name)
    this.#warn(
      record,
      `zone ${this.#owner(node)}: name server ${server} has no address${effect}; add A or AAAA records of ${server}`,
    )
  }

  /** True if another zone decides whether the name exists. */
  #isElsewhere(name: Uint8Array): boolean {
    const node = this.#records.find(name, name.length)
    const isCut = node !== this.#apexNode && hasType(this.#records, node, RRType.NS)
    return isCut || this.#findHiding(name) !== -1
  }

  #findHiding(name: Uint8Array): number {
    return findHiding(this.#records, name, { octets: this.#apex.length, node: this.#apexNode })
  }

  /** Returns the node of the wildcard that answers for a name without records; -1 = none (RFC 4592 section 3.3). */
  #findWildcard(name: Uint8Array): number {
    for (let above = name; above.length > this.#apex.length; ) {
      above = parentName(above)
      const wildcard = this.#records.find(Uint8Array.of(1, ASTERISK, ...above), above.length + 2)
      if (wildcard !== -1) return wildcard
      if (this.#records.find(above, above.length) !== -1) return -1
    }
    return -1
  }

  /** Reports data of a node that no answer contains. */
  checkHidden(node: number): void {
    const records = this.#records
    const owner = records.owner(node)
    const labels = countLabels(owner)
    if (labels < this.#cutLabels) return
    const isCut = node !== this.#apexNode && !isWildcard(owner) && hasType(records, node, RRType.NS)
    const hiding = labels > this.#cutLabels ? this.#findHiding(owner) : -1
    if (hiding === -1 && !isCut) return
    const expected = hiding === -1 ? AT_CUT : OF_SIGNERS
    for (let i = records.firstRecord[node]!; i !== -1; i = records.nextRecord[i]!) {
      const type = records.type[i]!
      if (type === 0 || expected.has(type) || (isAddress(type) && this.#isServer[node] === 1))
        continue
      const by = hiding === -1 ? node : hiding
      const reason = hasType(records, by, RRType.NS)
        ? 'is delegated to other name servers'
        : 'has a DNAME'
      this.#warn(
        i,
        `${printType(type)} of ${printName(owner)} is never served: ${this.#owner(by)} ${reason}; remove it, or move it to the zone that has the name`,
      )
      return
    }
  }

  #reportAddress(node: number, record: number, address: string): void {
    this.#warn(
      record,
      `${this.#typeOf(record)} of ${this.#owner(node)} names the address ${address}; a name is needed`,
    )
  }

  #reportAlias(node: number, record: number, found: number): void {
    const host = this.#owner(found)
    this.#warn(
      record,
      `${this.#typeOf(record)} of ${this.#owner(node)} leads to ${host}, which is a CNAME: many clients do not follow it (RFC 2181 section 10.3); name the host that the CNAME leads to`,
    )
  }

  #hasAddress(node: number): boolean {
    return hasType(this.#records, node, RRType.A) || hasType(this.#records, node, RRType.AAAA)
  }

  #owner(node: number): string {
    return printName(this.#records.owner(node))
  }

  #typeOf(record: number): string {
    return printType(this.#records.type[record]!)
  }

  #warn(record: number, message: string): void {
    if (this.warnings.length >= REPORTS_MAX) return
    const { files, file, line } = this.#records
    this.warnings.push(
      new InputError({ file: files[file[record]!]!, line: line[record]! }, message),
    )
  }
}

/** False for nearly all names: they have no colon, and begin with no digit. */
function mayBeAddress(name: Uint8Array): boolean {
  const first = name[1]!
  return (first >= DIGIT_0 && first <= DIGIT_9) || name.subarray(0, name[0]! + 1).includes(COLON)
}

/** Returns the address that was written in place of a name; undefined = none. `octets`: of the zone that follows it. */
function addressIn(name: Uint8Array, octets: number): string | undefined {
  const text = printName(Uint8Array.of(...name.subarray(0, name.length - octets), 0)).slice(0, -1)
  return scanAddress(text) === undefined ? undefined : text
}

function isAddress(type: number): boolean {
  return type === RRType.A || type === RRType.AAAA
}

function isWildcard(name: Uint8Array): boolean {
  return name[0] === 1 && name[1] === ASTERISK
}

function countLabels(name: Uint8Array): number {
  let count = 0
  for (let at = 0; name[at]! > 0; at += name[at]! + 1) count++
  return count
}
