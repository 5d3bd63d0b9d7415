import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { NameBuffer } from '../../../src/dns/name/hashed-name.ts'
import { compareNames, printName, scanName } from '../../../src/dns/name/name.ts'
import { VersionView } from '../../../src/xfr/journal/version-view.ts'
import { ChainCursor } from '../../../src/zone/image/chain-cursor.ts'
import { copyCaptured } from '../../../src/zone/image/copy-captured.ts'
import * as L from '../../../src/zone/image/layout.ts'
import { ZoneReader } from '../../../src/zone/image/reader.ts'
import { restoreArena } from '../../../src/zone/image/restore.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { runs } from '../../support/runs.ts'
import { chainBlockSizes, chainNodes, chainOwners } from '../../support/zone-chains.ts'
import { wire } from '../../support/zone-text.ts'

const APEX = wire('example.')
const RDATA = [Uint8Array.from([0, 0, 1, 0x40])]

/** Owners of the chain in a reader's version, in its order. */
function ownersOf(reader: ZoneReader, version: number): string[] {
  const name = new NameBuffer()
  name.set(APEX, 0, APEX.length)
  const zone = reader.matchZone(name, 0)
  const { buffer } = reader.handle
  const view = VersionView.open({ zone: APEX, serial: 0, buffer, imageVersion: version })!
  const chain = reader.findChain(zone)
  if (chain === 0) return []
  const { words } = reader
  const cursor = new ChainCursor()
  cursor.enter(words, chain)
  const owners: string[] = []
  for (let node = cursor.next(words); node !== 0; node = cursor.next(words)) {
    owners.push(printName(view.owner(node)))
  }
  return owners
}

const label = fc.constantFrom('a', 'b', 'z', '*', '0', '\\000', '\\255', 'aa', 'ab', 'x'.repeat(63))
/** Owners relative to the zone; never too long for a name. */
const owner = fc
  .array(label, { minLength: 0, maxLength: 4 })
  .map((labels) => labels.map((text) => `${text}.`).join(''))
  .filter((text) => scanName(`${text}example.`) !== undefined)

t.test('a chain has the owners of NSEC in canonical order, in every version', (t) => {
  fc.assert(
    fc.property(
      fc.array(fc.array(owner, { maxLength: 12 }), { minLength: 1, maxLength: 6 }),
      fc.boolean(),
      (rounds, compacts) => {
        const image = new ZoneImage()
        const zone = image.addZone(APEX)
        image.putRRset(zone, APEX, { type: RRType.NSEC, ttlSeconds: 1, rdata: RDATA })
        const present = new Set(['example.'])
        const history: [version: number, want: string[]][] = []
        const reader = new ZoneReader({ buffer: image.handle.buffer })
        for (const [i, names] of rounds.entries()) {
          const changed = names.filter((text) => text !== '').map((text) => `${text}example.`)
          for (const name of changed) {
            const gone = present.delete(name)
            if (gone) image.removeRRset(zone, wire(name), RRType.NSEC)
            else {
              present.add(name)
              image.putRRset(zone, wire(name), { type: RRType.NSEC, ttlSeconds: 1, rdata: RDATA })
            }
          }
          // What is no owner of NSEC is not in it.
          const rdata = [new Uint8Array(1)]
          image.putRRset(zone, wire(`t${i}.example.`), { type: RRType.TXT, ttlSeconds: 1, rdata })
          runWhole(image.updateChain(zone, i === 0 ? undefined : changed.map(wire)))
          const want = [...present]
            .map(wire)
            .sort(compareNames)
            .map((name) => printName(name))
          history.push([image.publish(), want])
        }
        for (const [version, want] of history) {
          reader.refreshTo(version)
          if (ownersOf(reader, version).join() !== want.join()) return false
        }
        if (!compacts) return true
        image.compact()
        const moved = image.reader()
        return ownersOf(moved, image.version).join() === history.at(-1)![1].join()
      },
    ),
    { numRuns: 300 },
  )
  t.end()
})

/** Names of a zone: n0 to n3999, in no canonical order. */
const NAMES = Array.from({ length: 4000 }, (_, i) => wire(`n${i}.example.`))
const SORTED = [...NAMES.keys()].sort((a, b) => compareNames(NAMES[a]!, NAMES[b]!))

/** A row of names, of those in canonical order, that join or leave the chain. */
const edit = fc.record({
  from: fc.nat(NAMES.length - 1),
  count: fc.oneof(fc.constant(1), fc.nat(600), fc.constant(NAMES.length)),
  joins: fc.boolean(),
})

