import t from 'tap'
import { CacheCount, type CacheOptions } from '../../src/cache/cache.ts'
import { Rcode, RRType } from '../../src/dns/iana/index.ts'
import { ZoneSet } from '../../src/zone/lookup/zone-set.ts'
import type { Question } from '../support/transaction.ts'
import { wire } from '../support/zone-names.ts'

import { address, codeOf, denial, type Fill, failure, KIND, start } from './fixture.ts'

t.test('an answer that was waited for is kept until its TTL ends', async (t) => {
  const { ask, asked, count, inDataThread } = start({}, address(30), address(30, 2))
  t.equal(await inDataThread(0), 'handed over')
  const first = await ask(0)
  t.match(first, { status: 'NOERROR', answer: { length: 1 } })
  const shown = (await ask(12)).answer
  t.equal(shown.length, 1)
  t.match(shown[0], / 18 /, 'the TTL is that which is left')
  t.match(await inDataThread(12), { answer: shown }, 'any thread answers from it')
  t.equal((await ask(12)).flags, 'rd ra', 'a cached answer is not authoritative')
  t.match((await ask(29.9)).answer[0], / 1 /)
  t.equal(asked(), 1)
  t.match((await ask(30)).answer[0], /c0000202|192\.0\.2\.2/)
  t.equal(asked(), 2)
  t.equal(count(CacheCount.Requests), 5)
  t.equal(count(CacheCount.Misses), 2)
  t.equal(count(CacheCount.SuccessHits), 3)
})

t.test('how long answers are kept', async (t) => {
  const table: { name: string; fill: Fill; options?: Partial<CacheOptions>; kept: number }[] = [
    { name: 'TTL', fill: address(100), kept: 100 },
    { name: 'a TTL above the maximum', fill: address(10_000), kept: 3600 },
    { name: 'a TTL below the minimum', fill: address(0), kept: 5 },
    { name: 'NXDOMAIN: TTL of the SOA', fill: denial(Rcode.NXDOMAIN, 60, 300), kept: 60 },
    { name: 'NODATA: last number of the SOA', fill: denial(Rcode.NOERROR, 600, 90), kept: 90 },
    { name: 'NXDOMAIN above the maximum', fill: denial(Rcode.NXDOMAIN, 9000, 9000), kept: 1800 },
    { name: 'SERVFAIL', fill: failure, kept: 5 },
    { name: 'SERVFAIL, not wanted', fill: failure, options: { servfailSeconds: 0 }, kept: 0 },
    {
      name: 'SERVFAIL to a client that hides its subnet',
      fill: (tx) => {
        Object.assign(tx.query, { hasEcs: true, ecsFamily: 1, ecsSourceBits: 0 })
        return failure(tx)
      },
      kept: 0,
    },
    { name: 'REFUSED', fill: () => Rcode.REFUSED, kept: 0 },
    {
      name: 'no positive answers of the zone',
      fill: address(60),
      options: { success: { ...KIND, disabled: new ZoneSet([wire('example.')]) } },
      kept: 0,
    },
    {
      name: 'no positive answers of another zone',
      fill: address(60),
      options: { success: { ...KIND, disabled: new ZoneSet([wire('example.org.')]) } },
      kept: 60,
    },
    {
      name: 'another zone',
      fill: address(60),
      options: { zones: new ZoneSet([wire('org.')]) },
      kept: 0,
    },
    {
      name: 'a reply that was cut',
      fill: (tx) => {
        tx.response.truncated = true
        return address(60)(tx)
      },
      kept: 0,
    },
  ]
  for (const { name, fill, options = {}, kept } of table) {
    const { ask, asked } = start(options, fill)
    const first = await ask(0)
    const again = await ask(Math.max(0, kept - 0.5))
    t.equal(asked(), kept === 0 ? 2 : 1, `${name}: kept ${kept} s`)
    t.equal(codeOf(again), codeOf(first), `${name}: status`)
    await ask(kept)
    t.equal(asked(), kept === 0 ? 3 : 2, `${name}: no longer`)
  }
})

t.test('questions that have different answers', async (t) => {
  const { ask, asked } = start({}, address(30))
  await ask(0)
  const different: Partial<Question>[] = [
    { type: RRType.AAAA },
    { dnssecOk: true, payloadOctets: 1232 },
    { name: 'www2.example.' },
    { class: 3 },
  ]
  for (const [i, over] of different.entries()) {
    await ask(0, over)
    t.equal(asked(), i + 2)
  }
  await ask(0, { name: 'WWW.example.' })
  t.equal(asked(), 1 + different.length, 'case makes no difference')
})

