import fc from 'fast-check'
import t from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { copyCaptured } from '../../../src/zone/image/copy-captured.ts'
import {
  BODY_STATE,
  FLAG_CHILDREN,
  FLAG_WILDCARD,
  HEADER_WORDS,
  SLOT_WORDS,
  TABLE_SLOTS,
} from '../../../src/zone/image/layout.ts'
import type { ZoneReader } from '../../../src/zone/image/reader.ts'
import { restoreArena } from '../../../src/zone/image/restore.ts'
import { ZoneImage, type ZoneImageStats } from '../../../src/zone/image/writer.ts'
import { listRRsets, listZones, readRRset } from '../../support/zone-contents.ts'
import { question, text, wire } from '../../support/zone-names.ts'

// The model: apex -> `owner type` -> what is stored, printed.
type Model = Map<string, Map<string, string>>

const APEXES = ['.', 'example.org.', 'a.example.org.']
const label = fc.constantFrom('a', 'b', '*')
const owner = fc.array(label, { maxLength: 3 })
const apex = fc.constantFrom(...APEXES)
const type = fc.constantFrom(65280, RRType.DNAME)

// Sizes on both sides of the offset table's threshold; rdata of 0 octets and of odd lengths.
const rdata = fc.array(fc.uint8Array({ maxLength: 7 }), { minLength: 1, maxLength: 12 })
const steering = fc.option(fc.array(fc.nat(), { minLength: 1, maxLength: 5 }), { nil: undefined })

type Edit =
  | {
      do: 'put'
      apex: string
      labels: string[]
      type: number
      ttl: number
      rdata: Uint8Array[]
      steering: number[] | undefined
    }
  | { do: 'remove'; apex: string; labels: string[]; type: number }
  | { do: 'add-zone' | 'remove-zone' | 'replace-zone'; apex: string }
  | { do: 'publish' | 'compact' | 'remember' | 'restart' }

const put = fc
  .record({
    do: fc.constant('put' as const),
    apex,
    labels: owner,
    type,
    ttl: fc.constantFrom(0, 60, 0x7fffffff),
    rdata,
    steering,
  })
  .map((put) => (put.type === RRType.DNAME ? { ...put, rdata: put.rdata.map(toName) } : put))

/** A name of one label, or the root. */
function toName(octets: Uint8Array): Uint8Array {
  return new Uint8Array(octets.length === 0 ? [0] : [octets.length, ...octets, 0])
}
const edit: fc.Arbitrary<Edit> = fc.oneof(
  { weight: 12, arbitrary: put },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant('remove' as const), apex, labels: owner, type }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('add-zone' as const), apex }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constantFrom('remove-zone' as const, 'replace-zone' as const),
      apex,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom('publish' as const, 'compact' as const, 'remember' as const),
    }),
  },
)

function print(data: {
  ttlSeconds: number
  rdata: readonly Uint8Array[]
  steering?: Uint32Array | undefined
}) {
  return JSON.stringify([
    data.ttlSeconds,
    data.rdata.map((r) => [...r]),
    [...(data.steering ?? [])],
  ])
}

function contents(reader: ZoneReader): Model {
  const model: Model = new Map()
  for (const { id, apex } of listZones(reader)) {
    const sets = new Map<string, string>()
    for (const set of listRRsets(reader, id)) sets.set(`${text(set.owner)} ${set.type}`, print(set))
    model.set(text(apex), sets)
  }
  return model
}

function plain(model: Model): unknown {
  return [...model].sort().map(([apex, sets]) => [apex, [...sets].sort()])
}

function copy(model: Model): Model {
  return new Map([...model].map(([apex, sets]) => [apex, new Map(sets)]))
}

function isSame(a: Model, b: Model): boolean {
  return JSON.stringify(plain(a)) === JSON.stringify(plain(b))
}

function ownerText(labels: string[], apex: string): string {
  return labels.map((l) => `${l}.`).join('') + (apex === '.' && labels.length > 0 ? '' : apex)
}

/** Names that must exist in a zone: apex, owners and all names between them. */
function namesOf(apex: string, sets: Map<string, string>): Set<string> {
  const names = new Set([apex])
  for (const key of sets.keys()) {
    let name = key.split(' ')[0]!
    while (!names.has(name)) {
      names.add(name)
      name = parentOf(name)
    }
  }
  return names
}

function parentOf(name: string): string {
  return name.slice(name.indexOf('.') + 1) || '.'
}

function nameCount(model: Model): number {
  let count = 0
  for (const [apex, sets] of model) count += namesOf(apex, sets).size
  return count
}

/** Checks what each name knows of its children, as a lookup sees it. */
function checkFlags(reader: ZoneReader, model: Model): void {
  for (const [apex, sets] of model) {
    const names = namesOf(apex, sets)
    const parents = new Set([...names].filter((name) => name !== apex).map(parentOf))
    for (const name of names) {
      const query = question(name, 1)
      const zone = reader.matchZone(query, 0)
      const found = text(query.qname, query.labelOffset[reader.zoneLabel])
      if (found !== apex) continue
      const body = reader.findBody(zone, query, 0, reader.zoneLabel)
      if (body === 0) throw new Error(`${name} does not exist`)
      const flags = reader.words[body + BODY_STATE]! & (FLAG_CHILDREN | FLAG_WILDCARD)
      const wildcard = names.has(`*.${name === '.' ? '' : name}`)
      const want = (parents.has(name) ? FLAG_CHILDREN : 0) | (wildcard ? FLAG_WILDCARD : 0)
      if (flags !== want) throw new Error(`${name} has flags ${flags}, not ${want}`)
    }
  }
}

