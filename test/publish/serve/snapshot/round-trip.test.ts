import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t from 'tap'
import { Random } from '../../../../src/base/random.ts'
import { ResourceRegistry } from '../../../../src/base/resource-registry.ts'
import { RRType } from '../../../../src/dns/iana/types.ts'
import { Response } from '../../../../src/dns/message/response.ts'
import { scanAddress } from '../../../../src/dns/text/address.ts'
import { scanGeoCode } from '../../../../src/geo/code.ts'
import { MmdbLocator } from '../../../../src/geo/mmdb-locator.ts'
import { type Net, scanNet } from '../../../../src/geo/net.ts'
import { runJobInline } from '../../../../src/geo/worker/run-job.ts'
import type { OwnerSet } from '../../../../src/publish/build/owner-set.ts'
import { printFacts, scanFacts } from '../../../../src/publish/serve/snapshot/facts.ts'
import { loadSnapshot } from '../../../../src/publish/serve/snapshot/load.ts'
import { ImageSink } from '../../../../src/publish/zone/image-sink.ts'
import { composeSoa } from '../../../../src/publish/zone/soa.ts'
import {
  ANSWERS_SHIFT,
  COUNTED_TIER,
  OUTCOME_COUNT_MASK,
  RDATA_COUNT_MASK,
} from '../../../../src/steering/encode.ts'
import { Picks } from '../../../../src/steering/picks.ts'
import { SteeringTable } from '../../../../src/steering/table.ts'
import { isEncodedSteering } from '../../../../src/steering/verify-encoded.ts'
import { Choice } from '../../../../src/zone/image/types.ts'
import { ZoneImage } from '../../../../src/zone/image/writer.ts'
import { ZoneAnswerer } from '../../../../src/zone/lookup/answer.ts'
import { writeSnapshot } from '../../../../src/zone/snapshot/write.ts'
import { runs } from '../../../support/runs.ts'
import { FakeTimers } from '../../../support/setup.ts'
import { question, wire } from '../../../support/zone-names.ts'

const APEX = wire('k.example.')
const CODES = ['GEO-EU', 'GEO-NA', 'DE', 'US', 'AS64500', 'NET-LAB']
const NETS = CODES.map((code, i) => scanNet(`10.${i + 1}.0.0/16`, code) as Net)
const CLIENTS = ['10.9.0.1', ...CODES.map((_, i) => `10.${i + 1}.2.3`)]

const target = fc.nat(250).map((last) => new Uint8Array([192, 0, 2, last]))

/** What one owner and type may come to, steered or not. */
const set: fc.Arbitrary<OwnerSet> = fc
  .uniqueArray(target, { minLength: 1, maxLength: 12, selector: (octets) => octets[3] })
  .chain((rdata) => {
    const candidate = fc.record({
      code: fc.option(fc.constantFrom(...CODES), { nil: undefined }),
      isDefault: fc.boolean(),
      weight: fc.option(fc.constantFrom(0, 1, 120, 1_000_000), { nil: undefined }),
      ttlSeconds: fc.constantFrom(0, 60, 300),
      rdataIndexes: fc.subarray([...rdata.keys()], { minLength: 1 }),
    })
    const answers = fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined })
    const all = fc.array(candidate, { minLength: 1, maxLength: 6 })
    return fc.tuple(all, answers).map(([candidates, answers]) => ({
      answers,
      type: RRType.A,
      ttlSeconds: 60,
      rdata,
      drainedCount: 0,
      endpoints: [],
      candidates: candidates.map((c) => ({
        ...c,
        code: c.code === undefined ? undefined : scanGeoCode(c.code)!,
      })),
    }))
  })

const owner = fc
  .constantFrom('a', 'b', '*', 'c.b', 'd.e.f', '*.g', 'h', 'i')
  .map((l) => `${l}.k.example.`)
const sets = fc.uniqueArray(fc.tuple(owner, set), { maxLength: 8, selector: ([owner]) => owner })
type Sets = readonly (readonly [string, OwnerSet])[]

