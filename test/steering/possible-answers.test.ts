import fc from 'fast-check'
import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { Query } from '../../src/dns/message/query.ts'
import { Response } from '../../src/dns/message/response.ts'
import {
  ANSWERS_SIGNED_MAX,
  countSelections,
  numberOfSelection,
  selections,
} from '../../src/steering/answer-numbers.ts'
import { decodeSteering, hasEmptyOutcome } from '../../src/steering/decode.ts'
import { encodeSteering, NO_POLICY } from '../../src/steering/encode.ts'
import {
  type PossibleAnswer,
  possibleAnswers,
  signingProblem,
} from '../../src/steering/possible-answers.ts'
import { STICKY_DEFAULT } from '../../src/steering/rules.ts'
import { GeoWeightSteerer } from '../../src/steering/steerer.ts'
import type { Tier } from '../../src/steering/tiers.ts'
import { isEncodedSteering } from '../../src/steering/verify-encoded.ts'
import { Choice } from '../../src/zone/image/types.ts'
import { runs } from '../support/runs.ts'

const RDATA = 8
const KEYS = 3

const outcome = fc.record({
  weight: fc.constantFrom(1, 1, 7, 1_000_000),
  ttlSeconds: fc.constantFrom(30, 60),
  rdataIndexes: fc.uniqueArray(fc.nat(RDATA - 1), { minLength: 1, maxLength: 3 }),
  seed: fc.tuple(fc.nat(), fc.nat()),
})
const empty: Tier = [{ weight: 1, ttlSeconds: 60, rdataIndexes: [] }]
const tier = fc.oneof(
  { weight: 9, arbitrary: fc.array(outcome, { minLength: 1, maxLength: 7 }) },
  { weight: 1, arbitrary: fc.constant(empty) },
)
const rules = fc.record({
  answers: fc.constantFrom(undefined, 1, 2, 3, 6),
  sticky: fc.constantFrom(undefined, STICKY_DEFAULT),
})
const steered = fc.record({
  tiers: fc.array(tier, { minLength: KEYS + 1, maxLength: KEYS + 1 }),
  rules,
  isCounted: fc.boolean(),
})

/** Snapshots in which policy 0 gives every client the tier `tier`. */
function snapshotsOf(policyTier: number) {
  const trie = { classCount: 1, codesOf: [[]], depth: 0, lookup: () => 0, data: {} as never }
  const tierOf = Uint16Array.of(policyTier)
  return { snapshot: { trie, tierOf, policyCount: 1 }, catchUp: () => {} }
}

function encode({
  tiers,
  rules,
  isCounted,
}: typeof steered extends fc.Arbitrary<infer S> ? S : never) {
  const counters = isCounted ? tiers.map((one) => one.map((_, i) => i)) : undefined
  return encodeSteering(0, tiers, rules, counters)
}

const print = ({ ttlSeconds, rdataIndexes }: PossibleAnswer): string => {
  return `${ttlSeconds} ${[...rdataIndexes].sort()}`
}

t.test('the number of each choice is that of its answer, and every answer is chosen', (t) => {
  const query = new Query()
  const response = new Response()
  const choice = new Choice()
  const property = fc.property(steered, fc.nat(), (set, seed) => {
    const words = encode(set)
    if (!isEncodedSteering(words, 0, words.length, RDATA, [KEYS])) throw new Error('not valid')
    const possible = possibleAnswers(words)!
    const hasEmpty = possible.answers.some((one) => one.rdataIndexes.length === 0)
    if (hasEmptyOutcome(words, 0) !== hasEmpty) throw new Error('hasEmptyOutcome is wrong')
    const random = new Random(seed)
    for (const [number] of set.tiers.entries()) {
      const steerer = new GeoWeightSteerer(snapshotsOf(number), random, new Float64Array(10))
      for (let i = 0; i < 20; i++) {
        query.dnssecOk = true
        query.clientFamily = 1
        for (let octet = 0; octet < 4; octet++) query.clientAddress[octet] = random.below(256)
        response.reset(query)
        steerer.choose(query, response, words, 0, choice)
        const rdataIndexes = [...choice.index.subarray(0, choice.count)]
        const chosen = print({ ttlSeconds: choice.ttlSeconds, rdataIndexes })
        if (chosen !== print(possible.answers[choice.answer]!)) throw new Error(chosen)
      }
    }
    const { rdataIndexes } = possible.answers[possible.default]!
    const isEmpty = possible.answers.every((one) => one.rdataIndexes.length === 0)
    t.equal(rdataIndexes.length === 0, isEmpty, 'the default answer has records if any has')
  })
  fc.assert(property, { numRuns: runs(400) })
  t.end()
})

