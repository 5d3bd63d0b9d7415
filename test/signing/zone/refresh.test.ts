import t from 'tap'
import { FLAGS_ZSK } from '../../../src/dns/dnssec/dnskey.ts'
import { coveredType, expirationOf, inceptionOf, tagOf } from '../../../src/dns/dnssec/rrsig.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { printName } from '../../../src/dns/name/name.ts'
import { encodeSteering, NO_POLICY } from '../../../src/steering/encode.ts'
import type { TierOutcome } from '../../../src/steering/tiers.ts'
import type { ZoneImage } from '../../../src/zone/image/writer.ts'
import { until } from '../../support/until.ts'
import { wire } from '../../support/zone-text.ts'
import { KEYS, KSK, linesOf, MADE, newKey, SigningStage, ZSK } from './signing-stage.ts'

const DAY_MS = 86_400_000
const A = (...last: number[]) => last.map((octet) => Uint8Array.from([192, 0, 2, octet]))

async function stageOf(names: number, image?: ZoneImage): Promise<SigningStage> {
  const stage = new SigningStage({}, image)
  stage.put('example.', RRType.NS, [wire('ns.other.')])
  for (let i = 0; i < names; i++) stage.put(`n${i}.example.`, RRType.A, A(i & 255))
  await stage.publish()
  return stage
}

/** All signatures of the zone. */
function rrsigs(stage: SigningStage): Uint8Array[] {
  return stage.contents().flatMap((set) => (set.type === RRType.RRSIG ? set.rdata : []))
}

function tiers(...tier: TierOutcome[]): Uint32Array {
  return encodeSteering(NO_POLICY, [tier])
}

function outcome(weight: number, ...rdataIndexes: number[]): TierOutcome {
  return { weight, ttlSeconds: 30, rdataIndexes }
}

t.test('a change signs only what is new', async (t) => {
  const stage = await stageOf(3)
  const put = (words: Uint32Array, last = 3): void =>
    stage.put('n0.example.', RRType.A, A(1, 2, last), 300, words)
  const cases: readonly [string, () => void, number][] = [
    ['nothing', () => {}, 1],
    [
      'four answers, two of which are equal',
      () => put(tiers(outcome(1, 0), outcome(1, 1), outcome(1, 0, 1), outcome(2, 1, 0))),
      4,
    ],
    ['other weights', () => put(tiers(outcome(9, 0), outcome(5, 1), outcome(1, 0, 1))), 1],
    ['one endpoint is down', () => put(tiers(outcome(1, 0))), 1],
    ['a new outcome', () => put(tiers(outcome(1, 0), outcome(1, 2))), 2],
    ['other records for the same outcomes', () => put(tiers(outcome(1, 0), outcome(1, 2)), 4), 2],
    ['an answer without records: another proof', () => put(tiers(outcome(1, 0), outcome(1))), 2],
    ['a new name, and the one before it', () => stage.put('n1a.example.', RRType.A, A(1)), 4],
    ['the same name removed', () => stage.remove('n1a.example.', RRType.A), 2],
    ['a set in another order', () => stage.put('n1.example.', RRType.A, A(2, 1)), 2],
    ['the same again', () => stage.put('n1.example.', RRType.A, A(1, 2)), 1],
    ['all is noted', () => stage.signer.noteAll(), 1],
  ]
  for (const [name, change, made] of cases) {
    const before = stage.signer.state.made
    change()
    await stage.publish()
    t.equal(stage.signer.state.made - before, made, name)
  }
})

t.test('signatures are made again in steps before they expire', async (t) => {
  const stage = await stageOf(1200)
  t.ok(stage.batches > 0, 'many signatures are made in the thread')
  const times = rrsigs(stage).map(expirationOf)
  const nowSeconds = stage.clock.nowMs / 1000
  t.ok(Math.max(...times) <= nowSeconds + 14 * 86_400)
  t.ok(Math.min(...times) >= nowSeconds + 13.5 * 86_400)
  t.ok(new Set(times).size > 1000, 'they expire one after the other')
  const versions: number[] = []
  stage.signer.onDue(() => void stage.publish().then(() => versions.push(stage.serial)))
  stage.clock.pass(8 * DAY_MS)
  await stage.timers.advance(7200_000)
  t.same(versions, [], 'nothing is due')
  stage.clock.pass(2 * DAY_MS)
  await until(async () => {
    await stage.timers.advance(60_000)
    return (
      versions.length >= 3 && (stage.signer.state.expiresSeconds ?? 0) > nowSeconds + 15 * 86_400
    )
  }, 'new signatures')
  t.ok(Math.min(...rrsigs(stage).map(expirationOf)) > nowSeconds + 15 * 86_400)
  t.ok(versions.length <= 4, 'each version has many')
  t.notOk(stage.signer.isDue)
  const { made } = stage.signer.state
  await stage.timers.advance(7200_000)
  t.equal(stage.signer.state.made, made, 'each is made once')
})

t.test(
  'after the machine slept, expired signatures are made again within two minutes',
  async (t) => {
    const stage = await stageOf(100)
    stage.signer.onDue(() => void stage.publish())
    await stage.timers.advance(10_000)
    stage.clock.sleep(20 * DAY_MS)
    const nowSeconds = stage.clock.nowMs / 1000
    t.ok(Math.max(...rrsigs(stage).map(expirationOf)) < nowSeconds)
    await stage.timers.advance(120_000)
    await until(() => Math.min(...rrsigs(stage).map(expirationOf)) > nowSeconds, 'new signatures')
  },
)

