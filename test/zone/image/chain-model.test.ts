import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { compareNames } from '../../../src/dns/name/name.ts'
import { copyCaptured } from '../../../src/zone/image/copy-captured.ts'
import * as L from '../../../src/zone/image/layout.ts'
import type { ZoneReader } from '../../../src/zone/image/reader.ts'
import { restoreArena } from '../../../src/zone/image/restore.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { runs } from '../../support/runs.ts'
import { chainBlockSizes, chainOwners } from '../../support/zone-chains.ts'
import { listRRsets, listZones } from '../../support/zone-contents.ts'
import { text, wire } from '../../support/zone-names.ts'

/*
 * An image with several signed zones, which compacts in small steps, against a model of plain maps: zones and names
 * come and go between two steps, also those that the copy has already, and names without records.
 */

const { NSEC } = RRType
/** A type whose rdata can be any octets. */
const PLAIN = 65280
const APEXES = ['example.', 'sub.example.', 'other.']

/** Names of a zone, in canonical order; some are below others. The first is the apex. */
const NAMES = ['']
  .concat(Array.from({ length: 500 }, (_, i) => `n${i}.`))
  .concat(['*.', 'z.n7.', '*.n7.', 'a.b.c.', 'c.', `${'x'.repeat(63)}.`])
  .sort((a, b) => compareNames(wire(`${a}example.`), wire(`${b}example.`)))

interface Name {
  isInChain: boolean
  isDeclared: boolean
  /** 0 = no such record. */
  value: number
}

/** Names of the zones that exist. */
type Model = Map<string, Map<string, Name>>