t.test('selections have the numbers 0, 1, 2, ... in order', async (t) => {
  const indexes = new Uint16Array(64)
  for (const [outcomes, picks] of [
    [2, 2],
    [5, 2],
    [7, 6],
    [91, 2],
    [65, 64],
    [30, 3],
    [14, 7],
  ] as const) {
    let number = 0
    for (const chosen of selections(outcomes, picks)) {
      indexes.set(chosen)
      if (numberOfSelection(indexes, picks) !== number) t.fail(`${outcomes} ${chosen}`)
      number++
    }
    t.equal(number, countSelections(outcomes, picks))
  }
  t.equal(countSelections(92, 2), Number.POSITIVE_INFINITY)
  t.equal(countSelections(4096, 64), Number.POSITIVE_INFINITY)
})

const plain = (count: number): Tier => {
  return Array.from({ length: count }, (_, i) => ({
    weight: count - i,
    ttlSeconds: 60,
    rdataIndexes: [i],
  }))
}

t.test('a set with too many answers is encoded, and its choices have no number', async (t) => {
  const choice = new Choice()
  const query = new Query()
  query.dnssecOk = true
  for (const [outcomes, answers, count] of [
    [91, 2, 4095],
    [92, 2, undefined],
    [4096, 1, ANSWERS_SIGNED_MAX],
    [4096, 64, undefined],
  ] as const) {
    const words = encodeSteering(NO_POLICY, [plain(outcomes)], { answers })
    t.ok(isEncodedSteering(words, 0, words.length, outcomes, []))
    t.equal(possibleAnswers(words)?.answers.length, count)
    t.match(signingProblem(words) ?? 'none', count === undefined ? /more than 4096/ : /^none$/)
    const steerer = new GeoWeightSteerer(snapshotsOf(0), new Random(1))
    steerer.choose(query, new Response(), words, 0, choice)
    t.equal(choice.count, answers)
    t.equal(choice.answer === -1, count === undefined)
  }
  const two = encodeSteering(0, [plain(91), plain(3)], { answers: 2 })
  t.equal(possibleAnswers(two), undefined, 'the limit is that of the set')
})

t.test('the default answer is that of other clients, with the greatest weights', async (t) => {
  const one = (rdata: number[], weight = 1) => ({ weight, ttlSeconds: 60, rdataIndexes: rdata })
  const cases: { tiers: Tier[]; answers?: number; want: number[] }[] = [
    { tiers: [[one([0])], [one([1], 2), one([2, 3], 5), one([4], 5)]], want: [2, 3] },
    { tiers: [[one([0])], [one([1], 2), one([2], 5), one([4], 9)]], answers: 2, want: [2, 4] },
    { tiers: [[one([0])], [one([])]], want: [0] },
    { tiers: [[one([])], [one([])]], want: [] },
    { tiers: [[one([3, 1])]], answers: 5, want: [3, 1] },
  ]
  for (const { tiers, answers, want } of cases) {
    const words = encodeSteering(0, tiers, { answers })
    const { answers: all, default: number } = possibleAnswers(words)!
    t.strictSame(all[number]!.rdataIndexes, want)
  }
})

t.test('equal outcomes are one answer', async (t) => {
  const same = { weight: 1, ttlSeconds: 60, rdataIndexes: [1] }
  const words = encodeSteering(0, [[same], [same, { ...same, weight: 3 }], [same]])
  t.equal(possibleAnswers(words)!.answers.length, 1)
  t.equal(decodeSteering(words, 0).tiers.length, 3)
})

t.test('words with other numbers are invalid', (t) => {
  const property = fc.property(steered, fc.nat(), fc.nat(), (set, at, by) => {
    const words = encode(set)
    words[at % words.length]! += by % 5 === 0 ? 0x10000 * (by % 7) : by % 7
    if (!isEncodedSteering(words, 0, words.length, RDATA, [KEYS])) return
    const { answers } = possibleAnswers(words)!
    t.ok(answers.every((answer) => answer !== undefined && print(answer) !== ''))
  })
  fc.assert(property, { numRuns: runs(1000) })
  t.end()
})