t.test('an answer in demand is asked for again before it ends', async (t) => {
  const { ask, asked, count, inDataThread } = start(
    { prefetchHits: 2 },
    address(100),
    address(100, 2),
  )
  await ask(0)
  await ask(50)
  t.equal(asked(), 1, 'one query is no demand')
  await ask(89)
  t.equal(asked(), 1, 'too early')
  t.equal(await inDataThread(95), 'handed over', 'only the control thread asks')
  t.match((await ask(95)).answer[0], / 5 /, 'the old answer is sent at once')
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(asked(), 2)
  t.equal(count(CacheCount.Prefetches), 1)
  t.match((await ask(110)).answer[0], / 85 /)
})

t.test('an answer that has ended is better than none', async (t) => {
  const stale = { staleSeconds: 60 }
  const fixture = start(stale, address(30), failure, address(30, 2))
  const { ask, asked, inDataThread, count } = fixture
  await ask(0)
  t.equal(await inDataThread(40), 'handed over')
  t.match((await ask(40)).answer[0], / 0 /, 'with TTL 0, at once')
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(asked(), 2, 'it was asked for, in vain')
  t.match((await ask(50)).answer[0], / 0 /)
  await new Promise((resolve) => setImmediate(resolve))
  t.match((await ask(51)).answer[0], / 29 /, 'the new one')
  t.equal(count(CacheCount.ServedStale), 2)
  fixture.setBusy()
  t.match(
    await inDataThread(90),
    { answer: [/ 0 /] },
    'a busy control thread is no reason to drop it',
  )

  const verifying = start({ ...stale, verifiesStale: true }, address(30), failure, address(30, 2))
  await verifying.ask(0)
  t.match((await verifying.ask(40)).answer[0], / 0 /, 'after the failure')
  t.equal(verifying.asked(), 2)
  t.match((await verifying.ask(45)).answer[0], / 30 /)
  const ended = start(stale, address(30), failure)
  await ended.ask(0)
  t.equal(codeOf(await ended.ask(90)), 'SERVFAIL', 'for a time only')
})

t.test('answers that must not be stored, or not be used', async (t) => {
  const noRecursion = { recursionDesired: false }
  const referral = start({}, address(30), address(30, 2))
  await referral.ask(0, noRecursion)
  t.match(
    (await referral.ask(0)).answer[0],
    /c0000202/,
    'a reply to a query without RD is not stored',
  )
  t.match(
    (await referral.ask(1, noRecursion)).answer[0],
    /c0000202/,
    'but such a query gets answers',
  )

  const steered = start({}, (tx) => {
    tx.response.isSteered = true
    return address(30)(tx)
  })
  await steered.ask(0)
  await steered.ask(0)
  t.equal(steered.asked(), 2, 'an answer that was chosen for one client')

  const down = start({}, address(30), failure)
  await down.ask(0)
  await down.ask(40)
  await down.ask(41)
  t.equal(down.asked(), 2, 'a failure is stored although there was an answer once')

  const up = start({ staleSeconds: 3600 }, failure, address(30))
  await up.ask(0)
  t.match((await up.ask(600)).answer[0], /c0000201/, 'an old failure is not better than asking')

  const cut = start({ staleSeconds: 3600 }, address(30), (tx) => {
    tx.response.truncated = true
    return address(30, 2)(tx)
  })
  await cut.ask(0)
  await cut.ask(40)
  await new Promise((resolve) => setImmediate(resolve))
  await cut.ask(41)
  t.equal(cut.asked(), 3, 'a new answer that cannot be stored ends the old one')
})

t.test('a TTL outside the limits counts down from the limit, in the first reply too', async (t) => {
  const positive = start({}, address(86_400))
  t.match((await positive.ask(0)).answer[0], / 3600 /)
  t.match((await positive.ask(1800)).answer[0], / 1800 /)
  t.match((await positive.ask(3599)).answer[0], / 1 /)
  const negative = start({}, denial(Rcode.NXDOMAIN, 86_400, 86_400))
  t.match((await negative.ask(0)).authority[0], / 1800 /)
  t.match((await negative.ask(1000)).authority[0], / 800 /)
  const short = start({}, address(0))
  t.match((await short.ask(0)).answer[0], / 5 /)
  t.match((await short.ask(3)).answer[0], / 2 /)
})

t.test('keepttl sends the TTLs that the answer came with', async (t) => {
  const { ask } = start({ keepsTtl: true }, address(30), address(86_400))
  await ask(0)
  t.match((await ask(20)).answer[0], / 30 /)
  t.match((await ask(60)).answer[0], / 86400 /)
  t.match((await ask(90)).answer[0], / 86400 /)
})

t.test('answers that make room for others are counted', async (t) => {
  const { ask, count } = start({}, address(60))
  const names = 1100
  for (let i = 0; i < names; i++) await ask(0, { name: `n${i}.example.` })
  const evicted = count(CacheCount.SuccessEvictions)
  t.ok(evicted >= names - 1024, `${evicted} evictions`)
  t.equal(count(CacheCount.DenialEvictions), 0)
})
