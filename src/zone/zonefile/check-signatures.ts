import { InputError, type Position } from '../../base/errors.ts'
import { isDiscouraged, isDiscouragedDigest, printAlgorithm } from '../../dns/dnssec/algorithms.ts'
import { keyTag } from '../../dns/dnssec/key-tag.ts'
import { printType, RRType } from '../../dns/iana/index.ts'
import { equalNames, printName } from '../../dns/name/name.ts'
import { DenialChain } from './denial-chain.ts'
import { findHiding, hasType } from './hidden-names.ts'
import { NodeRecords } from './node-records.ts'
import type { ZoneRecords } from './records.ts'

/** Owners between two pauses. */
const SLICE_NODES = 512
/** A warning reports signatures that expire sooner than this. */
export const SOON_SECONDS = 2 * 86_400
/** A warning reports signatures that are valid for longer than this: old records can be used that long. */
const LONG_SECONDS = 366 * 86_400
/** The flag of a DNSKEY that signs zones (RFC 4034 section 2.1.1). */
const ZONE_KEY = 0x0100
/** Where the signer's name starts in the rdata of RRSIG. */
const SIGNER = 18

/** Counts one fault, and keeps the first record that has it. */
class Finding {
  count = 0
  first = -1
  owner = ''

  add(record: number, owner: Uint8Array | string): void {
    if (this.count === 0) {
      this.first = record
      this.owner = typeof owner === 'string' ? owner : printName(owner)
    }
    this.count++
  }
}

/** The time when the first signed RRset of a zone has no valid signature left. */
export interface SignatureExpiry {
  /** Since the Unix epoch. */
  readonly seconds: number
  /** Owner and type. */
  readonly rrset: string
}

export interface SignatureReport {
  /** All faults, at the place of the first; undefined = no fault, or the zone is not signed. */
  readonly warning: InputError | undefined
  /** Undefined = the zone is not signed, or times are not checked. */
  readonly expiry: SignatureExpiry | undefined
}

/**
 * Checks whether a signed zone will validate: its signatures, their keys and times, and the chain
 * of NSEC or NSEC3 records. Verifies no signature cryptographically. Pauses now and then. `now`:
 * seconds since the Unix epoch; undefined = times are not checked. `apex`: lower-case wire form.
 */
export function* checkSignatures(
  records: ZoneRecords,
  apex: Uint8Array,
  now: number | undefined,
): Generator<void, SignatureReport> {
  const checker = new SignatureChecker(records, apex, now)
  if (!checker.isSigned) return { warning: undefined, expiry: undefined }
  for (let node = 0; node < records.nodeCount; node++) {
    checker.checkNode(node)
    if (node % SLICE_NODES === SLICE_NODES - 1) yield
  }
  return { warning: checker.report(), expiry: checker.expiry }
}

class SignatureChecker {
  readonly isSigned: boolean
  readonly #records: ZoneRecords
  readonly #apex: Uint8Array
  readonly #apexNode: number
  readonly #now: number | undefined
  readonly #node: NodeRecords
  readonly #chain: DenialChain | undefined
  /** Tag and algorithm of each zone key at the apex. */
  readonly #keys: ReadonlySet<number>
  expiry: SignatureExpiry | undefined
  readonly #unsigned = new Finding()
  readonly #keyless = new Finding()
  readonly #expired = new Finding()
  readonly #early = new Finding()
  readonly #soon = new Finding()
  readonly #long = new Finding()
  readonly #weak = new Finding()
  readonly #weakDs = new Finding()

  constructor(records: ZoneRecords, apex: Uint8Array, now: number | undefined) {
    this.#records = records
    this.#apex = apex
    this.#now = now
    this.#apexNode = records.find(apex, apex.length)
    this.#node = new NodeRecords(records)
    this.#keys = this.#findKeys()
    this.isSigned = this.#keys.size > 0 || hasType(this.#records, this.#apexNode, RRType.RRSIG)
    this.#chain = this.isSigned ? this.#findChain() : undefined
  }

