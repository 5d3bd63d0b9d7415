import { InputError, InputErrors } from '../base/errors.ts'
import { plural } from '../base/plural.ts'
import { runWhole } from '../base/slices.ts'
import { printType, RRType } from '../dns/iana/types.ts'
import { equalNames, printName, ROOT_NAME } from '../dns/name/name.ts'
import { TARGETS_MAX } from '../records/dns-record.ts'
import { printTarget } from '../records/print-endpoint.ts'
import { RECORD_TYPES } from '../records/validate/target.ts'
import { loadZoneText } from '../zone/zonefile/load.ts'
import { NodeRecords } from '../zone/zonefile/node-records.ts'
import type { ZoneRecords } from '../zone/zonefile/records.ts'
import { ZoneScanner } from '../zone/zonefile/scanner.ts'
import type { ScannedRecord } from '../zone/zonefile/sink.ts'
import type { ZoneText } from '../zone/zonefile/text.ts'
import { MADE_BY_SIGNERS } from '../zone/zonefile/unsigned-zone.ts'
import type { ImportFile, ImportFormat, ImportOptions } from './import-format.ts'
import { endpointDocument } from './imported-endpoint.ts'
import type { ImportedHosts } from './imported-hosts.ts'

const TYPE_NUMBERS: ReadonlySet<number> = new Set(RECORD_TYPES.values())
/** Types whose target is a name, which a DNSRecord writes without escapes. */
const NAME_TYPES: ReadonlySet<number> = new Set([RRType.CNAME, RRType.NS, RRType.PTR])

/** Zone files (RFC 1035 section 5): each file is one zone. */
export const BIND: ImportFormat = {
  word: 'bind',
  files: 'zone files',
  read: (files, hosts, options) => readZoneFiles(files, hosts, options),
}

/** A record of a zone file, for another format that has types of its own. */
export interface ZoneRecord {
  /** In lower case, with a final dot. */
  readonly host: string
  readonly type: number
  readonly ttlSeconds: number
  readonly rdata: Uint8Array
  readonly place: string
}

/** `takes`: returns true for a record that it imported itself. */
type TakeRecord = (record: ZoneRecord) => boolean

const TAKES_NONE: TakeRecord = () => false

/** Adds the records of zone files. Throws InputError if a file is not a zone file. */
export function readZoneFiles(
  files: readonly ImportFile[],
  hosts: ImportedHosts,
  { zone }: ImportOptions,
  takes: TakeRecord = TAKES_NONE,
): void {
  for (const file of files) {
    const source = sourceOf(file)
    const apex = zone ?? findApex(source)
    new ZoneImport(loadRecords(source, apex, hosts), apex, hosts, takes).read()
  }
}

function sourceOf({ name, octets }: ImportFile): ZoneText {
  return { file: name, text: octets, stamp: '' }
}

/** Returns the owner of the SOA record. Throws InputError if the file leaves it open. */
function findApex(source: ZoneText): Uint8Array {
  let apex = ROOT_NAME
  const sink = {
    add: ({ type, owner, ownerOctets }: ScannedRecord) => {
      if (type === RRType.SOA) apex = owner.slice(0, ownerOctets)
      return type !== RRType.SOA
    },
  }
  const scanner = new ZoneScanner(ROOT_NAME, sink)
  runWhole(scanner.scan(source))
  if (apex.length > 1) return apex
  if (scanner.recordCount === 0) throwAll(scanner.errors)
  const message = 'the file does not say its zone, as $ORIGIN or the owner of SOA; add --zone NAME'
  throw new InputError({ file: source.file, line: 1 }, message)
}

function throwAll([first, ...others]: readonly InputError[]): void {
  if (first !== undefined) throw new InputErrors(first, others)
}

function loadRecords(source: ZoneText, apex: Uint8Array, hosts: ImportedHosts): ZoneRecords {
  const loaded = runWhole(loadZoneText(source, apex))
  if (loaded.kind !== 'loaded') {
    if (loaded.kind === 'failed') throwAll(loaded.errors)
    throw new InputError({ file: source.file, line: 1 }, 'the zone cannot be read')
  }
  for (const warning of loaded.warnings) {
    if (warning === loaded.signatures.warning) continue
    const { position, message } = warning
    const { file, line } = position ?? { file: source.file, line: 1 }
    hosts.note(`${file}:${line}`, message)
  }
  return loaded.records
}

