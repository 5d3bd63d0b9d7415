import fc from 'fast-check'
import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { Query } from '../../src/dns/message/query.ts'
import { Response } from '../../src/dns/message/response.ts'
import type { Candidate } from '../../src/steering/candidate.ts'
import { decodeSteering } from '../../src/steering/decode.ts'
import { TIER_OFFSETS_WORD } from '../../src/steering/encode.ts'
import { ANSWERS_MAX, type SetRules, STICKY_DEFAULT } from '../../src/steering/rules.ts'
import { stickySeed } from '../../src/steering/sticky.ts'
import { orderSticky } from '../../src/steering/sticky-order.ts'
import { isEncodedSteering } from '../../src/steering/verify-encoded.ts'
import { Choice } from '../../src/zone/image/types.ts'
import { chiSquare } from '../support/chi-square.ts'
import { runs } from '../support/runs.ts'
import { wire } from '../support/zone-names.ts'
import { CLIENTS, candidates, choice, choose, createTable, response } from './stage.ts'

const OWNER = wire('k.example.')
const DRAWS = 20_000

/** Endpoints of one target each, with seeds. */
function weighted(weights: readonly (number | undefined)[], names = 'abcdefgh'): Candidate[] {
  return weights.map((weight, i) => ({
    code: undefined,
    isDefault: false,
    weight,
    ttlSeconds: 60,
    rdataIndexes: [i],
    seed: stickySeed(OWNER, names[i]!),
  }))
}

/** Returns a function from a client to the endpoints that it gets, in order. */
function chooser(set: readonly Candidate[], rules: SetRules, seed = 1) {
  const { table } = createTable(undefined)
  const words = table.compose(set, RRType.A, rules)!
  const steerer = table.steerer(new Random(seed))
  const query = new Query()
  const reply = new Response()
  const chosen = new Choice()
  const of = (octets: readonly number[], isEcs = false): number[] => {
    query.clientAddress.fill(0)
    query.clientAddress.set(octets)
    query.clientFamily = octets.length === 4 ? 1 : 2
    query.clientBits = octets.length * 8
    query.clientIsEcs = isEcs
    reply.reset(query)
    steerer.choose(query, reply, words, 0, chosen)
    return [...chosen.index.subarray(0, chosen.count)]
  }
  return { of, words, query, reply, chosen }
}

/** The probability of each ordered sample without replacement of that many endpoints. */
function sampleShares(weights: readonly number[], answers: number): Map<string, number> {
  const shares = new Map<string, number>()
  const extend = (sample: readonly number[], share: number): void => {
    if (sample.length === answers) return void shares.set(sample.join(), share)
    const left = weights.map((weight, i) => (sample.includes(i) ? 0 : weight))
    const sum = left.reduce((a, b) => a + b, 0)
    for (const [i, weight] of left.entries()) {
      if (weight > 0) extend([...sample, i], (share * weight) / sum)
    }
  }
  extend([], 1)
  return shares
}

/** A bound on χ² that chance exceeds in less than one of ten thousand runs. */
function chiLimit(categories: number): number {
  const degrees = categories - 1
  return degrees + 4 * Math.sqrt(2 * degrees) + 8
}

