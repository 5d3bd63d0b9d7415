import { createHash } from 'node:crypto'
import { readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { VersionView } from '../../../src/xfr/journal/version-view.ts'
import { ZONE_CHAIN } from '../../../src/zone/image/layout.ts'
import { ZoneReader } from '../../../src/zone/image/reader.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { CHECKSUM_OCTETS } from '../../../src/zone/snapshot/format.ts'
import { writeSnapshot } from '../../../src/zone/snapshot/write.ts'
import {
  readFileSnapshot,
  type SnapshotSource,
  writeFileSnapshot,
} from '../../../src/zone/zonefile/file-snapshot.ts'
import { type LoadedImage, loadImage, toPlainImage } from '../../../src/zone/zonefile/image-load.ts'
import { wire } from '../../support/zone-text.ts'
import { printView } from '../../support/zone-version.ts'

const apex = wire('example.org.')
const SOA = '@ 60 SOA ns host 7 2 3 4 5\n'
const HEAD = `${SOA}@ 60 NS ns\nns 60 A 192.0.2.1\n`
const NAMES = Array.from({ length: 300 }, (_, i) => `n${i} 60 A 192.0.2.${i % 256}\n`).join('')
const HASH = createHash('sha1').update(apex).digest()
/** Owner of the NSEC3 record of the apex. */
const HASHED = Array.from({ length: 32 }, (_, i) => {
  const bits = HASH.subarray((i * 5) >> 3, ((i * 5) >> 3) + 2)
  const word = (bits[0]! << 8) | (bits[1] ?? 0)
  return ((word >> (11 - ((i * 5) & 7))) & 31).toString(32)
}).join('')

const zones = [
  { name: 'an unsigned zone', text: HEAD + NAMES },
  { name: 'warnings', text: `${HEAD}m 60 MX 10 192.0.2.9\nc 60 CNAME none\n` },
  {
    name: 'a large set and a delegation',
    text: `${HEAD}${NAMES.replaceAll(/^n\d+/gm, 'n')}d 60 NS ns\n`,
  },
  {
    name: 'NSEC',
    text: `${HEAD}@ 60 NSEC ns NS SOA NSEC\nns 60 NSEC @ A NSEC\n@ 60 RRSIG SOA 13 2 60 20200101000000 20190101000000 1 @ AAAA\n`,
    isSigned: true,
  },
  {
    name: 'NSEC3',
    text: `${HEAD}@ 60 NSEC3PARAM 1 0 0 -\n${HASHED} 60 NSEC3 1 0 0 - ${HASHED} NS SOA NSEC3PARAM\n`,
    isSigned: true,
  },
]

/** A zone file, with its snapshot beside it. */
function keep(t: Test, text = HEAD + NAMES) {
  const directory = t.testdir({ db: text })
  const snapshot = join(directory, 'snapshot')
  const source: SnapshotSource = { path: join(directory, 'db'), apex, isWhole: true }
  const options = { nowSeconds: 1_700_000_000 }
  const load = runWhole(loadImage({ path: source.path, apex, options }))
  if (load.kind !== 'loaded') throw new Error(load.kind)
  writeFileSnapshot(snapshot, source, toPlainImage(load))
  return { snapshot, source, load, octets: readFileSync(snapshot) }
}

const read = (snapshot: string, source: SnapshotSource) => {
  return runWhole(readFileSnapshot(snapshot, source))
}

/** Why a snapshot is not used; '' = it is. */
function reasonAgainst(snapshot: string, source: SnapshotSource): string {
  const found = read(snapshot, source)
  if (found === undefined) return 'there is none'
  return found.kind === 'refused' ? found.reason : ''
}

function shown({ image, warnings, signatures, ...rest }: LoadedImage): unknown {
  const version = { zone: apex, serial: rest.serial, buffer: image.buffer, imageVersion: 1 }
  const records = Array.from(VersionView.open(version)!.content(), printView)
  const faults = warnings.map((warning) => warning.print())
  const signature = signatures.warning?.print()
  return { ...rest, faults, signature, expiry: signatures.expiry, records: records.join('\n') }
}

for (const { name, text, isSigned = false } of zones) {
  t.test(`a snapshot is what the load was: ${name}`, async (t) => {
    const { snapshot, source, load } = keep(t, text)
    const found = read(snapshot, source)
    if (found?.kind !== 'loaded') return t.fail(reasonAgainst(snapshot, source))
    t.strictSame(shown(found), shown(load))
    const { words, ...reader } = new ZoneReader({ buffer: found.image.buffer })
    t.equal(words[zoneOf(reader.zones, words) + ZONE_CHAIN] !== 0, isSigned, 'it has its chain')
  })
}

/** Offset of the only zone. */
function zoneOf(table: number, words: Uint32Array): number {
  const slots = words.subarray(table)
  return slots.slice(1).find((word, i) => i % 2 === 1 && word !== 0) ?? 0
}

t.test('a snapshot of something else is not used, with the reason', async (t) => {
  const { snapshot, source } = keep(t)
  const other = { ...source, path: join(t.testdirName, 'other') }
  t.equal(reasonAgainst(snapshot, source), '')
  t.equal(reasonAgainst(`${snapshot}s`, source), 'there is none')
  t.equal(reasonAgainst(snapshot, other), `it is of the file ${source.path}`)
  t.equal(reasonAgainst(snapshot, { ...source, isWhole: false }), 'it was made with other options')
  const sub = { ...source, apex: wire('a.example.org.') }
  t.equal(reasonAgainst(snapshot, sub), 'it is of zone example.org.')
  symlinkSync(snapshot, `${snapshot}-link`)
  t.equal(reasonAgainst(`${snapshot}-link`, source), 'it is a symbolic link')
  writeFileSync(source.path, `${HEAD}${NAMES}x 60 A 192.0.2.9\n`)
  t.equal(reasonAgainst(snapshot, source), 'the zone file has changed since')
  rmSync(source.path)
  t.equal(reasonAgainst(snapshot, source), 'the zone file has changed since')
  const image = new ZoneImage()
  image.addZone(apex)
  image.publish()
  const facts = JSON.stringify({ options: '', takenMs: 1, policies: [], zones: [] })
  writeSnapshot({ path: snapshot, image: image.capture(), facts })
  t.equal(reasonAgainst(snapshot, source), 'it is damaged: its facts are invalid', 'of kuadrant')
})

t.test('an included file counts', async (t) => {
  const directory = t.testdir({ more: NAMES })
  const path = join(directory, 'db')
  writeFileSync(path, `${HEAD}$INCLUDE more\n`)
  const source = { path, apex, isWhole: true }
  const load = runWhole(loadImage({ path, apex, options: {} }))
  if (load.kind !== 'loaded') return t.fail(load.kind)
  const snapshot = join(directory, 'snapshot')
  writeFileSnapshot(snapshot, source, toPlainImage(load))
  t.equal(reasonAgainst(snapshot, source), '')
  writeFileSync(join(directory, 'more'), `${NAMES}x 60 A 192.0.2.9\n`)
  t.equal(reasonAgainst(snapshot, source), 'the zone file has changed since')
})

t.test('a snapshot that is cut, of another build, or damaged is not used', async (t) => {
  const { snapshot, source, octets } = keep(t)
  for (const end of [0, 1, 63, 64, 100, octets.length - 1]) {
    truncateSync(snapshot, end)
    t.match(reasonAgainst(snapshot, source), /^it is (incomplete|empty|damaged)/, `${end} octets`)
    writeFileSync(snapshot, octets)
  }
  const version = octets.toString('latin1', 0, 18)
  t.equal(version, 'sextant snapshot 5')
  writeFileSync(
    snapshot,
    octets.toString('latin1').replace(version, 'sextant snapshot 3'),
    'latin1',
  )
  t.equal(reasonAgainst(snapshot, source), 'its version is "3", not 5')
  const damaged = fc.property(
    fc.nat(octets.length - 1),
    fc.integer({ min: 1, max: 255 }),
    (at, by) => {
      const copy = Buffer.from(octets)
      copy[at]! ^= by
      writeFileSync(snapshot, copy)
      t.not(reasonAgainst(snapshot, source), '')
    },
  )
  fc.assert(damaged, { numRuns: 50 })
})

t.test('a forged snapshot never throws, and readers of an accepted one end', async (t) => {
  for (const { text } of zones) {
    const { snapshot, source, octets } = keep(t, text)
    const forged = fc.property(fc.nat(octets.length - 33), fc.nat(255), (at, octet) => {
      const copy = octets.subarray(0, octets.length - CHECKSUM_OCTETS)
      const before = copy[at]!
      copy[at] = octet
      const sum = createHash('sha256').update(copy).digest()
      writeFileSync(snapshot, Buffer.concat([copy, sum]))
      copy[at] = before
      const found = read(snapshot, source)
      if (found?.kind !== 'loaded') return
      const { image, serial } = found
      const view = VersionView.open({
        zone: apex,
        serial,
        buffer: image.buffer,
        imageVersion: 1,
      })
      for (const record of view?.content() ?? []) void record
    })
    fc.assert(forged, { numRuns: 100 })
  }
})