function createTable(): SteeringTable {
  const resources = new ResourceRegistry()
  const options = {
    resources,
    paths: [],
    nets: NETS,
    timers: new FakeTimers(),
    runJob: runJobInline,
  }
  const locator = new MmdbLocator({ ...options, onReload: () => {}, onLoad: () => {} })
  const onError = (reason: string) => {
    throw new Error(reason)
  }
  return new SteeringTable({ locator, random: new Random(1), onError })
}

function put(image: ZoneImage, table: SteeringTable, sets: Sets): void {
  const id = image.findZone(APEX) ?? image.addZone(APEX)
  const soa = { type: RRType.SOA, ttlSeconds: 60, rdata: [composeSoa(APEX, APEX, 7)] }
  image.putRRset(id, APEX, soa)
  const sink = new ImageSink(image, id, table)
  for (const [owner, set] of sets) sink.put(wire(owner), set)
  table.refresh()
}

function build(sets: Sets): { image: ZoneImage; table: SteeringTable } {
  const image = new ZoneImage()
  const table = createTable()
  put(image, table, sets)
  image.publish()
  return { image, table }
}

/** Every name asked from everywhere, several times, with the same luck. */
function answers(image: ZoneImage, table: SteeringTable): string[] {
  const answerer = new ZoneAnswerer(image.reader(), table.steerer(new Random(99)))
  const lines: string[] = []
  for (const name of ['a', 'b', 'x', 'c.b', 'd.e.f', 'e.f', 'x.g', 'h', 'i']) {
    for (const client of [...CLIENTS, ...CLIENTS]) {
      const query = question(`${name}.k.example.`, RRType.A)
      const response = new Response()
      response.reset(query)
      const { bytes, family } = scanAddress(client)!
      query.clientAddress.set(bytes)
      query.clientFamily = family
      query.clientBits = 32
      query.clientIsEcs = true
      answerer.answer(query, response, 0)
      const records = Array.from({ length: response.count }, (_, i) => {
        const at = response.rdataOffset[i]!
        const rdata = response.rdataBytes[i]!.slice(at, at + response.rdataOctets[i]!)
        return `${response.type[i]} ${response.ttlSeconds[i]} ${Buffer.from(rdata).toString('hex')}`
      })
      lines.push(`${name} ${client} ${response.rcode} /${response.scopeBits} ${records.join(', ')}`)
    }
  }
  return lines
}

const facts = (table: SteeringTable) => ({
  options: 'the-same',
  takenMs: 1_700_000_000_000,
  policies: table.policies,
  zones: [{ zone: 'k.example.', digest: 'd', serial: 7 }],
})

async function load(path: string): Promise<{ image: ZoneImage; table: SteeringTable }> {
  const loaded = loadSnapshot(path, 'the-same')
  if (loaded?.kind !== 'loaded') throw new Error(loaded?.reason ?? 'not a snapshot')
  const table = createTable()
  table.restore(loaded.facts.policies)
  await table.built()
  return { image: loaded.image, table }
}

t.test('after a restart every answer is what it was, and then follows the records', async (t) => {
  const path = join(t.testdir({}), 'snapshot')
  let steered = 0
  const property = fc.asyncProperty(sets, sets, async (before, after) => {
    const { image, table } = build(before)
    await table.settled()
    steered += table.policies.length
    writeSnapshot({ path, image: image.capture(), facts: printFacts(facts(table)) })
    const next = await load(path)
    t.strictSame(answers(next.image, next.table), answers(image, table))

    next.image.beginReplacing()
    put(next.image, next.table, after)
    for (const { zone, owner, type } of next.image.endReplacing()) {
      next.image.removeRRset(zone, owner, type)
    }
    next.image.publish()
    await next.table.settled()
    const fresh = build(after)
    await fresh.table.settled()
    // The trie still knows the codes of before.
    const inSubstance = (lines: string[]) => lines.map((line) => line.replace(/ \/\d+ /, ' '))
    const now = inSubstance(answers(next.image, next.table))
    t.strictSame(now, inSubstance(answers(fresh.image, fresh.table)))

    writeSnapshot({ path, image: next.image.capture(), facts: printFacts(facts(next.table)) })
    const third = await load(path)
    t.strictSame(
      answers(third.image, third.table),
      answers(fresh.image, fresh.table),
      'and no more',
    )
    t.equal(next.image.stats.names, fresh.image.stats.names)
  })
  await fc.assert(property, { numRuns: runs(100), seed: 4 })
  t.ok(steered > runs(200), `${steered} policies`)
})

