import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { Query } from '../../src/dns/message/query.ts'
import { Response } from '../../src/dns/message/response.ts'
import type { Candidate } from '../../src/steering/candidate.ts'
import { decodeSteering } from '../../src/steering/decode.ts'
import { STICKY_DEFAULT, type StickyPrefix } from '../../src/steering/rules.ts'
import { stickySeed } from '../../src/steering/sticky.ts'
import { isEncodedSteering } from '../../src/steering/verify-encoded.ts'
import { Choice } from '../../src/zone/image/types.ts'
import { chiSquare } from '../support/chi-square.ts'
import { wire } from '../support/zone-names.ts'
import { createTable } from './stage.ts'

const OWNER = wire('k.example.')

/** Computed by another program: the sites of some networks, those of 10.0.0.0, 10.1.0.0 …, and a seed. */
const GOLDEN = 'aabbaba'
const GOLDEN_TENS = 'badbababbcaaaaaaabbbaababaaaaabbacaaababaaaaaabadbaaadabbbbbbaaa'
const GOLDEN_SEED = [1680155170, 3488320038]

function sites(weights: Readonly<Record<string, number>>): Candidate[] {
  return Object.entries(weights).map(([name, weight], i) => ({
    code: undefined,
    isDefault: false,
    weight,
    ttlSeconds: 60,
    rdataIndexes: [i],
    seed: stickySeed(OWNER, name),
  }))
}

/** Returns a function from a client to the name of its site. */
function chooser(weights: Readonly<Record<string, number>>, prefix: StickyPrefix = STICKY_DEFAULT) {
  const { table } = createTable(undefined)
  const words = table.compose(sites(weights), RRType.A, { sticky: prefix })!
  const steerer = table.steerer()
  const names = Object.keys(weights)
  const query = new Query()
  const response = new Response()
  const choice = new Choice()
  const of = (octets: readonly number[], isEcs = false, bits = octets.length * 8): string => {
    query.clientAddress.fill(0)
    query.clientAddress.set(octets)
    query.clientFamily = octets.length === 4 ? 1 : 2
    query.clientBits = bits
    query.clientIsEcs = isEcs
    response.reset(query)
    steerer.choose(query, response, words, 0, choice)
    return names[choice.index[0]!]!
  }
  return { of, words, response, choice }
}

/** Random client networks. */
function clients(count: number, octets = 4): number[][] {
  const random = new Random(5)
  return Array.from({ length: count }, () =>
    Array.from({ length: octets }, () => random.below(256)),
  )
}

t.test('the choice is the same everywhere and for ever', async (t) => {
  const { of } = chooser({ a: 120, b: 60, c: 1, d: 7 })
  const networks = [
    [192, 0, 2, 0],
    [198, 51, 100, 0],
    [203, 0, 113, 0],
    [10, 0, 0, 0],
    [0, 0, 0, 0],
    [0x20, 1, 0xd, 0xb8, ...Array(12).fill(0)],
    [0x20, 1, 0xd, 0xb8, 0, 0, 1, ...Array(9).fill(0)],
  ]
  t.equal(networks.map((octets) => of(octets)).join(''), GOLDEN)
  const tens = Array.from({ length: 64 }, (_, i) => of([10, i, 0, 0]))
  t.equal(tens.join(''), GOLDEN_TENS)
  t.strictSame(stickySeed(OWNER, 'a'), GOLDEN_SEED)
})