t.test('samples have the probabilities of draws without replacement', async (t) => {
  const table: { weights: readonly (number | undefined)[]; answers: number }[] = [
    { weights: [5, 3, 2, 1], answers: 2 },
    { weights: [5, 3, 2, 1], answers: 3 },
    { weights: [100, 80, 60, 40, 30, 20, 10, 5], answers: 2 },
    { weights: [1_000_000, 10_000, 10_000], answers: 2 },
    { weights: [3, 2, 1], answers: 8 },
    { weights: [undefined, undefined, undefined, undefined, undefined], answers: 2 },
    { weights: [120, undefined, 60], answers: 2 },
  ]
  const clients = new Random(3)
  for (const { weights, answers } of table) {
    for (const sticky of [undefined, STICKY_DEFAULT]) {
      const { of } = chooser(weighted(weights), { answers, sticky })
      const isWeighted = weights.some((weight) => weight !== undefined)
      const full = weights.map((weight) => weight ?? (isWeighted ? 120 : 1))
      const shares = sampleShares(full, Math.min(answers, full.length))
      const counts = new Map([...shares.keys()].map((sample) => [sample, 0]))
      for (let i = 0; i < DRAWS; i++) {
        const sample = of([10, clients.below(256), clients.below(256), 0]).join()
        if (!counts.has(sample)) t.fail(`${sample} of ${full}`)
        counts.set(sample, (counts.get(sample) ?? 0) + 1)
      }
      const name = `${full}, answers ${answers}, ${sticky === undefined ? 'drawn' : 'sticky'}`
      // Samples that chance would rarely give are counted together.
      const isRare = (sample: string): boolean => shares.get(sample)! * DRAWS < 10
      const rare = [...shares.keys()].filter(isRare)
      const common = [...shares.keys()].filter((sample) => !isRare(sample))
      const add = (of: ReadonlyMap<string, number>, sum: number, sample: string): number => {
        return sum + of.get(sample)!
      }
      const observed = common.map((sample) => counts.get(sample)!)
      const expected = common.map((sample) => shares.get(sample)!)
      if (rare.length > 0) {
        observed.push(rare.reduce((sum, sample) => add(counts, sum, sample), 0))
        expected.push(rare.reduce((sum, sample) => add(shares, sum, sample), 0))
      }
      // The few samples of equal clients in sticky sets are not independent.
      const limit = chiLimit(observed.length) * (sticky === undefined ? 1 : 2)
      const got = chiSquare(observed, expected)
      t.ok(got < limit, `${name}: ${got} of ${limit}`)
    }
  }
})

const someCandidates = fc
  .array(
    fc.record({
      weight: fc.option(fc.constantFrom(0, 1, 7, 120, 1_000_000), { nil: undefined }),
      ttlSeconds: fc.constantFrom(30, 60, 300),
      rdataIndexes: fc.uniqueArray(fc.nat(9), { minLength: 1, maxLength: 3 }),
    }),
    { minLength: 1, maxLength: 12 },
  )
  .map((endpoints) =>
    endpoints.map((endpoint, i): Candidate => {
      const seed = stickySeed(OWNER, `${i % 7}`)
      return { code: undefined, isDefault: false, seed, ...endpoint }
    }),
  )

/** What the rules say of one answer: the endpoints in order, of which a client gets the first ones. */
function expected(set: readonly Candidate[], answers: number, draws: Random | readonly number[]) {
  const isWeighted = set.some(({ weight }) => weight !== undefined)
  if (!isWeighted && set.length <= answers) return set.map((one) => one)
  const full = set.map((one) => ({ one, weight: one.weight ?? (isWeighted ? 120 : 1) }))
  const positive = full.filter(({ weight }) => weight > 0)
  const active = positive.length > 0 ? positive : full.map((one) => ({ ...one, weight: 1 }))
  if (!(draws instanceof Random)) return draws.map((i) => active[i]!.one)
  const left = [...active]
  return active.slice(0, answers).map(() => {
    const sum = left.reduce((total, { weight }) => total + weight, 0)
    let drawn = active.length === 1 ? 0 : draws.below(sum)
    const at = left.findIndex(({ weight }) => {
      drawn -= weight
      return drawn < 0
    })
    return left.splice(at, 1)[0]!.one
  })
}

t.test('an answer has up to that many endpoints, each once, and no standby beside others', (t) => {
  const client = [10, 1, 2, 3]
  const property = fc.property(
    someCandidates,
    fc.integer({ min: 1, max: 14 }),
    fc.boolean(),
    fc.nat(),
    (set, answers, isSticky, seed) => {
      const sticky = isSticky ? STICKY_DEFAULT : undefined
      const { table } = createTable(undefined)
      const words = table.compose(set, RRType.A, { answers, sticky })
      if (words === undefined) {
        return set.every(({ weight }) => weight === undefined) && set.length <= answers
      }
      if (!isEncodedSteering(words, 0, words.length, 10, [])) throw new Error('not valid')
      const { of, query, chosen } = chooser(set, { answers, sticky }, seed)
      const got = of(client)
      const order = orderSticky(words, words[TIER_OFFSETS_WORD]!, query)
      const picks = expected(set, answers, order?.outcomes.slice(0, answers) ?? new Random(seed))
      const rdata = [...new Set(picks.flatMap(({ rdataIndexes }) => rdataIndexes))]
      // A tier that is served whole has its own order.
      const isWhole = decodeSteering(words, 0).tiers[0]!.length === 1
      if (isWhole) for (const list of [got, rdata]) list.sort()
      const ttlSeconds = Math.min(...picks.map((pick) => pick.ttlSeconds))
      return got.join() === rdata.join() && chosen.ttlSeconds === ttlSeconds
    },
  )
  fc.assert(property, { numRuns: runs(3000), seed: 32 })
  t.end()
})

