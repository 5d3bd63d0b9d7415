import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { lowerName, scanName } from '../../../src/dns/name/name.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { countEntries } from '../../../src/zone/zonefile/count-entries.ts'
import { DirectSink } from '../../../src/zone/zonefile/direct-sink.ts'
import { fillImage } from '../../../src/zone/zonefile/fill.ts'
import { loadImage } from '../../../src/zone/zonefile/image-load.ts'
import { loadZone } from '../../../src/zone/zonefile/load.ts'
import { ZoneScanner } from '../../../src/zone/zonefile/scanner.ts'
import { runs } from '../../support/runs.ts'

const apex = lowerName(scanName('z.example.')!)
const HEAD = '$TTL 60\n@ SOA ns host 7 2 3 4 5\n@ NS ns\n'

/** Lines of zones that no check complains of, if copies are removed, and of others. */
const plain = fc.constantFrom(
  ...[
    'a A 192.0.2.1',
    'a AAAA ::1',
    'b TXT "x"',
    'b A 192.0.2.1',
    '*.b A 192.0.2.2',
    'c.d.e MX 1 a',
  ],
  ...['c.d.e A 192.0.2.9', 'f CNAME a', 'g NS a', `g DS 1 8 2 ${'00'.repeat(32)}`, 'h SRV 1 2 3 A'],
  ...['d.e TXT "ent"', 'L DNAME other.', 'k TYPE65280 \\# 0'],
  `many A 192.0.2.1\n${Array.from({ length: 20 }, (_, i) => ` A 192.0.3.${i}`).join('\n')}`,
)
const odd = fc.constantFrom(
  ...['a 61 A 192.0.2.7', 'f A 192.0.2.1', 'f CNAME b', 'L DNAME b', '@ SOA ns host 7 2 3 4 5'],
  ...[
    '@ SOA ns host 8 2 3 4 5',
    'g DS 1 8 2 00',
    'g NS a.z.example.z.example',
    'www.other. A 192.0.2.1',
  ],
  ...[
    'x A 192.0.2.256',
    '@ DNSKEY 256 3 8 AAAA',
    'a RRSIG A 8 3 60 20300101000000 20200101000000 1 @ AAAA',
  ],
  ...[
    'a NSEC b A',
    '@ NSEC3PARAM 1 0 200 -',
    'i SOA ns host 7 2 3 4 5',
    'j 4294967295 A 192.0.2.1',
  ],
  `many A 192.0.3.1\n${' A 192.0.4.1\n'.repeat(20)}`,
)

/** Texts of zones; `sorted`: the records of one name follow each other, without copies. */
const texts = fc
  .record({
    lines: fc.array(plain, { maxLength: 30 }),
    odd: fc.oneof(fc.constant([]), fc.array(odd, { maxLength: 3 })),
    sorted: fc.boolean(),
    head: fc.constantFrom(HEAD, HEAD, HEAD, HEAD.replace('@ NS ns\n', ''), ''),
  })
  .map(({ lines, odd, sorted, head }) => {
    const all = sorted ? [...new Set(lines)].sort().concat(odd) : [...lines, ...odd]
    return `${head}${all.join('\n')}\n`
  })

/** How many of the texts the direct way loads. */
let plainCount = 0

t.test('a zone is loaded straight into the image as by way of all its records', async (t) => {
  const path = join(t.testdir({}), 'db')
  const property = fc.property(texts, fc.constantFrom(-1, 7, 8), (text, unlessSerial) => {
    writeFileSync(path, text)
    // So that its names are not checked, as those of large zones.
    const options = { namesCheckedMax: -1, nowSeconds: 1_700_000_000, unlessSerial }
    const direct = runWhole(loadImage({ path, apex, options }))
    const load = runWhole(loadZone(path, apex, options))
    if (direct.kind !== load.kind || load.kind !== 'loaded' || direct.kind !== 'loaded') {
      return JSON.stringify(direct) === JSON.stringify(load)
    }
    const sink = new DirectSink(apex, new ZoneImage(), -1)
    runWhole(new ZoneScanner(apex, sink).scan({ file: path, stamp: '', text: Buffer.from(text) }))
    if (sink.finish()) plainCount++
    const { image, ...said } = direct
    const { records, ...wanted } = load
    const want = runWhole(fillImage(records, apex))
    const { zones } = want.capture()
    const isSame = JSON.stringify([said, image.zones]) === JSON.stringify([wanted, zones])
    return isSame && Buffer.from(image.buffer).equals(Buffer.from(want.finish()))
  })
  fc.assert(property, { seed: 3, numRuns: runs(500) })
  t.ok(plainCount > runs(50), `${plainCount}`)
})

const MEMORY_MAX = 6 * 2 ** 20
const MEMORY = [
  { text: '', want: 'loaded' },
  { text: 'name-39999.of.a.host A 192.0.2.1\n', want: 'loading the zone needs about 8 MiB' },
]
for (const { text, want } of MEMORY) {
  t.test(`${want}, if ${JSON.stringify(text)} follows`, async (t) => {
    const path = join(t.testdir({}), 'db')
    const names = Array.from({ length: 40_000 }, (_, i) => `name-${i}.of.a.host A 192.0.2.1\n`)
    writeFileSync(path, HEAD + names.join('') + text)
    const options = { namesCheckedMax: 10, memoryMax: MEMORY_MAX }
    const load = runWhole(loadImage({ path, apex, options }))
    t.match(load.kind === 'failed' ? load.errors[0]!.print() : load.kind, want)
    if (load.kind === 'failed') t.strictSame(load.files, [], 'the next reload tries again')
  })
}

const COUNTS = [
  { text: '', want: [0, 0] },
  { text: HEAD, want: [3, 1] },
  { text: '; comment\n\n  ; indented\na A 1\n  A 2\na A 3\nab A 4\na A 5', want: [6, 3] },
]
for (const { text, want } of COUNTS) {
  t.test(`counts the entries of ${JSON.stringify(text)}`, async (t) => {
    const { records, owners } = countEntries(Buffer.from(text))
    t.strictSame([records, owners], want)
  })
}