t.test('blocks split and join as names join and leave, also while the image is compacted', (t) => {
  let blocksMost = 0
  let compactions = 0
  fc.assert(
    fc.property(fc.array(edit, { minLength: 4, maxLength: 12 }), (edits) => {
      const image = new ZoneImage({ compactOctets: 32 * 1024, compactStepOctets: 16 * 1024 })
      image.onSwap(() => compactions++)
      const zone = image.addZone(APEX)
      image.putRRset(zone, APEX, { type: RRType.NSEC, ttlSeconds: 1, rdata: RDATA })
      runWhole(image.updateChain(zone))
      image.publish()
      const present = new Set<number>()
      for (const { from, count, joins } of edits) {
        const rows = SORTED.slice(from, from + count)
        for (const i of rows) {
          if (joins)
            image.putRRset(zone, NAMES[i]!, { type: RRType.NSEC, ttlSeconds: 1, rdata: RDATA })
          else image.removeRRset(zone, NAMES[i]!, RRType.NSEC)
          if (joins) present.add(i)
          else present.delete(i)
        }
        runWhole(
          image.updateChain(
            zone,
            rows.map((i) => NAMES[i]!),
          ),
        )
        const reader = image.reader()
        const version = image.publish()
        reader.refresh()
        const want = [
          'example.',
          ...SORTED.filter((i) => present.has(i)).map((i) => `n${i}.example.`),
        ]
        assert.deepEqual(ownersOf(reader, version), want)
        const sizes = chainBlockSizes(reader, APEX)
        blocksMost = Math.max(blocksMost, sizes.length)
        assert.ok(sizes.every((size) => size <= L.CHAIN_BLOCK_MAX))
        assert.ok(sizes.length === 1 || sizes.every((size) => size >= L.CHAIN_BLOCK_MIN))
      }
      const { liveOctets } = image.stats
      image.compact()
      assert.equal(image.stats.liveOctets, liveOctets)
      const copy = copyCaptured(image.capture())
      const options = { checkSteering: () => true, mayBeSigned: true }
      const restored = runWhole(restoreArena(copy, options))
      const next = new ZoneImage({}, restored)
      assert.equal(next.stats.liveOctets, liveOctets)
      assert.deepEqual(
        ownersOf(next.reader(), next.version),
        ownersOf(image.reader(), image.version),
      )
    }),
    { numRuns: runs(40) },
  )
  t.ok(blocksMost > 4, `${blocksMost} blocks`)
  t.ok(compactions > 4, `${compactions} compactions`)
  t.end()
})

const NSEC = { type: RRType.NSEC, ttlSeconds: 1, rdata: RDATA }

/** An image whose chain has the apex and some names. */
function imageOf(names: readonly Uint8Array[], sizes = {}): ZoneImage {
  const image = new ZoneImage(sizes)
  const zone = image.addZone(APEX)
  for (const name of [APEX, ...names]) image.putRRset(zone, name, NSEC)
  runWhole(image.updateChain(zone))
  image.publish()
  return image
}

t.test('a chain ends with its last owner, and begins again', async (t) => {
  const all = [APEX, ...NAMES]
  const image = imageOf(NAMES)
  const zone = image.findZone(APEX)!
  const reader = image.reader()
  for (const compacts of [false, true]) {
    for (const name of all) image.removeRRset(zone, name, RRType.NSEC)
    runWhole(image.updateChain(zone, all))
    image.publish()
    if (compacts) image.compact()
    t.equal(reader.findChain(reader.matchZone(apexName(), 0)) === 0, false, 'of the version before')
    reader.refresh()
    t.equal(reader.findChain(reader.matchZone(apexName(), 0)), 0)
    t.equal(image.stats.names, 1)
    image.putRRset(zone, APEX, NSEC)
    runWhole(image.updateChain(zone, [APEX]))
    image.publish()
    reader.refresh()
    t.same(chainOwners(reader, APEX), ['.'])
    for (const name of NAMES) image.putRRset(zone, name, NSEC)
    runWhole(image.updateChain(zone, NAMES))
    image.publish()
    reader.refresh()
    t.equal(chainNodes(reader, APEX).length, all.length)
  }
})

t.test('a copy keeps owners that are gone, until the chain is updated', async (t) => {
  const names = ['a.example.', 'b.example.', 'c.example.'].map(wire)
  const image = imageOf(names)
  const zone = image.findZone(APEX)!
  image.removeRRset(zone, names[1]!, RRType.NSEC)
  image.publish()
  image.compact()
  t.same(chainOwners(image.reader(), APEX), ['.', 'a.', 'b.', 'c.'])
  runWhole(image.updateChain(zone, [names[1]!]))
  image.publish()
  t.same(chainOwners(image.reader(), APEX), ['.', 'a.', 'c.'])
})

t.test('a publish copies a bounded number of nodes of a chain, too', async (t) => {
  const publishes = (names: readonly Uint8Array[]): number => {
    const image = imageOf(names, { compactOctets: 4096, compactStepOctets: 4096 })
    const zone = image.findZone(APEX)!
    const put = (octet: number, octets: number) => {
      const rdata = [new Uint8Array(octets).fill(octet)]
      image.putRRset(zone, APEX, { type: 65280, ttlSeconds: 1, rdata })
      image.publish()
    }
    let swaps = 0
    image.onSwap(() => swaps++)
    let count = 0
    // Much garbage begins a compaction.
    while (image.stats.garbageOctets * 2 <= image.stats.usedOctets) put(count++ & 0xff, 60_000)
    for (count = 0; swaps === 0; count++) put(count & 0xff, 1)
    return count
  }
  const few = publishes(NAMES.slice(0, 100))
  const many = publishes(NAMES)
  // Each node is copied, and found for the chain.
  const nodesPerPublish = 4096 / 4 / 64
  t.ok(many - few > (NAMES.length * 2 * 0.8) / nodesPerPublish, `${many} and ${few} publishes`)
})

function apexName(): NameBuffer {
  const name = new NameBuffer()
  name.set(APEX, 0, APEX.length)
  return name
}
