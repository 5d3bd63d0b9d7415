import { runWhole } from '../../src/base/slices.ts'
import { lowerName, scanName } from '../../src/dns/name/name.ts'
import type { ZoneImage } from '../../src/zone/image/writer.ts'
import { fillImage } from '../../src/zone/zonefile/fill.ts'
import { loadZoneText, type ZoneLoad, type ZoneLoadOptions } from '../../src/zone/zonefile/load.ts'
import { type ZoneScanLimits, ZoneScanner } from '../../src/zone/zonefile/scanner.ts'
import { printRecord } from './print-zone.ts'

/** A name as tests write it, in lower-case wire form. */
export function wire(text: string): Uint8Array {
  return lowerName(scanName(text)!)
}

/** What scanning a text came to. */
export interface ScannedText {
  /** `owner TTL IN type rdata`, blanks for tabs. */
  readonly records: readonly string[]
  /** `file:line: message` */
  readonly errors: readonly string[]
}

/** Scans `text` as the file of `zone`; `file`: where it would stand. */
export function scanText(
  text: string | Buffer,
  limits: ZoneScanLimits = {},
  file = 'db.test',
  zone = 'example.org.',
): ScannedText {
  const records: string[] = []
  const sink = {
    add: (record: Parameters<ConstructorParameters<typeof ZoneScanner>[1]['add']>[0]) => {
      const owner = record.owner.slice(0, record.ownerOctets)
      const rdata = record.rdata.slice(0, record.rdataOctets)
      const line = printRecord(owner, record.ttlSeconds, record.type, rdata)
      records.push(line.replaceAll('\t', ' '))
      return true
    },
  }
  const scanner = new ZoneScanner(wire(zone), sink, limits)
  runWhole(scanner.scan({ file, text: Buffer.from(text), stamp: 'test' }))
  return { records, errors: scanner.errors.map((error) => error.print()) }
}

/** Scans and checks `text` as the file of example.org. */
export function loadText(
  text: string | Buffer,
  options: ZoneLoadOptions = {},
  apex = 'example.org.',
): ZoneLoad {
  const source = { file: 'db.test', text: Buffer.from(text), stamp: 'test' }
  return runWhole(loadZoneText(source, wire(apex), options))
}

/** The zone image that `text`, the file of example.org, makes. */
export function imageOfText(text: string): ZoneImage {
  const load = loadText(text)
  if (load.kind !== 'loaded') throw new Error(`not loaded: ${JSON.stringify(load)}`)
  return runWhole(fillImage(load.records, wire('example.org.')))
}