t.test('the same records again change nothing', (t) => {
  for (const one of fc.sample(sets, { numRuns: 20, seed: 2 })) {
    const { image, table } = build(one)
    const version = image.publish()
    image.beginReplacing()
    put(image, table, one)
    t.strictSame(image.endReplacing(), [])
    t.equal(image.publish(), version)
  }
  t.end()
})

t.test('a snapshot of other options, or whose parts do not agree, is refused', (t) => {
  const path = join(t.testdir({}), 'snapshot')
  const a = { code: scanGeoCode('DE')!, isDefault: false, weight: 1, ttlSeconds: 1 }
  const candidates = [{ ...a, rdataIndexes: [0] }]
  const rdata = [new Uint8Array([1, 2, 3, 4])]
  const served = { rdata, candidates, endpoints: [], drainedCount: 0 }
  const one = { type: RRType.A, ttlSeconds: 60, ...served }
  const { image, table } = build([['a.k.example.', one]])
  const good = facts(table)
  const zone = good.zones[0]!
  const table2: readonly [name: string, facts: string, want: RegExp][] = [
    ['other options', printFacts({ ...good, options: 'x' }), /^it was made with other options$/],
    ['not JSON', '{', /^it is damaged/],
    ['other JSON', '[1]', /^it is damaged/],
    ['no zone', printFacts({ ...good, zones: [] }), /its zones differ from its list/],
    [
      'another zone',
      printFacts({ ...good, zones: [{ ...zone, zone: 'x.' }] }),
      /its zones differ from its list/,
    ],
    ['a bad serial', printFacts({ ...good, zones: [{ ...zone, serial: 0 }] }), /^it is damaged/],
    ['no policies', printFacts({ ...good, policies: [] }), /has no zone image/],
    [
      'a policy twice',
      printFacts({ ...good, policies: [...good.policies, ...good.policies] }),
      /^it is damaged/,
    ],
  ]
  for (const [name, text, want] of table2) {
    writeSnapshot({ path, image: image.capture(), facts: text })
    const loaded = loadSnapshot(path, 'the-same')
    t.match(loaded, { kind: 'refused', reason: want }, name)
  }
  writeSnapshot({ path, image: image.capture(), facts: printFacts(good) })
  t.match(loadSnapshot(path, 'the-same'), { kind: 'loaded', facts: good })
  const octets = readFileSync(path)
  octets[octets.length >> 1]! ^= 4
  writeFileSync(path, octets)
  t.match(loadSnapshot(path, 'the-same'), { kind: 'refused', reason: /checksum/ })
  t.equal(loadSnapshot(`${path}.not`, 'the-same'), undefined)
  t.end()
})

