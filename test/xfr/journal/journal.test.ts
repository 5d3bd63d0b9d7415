import fc from 'fast-check'
import t from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { RRType } from '../../../src/dns/iana/index.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
import { diffVersions, type ZoneDifference } from '../../../src/xfr/journal/diff.ts'
import { octetsOf, ZoneJournal } from '../../../src/xfr/journal/journal.ts'
import { packedRecords } from '../../../src/xfr/journal/packed-records.ts'
import type { RecordView } from '../../../src/xfr/journal/record-view.ts'
import { VersionView, type ZoneVersion } from '../../../src/xfr/journal/version-view.ts'
import { encodeDirectory, proofBy } from '../../../src/zone/image/signature-directory.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { wire } from '../../support/zone-text.ts'
import { imageOf, printView } from '../../support/zone-version.ts'

const APEX = 'z.example.'
const OCTETS_MAX = 1 << 20

/** Owner number, TTL and contents of one RRset. */
type SetSpec = { name: number; form: number; ttl: number; values: number[] }

const setSpec: fc.Arbitrary<SetSpec> = fc.record({
  name: fc.nat(6),
  form: fc.nat(2),
  ttl: fc.integer({ min: 60, max: 61 }),
  values: fc.uniqueArray(fc.nat(4), { minLength: 1, maxLength: 4 }),
})

function zoneText(serial: number, sets: readonly SetSpec[]): string {
  const lines = new Map<string, string[]>()
  for (const { name, form, ttl, values } of sets) {
    const owner = name === 0 ? '@' : name === 6 ? '*.n1' : `n${name}`
    const rdata = [
      (v: number) => `A 192.0.2.${v}`,
      (v: number) => `TXT "${v}"`,
      (v: number) => `MX ${v} mail`,
    ][form]!
    lines.set(
      `${owner} ${form}`,
      values.map((v) => `${owner} ${ttl} ${rdata(v)}`),
    )
  }
  const head = `@ 300 SOA ns host ${serial} 2 3 4 5\n@ 300 NS ns\n`
  return `${head}${[...lines.values()].flat().join('\n')}\n`
}

function contentOf(view: VersionView): string[] {
  const texts: string[] = []
  for (const record of view.content()) texts.push(printView(record))
  return texts.sort()
}

t.test('a difference leads from one version to the other', async () => {
  const property = fc.property(fc.array(setSpec), fc.array(setSpec), (before, after) => {
    const from = VersionView.open(imageOf(zoneText(1, before), APEX).version)!
    const to = VersionView.open(imageOf(zoneText(2, after), APEX).version)!
    const step = runWhole(diffVersions(from, to, undefined, OCTETS_MAX))!
    if (step.fromSerial !== 1 || step.toSerial !== 2) throw new Error('serials')
    const texts = { removed: textsOf(step.removed), added: textsOf(step.added) }
    const content = new Set(contentOf(from))
    for (const record of texts.removed.slice(1)) {
      if (!content.delete(record)) throw new Error(`${record} was not there`)
    }
    for (const record of texts.added.slice(1)) {
      if (content.has(record)) throw new Error(`${record} was there`)
      content.add(record)
    }
    if ([...content].sort().join('\n') !== contentOf(to).join('\n')) throw new Error('not equal')
    if (!texts.removed[0]!.includes('SOA') || !texts.added[0]!.includes('SOA'))
      throw new Error('SOA')
  })
  fc.assert(property, { seed: 11, numRuns: 150 })
})

function textsOf(packed: Uint8Array): string[] {
  const texts: string[] = []
  for (const record of packedRecords(packed)) texts.push(printView(record))
  return texts
}

