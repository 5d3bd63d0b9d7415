import fc from 'fast-check'
import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { EdeCode, RRType } from '../../src/dns/iana/index.ts'
import { Query } from '../../src/dns/message/query.ts'
import { Response } from '../../src/dns/message/response.ts'
import { possibleAnswers } from '../../src/steering/possible-answers.ts'
import { STICKY_DEFAULT } from '../../src/steering/rules.ts'
import { stickySeed } from '../../src/steering/sticky.ts'
import { isEncodedSteering } from '../../src/steering/verify-encoded.ts'
import { Choice } from '../../src/zone/image/types.ts'
import { runs } from '../support/runs.ts'
import { wire } from '../support/zone-names.ts'
import { candidates, createTable } from './stage.ts'

const OWNER = wire('k.example.com.')

const endpoints = fc.array(
  fc.record(
    { weight: fc.integer({ min: 0, max: 3 }), isStale: fc.boolean() },
    { requiredKeys: ['isStale'] },
  ),
  { minLength: 1, maxLength: 70 },
)
const rules = fc.record({
  answers: fc.option(fc.integer({ min: 1, max: 64 }), { nil: undefined }),
  isSticky: fc.boolean(),
  isCounted: fc.boolean(),
  ignoresHealth: fc.boolean(),
})

t.test('a reply notes stale endpoints if and only if it has some', async (t) => {
  await fc.assert(
    fc.asyncProperty(endpoints, rules, async (members, { isSticky, isCounted, ...more }) => {
      const set = candidates(members).map((one, i) => {
        const { isStale } = members[i]!
        return isSticky ? { ...one, isStale, seed: stickySeed(OWNER, `${i}`) } : { ...one, isStale }
      })
      const sticky = isSticky ? STICKY_DEFAULT : undefined
      const counters = isCounted ? { assign: () => 2 } : undefined
      const compose = (all: typeof set) => {
        const { table } = createTable()
        const words = table.compose(all, RRType.A, { sticky, ...more }, counters)
        return { table, words }
      }
      const { table, words } = compose(set)
      const fresh = compose(set.map((one) => ({ ...one, isStale: false }))).words
      if (words === undefined) return members.every(({ isStale }) => !isStale)
      const isValid = isEncodedSteering(words, 0, words.length, set.length, [])
      const isSame = fresh === undefined || sameAnswers(words, fresh)
      const [query, response, choice] = [new Query(), new Response(), new Choice()]
      const steerer = table.steerer(new Random(1))
      for (let i = 0; i < 10; i++) {
        query.clientAddress[0] = i
        response.reset(query)
        steerer.choose(query, response, words, 0, choice)
        const chosen = [...choice.index.subarray(0, choice.count)]
        const stale = chosen.some((index) => members[index]!.isStale)
        const want = more.ignoresHealth ? EdeCode.OTHER : stale ? EdeCode.STALE_ANSWER : -1
        if (response.edeCode !== want) return false
      }
      return isValid && isSame
    }),
    { numRuns: runs(300) },
  )
  t.end()
})

/** The same answers have the same numbers, so that signatures stay. */
function sameAnswers(a: Uint32Array, b: Uint32Array): boolean {
  return JSON.stringify(possibleAnswers(a)) === JSON.stringify(possibleAnswers(b))
}
