import { runWhole } from '../../src/base/slices.ts'
import { printType } from '../../src/dns/iana/index.ts'
import { printName, scanName } from '../../src/dns/name/name.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import type { RecordView } from '../../src/xfr/journal/record-view.ts'
import type { ZoneVersion } from '../../src/xfr/journal/version-view.ts'
import type { ZoneImage } from '../../src/zone/image/writer.ts'
import { fillImage } from '../../src/zone/zonefile/fill.ts'
import { loadZoneText } from '../../src/zone/zonefile/load.ts'

/** The image of a master file, which must be good. */
export function imageOf(text: string, apex: string): { image: ZoneImage; version: ZoneVersion } {
  const zone = scanName(apex)!
  const load = runWhole(loadZoneText({ file: 'db', text: Buffer.from(text), stamp: '' }, zone))
  if (load.kind === 'failed') throw new Error(load.errors.map((error) => error.print()).join('\n'))
  if (load.kind !== 'loaded') throw new Error(load.kind)
  const image = runWhole(fillImage(load.records, zone))
  const { buffer } = image.handle
  return { image, version: { zone, serial: load.serial, buffer, imageVersion: image.version } }
}

/** `owner ttl type rdata`. */
export function printView(record: RecordView): string {
  const { owner, ownerOffset, type, ttlSeconds, rdata, rdataOffset, rdataOctets } = record
  const octets = rdata.slice(rdataOffset, rdataOffset + rdataOctets)
  return `${printName(owner, ownerOffset)} ${ttlSeconds} ${printType(type)} ${printRdata(type, octets)}`
}