t.test('versions of one image stay readable, and differ where they say', async (t) => {
  const image = new ZoneImage()
  const zone = scanName(APEX)!
  const id = image.addZone(zone)
  const owner = scanName(`www.${APEX}`)!
  const soa = (serial: number): Uint8Array => {
    const rdata = new Uint8Array(22)
    new DataView(rdata.buffer).setUint32(2, serial)
    return rdata
  }
  const put = (serial: number, octets: readonly number[]) => {
    image.putRRset(id, zone, { type: RRType.SOA, ttlSeconds: 60, rdata: [soa(serial)] })
    const rdata = octets.map((octet) => Uint8Array.of(192, 0, 2, octet))
    image.putRRset(id, owner, { type: RRType.A, ttlSeconds: 60, rdata })
    image.publish()
    return { zone, serial, buffer: image.handle.buffer, imageVersion: image.version }
  }
  const first = put(1, [1, 2])
  const second = put(2, [2, 3])
  image.compact()
  const third = put(3, [4])
  const views = [first, second, third].map((version) => VersionView.open(version)!)
  t.strictSame(
    views.map((view) => contentOf(view).length),
    [2, 2, 1],
  )
  const places = [{ owner, type: RRType.A }]
  const step = runWhole(diffVersions(views[0]!, views[2]!, places, OCTETS_MAX))!
  t.equal(textsOf(step.removed).length, 3)
  t.equal(textsOf(step.added).length, 2)
  t.equal(runWhole(diffVersions(views[0]!, views[2]!, [], OCTETS_MAX))!.added.length, 41)
})

t.test('only the first target of a CNAME set with several targets is shown', async (t) => {
  const image = new ZoneImage()
  const zone = scanName(APEX)!
  const id = image.addZone(zone)
  const rdata = [scanName('one.example.')!, scanName('two.example.')!]
  image.putRRset(id, zone, { type: RRType.SOA, ttlSeconds: 60, rdata: [new Uint8Array(22)] })
  image.putRRset(id, scanName(`www.${APEX}`)!, { type: RRType.CNAME, ttlSeconds: 60, rdata })
  image.publish()
  const { buffer } = image.handle
  const view = VersionView.open({ zone, serial: 0, buffer, imageVersion: image.version })!
  const shown: string[] = []
  for (const record of view.content()) shown.push(printView(record))
  t.strictSame(shown, ['www.z.example. 60 CNAME one.example.'])
})

t.test('a difference over its bound is none', async (t) => {
  const from = VersionView.open(imageOf(zoneText(1, []), APEX).version)!
  const to = VersionView.open(imageOf(zoneText(2, []), APEX).version)!
  const octets = octetsOf(runWhole(diffVersions(from, to, undefined, OCTETS_MAX))!)
  t.ok(runWhole(diffVersions(from, to, undefined, octets)))
  t.equal(runWhole(diffVersions(from, to, undefined, octets - 1)), undefined)
})

const step = (fromSerial: number, toSerial: number, octets = 10): ZoneDifference => ({
  fromSerial,
  toSerial,
  removed: new Uint8Array(octets),
  added: new Uint8Array(0),
})

t.test('the journal knows the way from every version that it has', async (t) => {
  const journal = new ZoneJournal(1000, 100)
  for (let serial = 1; serial <= 5; serial++) journal.push(step(serial, serial + 1))
  t.equal(journal.since(1)?.length, 5)
  t.equal(journal.since(5)?.length, 1)
  t.equal(journal.since(6), undefined)
  t.equal(journal.since(0), undefined)
})

t.test('the journal is bounded by octets and by number', async (t) => {
  const byOctets = new ZoneJournal(35, 100)
  const byNumber = new ZoneJournal(1000, 3)
  for (const journal of [byOctets, byNumber]) {
    for (let serial = 1; serial <= 9; serial++) journal.push(step(serial, serial + 1))
    t.equal(journal.since(6), undefined)
    t.equal(journal.since(7)?.length, 3)
  }
  byOctets.push(step(10, 11, 36))
  t.equal(byOctets.since(10), undefined)
})