const edit = fc.oneof(
  {
    weight: 20,
    arbitrary: fc.record({
      do: fc.constantFrom('join', 'leave', 'write', 'declare', 'undeclare', 'empty'),
      apex: fc.constantFrom(...APEXES),
      from: fc.nat(NAMES.length - 1),
      count: fc.oneof(
        { weight: 4, arbitrary: fc.integer({ min: 1, max: 4 }) },
        { weight: 2, arbitrary: fc.integer({ min: 1, max: 300 }) },
        fc.constant(NAMES.length),
      ),
      value: fc.integer({ min: 1, max: 255 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('add-zone', 'remove-zone', 'replace-zone'),
      apex: fc.constantFrom(...APEXES),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constantFrom('compact', 'idle', 'remember', 'restart') }),
  },
)
type Edit = typeof edit extends fc.Arbitrary<infer E> ? E : never

/** A compaction takes many versions. */
const SIZES = { initialOctets: 4096, compactOctets: 16_384, compactStepOctets: 2048 }

/** What is in the reader's version. */
function contentOf(reader: ZoneReader): unknown {
  return [...listZones(reader)]
    .map(({ id, apex }) => {
      const values = [...listRRsets(reader, id)].filter(({ type }) => type === PLAIN)
      return [
        text(apex),
        values.map(({ owner, rdata }) => [text(owner), rdata[0]![0]]).sort(),
        chainOwners(reader, apex),
      ]
    })
    .sort()
}

function modelContentOf(model: Model): unknown {
  return [...model]
    .map(([apex, names]) => {
      const values = [...names].filter(([, { value }]) => value !== 0)
      const owners = NAMES.filter((name) => names.get(name)?.isInChain === true)
      return [
        apex,
        values.map(([name, { value }]) => [name + apex, value]).sort(),
        owners.map((name) => (name === '' ? '.' : name)),
      ]
    })
    .sort()
}

/** Names that exist, with those that have names below them only. */
function nameCountOf(model: Model): number {
  let count = 0
  for (const names of model.values()) {
    const all = new Set([''])
    for (const [name, { isInChain, isDeclared, value }] of names) {
      if (!isInChain && !isDeclared && value === 0) continue
      for (let rest = name; rest !== ''; rest = rest.slice(rest.indexOf('.') + 1)) all.add(rest)
    }
    count += all.size
  }
  return count
}

function addZone(image: ZoneImage, model: Model, apex: string): void {
  const zone = image.addZone(wire(apex))
  model.set(apex, new Map([['', { isInChain: true, isDeclared: false, value: 0 }]]))
  image.putRRset(zone, wire(apex), nsec())
  runWhole(image.updateChain(zone))
}

function nsec() {
  return { type: NSEC, ttlSeconds: 1, rdata: [Uint8Array.of(0, 0, 1, 0x40)] }
}

/** Edits a row of names. The apex stays in the chain: without it, the zone has none. */
function editNames(image: ZoneImage, model: Model, edit: Edit & { apex: string }): void {
  const names = model.get(edit.apex)
  if (names === undefined || !('from' in edit)) return
  const zone = image.findZone(wire(edit.apex))!
  const changed: Uint8Array[] = []
  for (const relative of NAMES.slice(edit.from, edit.from + edit.count)) {
    const owner = wire(relative + edit.apex)
    const name = names.get(relative) ?? { isInChain: false, isDeclared: false, value: 0 }
    names.set(relative, name)
    if (edit.do === 'join' || ((edit.do === 'leave' || edit.do === 'empty') && relative !== '')) {
      name.isInChain = edit.do === 'join'
      if (name.isInChain) image.putRRset(zone, owner, nsec())
      else image.removeRRset(zone, owner, NSEC)
      changed.push(owner)
    }
    if (edit.do === 'write' || edit.do === 'empty') {
      name.value = edit.do === 'write' ? edit.value : 0
      const rdata = [new Uint8Array(40).fill(edit.value)]
      if (name.value === 0) image.removeRRset(zone, owner, PLAIN)
      else image.putRRset(zone, owner, { type: PLAIN, ttlSeconds: 1, rdata })
    }
    if (edit.do === 'declare' || edit.do === 'undeclare') {
      name.isDeclared = edit.do === 'declare'
      image.declareName(zone, owner, name.isDeclared)
    }
  }
  runWhole(image.updateChain(zone, changed))
}

function editZone(image: ZoneImage, model: Model, edit: Edit & { apex: string }): void {
  const zone = image.findZone(wire(edit.apex))
  if (zone === undefined) {
    if (edit.do === 'add-zone') addZone(image, model, edit.apex)
    return
  }
  if (edit.do === 'add-zone') return
  image.removeZone(zone)
  model.delete(edit.apex)
  if (edit.do === 'replace-zone') addZone(image, model, edit.apex)
}

/** The image of a process that was given a copy of the last one's. */
function restart(image: ZoneImage): ZoneImage {
  const options = { checkSteering: () => true, mayBeSigned: true }
  const restored = runWhole(restoreArena(copyCaptured(image.capture()), options))
  assert.ok(restored !== undefined, 'the copy is valid')
  return new ZoneImage(SIZES, restored)
}

function checkBlocks(reader: ZoneReader): void {
  for (const apex of APEXES) {
    const sizes = chainBlockSizes(reader, wire(apex))
    assert.ok(sizes.every((size) => size > 0 && size <= L.CHAIN_BLOCK_MAX))
    assert.ok(sizes.length <= 1 || sizes.every((size) => size >= L.CHAIN_BLOCK_MIN))
  }
}

t.test(
  'chains of several zones equal a model after any edits between steps of a compaction',
  (t) => {
    let swaps = 0
    fc.assert(
      fc.property(fc.array(edit, { minLength: 20, maxLength: 60 }), (edits) => {
        let image = new ZoneImage(SIZES)
        image.onSwap(() => swaps++)
        const model: Model = new Map()
        addZone(image, model, 'example.')
        const kept: { reader: ZoneReader; content: unknown }[] = []
        const checkKept = () => {
          for (const { reader, content } of kept) assert.deepEqual(contentOf(reader), content)
        }
        for (const edit of edits) {
          if ('from' in edit) editNames(image, model, edit)
          else if ('apex' in edit) editZone(image, model, edit)
          image.publish()
          if (edit.do === 'compact') image.compact()
          if (edit.do === 'idle') image.compactIdle()
          if (edit.do === 'restart') {
            checkKept()
            kept.length = 0
            image = restart(image)
            image.onSwap(() => swaps++)
          }
          const reader = image.reader()
          const content = modelContentOf(model)
          assert.deepEqual(contentOf(reader), content)
          assert.equal(image.stats.names, nameCountOf(model))
          checkBlocks(reader)
          if (edit.do === 'remember') kept.push({ reader, content })
        }
        checkKept()
        const { liveOctets } = image.stats
        image.compact()
        assert.equal(image.stats.liveOctets, liveOctets)
        assert.equal(image.stats.garbageOctets, 0)
      }),
      { numRuns: runs(120) },
    )
    t.ok(swaps > 30, `${swaps} compactions`)
    t.end()
  },
)