/** True if all that is used is live, garbage, the header or one of two tables of 2^n slots. */
function isAccounted(stats: ZoneImageStats): boolean {
  const words = (stats.usedOctets - stats.liveOctets - stats.garbageOctets) / 4
  const slots = (words - HEADER_WORDS - 2 * TABLE_SLOTS) / SLOT_WORDS
  return slots >= 128 && slots.toString(2).replaceAll('0', '').length <= 2
}

/** A compaction takes several versions. */
const SIZES = { initialOctets: 4096, compactOctets: 8192, compactStepOctets: 1024 }

/** The image of a process that was given a copy of the last one's. */
function restart(image: ZoneImage): ZoneImage {
  const restored = runWhole(
    restoreArena(copyCaptured(image.capture()), { checkSteering: () => true, mayBeSigned: false }),
  )
  if (restored === undefined) throw new Error('a copy was refused')
  const next = new ZoneImage(SIZES, restored)
  if (next.stats.garbageOctets !== 0 || !isAccounted(next.stats)) throw new Error('miscounted')
  return next
}

/** Applies an edit to image and model alike; checks what the image says of it. */
function apply(image: ZoneImage, model: Model, edit: Edit): void {
  if (!('apex' in edit)) return
  const sets = model.get(edit.apex)
  const zone = image.findZone(wire(edit.apex))
  if ((zone === undefined) !== (sets === undefined)) throw new Error('findZone disagrees')
  if (edit.do === 'add-zone') {
    if (sets !== undefined) return
    image.addZone(wire(edit.apex))
    model.set(edit.apex, new Map())
    return
  }
  if (sets === undefined || zone === undefined) return
  if (edit.do === 'remove-zone' || edit.do === 'replace-zone') {
    image.removeZone(zone)
    model.delete(edit.apex)
    if (edit.do === 'replace-zone') apply(image, model, { do: 'add-zone', apex: edit.apex })
    return
  }
  const owner = ownerText('labels' in edit ? edit.labels : [], edit.apex)
  if (edit.do === 'remove') {
    const removed = image.removeRRset(zone, wire(owner), edit.type)
    if (removed !== sets.delete(`${owner} ${edit.type}`)) throw new Error('removeRRset disagrees')
  } else if (edit.do === 'put') {
    const data = {
      type: edit.type,
      ttlSeconds: edit.ttl,
      rdata: edit.rdata,
      steering: edit.steering === undefined ? undefined : new Uint32Array(edit.steering),
    }
    const changed = image.putRRset(zone, wire(owner), data)
    if (changed === (sets.get(`${owner} ${edit.type}`) === print(data)))
      throw new Error('putRRset disagrees')
    sets.set(`${owner} ${edit.type}`, print(data))
  }
}

t.test('an image equals a Map after any edits, for readers of every version', async (t) => {
  let compactions = 0
  let restarts = 0
  fc.assert(
    fc.property(fc.array(edit, { minLength: 20, maxLength: 120 }), (edits) => {
      let image = new ZoneImage(SIZES)
      image.onSwap(() => compactions++)
      const model: Model = new Map()
      let published: Model = new Map()
      const kept: { reader: ZoneReader; model: Model }[] = []
      let reader = image.reader()
      for (const edit of edits) {
        if (edit.do === 'restart') {
          image.publish()
          published = copy(model)
          for (const old of kept.splice(0)) {
            if (!isSame(contents(old.reader), old.model)) throw new Error('an old version changed')
          }
          image = restart(image)
          image.onSwap(() => compactions++)
          reader = image.reader()
          restarts++
        } else if (edit.do === 'publish' || edit.do === 'compact') {
          image.publish()
          if (edit.do === 'compact') image.compact()
          published = copy(model)
        } else if (edit.do === 'remember') {
          kept.push({ reader: image.reader(), model: published })
        } else apply(image, model, edit)
      }
      reader.refresh()
      if (!isSame(contents(reader), published)) throw new Error('unpublished edits are seen')
      for (const old of kept) {
        if (!isSame(contents(old.reader), old.model)) throw new Error('an old version changed')
        old.reader.refresh()
        if (!isSame(contents(old.reader), published)) throw new Error('refresh missed a version')
      }
      image.publish()
      reader.refresh()
      if (!isSame(contents(reader), model)) throw new Error('publish lost an edit')
      for (const [apex, sets] of model) {
        for (const [key, data] of sets) {
          const [owner, type] = key.split(' ')
          const found = readRRset(reader, wire(owner!), Number(type))
          const longest = [...model.keys()]
            .filter(
              (a) => a === '.' || (owner!.endsWith(a) && (owner === a || owner!.endsWith(`.${a}`))),
            )
            .sort((a, b) => b.length - a.length)[0]
          if (longest === apex && (found === undefined || print(found) !== data))
            throw new Error(`${key} is not found`)
        }
      }
      checkFlags(reader, model)
      const stats = image.stats
      if (stats.names !== nameCount(model))
        throw new Error(`${stats.names} names, not ${nameCount(model)}`)
      image.compact()
      const after = image.stats
      if (after.names !== stats.names) throw new Error('compaction changed the count of names')
      if (after.garbageOctets !== 0) throw new Error('compaction left garbage')
      if (after.liveOctets !== stats.liveOctets) throw new Error('live octets were miscounted')
      if (!isAccounted(stats)) throw new Error('garbage was miscounted')
      if (!isAccounted(after)) throw new Error('compaction miscounted')
    }),
    { numRuns: 300, seed: 7 },
  )
  t.ok(compactions > 300, 'compactions took place on the way')
  t.ok(restarts > 300, 'and restarts')
})