/** Makes endpoints from the records of one zone: one for each RRset. */
class ZoneImport {
  readonly #records: ZoneRecords
  readonly #apex: Uint8Array
  readonly #hosts: ImportedHosts
  readonly #takes: TakeRecord
  /** For each type of signing, the place of its first record, and their number. */
  readonly #signing = new Map<number, { readonly place: string; count: number }>()

  constructor(records: ZoneRecords, apex: Uint8Array, hosts: ImportedHosts, takes: TakeRecord) {
    this.#records = records
    this.#apex = apex
    this.#hosts = hosts
    this.#takes = takes
  }

  read(): void {
    const node = new NodeRecords(this.#records)
    for (let i = 0; i < this.#records.nodeCount; i++) {
      node.read(i)
      const owner = this.#records.owner(i)
      for (let from = 0; from < node.index.length; ) {
        const end = node.setEnd(from)
        this.#readSet(owner, node.index.slice(from, end))
        from = end
      }
    }
    for (const [type, { place, count }] of this.#signing) {
      const records = plural(count, `${printType(type)} record`)
      this.#hosts.note(place, `${records} not imported: a DNSRecord has no signatures`)
    }
  }

  /** `set`: the numbers of the records of one RRset. */
  #readSet(owner: Uint8Array, set: readonly number[]): void {
    const type = this.#records.type[set[0]!]!
    const place = this.#placeOf(set[0]!)
    const left = set.filter((record) => !this.#takes(this.#recordOf(owner, record)))
    if (left.length === 0) return
    if (MADE_BY_SIGNERS.has(type)) {
      const known = this.#signing.get(type) ?? { place, count: 0 }
      known.count += left.length
      this.#signing.set(type, known)
      return
    }
    const isApex = equalNames(owner, this.#apex)
    const reason = isApex ? ofZone(type) : ''
    if (reason !== '' || !TYPE_NUMBERS.has(type)) {
      const why = reason || 'a DNSRecord has no records of this type'
      const what = `${printType(type)} of ${printName(owner)}`
      this.#hosts.note(place, `${what} not imported: ${why}`)
      return
    }
    this.#addSet(printName(owner), type, left)
  }

  #addSet(host: string, type: number, set: readonly number[]): void {
    const targets: string[] = []
    for (const record of set) {
      const rdata = this.#records.rdata(record)
      if (NAME_TYPES.has(type) && printName(rdata).includes('\\')) {
        const message = `${printType(type)} ${printName(rdata)} not imported: names of DNSRecords have no escapes`
        this.#hosts.note(this.#placeOf(record), message)
      } else targets.push(printTarget(type, rdata))
    }
    const ttlSeconds = this.#records.ttlSeconds[set[0]!]!
    for (let from = 0; from < targets.length; from += TARGETS_MAX) {
      const part = targets.slice(from, from + TARGETS_MAX)
      const endpoint = { host, type: printType(type), targets: part, ttlSeconds }
      this.#hosts.add(endpointDocument(endpoint), this.#placeOf(set[from]!))
    }
  }

  #recordOf(owner: Uint8Array, record: number): ZoneRecord {
    const { type, ttlSeconds } = this.#records
    return {
      host: printName(owner),
      type: type[record]!,
      ttlSeconds: ttlSeconds[record]!,
      rdata: this.#records.rdata(record),
      place: this.#placeOf(record),
    }
  }

  #placeOf(record: number): string {
    const { files, file, line } = this.#records
    return `${files[file[record]!]}:${line[record]}`
  }
}

/** Why a record of the apex is not imported; '' = it is. */
function ofZone(type: number): string {
  if (type === RRType.SOA) return 'Sextant makes the SOA record of a zone itself'
  if (type === RRType.NS) {
    return 'Sextant makes the NS records of a zone from `nameserver` in the directive kuadrant'
  }
  return ''
}
