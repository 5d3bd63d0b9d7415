import { InputError } from '../../base/errors.ts'
import { NextFile } from '../../base/persist/next-file.ts'
import { runWhole } from '../../base/slices.ts'
import { coveredType, expirationOf, inceptionOf } from '../../dns/dnssec/rrsig.ts'
import { printType, RRType } from '../../dns/iana/index.ts'
import { printName } from '../../dns/name/name.ts'
import { printRdata } from '../../dns/rdata/index.ts'
import type { VersionView } from '../../xfr/journal/version-view.ts'
import { soaSerial } from '../../zone/zonefile/load.ts'
import { ZoneScanner } from '../../zone/zonefile/scanner.ts'
import type { ScannedRecord, ZoneSink } from '../../zone/zonefile/sink.ts'
import { readZoneText } from '../../zone/zonefile/text.ts'

/** Any user may read it: it is public data. */
const MODE = 0o644
/** Names between two pauses. */
const SLICE_NODES = 64

/** What the beginning of a signed zone file says. */
export interface SignedFile {
  /** Of the SOA. */
  readonly serial: number
  /** Of the signatures of the SOA, in seconds since the Unix epoch; the worst of several. */
  readonly inceptionSeconds: number
  readonly expirationSeconds: number
  /** DNSKEY rdata in hexadecimal. */
  readonly dnskeys: ReadonlySet<string>
}

/** Returns what a signed zone file says; a text = why it is of no use. */
export function readSignedFile(path: string, zone: Uint8Array): SignedFile | string {
  try {
    const head = new HeadSink(zone)
    const scanner = new ZoneScanner(zone, head)
    runWhole(scanner.scan(readZoneText(path)))
    const [fault] = scanner.errors
    return fault === undefined ? head.result() : fault.print()
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return error.message
  }
}

/** Reads the records of the apex. They come first. */
class HeadSink implements ZoneSink {
  readonly #zone: Uint8Array
  #serial = -1
  #inceptionSeconds = 0
  #expirationSeconds = Number.POSITIVE_INFINITY
  readonly #dnskeys = new Set<string>()

  constructor(zone: Uint8Array) {
    this.#zone = zone
  }

  add({ ownerOctets, type, rdata, rdataOffset, rdataOctets }: ScannedRecord): boolean {
    if (ownerOctets !== this.#zone.length) return false
    const octets = rdata.slice(rdataOffset, rdataOffset + rdataOctets)
    if (type === RRType.SOA) this.#serial = soaSerial(octets, octets.length)
    if (type === RRType.DNSKEY) this.#dnskeys.add(Buffer.from(octets).toString('hex'))
    if (type === RRType.RRSIG && coveredType(octets) === RRType.SOA) {
      this.#inceptionSeconds = Math.max(this.#inceptionSeconds, inceptionOf(octets))
      this.#expirationSeconds = Math.min(this.#expirationSeconds, expirationOf(octets))
    }
    return true
  }

  result(): SignedFile | string {
    if (this.#serial === -1) return 'it has no SOA'
    if (this.#inceptionSeconds === 0) return 'its SOA has no signature'
    return {
      serial: this.#serial,
      inceptionSeconds: this.#inceptionSeconds,
      expirationSeconds: this.#expirationSeconds,
      dnskeys: this.#dnskeys,
    }
  }
}

/**
 * Replaces a zone file with the records of a version: those of the apex first, the SOA at the very beginning. If the
 * process dies at any time, the file is the old or the new version. Pauses now and then. Throws the system's error.
 */
export function* writeZoneFile(path: string, view: VersionView): Generator<void, void> {
  const next = new NextFile(path, MODE)
  try {
    const nodes = [...view.nodes()]
    const apex = nodes.find((node) => view.owner(node).length === view.zone.length)!
    const others = nodes.filter((node) => node !== apex).reverse()
    let seen = 0
    for (const node of [apex, ...others]) {
      const owner = view.owner(node)
      const ownerText = printName(owner)
      const soa = view.find(owner, RRType.SOA)
      const sets = view.sets(node).filter((set) => set !== soa)
      for (const set of soa === 0 ? sets : [soa, ...sets]) {
        for (const { type, ttlSeconds, rdata, rdataOffset, rdataOctets } of view.records(
          owner,
          set,
        )) {
          const octets = rdata.slice(rdataOffset, rdataOffset + rdataOctets)
          const data = printRdata(type, octets)
          next.write(`${ownerText}\t${ttlSeconds}\tIN\t${printType(type)}\t${data}\n`)
        }
      }
      if (++seen % SLICE_NODES === 0) yield
    }
    next.sync()
    if (next.put() === undefined)
      throw new InputError(undefined, `another program replaces ${path} at the same time`)
  } finally {
    next.close()
  }
}
