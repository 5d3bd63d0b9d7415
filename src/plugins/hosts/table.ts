import { RRType } from '../../dns/iana/index.ts'
import { isSubdomain, lowerName, ROOT_NAME, scanName } from '../../dns/name/name.ts'
import { type Address, scanAddress } from '../../dns/text/address.ts'
import { reverseName } from '../../dns/text/reverse-name.ts'
import { ZoneRecords } from '../../zone/zonefile/records.ts'
import { ScannedRecord } from '../../zone/zonefile/sink.ts'

/** Most names in the PTR answer of one address: blocking lists contain a million names for 0.0.0.0. */
const PTR_MAX = 100
/** Duplicates are searched among this many records of a name. */
const COPIES_SEEN_MAX = 100
/** Lines between two pauses. */
const SLICE_LINES = 512
/** Longest line that is read. */
export const LINE_OCTETS_MAX = 64 * 1024
const LF = 0x0a

export interface HostsOptions {
  /** Names outside of these zones are omitted; lower-case wire form. */
  readonly zones: readonly Uint8Array[]
  readonly ttlSeconds: number
  /** Whether to make PTR records too. */
  readonly reverse: boolean
}

/** Lines that are not used: the number of the first one, and their count. */
export interface IgnoredLines {
  firstLine: number
  count: number
}

function note(lines: IgnoredLines, line: number): void {
  if (lines.count++ === 0) lines.firstLine = line
}

/**
 * The entries of hosts files as A, AAAA and PTR records by owner. Filled once, and only read after
 * that.
 */
export class HostsTable {
  readonly records: ZoneRecords
  /** Lines that were too long to read. */
  readonly long: IgnoredLines = { firstLine: 0, count: 0 }
  /** Lines that don't begin with an address. */
  readonly invalid: IgnoredLines = { firstLine: 0, count: 0 }
  readonly #options: HostsOptions
  readonly #record = new ScannedRecord()

  constructor(options: HostsOptions, recordsExpected = 64) {
    this.#options = options
    this.records = new ZoneRecords(recordsExpected)
  }

  /**
   * Adds the lines of a hosts file (hosts(5): ADDRESS NAME...), with pauses. Skips lines that don't
   * begin with an address, and invalid names.
   */
  *addText(text: Buffer): Generator<void, void> {
    let lineCount = 0
    for (let start = 0; start < text.length; ) {
      const found = text.indexOf(LF, start)
      const end = found === -1 ? text.length : found
      lineCount++
      if (end - start > LINE_OCTETS_MAX) note(this.long, lineCount)
      else if (!this.addLine(text.toString('latin1', start, end))) note(this.invalid, lineCount)
      start = end + 1
      if (lineCount % SLICE_LINES === 0) yield
    }
  }

  /** Adds one line; false if it does not start with an address. */
  addLine(line: string): boolean {
    const [addressText, ...names] = fieldsOf(line)
    if (addressText === undefined) return true
    const address = scanHostAddress(addressText)
    if (address === undefined) return false
    for (const text of names) {
      const name = scanName(text, ROOT_NAME)
      if (name !== undefined) this.#addName(address, lowerName(name))
    }
    return true
  }

  #addName(address: Address, name: Uint8Array): void {
    const { zones, reverse } = this.#options
    if (!zones.some((zone) => isSubdomain(name, zone))) return
    this.#add(name, address.family === 1 ? RRType.A : RRType.AAAA, address.bytes)
    const isWildcard = name[0] === 1 && name[1] === ASTERISK
    if (reverse && !isWildcard) this.#add(reverseName(address), RRType.PTR, name)
  }

  #add(owner: Uint8Array, type: number, rdata: Uint8Array): void {
    if (this.#isSuperfluous(owner, type, rdata)) return
    const record = this.#record
    record.owner.set(owner)
    record.ownerOctets = owner.length
    record.type = type
    record.ttlSeconds = this.#options.ttlSeconds
    record.rdata = rdata
    record.rdataOctets = rdata.length
    this.records.add(record)
  }

  /** True for a duplicate, and for PTR records above PTR_MAX. */
  #isSuperfluous(owner: Uint8Array, type: number, rdata: Uint8Array): boolean {
    const { records } = this
    const node = records.find(owner, owner.length)
    if (node === -1) return false
    let seen = 0
    for (let i = records.firstRecord[node]!; i !== -1; i = records.nextRecord[i]!) {
      if (records.type[i] === type && Buffer.compare(records.rdata(i), rdata) === 0) return true
      if (++seen >= COPIES_SEEN_MAX) return type === RRType.PTR && seen >= PTR_MAX
    }
    return false
  }
}

const ASTERISK = 0x2a

/** The blank-separated fields before any `#`. */
function fieldsOf(line: string): string[] {
  const comment = line.indexOf('#')
  const body = comment === -1 ? line : line.slice(0, comment)
  return body.split(/[ \t\r\f\v]+/).filter((field) => field !== '')
}

/** Reads an address without its zone (`%eth0`). An IPv4-mapped one becomes IPv4, as in Go. */
function scanHostAddress(text: string): Address | undefined {
  const address = scanAddress(text.split('%', 1)[0]!)
  if (address === undefined || address.family === 1) return address
  const isMapped = address.bytes.subarray(0, 12).every((octet, i) => octet === (i < 10 ? 0 : 0xff))
  return isMapped ? { family: 1, bytes: address.bytes.slice(12) } : address
}