t.test('the journal forgets what does not lead on', async (t) => {
  const journal = new ZoneJournal(1000, 100)
  journal.push(step(1, 2))
  journal.push(step(5, 6))
  t.equal(journal.since(1), undefined)
  t.equal(journal.since(5)?.length, 1)
  journal.push(step(6, 5))
  t.equal(journal.since(5), undefined, 'a serial that comes round again')
  t.equal(journal.since(6)?.length, 1)
})

t.test(
  'of a steered set that we sign, the default answer is transferred, with its signatures',
  async (t) => {
    const apex = wire('example.org.')
    const owner = wire('a.example.org.')
    const image = new ZoneImage()
    const zone = image.addZone(apex)
    const signature = (type: number, number: number): Uint8Array => {
      const head = [0, type, 13, 3, 0, 0, 0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
      return new Uint8Array([...head, ...apex, number])
    }
    const address = (last: number): Uint8Array => new Uint8Array([192, 0, 2, last])
    const version = (serial: number, first: number): ZoneVersion => {
      const soa = new Uint8Array([0, 0, 0, 0, 0, serial, ...Array(16).fill(0)])
      image.putRRset(zone, apex, { type: RRType.SOA, ttlSeconds: 60, rdata: [soa] })
      const steering = new Uint32Array([7])
      const rdata = [1, 2, 3].map(address)
      image.putRRset(zone, owner, { type: RRType.A, ttlSeconds: 300, rdata, steering })
      const next = [0, 1].map((bit) => new Uint8Array([...apex, 0, 1, bit]))
      image.putRRset(zone, owner, { type: RRType.NSEC, ttlSeconds: 5, rdata: next })
      const directory = encodeDirectory([
        {
          type: RRType.A,
          signaturesPerAnswer: 2,
          default: { signature: 2, ttlSeconds: 60, rdataIndexes: [first, 2] },
          answers: [0, 2, proofBy(1)],
        },
        {
          type: RRType.NSEC,
          signaturesPerAnswer: 1,
          default: { signature: 4, ttlSeconds: 5, rdataIndexes: [0] },
          answers: [4, 5],
        },
      ])
      const signatures = [0, 1, 2, 3].map((i) => signature(RRType.A, i))
      signatures.push(signature(RRType.NSEC, 4), signature(RRType.NSEC, 5))
      const signed = { type: RRType.RRSIG, ttlSeconds: 9, rdata: signatures, steering: directory }
      image.putRRset(zone, owner, signed)
      image.publish()
      const { buffer } = image.handle
      return { zone: apex, serial, buffer, imageVersion: image.version }
    }
    const shown = ({ owner, ownerOffset, type, ttlSeconds, ...view }: RecordView): string => {
      const { rdata, rdataOffset, rdataOctets } = view
      const name = printName(owner, ownerOffset).replace('.example.org.', '')
      return `${name} ${ttlSeconds} ${type} ${rdata[rdataOffset + rdataOctets - 1]}`
    }
    const old = VersionView.open(version(1, 0))!
    const expected = ['a 60 1 1', 'a 60 1 3', 'a 60 46 2', 'a 60 46 3', 'a 5 46 4', 'a 5 47 0']
    t.strictSame(Array.from(old.content(), shown), expected)
    const read: string[] = []
    const cursor = old.cursor()
    // The message is full after each record.
    let isFull = false
    const sink = {
      add: (record: RecordView, ownerOctets: number): boolean => {
        isFull = !isFull
        if (isFull)
          read.push(
            shown({
              ...record,
              owner: owner.subarray(0, ownerOctets + apex.length),
              ownerOffset: 0,
            }),
          )
        return isFull
      },
    }
    while (cursor.write(sink)) t.ok(read.length < 10)
    t.strictSame(read, expected)
    const now = VersionView.open(version(2, 1))!
    const difference = runWhole(diffVersions(old, now, undefined, 1000))!
    t.strictSame(Array.from(packedRecords(difference.removed), shown).slice(1), ['a 60 1 1'])
    t.strictSame(Array.from(packedRecords(difference.added), shown).slice(1), ['a 60 1 2'])
  },
)