t.test('the counters of another process are not used', async (t) => {
  const path = join(t.testdir({}), 'snapshot')
  const a = { isDefault: false, weight: 1, ttlSeconds: 1, rdataIndexes: [0] }
  const candidates = [{ ...a, code: scanGeoCode('DE')! }]
  const table = createTable()
  const image = new ZoneImage()
  put(image, table, [])
  const write = (steering: Uint32Array): void => {
    const set = { type: RRType.A, ttlSeconds: 60, rdata: [new Uint8Array([1, 2, 3, 4])], steering }
    image.putRRset(image.findZone(APEX)!, wire('a.k.example.'), set)
    image.publish()
    writeSnapshot({ path, image: image.capture(), facts: printFacts(facts(table)) })
  }
  const counters = { assign: () => 7 }
  write(table.compose(candidates, RRType.A, {}, counters)!)
  const loaded = await load(path)
  const counts = new Float64Array(8)
  const answerer = new ZoneAnswerer(loaded.image.reader(), loaded.table.steerer(undefined, counts))
  const query = question('a.k.example.', RRType.A)
  const response = new Response()
  response.reset(query)
  answerer.answer(query, response, 0)
  t.strictSame([...counts], [1, 0, 0, 0, 0, 0, 0, 0])

  // The counter of the first tier is the head of the second one.
  const tiers = [1 | COUNTED_TIER, 1, 10, 1, 1, 10]
  const forged = Uint32Array.from([0, 2, 4, 7, ...tiers, 60, 1, 0])
  t.ok(isEncodedSteering(forged, 0, forged.length, 1, [1]), 'valid, as long as nothing is changed')
  write(forged)
  t.match(loadSnapshot(path, 'the-same'), { kind: 'refused', reason: /has no zone image/ })
})

t.test('facts come back, or not at all', (t) => {
  const good = facts(build([]).table)
  t.strictSame(scanFacts(printFacts(good)), good)
  const property = fc.property(fc.jsonValue(), (json) => {
    const scanned = scanFacts(JSON.stringify(json))
    if (scanned !== undefined) throw new Error(JSON.stringify(json))
  })
  fc.assert(property, { numRuns: runs(300), seed: 1 })
  t.end()
})

t.test('steering words of another make are found out', (t) => {
  const random = new Random(8)
  for (const one of fc.sample(set, { numRuns: runs(200), seed: 6 })) {
    const table = createTable()
    const isCounted = random.below(2) === 0
    const counters = isCounted ? { assign: () => random.below(9) } : undefined
    const words = table.compose(one.candidates, one.type, one, counters)
    if (words === undefined) continue
    const counts = table.policies.map((codes) => codes.length)
    const isGood = (w: Uint32Array) => isEncodedSteering(w, 0, w.length, one.rdata.length, counts)
    t.ok(isGood(words))
    t.notOk(isGood(words.subarray(0, words.length - 1)), 'one word short')
    for (let i = 0; i < 50; i++) {
      const changed = new Uint32Array(words)
      const at = random.below(words.length)
      changed[at] = random.below(3) === 0 ? 0xffffffff : random.below(40)
      // Another number of answers.
      if (random.below(3) === 0) changed[at] = words[at]! ^ (random.below(256) << ANSWERS_SHIFT)
      if (isGood(changed)) assertDrawable(changed, one.rdata.length)
    }
  }
  t.end()
})

/** Follows every offset: none may leave the set. Draws as many answers as there are. */
function assertDrawable(words: Uint32Array, rdataCount: number): void {
  for (let tier = 0; tier < words[1]!; tier++) {
    const at = words[2 + tier]!
    const answers = words[at]! >>> ANSWERS_SHIFT
    const count = words[at]! & OUTCOME_COUNT_MASK
    if (answers > 1) assertDistinct(words, at, count, answers)
    for (let i = 0; i < count; i++) {
      const outcome = words[at + 2 + i * 2]!
      for (let k = 0; k < (words[outcome + 1]! & RDATA_COUNT_MASK); k++) {
        const index = words[outcome + 2 + k]
        if (index === undefined || index >= rdataCount) throw new Error(`index ${index}`)
      }
    }
  }
}

const picks = new Picks()

function assertDistinct(words: Uint32Array, tier: number, count: number, answers: number): void {
  const choice = new Choice()
  picks.count = answers
  picks.draw(words, tier, count, new Random(answers))
  picks.fill(words, 0, tier, choice)
  const drawn = new Set(picks.index.subarray(0, answers))
  const rdata = new Set(choice.index.subarray(0, choice.count))
  const isWithin = [...drawn].every((outcome) => outcome < count)
  if (!isWithin || drawn.size < answers || rdata.size < choice.count) throw new Error('repeated')
}
