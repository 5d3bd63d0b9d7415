import { printType, RRType } from '../../src/dns/iana/index.ts'
import { printName } from '../../src/dns/name/name.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import type { OwnedRRset } from './zone-contents.ts'

/** Returns one record as a line of a master file, with absolute names: `www.example.org.\t3600\tIN\tA\t192.0.2.1`. */
export function printRecord(
  owner: Uint8Array,
  ttlSeconds: number,
  type: number,
  rdata: Uint8Array,
): string {
  const head = `${printName(owner)}\t${ttlSeconds}\tIN\t${printType(type)}`
  const data = printRdata(type, rdata)
  return data === '' ? head : `${head}\t${data}`
}

/**
 * Yields a zone as the lines of a master file. The SOA is first, as RFC 1035 section 5.2 requires;
 * other records keep their order. Scanning the text yields the same records.
 */
export function* printZone(rrsets: Iterable<OwnedRRset>): Generator<string> {
  const others: OwnedRRset[] = []
  for (const rrset of rrsets) {
    if (rrset.type === RRType.SOA) yield* printRRset(rrset)
    else others.push(rrset)
  }
  for (const rrset of others) yield* printRRset(rrset)
}

function* printRRset(rrset: OwnedRRset): Generator<string> {
  for (const rdata of rrset.rdata) {
    yield printRecord(rrset.owner, rrset.ttlSeconds, rrset.type, rdata)
  }
}
