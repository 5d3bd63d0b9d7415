import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { Query } from '../../src/dns/message/query.ts'
import { printAddress, scanAddress } from '../../src/dns/text/address.ts'
import { encodeSteering, NO_POLICY, TIER_OFFSETS_WORD } from '../../src/steering/encode.ts'
import { STICKY_DEFAULT } from '../../src/steering/rules.ts'
import { pickSticky, stickySeed } from '../../src/steering/sticky.ts'
import { orderSticky } from '../../src/steering/sticky-order.ts'
import type { TierOutcome } from '../../src/steering/tiers.ts'
import { wire } from '../support/zone-names.ts'

const OWNER = wire('k.example.')
/** Few weights, so that many are equal. */
const WEIGHTS = [1, 1, 2, 60, 120, 1_000_000]

function randomTier(random: Random, count: number): TierOutcome[] {
  return Array.from({ length: count }, (_, i) => ({
    weight: WEIGHTS[random.below(WEIGHTS.length)]!,
    ttlSeconds: 60,
    rdataIndexes: [i],
    // Some endpoints have equal seeds, so that their scores can be equal.
    seed: stickySeed(OWNER, `${random.below(2) === 0 ? random.next32() : random.below(3)}`),
  }))
}

function queryFrom(text: string): Query {
  const { family, bytes } = scanAddress(text)!
  const query = new Query()
  query.clientAddress.set(bytes)
  query.clientFamily = family
  query.clientBits = bytes.length * 8
  return query
}

function encode(tier: readonly TierOutcome[]): { words: Uint32Array; at: number } {
  const words = encodeSteering(NO_POLICY, [tier], { sticky: STICKY_DEFAULT })
  return { words, at: words[TIER_OFFSETS_WORD]! }
}

/** The winners of a tier, each found by the function that serves after those before it have left. */
function removeWinners(tier: readonly TierOutcome[], query: Query): number[] {
  const left = tier.map((_, i) => i)
  const order: number[] = []
  while (left.length > 1) {
    const { words, at } = encode(left.map((i) => tier[i]!))
    order.push(...left.splice(pickSticky(words, at, left.length, query), 1))
  }
  return [...order, ...left]
}

t.test('the order is that of the winners, as each of them leaves', async (t) => {
  const random = new Random(9)
  for (let round = 0; round < 3000; round++) {
    const tier = randomTier(random, 2 + random.below(9))
    const octet = (): number => random.below(256)
    const client =
      random.below(2) === 0
        ? `10.${octet()}.${octet()}.${octet()}`
        : `2001:db8:${octet()}:${octet()}::${octet()}`
    const query = queryFrom(client)
    const { words, at } = encode(tier)
    const order = orderSticky(words, at, query)
    if (`${order?.outcomes}` !== `${removeWinners(tier, query)}`) t.fail(`${round}: ${client}`)
  }
})

t.test('the prefix is the part of the address that is hashed', async (t) => {
  const table = [
    ['192.0.2.77', '192.0.2.0', 24],
    ['2001:db8:1:2ff:3::4', '2001:db8:1:200::', 56],
  ] as const
  const { words, at } = encode(randomTier(new Random(1), 3))
  for (const [client, network, bits] of table) {
    const { prefix } = orderSticky(words, at, queryFrom(client))!
    t.equal(printAddress(prefix.bytes, prefix.family), network)
    t.equal(prefix.bits, bits)
  }
})

t.test('a tier of one outcome has no order', async (t) => {
  const { words, at } = encode(randomTier(new Random(1), 1))
  t.equal(orderSticky(words, at, queryFrom('192.0.2.1')), undefined)
})