t.test('after a change of keys, signatures are replaced in steps', async (t) => {
  const stage = await stageOf(600)
  await stage.timers.advance(1000)
  t.same(stage.keys.published, [KEYS], 'the source of the keys learns that they signed all')
  const next = await newKey(FLAGS_ZSK)
  const keys = { ...KEYS, dnskeys: [...KEYS.dnskeys, next.dnskey] }
  stage.signer.onDue(() => void stage.publish())
  stage.keys.change(keys)
  await stage.timers.advance(1000)
  t.same(stage.keys.published.at(-1), keys, 'a key that does not sign yet')
  const rolled = { ...keys, zoneSigners: [next] }
  stage.keys.change(rolled)
  t.equal(rrsigs(stage).filter((one) => tagOf(one) === ZSK.tag).length > 1000, true, 'not at once')
  t.equal(stage.keys.published.length, 2)
  await until(async () => {
    await stage.timers.advance(20_000)
    return stage.keys.published.length === 3
  }, 'signatures of the new key')
  t.same(
    rrsigs(stage).filter((one) => tagOf(one) === ZSK.tag),
    [],
  )
  t.equal(stage.keys.published.at(-1), rolled)
  const both = { ...keys, zoneSigners: [ZSK, next] }
  stage.keys.change(both)
  await until(async () => {
    await stage.timers.advance(20_000)
    return stage.keys.published.length === 4
  }, 'signatures of both keys')
  const signed = rrsigs(stage).filter((one) => coveredType(one) === RRType.A)
  t.equal(signed.length, 1200, 'two signatures of each RRset')
})

t.test('signatures made again are kept if it signs twice before it publishes', async (t) => {
  const stage = await stageOf(10)
  stage.signsTwice = true
  const next = await newKey(FLAGS_ZSK)
  const versions: number[] = []
  stage.signer.onDue(() => {
    if (versions.length < 20) void stage.publish().then(() => versions.push(stage.serial))
  })
  const keys = { ...KEYS, dnskeys: [...KEYS.dnskeys, next.dnskey] }
  stage.keys.change(keys)
  await stage.timers.advance(1000)
  stage.keys.change({ ...keys, zoneSigners: [next] })
  for (let i = 0; i < 10; i++) await stage.timers.advance(20_000)
  t.ok(rrsigs(stage).every((one) => [KSK.tag, next.tag].includes(tagOf(one))))
  t.equal(stage.keys.published.at(-1)?.zoneSigners[0], next)
  stage.clock.pass(8 * DAY_MS)
  for (let i = 0; i < 10; i++) await stage.timers.advance(3_600_000)
  stage.clock.pass(2 * DAY_MS)
  for (let i = 0; i < 10; i++) await stage.timers.advance(3_600_000)
  t.ok(versions.length < 10, `${versions.length} versions`)
})

t.test('if a key that signed is removed at once, all is signed at once', async (t) => {
  const stage = await stageOf(10)
  const next = await newKey(FLAGS_ZSK)
  stage.keys.change({ ...KEYS, dnskeys: [next.dnskey], keySigners: [next], zoneSigners: [next] })
  t.ok(stage.signer.isDue)
  await stage.publish()
  t.equal(rrsigs(stage).length, 26)
  t.ok(rrsigs(stage).every((one) => tagOf(one) === next.tag))
})

t.test('without keys, or with a wrong clock, nothing is signed', async (t) => {
  const stage = await stageOf(3)
  let before = rrsigs(stage)
  const due: string[] = []
  stage.signer.onDue(() => due.push(stage.signer.refusal))
  const refuses = async (reason: RegExp): Promise<void> => {
    t.match(stage.signer.refusal, reason)
    stage.put('new.example.', RRType.A, A(1))
    t.throws(() => stage.signer.sign(), { message: reason })
    t.ok(Buffer.concat(rrsigs(stage)).equals(Buffer.concat(before)), 'what is published is kept')
  }
  stage.keys.change(undefined)
  await refuses(/no key that can sign/)
  stage.keys.change(KEYS)
  stage.clock.nowMs -= 2 * 3600_000
  await refuses(/is before the newest signature of 2023-11-14T21:13:20.000Z; set the clock/)
  stage.clock.nowMs += 2 * 3600_000 + 3 * DAY_MS
  await refuses(/jumped by 72 h/)
  stage.clock.pass(1800_000)
  await refuses(/jumped by 72 h/)
  due.length = 0
  stage.clock.pass(1800_000)
  await stage.timers.advance(20_000)
  t.same(due, [''], 'the caller learns that it can sign again')
  await stage.publish()
  t.equal(Math.max(...rrsigs(stage).map(inceptionOf)), Math.floor(stage.clock.nowMs / 1000) - 3600)
  before = rrsigs(stage)
  stage.clock.nowMs = 0
  await refuses(/time is 1970-01-01T00:00:00.000Z; set the clock/)
})

t.test('changes during the signing of a zone are in the same version', async (t) => {
  const stage = new SigningStage()
  stage.put('example.', RRType.NS, [wire('ns.other.')])
  for (let i = 0; i < 1000; i++) stage.put(`n${i}.example.`, RRType.A, A(i & 255))
  const done = stage.publish()
  for (let i = 0; i < 20; i++) {
    await new Promise((resolve) => setImmediate(resolve))
    stage.put(`n${i * 50}.example.`, RRType.A, A(250))
    stage.put(`more${i}.example.`, RRType.A, A(i))
    stage.remove(`n${i * 50 + 1}.example.`, RRType.A)
  }
  await done
  const fresh = new SigningStage()
  for (const set of stage.contents()) {
    if (!MADE.includes(set.type))
      fresh.put(printName(set.owner), set.type, set.rdata, set.ttlSeconds)
  }
  await fresh.publish()
  t.same(linesOf(stage.contents()), linesOf(fresh.contents()))
})