t.test('the prefix alone decides', async (t) => {
  const { of } = chooser({ a: 1, b: 1, c: 1 })
  for (const [x, y, z] of clients(200, 3) as [number, number, number][]) {
    const want = of([x, y, z, 0])
    for (const last of [1, 77, 255]) t.equal(of([x, y, z, last]), want)
    const six = [0x20, x, y, z, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    const other = [...six.slice(0, 7), 255, 9, 9, 9, 9, 9, 9, 9, 9]
    t.equal(of(other), of(six))
  }
  const narrow = chooser({ a: 1, b: 1 }, { ipv4Bits: 32, ipv6Bits: 64 })
  const seen = new Set(Array.from({ length: 64 }, (_, last) => narrow.of([192, 0, 2, last])))
  t.equal(seen.size, 2, '/32 tells neighbours apart')
})

t.test('the shares follow the weights', async (t) => {
  const tables: Readonly<Record<string, number>>[] = [
    { a: 120, b: 60, c: 20 },
    { a: 1, b: 1 },
    { a: 1_000_000, b: 10_000 },
    { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6, g: 7, h: 8 },
  ]
  for (const weights of tables) {
    for (const octets of [4, 16]) {
      const { of } = chooser(weights)
      const counts = new Map(Object.keys(weights).map((name) => [name, 0]))
      for (const client of clients(100_000, octets)) {
        const name = of(client)
        counts.set(name, counts.get(name)! + 1)
      }
      const sum = Object.values(weights).reduce((a, b) => a + b, 0)
      const shares = Object.values(weights).map((weight) => weight / sum)
      const limit = 3 * shares.length + 8
      const got = chiSquare([...counts.values()], shares)
      t.ok(got < limit, `${JSON.stringify(weights)} IPv${octets === 4 ? 4 : 6}: ${got}`)
    }
  }
  // Networks that follow each other are as good as random ones.
  const { of } = chooser({ a: 1, b: 1, c: 1, d: 1 })
  const counts = [0, 0, 0, 0]
  for (let i = 0; i < 65_536; i++) counts['abcd'.indexOf(of([10, i >> 8, i & 255, 0]))]!++
  t.ok(chiSquare(counts, [0.25, 0.25, 0.25, 0.25]) < 16, counts.join())
})

t.test('a site that goes moves its own clients and no other', async (t) => {
  for (const count of [2, 5, 10]) {
    const names = Array.from({ length: count }, (_, i) => String.fromCharCode(97 + i))
    const all = Object.fromEntries(names.map((name) => [name, 100]))
    const { b: _, ...rest } = all
    const [before, after] = [chooser(all), chooser(rest)]
    let moved = 0
    for (const client of clients(20_000)) {
      const was = before.of(client)
      if (was === 'b') moved++
      else if (after.of(client) !== was) t.fail(`${client} moved from ${was}`)
    }
    t.ok(moved / 20_000 <= 1 / count + 0.01, `${moved} of 20000 for 1 of ${count}`)
  }
})

t.test('a change of a weight moves only what it must', async (t) => {
  const [before, after] = [chooser({ a: 100, b: 100, c: 100 }), chooser({ a: 100, b: 150, c: 100 })]
  let moved = 0
  for (const client of clients(50_000)) {
    const [was, now] = [before.of(client), after.of(client)]
    if (was === now) continue
    moved++
    t.equal(now, 'b')
  }
  const least = 150 / 350 - 100 / 300
  t.ok(Math.abs(moved / 50_000 - least) < 0.01, `${moved / 50_000}, at least ${least}`)
})

t.test('the order of the endpoints does not matter', async (t) => {
  const [one, other] = [chooser({ a: 3, b: 2, c: 1 }), chooser({ c: 1, a: 3, b: 2 })]
  for (const client of clients(5000)) {
    if (one.of(client) !== other.of(client)) t.fail(client.join('.'))
  }
})

t.test('the ECS scope is the prefix that was hashed', async (t) => {
  const { of, response } = chooser({ a: 1, b: 1 }, { ipv4Bits: 20, ipv6Bits: 48 })
  of([192, 0, 2, 0], true, 24)
  t.equal(response.scopeBits, 20)
  of([0x20, 1, ...Array(14).fill(0)], true, 56)
  t.equal(response.scopeBits, 48)
  of([192, 0, 2, 0], false)
  t.equal(response.scopeBits, 0, 'not for the source address')
  const lone = chooser({ a: 1 })
  lone.of([192, 0, 2, 0], true, 24)
  t.equal(lone.response.scopeBits, 0, 'one endpoint needs no choice')
})

t.test('sticky steering is decoded and verified', async (t) => {
  const { words } = chooser({ a: 120, b: 60 })
  const { tiers } = decodeSteering(words, 0)
  t.strictSame(
    tiers[0]!.map(({ weight }) => weight),
    [120, 60],
  )
  t.ok(isEncodedSteering(words, 0, words.length, 2, []))
  t.notOk(isEncodedSteering(words.subarray(0, -1), 0, words.length - 1, 2, []), 'a seed short')
  for (const bad of [0, 24, 56 << 8, (56 << 8) | 33, (65 << 8) | 24, 0xffffffff]) {
    const changed = words.slice()
    changed[words.length - 5] = bad
    t.notOk(isEncodedSteering(changed, 0, words.length, 2, []), `prefix ${bad}`)
  }
})