t.test('the tier of the client decides first', async (t) => {
  const { table } = createTable()
  const endpoints = [
    ...[5, 3, 2, 0].map((weight) => ({ code: 'GEO-NA', weight })),
    ...[0, 0].map((weight) => ({ code: 'US', weight })),
    ...[1, 1].map((weight) => ({ code: '*', weight })),
  ]
  const words = table.compose(candidates(endpoints), RRType.A, { answers: 3 })!
  const one = table.compose(candidates(endpoints), RRType.A)!
  await table.built()
  const cases = [
    ['continent', [0, 1, 2]],
    // A tier of standbys is passed over, and never fills up another one.
    ['country', [0, 1, 2]],
    // A tier with fewer endpoints is not filled up from another one.
    ['nowhere', [6, 7]],
  ] as const
  for (const [client, want] of cases) {
    choose(table, one, CLIENTS[client], true)
    const scope = response.scopeBits
    for (let i = 0; i < 50; i++) {
      const got = choose(table, words, CLIENTS[client], true).sort()
      if (got.join() !== want.join()) t.fail(`${client}: ${got}`)
    }
    t.equal(response.scopeBits, scope, 'the scope is that of the class')
  }
  t.strictSame(decodeSteering(words, 0).answers, [3, 2])
})

t.test('a name has one CNAME whatever the number of answers', async (t) => {
  const { table } = createTable(undefined)
  const set = weighted([3, 2, 1])
  const words = table.compose(set, RRType.CNAME, { answers: 3 })!
  t.strictSame(words, table.compose(set, RRType.CNAME))
  t.equal(choose(table, words, '10.0.0.1').length, 1)
})

t.test('sets of other types without weights are whole', async (t) => {
  const { table } = createTable(undefined)
  for (const type of [RRType.NS, RRType.MX, RRType.TXT, RRType.CAA]) {
    t.equal(table.compose(candidates([{}, {}, {}]), type, { answers: 1 }), undefined)
  }
  const drawn = table.compose(weighted([3, 2, 1]), RRType.TXT, { answers: 2 })!
  t.equal(choose(table, drawn, '10.0.0.1').length, 2, 'with weights, several are drawn')
  const geo = [{ code: 'US' }, { code: '*' }, { code: '*' }]
  const [address, text] = [RRType.A, RRType.TXT].map((type) => {
    return table.compose(candidates(geo), type, { answers: 1 })!
  })
  t.equal(choose(table, address!, '10.0.0.1').length, 1)
  t.equal(choose(table, text!, '10.0.0.1').length, 2, 'the cache keeps the types apart')
})

t.test('sets that need no choice', async (t) => {
  const { table } = createTable(undefined)
  const plain = candidates([{}, {}, {}])
  t.equal(table.compose(plain, RRType.A, { answers: 3 }), undefined)
  const words = table.compose(plain, RRType.A, { answers: 2 })!
  t.equal(choose(table, words, '10.0.0.1').length, 2)
  t.equal(table.compose(candidates([{ rdata: [0, 1, 2] }]), RRType.A, { answers: 1 }), undefined)
  t.strictSame(
    table.compose(plain, RRType.A, { answers: 1 }),
    table.compose(candidates([{ weight: 1 }, { weight: 1 }, { weight: 1 }]), RRType.A),
    'one of equal endpoints',
  )
  const [one, two] = [1, 2].map((answers) => table.compose(plain, RRType.A, { answers }))
  t.notSame(one, two, 'cached encodings of other numbers are others')
})

