import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { Query } from '../../src/dns/message/query.ts'
import { Response } from '../../src/dns/message/response.ts'
import { decodeSteering } from '../../src/steering/decode.ts'
import {
  type CountedOutcome,
  NODATA_COUNTER,
  OTHER_COUNTER,
  OTHER_COUNTERS,
} from '../../src/steering/outcome-counters.ts'
import { STICKY_DEFAULT } from '../../src/steering/rules.ts'
import { stickySeed } from '../../src/steering/sticky.ts'
import { isEncodedSteering, replaceCounters } from '../../src/steering/verify-encoded.ts'
import { Choice } from '../../src/zone/image/types.ts'
import { wire } from '../support/zone-names.ts'
import { candidates, createTable, type Endpoint } from './stage.ts'

const OWNER = wire('k.example.com.')
const SITES: Endpoint[] = [
  { weight: 3, code: 'GEO-NA' },
  { weight: 1, code: 'GEO-NA' },
  { weight: 0, code: 'GEO-NA' },
  { weight: 0, code: 'US' },
  { isDefault: true },
]

/** Numbers outcomes in the order in which they are assigned. */
class Numbers {
  readonly outcomes: CountedOutcome[] = []

  assign(outcome: CountedOutcome): number {
    return this.outcomes.push(outcome) + 1
  }

  print(): string[] {
    return this.outcomes.map(({ tier, members, share }) => {
      return `${tier} ${members.flatMap((member) => member.rdataIndexes).join()} ${share}`
    })
  }
}

for (const isSticky of [false, true]) {
  t.test(`a counted set is chosen as if it was not, sticky: ${isSticky}`, async (t) => {
    const { table } = createTable()
    const set = candidates(SITES).map((one, i) => {
      return isSticky ? { ...one, seed: stickySeed(OWNER, `${i}`) } : one
    })
    const sticky = isSticky ? STICKY_DEFAULT : undefined
    const plain = table.compose(set, RRType.A, { sticky })!
    const numbers = new Numbers()
    const counted = table.compose(set, RRType.A, { sticky }, numbers)!
    await table.built()
    // The tier of US is one of standbys, so its clients get that of the continent.
    t.strictSame(numbers.print(), ['GEO-NA 0 0.75', 'GEO-NA 1 0.25', '* 4 1'])
    t.strictSame(decodeSteering(counted, 0), decodeSteering(plain, 0))
    const codeCounts = table.policies.map((codes) => codes.length)
    t.ok(isEncodedSteering(counted, 0, counted.length, 5, codeCounts))
    t.notOk(isEncodedSteering(counted.subarray(0, -4), 0, counted.length - 4, 5, codeCounts))

    const counts = new Float64Array(5)
    const steerers = [undefined, counts].map((own) => table.steerer(new Random(7), own))
    const query = new Query()
    const response = new Response()
    const choice = new Choice()
    query.clientFamily = 1
    query.clientBits = 32
    const want = new Float64Array(5)
    for (let i = 0; i < 1000; i++) {
      query.clientAddress.set([10, 1 + (i % 7), i & 255, 1])
      const picked = [plain, counted].map((words, k) => {
        steerers[k]!.choose(query, response, words, 0, choice)
        return choice.index[0]!
      })
      t.equal(picked[0], picked[1])
      want[{ 0: 2, 1: 3, 4: 4 }[picked[1]!]!]! += 1
    }
    t.strictSame([...counts], [...want])
    t.ok(counts[2]! > 300 && counts[3]! > 50, 'both endpoints of the continent served')

    t.ok(replaceCounters(counted, 0, OTHER_COUNTER))
    t.notOk(replaceCounters(counted, 0, OTHER_COUNTER))
    t.notOk(replaceCounters(plain, 0, OTHER_COUNTER))
    t.strictSame(decodeSteering(counted, 0), decodeSteering(plain, 0))
    for (let i = 0; i < 10; i++) steerers[1]!.choose(query, response, counted, 0, choice)
    t.equal(counts[OTHER_COUNTER], 10)
    table.close()
  })
}

t.test('sets without counters of their own share their encoding', async (t) => {
  const { table } = createTable()
  const compose = () => table.compose(candidates(SITES), RRType.A, {}, OTHER_COUNTERS)
  t.equal(compose(), compose())
  t.not(compose(), table.compose(candidates(SITES), RRType.A), 'apart from sets without counters')
  table.close()
})

t.test('a set without a choice is encoded if it is counted', async (t) => {
  const { table } = createTable()
  const one = candidates([{ rdata: [0, 1] }])
  t.equal(table.compose(one, RRType.A), undefined)
  const numbers = new Numbers()
  t.ok(table.compose(one, RRType.A, {}, numbers))
  t.strictSame(numbers.print(), [' 0,1 1'])
  table.close()
})

t.test('the last tier of a failover list, and NODATA', async (t) => {
  const { table } = createTable()
  const [a, b] = candidates([{ code: 'US' }, { weight: 0 }])
  const group = (name: string, isIdentifier: boolean, ...members: (typeof a)[]) => {
    return { name, isIdentifier, members: members.map((member) => member!) }
  }
  const lists = [
    { code: a!.code, groups: [group('US', false), group('x', true)] },
    { code: undefined, groups: [group('*', false), group('b', true, b)] },
  ]
  const numbers = new Numbers()
  const failover = { lists, exhausted: [] }
  const words = table.compose([a!, b!], RRType.A, { failover }, numbers)!
  t.strictSame(numbers.print(), ['* 1 1'])
  await table.built()
  const counts = new Float64Array(3)
  const steerer = table.steerer(undefined, counts)
  const query = new Query()
  query.clientFamily = 1
  query.clientBits = 32
  query.clientAddress.set([10, 2, 0, 1])
  steerer.choose(query, new Response(), words, 0, new Choice())
  t.equal(counts[NODATA_COUNTER], 1)
  table.close()
})
