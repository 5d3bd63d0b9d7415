// biome-ignore-all lint/suspicious/noTemplateCurlyInString: $GENERATE modifiers look like placeholders
import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { test } from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { concatNames, lowerName, nameKey } from '../../../src/dns/name/name.ts'
import { fillImage } from '../../../src/zone/zonefile/fill.ts'
import { ZoneScanner } from '../../../src/zone/zonefile/scanner.ts'
import { ScannedRecord } from '../../../src/zone/zonefile/sink.ts'
import { arbitraryName } from '../../support/arbitrary.ts'
import { arbitraryRdata } from '../../support/arbitrary-rdata.ts'
import { printRecord, printZone } from '../../support/print-zone.ts'
import { listRRsets, listZones, type OwnedRRset } from '../../support/zone-contents.ts'
import { loadText, scanText, wire } from '../../support/zone-text.ts'

const SEED = 4711

const ROOT = wire('.')

/** Scans one line in the root zone, so that any owner is inside. */
function scanLine(line: string): { owner: Uint8Array; record: ScannedRecord } | string {
  let found: { owner: Uint8Array; record: ScannedRecord } | string = 'no record'
  const sink = {
    add: (record: ScannedRecord) => {
      const copy = new ScannedRecord()
      copy.type = record.type
      copy.ttlSeconds = record.ttlSeconds
      copy.rdata = record.rdata.slice(0, record.rdataOctets)
      found = { owner: record.owner.slice(0, record.ownerOctets), record: copy }
      return true
    },
  }
  const scanner = new ZoneScanner(ROOT, sink)
  runWhole(scanner.scan({ file: 'x', text: Buffer.from(line), stamp: '' }))
  return scanner.errors[0]?.print() ?? found
}

test('master file: printing a record and scanning it yields the same record', async (t) => {
  const arbitraryRecord = fc
    .constantFrom(...arbitraryRdata.keys())
    .chain((type) => fc.record({ type: fc.constant(type), rdata: arbitraryRdata.get(type)! }))
  const property = fc.property(
    arbitraryName,
    fc.nat({ max: 0x7fffffff }),
    arbitraryRecord,
    (owner, ttlSeconds, { type, rdata }) => {
      const line = printRecord(owner, ttlSeconds, type, rdata)
      const scanned = scanLine(line)
      if (typeof scanned === 'string') throw new Error(`${line}: ${scanned}`)
      const sameOwner = Buffer.compare(scanned.owner, lowerName(owner)) === 0
      const sameRdata = Buffer.compare(scanned.record.rdata, rdata) === 0
      const { record } = scanned
      return sameOwner && sameRdata && record.type === type && record.ttlSeconds === ttlSeconds
    },
  )
  t.doesNotThrow(() => fc.assert(property, { seed: SEED, numRuns: 1500 }))
})

/** `key type`: everything a zone says, for comparing. */
function contentOf(text: string): Map<string, OwnedRRset> {
  const load = loadText(text)
  if (load.kind !== 'loaded') throw new Error(`not loaded: ${JSON.stringify(load)}`)
  const image = runWhole(fillImage(load.records, wire('example.org.')))
  const reader = image.reader()
  reader.refresh()
  const content = new Map<string, OwnedRRset>()
  for (const rrset of listRRsets(reader, [...listZones(reader)][0]!.id)) {
    content.set(`${nameKey(rrset.owner)} ${rrset.type}`, { ...rrset })
  }
  return content
}

test('master file: a zone printed and read again is the same zone', async (t) => {
  const apex = wire('example.org.')
  const types = [...arbitraryRdata.keys()].filter((type) => ![5, 6, 39, 50, 51].includes(type))
  const arbitraryRRset = fc.constantFrom(...types).chain((type) =>
    fc.record({
      name: arbitraryName.filter((name) => name.length < 200),
      type: fc.constant(type),
      ttlSeconds: fc.nat({ max: 0x7fffffff }),
      rdata: fc.array(arbitraryRdata.get(type)!, { minLength: 1, maxLength: 4 }),
    }),
  )
  const property = fc.property(fc.array(arbitraryRRset, { maxLength: 12 }), (rrsets) => {
    const soa = 'example.org. 1 IN SOA a. b. 1 2 3 4 5\nexample.org. 1 IN NS a.\n'
    const printed = rrsets.map(({ name, ...data }) => ({
      ...data,
      owner: concatNames(name, apex)!,
    }))
    const first = contentOf(soa + [...printZone(printed)].join('\n'))
    const again = contentOf([...printZone(first.values())].join('\n'))
    return isDeepStrictEqual(sorted(again), sorted(first))
  })
  t.doesNotThrow(() => fc.assert(property, { seed: SEED, numRuns: 60 }))
})

function sorted(content: Map<string, OwnedRRset>) {
  return [...content].sort(([a], [b]) => (a < b ? -1 : 1))
}

test('master file: any octets are scanned to an end, with errors or without', async (t) => {
  const words = fc.constantFrom(
    ...'$ORIGIN |$TTL |$INCLUDE |$GENERATE |1-3 |IN |A |TXT |SOA |192.0.2.1 |a |@ |\n|\n |(|)|"|;|\\|\\0|\\300|${|}|$|1h|\\# |4 |'.split(
      '|',
    ),
  )
  const text = fc.oneof(
    fc.uint8Array({ maxLength: 300 }).map((octets) => Buffer.from(octets)),
    fc.array(words, { maxLength: 60 }).map((parts) => Buffer.from(parts.join(''))),
  )
  const property = fc.property(text, (input) => {
    const { errors } = scanText(input)
    return errors.every((error) => /^[^\n]+:\d+: /.test(error))
  })
  t.doesNotThrow(() => fc.assert(property, { seed: SEED, numRuns: 3000 }))
})

test('master file: cut short or with one octet changed, it is still read to an end', async (t) => {
  const whole = readFileSync(new URL('../../../zones/db.example.org', import.meta.url))
  t.equal(loadText(whole).kind, 'loaded')
  for (let octets = 0; octets < whole.length; octets += 3) loadText(whole.subarray(0, octets))
  const changed = fc.property(
    fc.nat({ max: whole.length - 1 }),
    fc.nat({ max: 255 }),
    (at, octet) => {
      const text = Buffer.from(whole)
      text[at] = octet
      const load = loadText(text)
      return load.kind !== 'failed' || load.errors.length > 0
    },
  )
  t.doesNotThrow(() => fc.assert(changed, { seed: SEED, numRuns: 1000 }))
})