t.test('an endpoint that goes is replaced, and the others are kept in order', async (t) => {
  const names = 'abcdefgh'
  const weights = [100, 80, 60, 40, 30, 20, 10, 5]
  const rules = { answers: 3, sticky: STICKY_DEFAULT }
  const before = chooser(weighted(weights, names), rules)
  const clients = new Random(4)
  for (let gone = 0; gone < names.length; gone++) {
    const kept = [...names].filter((_, i) => i !== gone)
    const keptWeights = weights.filter((_, i) => i !== gone)
    const after = chooser(weighted(keptWeights, kept.join('')), rules)
    for (let i = 0; i < 2000; i++) {
      const client = [clients.below(256), clients.below(256), clients.below(256), 1]
      const was = before.of(client).map((index) => names[index]!)
      const now = after.of(client).map((index) => kept[index]!)
      const stay = was.filter((name) => name !== names[gone])
      const isKept = now.slice(0, stay.length).join() === stay.join()
      if (!isKept || now.length !== 3) t.fail(`${was} without ${names[gone]}: ${now}`)
    }
  }
})

t.test('the first of several sticky endpoints is that of a sticky set of one', async (t) => {
  const set = weighted([100, 80, 60, 40, 30])
  const one = chooser(set, { sticky: STICKY_DEFAULT })
  const several = chooser(set, { sticky: STICKY_DEFAULT, answers: 3 })
  const clients = new Random(5)
  for (let i = 0; i < 3000; i++) {
    const client = Array.from({ length: i % 2 === 0 ? 4 : 16 }, () => clients.below(256))
    if (several.of(client, true)[0] !== one.of(client, true)[0]) t.fail(client.join('.'))
    if (several.reply.scopeBits !== one.reply.scopeBits) t.fail('scope')
  }
  t.equal(several.reply.scopeBits, 56)
})

t.test('the first endpoint counts', async (t) => {
  const { table } = createTable(undefined)
  const counters = {
    assign: ({ members }: { members: readonly Candidate[] }) => members[0]!.rdataIndexes[0]! + 2,
  }
  const words = table.compose(weighted([3, 1, 1]), RRType.A, { answers: 2 }, counters)!
  const counts = new Float64Array(5)
  const steerer = table.steerer(new Random(6), counts)
  const query = new Query()
  const want = new Float64Array(5)
  for (let i = 0; i < 1000; i++) {
    steerer.choose(query, response, words, 0, choice)
    want[choice.index[0]! + 2]! += 1
  }
  t.strictSame([...counts], [...want])
})

t.test('the largest answers, with targets in common', async (t) => {
  const set = Array.from({ length: 80 }, (_, i): Candidate => {
    const rdataIndexes = Array.from({ length: 50 }, (_, k) => (i * 40 + k) % 3200)
    return { code: undefined, isDefault: false, weight: 1 + i, ttlSeconds: 60, rdataIndexes }
  })
  const { of } = chooser(set, { answers: ANSWERS_MAX })
  for (let i = 0; i < 100; i++) {
    const got = of([10, 0, 0, 1])
    if (new Set(got).size !== got.length) t.fail('a target is there twice')
    t.ok(got.length >= ANSWERS_MAX * 40 && got.length <= 3200)
  }
})

t.test('a set with more addresses than a choice holds', async (t) => {
  for (const [endpoints, targets, answers, want] of [
    [64, 64, 64, 4096],
    [64, 65, 64, 65],
    [64, 256, 2, 256],
  ] as const) {
    const plain = Array.from({ length: endpoints }, () => 1)
    const set = weighted(plain, 'x'.repeat(endpoints)).map((one, i) => {
      return { ...one, rdataIndexes: Array.from({ length: targets }, (_, j) => i * targets + j) }
    })
    const { of, words } = chooser(set, { answers })
    const found = of([192, 0, 2, 1])
    t.equal(found.length, want, `${endpoints} endpoints of ${targets} addresses`)
    t.equal(new Set(found).size, want)
    t.ok(isEncodedSteering(words, 0, words.length, endpoints * targets, []), 'a snapshot holds it')
  }
})