  #findKeys(): Set<number> {
    const records = this.#records
    const keys = new Set<number>()
    for (const record of this.#recordsAt(this.#apexNode)) {
      if (records.type[record] !== RRType.DNSKEY) continue
      const isZoneKey = (this.#field(record, 0, 2) & ZONE_KEY) !== 0
      if (!isZoneKey) continue
      const algorithm = this.#field(record, 3, 1)
      if (isDiscouraged(algorithm)) this.#weak.add(record, printAlgorithm(algorithm))
      keys.add(keyTag(records.rdata(record)) * 256 + algorithm)
    }
    return keys
  }

  /**
   * Returns the chain that answers use: the first NSEC3 chain that contains the apex, else the NSEC
   * chain (RFC 5155 section 4.1.2).
   */
  #findChain(): DenialChain | undefined {
    const records = this.#records
    let incomplete: DenialChain | undefined
    for (const record of this.#recordsAt(this.#apexNode)) {
      if (records.type[record] !== RRType.NSEC3PARAM) continue
      const chain = new DenialChain(records, RRType.NSEC3, record)
      if (chain.isUsable && chain.hasApexHash(this.#apexNode)) return chain
      incomplete ??= chain
    }
    const hasNsec = hasType(this.#records, this.#apexNode, RRType.NSEC)
    if (incomplete !== undefined && !hasNsec) return incomplete
    if (!hasNsec) return undefined
    return new DenialChain(records, RRType.NSEC, -1)
  }

  checkNode(node: number): void {
    const owner = this.#records.owner(node)
    const apex = { octets: this.#apex.length, node: this.#apexNode }
    if (findHiding(this.#records, owner, apex) !== -1) return
    const { type } = this.#records
    const { index } = this.#node
    this.#node.read(node)
    const isCut = node !== this.#apexNode && index.some((record) => type[record] === RRType.NS)
    const signatures = index.filter((record) => type[record] === RRType.RRSIG)
    for (let from = 0; from < index.length; from = this.#node.setEnd(from)) {
      const record = index[from]!
      const isServed = !isCut || type[record] === RRType.DS || type[record] === RRType.NSEC
      if (type[record] !== RRType.RRSIG && isServed) this.#checkSet(record, owner, signatures)
      if (type[record] === RRType.DS)
        this.#checkDs(index.slice(from, this.#node.setEnd(from)), owner)
    }
    this.#chain?.checkNode(node, index)
  }

  /** Reports a delegation whose every DS has a digest that should not be used. */
  #checkDs(set: readonly number[], owner: Uint8Array): void {
    const isWeak = set.every((record) => isDiscouragedDigest(this.#field(record, 3, 1)))
    if (isWeak) this.#weakDs.add(set[0]!, owner)
  }

  /** Reports faults of an RRset only if none of its signatures is valid: one valid signature suffices. */
  #checkSet(record: number, owner: Uint8Array, signatures: readonly number[]): void {
    const type = this.#records.type[record]
    const own = signatures.filter((signature) => this.#field(signature, 0, 2) === type)
    if (own.length === 0) {
      this.#unsigned.add(record, owner)
      return
    }
    const usable = own.filter((signature) => this.#keys.size === 0 || this.#isOfKey(signature))
    if (usable.length === 0) this.#keyless.add(own[0]!, owner)
    else if (this.#now !== undefined) this.#checkTimes(usable, this.#now, owner)
  }

  #checkTimes(signatures: readonly number[], now: number, owner: Uint8Array): void {
    // Times have 32 bits and wrap (RFC 4034 section 3.1.5).
    const lefts = signatures.map((signature) => (this.#field(signature, 8, 4) - now) | 0)
    const left = Math.max(...lefts)
    const early = Math.min(...signatures.map((each) => (this.#field(each, 12, 4) - now) | 0))
    const first = signatures[0]!
    const long = signatures.find((each) => this.#validity(each) > LONG_SECONDS)
    if (long !== undefined) this.#long.add(long, owner)
    if (left < 0) this.#expired.add(first, owner)
    else if (early > 0) this.#early.add(first, owner)
    else if (left < SOON_SECONDS) this.#soon.add(first, owner)
    if (this.expiry !== undefined && this.expiry.seconds <= now + left) return
    const rrset = `${printName(owner)} ${printType(this.#coveredType(first))}`
    this.expiry = { seconds: now + left, rrset }
  }

  /** In seconds, modulo 2^32. */
  #validity(signature: number): number {
    return (this.#field(signature, 8, 4) - this.#field(signature, 12, 4)) >>> 0
  }

  /** True if the apex has the key that made a signature. */
  #isOfKey(signature: number): boolean {
    if (!this.#keys.has(this.#field(signature, 16, 2) * 256 + this.#field(signature, 2, 1))) {
      return false
    }
    const signer = this.#records.rdata(signature).subarray(SIGNER, SIGNER + this.#apex.length)
    return equalNames(signer, this.#apex)
  }

  /** Returns all faults as one warning; undefined = no faults. */
  report(): InputError | undefined {
    const faults: [string, number][] = []
    const note = (text: string, record: number): void => void faults.push([text, record])
    const count = (found: Finding, text: string): void => {
      if (found.count === 0) return
      const what = printType(this.#coveredType(found.first))
      note(`${found.count} RRset(s) ${text} (first: ${found.owner} ${what})`, found.first)
    }
    const apexRecord = this.#apexNode === -1 ? -1 : this.#records.firstRecord[this.#apexNode]!
    if (this.#keys.size === 0) note('the apex has no DNSKEY', apexRecord)
    count(this.#unsigned, 'without signature')
    count(this.#keyless, 'with signatures of keys that the apex does not have')
    count(this.#expired, 'with expired signatures')
    count(this.#early, 'with signatures that are not valid yet')
    if (this.#chain === undefined) note('the apex has neither NSEC nor NSEC3PARAM', apexRecord)
    else for (const [text, record] of this.#chain.faults(this.#apexNode)) note(text, record)
    const isBroken = faults.length > 0
    count(this.#soon, `with signatures that expire within ${SOON_SECONDS / 3600} hours`)
    count(this.#long, 'with signatures that are valid for more than a year')
    count(this.#weakDs, 'with a digest that should not be used any more (RFC 9905)')
    const { first: key, owner: algorithm } = this.#weak
    if (key !== -1) note(`algorithm ${algorithm} should not be used any more (RFC 9904)`, key)
    const advice = this.#chain?.advice ?? ''
    if (advice !== '') note(advice, apexRecord)
    const first = faults[0]
    if (first === undefined) return undefined
    const zone = printName(this.#apex)
    const head = isBroken ? 'is signed, but will not validate as served' : 'is signed'
    const message = `zone ${zone} ${head}: ${faults.map(([text]) => text).join('; ')}; sign the zone again`
    return new InputError(this.#position(first[1]), message)
  }

  #coveredType(record: number): number {
    const type = this.#records.type[record]!
    return type === RRType.RRSIG ? this.#field(record, 0, 2) : type
  }

  /** Returns a number of 2 or 4 octets in the rdata of a record. */
  #field(record: number, at: number, octets: number): number {
    const { rdataOffset, octets: bytes } = this.#records
    let value = 0
    for (let i = 0; i < octets; i++) value = value * 256 + bytes[rdataOffset[record]! + at + i]!
    return value
  }

  *#recordsAt(node: number): Generator<number, void> {
    if (node === -1) return
    const { firstRecord, nextRecord } = this.#records
    for (let i = firstRecord[node]!; i !== -1; i = nextRecord[i]!) yield i
  }

  #position(record: number): Position | undefined {
    const { files, file, line } = this.#records
    const name = files[file[record]!]!
    return name === '' ? undefined : { file: name, line: line[record]! }
  }
}
