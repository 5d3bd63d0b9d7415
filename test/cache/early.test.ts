import t from 'tap'
import { CacheCount } from '../../src/cache/cache.ts'
import { Rcode } from '../../src/dns/iana/index.ts'
import { address, codeOf, denial, failure, start } from './fixture.ts'

const early = { from: '192.0.2.53' }
const settled = () => new Promise((resolve) => setImmediate(resolve))
const FIVE = { earlySeconds: 5 }

t.test('early clients get a new answer as soon as the old one has expired', async (t) => {
  const table = [
    { name: 'an early client hits at 59', over: early, seconds: 59, asked: 1 },
    { name: 'an early client misses at 61', over: early, seconds: 61, asked: 2 },
    { name: 'an early client misses at 66', over: early, seconds: 66, asked: 2 },
    { name: 'another client hits at 30', over: {}, seconds: 30, asked: 1 },
    { name: 'another client hits at 64', over: {}, seconds: 64, asked: 1 },
    { name: 'another client misses at 66', over: {}, seconds: 66, asked: 2 },
  ]
  for (const { name, over, seconds, asked } of table) {
    const fixture = start(FIVE, address(60))
    await fixture.ask(0)
    await fixture.ask(seconds, over)
    t.equal(fixture.asked(), asked, name)
    if (over !== early) continue
    const stale = start({ ...FIVE, staleSeconds: 60 }, address(60))
    await stale.ask(0)
    await stale.ask(seconds, over)
    t.equal(stale.asked(), asked, `${name}, with serve_stale`)
  }
})

t.test('others keep the old answer until their turn', async (t) => {
  const { ask, asked, inDataThread } = start(FIVE, address(60, 1), address(60, 2))
  t.match((await ask(0)).answer[0], / 65 .*c0000201/, 'a fresh reply has the TTL of the client')
  t.match((await ask(1, early)).answer[0], / 59 .*c0000201/)
  t.match((await ask(1)).answer[0], / 64 .*c0000201/)
  t.match((await ask(61, early)).answer[0], / 60 .*c0000202/)
  t.match((await ask(62)).answer[0], / 3 .*c0000201/)
  t.match(await inDataThread(64), { answer: [/ 1 .*c0000201/] })
  t.equal(await inDataThread(65), 'handed over', 'only the control thread can copy the new answer')
  t.match((await ask(66)).answer[0], / 60 .*c0000202/, 'the new answer, 5 s old, is valid for 65 s')
  t.match(await inDataThread(66), { answer: [/ 60 .*c0000202/] })
  t.match(await inDataThread(66, early), { answer: [/ 55 .*c0000202/] })
  t.equal(asked(), 2)

  const busy = start(FIVE, address(60, 1), address(60, 2))
  await busy.ask(0)
  await busy.ask(61, early)
  busy.setBusy()
  t.match(await busy.inDataThread(66), { answer: [/ 55 .*c0000202/] }, 'a busy control thread')
})

t.test('a copied answer is the one that all others keep', async (t) => {
  const { ask, asked } = start(FIVE, address(10, 1), address(10, 2), address(10, 3))
  await ask(0)
  await ask(11, early)
  t.match((await ask(16)).answer[0], / 10 .*c0000202/)
  t.match((await ask(22, early)).answer[0], / 10 .*c0000203/)
  t.match((await ask(25)).answer[0], / 1 .*c0000202/)
  t.match((await ask(26)).answer[0], / 11 .*c0000203/)
  t.equal(asked(), 3)
})

t.test('a name that early clients know to be gone', async (t) => {
  const gone = denial(Rcode.NXDOMAIN, 30, 30)
  const { ask, asked } = start({ ...FIVE, staleSeconds: 600 }, address(60), gone, address(60, 2))
  await ask(0)
  t.equal(codeOf(await ask(61, early)), 'NXDOMAIN')
  t.match((await ask(62)).answer[0], / 3 /, 'others keep the old answer')
  t.equal(codeOf(await ask(66)), 'NXDOMAIN', 'and then get the denial, not the expired answer')
  t.equal(asked(), 2)
  t.match((await ask(700, early)).answer[0], /c0000202/)
  t.match((await ask(700)).answer[0], / 65 .*c0000202/)
})

t.test('a failure does not end the answer of others', async (t) => {
  const { ask, asked } = start(FIVE, address(60), failure, failure, address(60, 2))
  await ask(0)
  t.equal(codeOf(await ask(61, early)), 'SERVFAIL')
  t.match((await ask(62)).answer[0], / 3 /)
  t.equal(codeOf(await ask(66)), 'SERVFAIL')
  t.equal(codeOf(await ask(67)), 'SERVFAIL')
  t.equal(asked(), 3, 'the last one is cached')
  t.match((await ask(90)).answer[0], / 65 /)
})

t.test('serve_stale counts from the expiry for early clients', async (t) => {
  const stale = { ...FIVE, staleSeconds: 60 }
  const { ask, asked } = start(stale, address(60), failure)
  await ask(0)
  t.match((await ask(119)).answer[0], / 0 /)
  await settled()
  t.equal(codeOf(await ask(119, early)), 'SERVFAIL', 'an early client gets no expired answer')
  t.equal(codeOf(await ask(120)), 'SERVFAIL')
  t.equal(asked(), 4)

  const verifying = start({ ...stale, verifiesStale: true }, address(60), failure)
  await verifying.ask(0)
  t.match((await verifying.ask(70)).answer[0], / 0 /)
  const short = start({ ...FIVE, staleSeconds: 3 }, address(60), address(60, 2))
  await short.ask(0)
  t.match((await short.ask(66)).answer[0], / 65 .*c0000202/, 'shorter than earlyrefresh: never')
})

t.test('prefetch goes by the expiry for early clients', async (t) => {
  const { ask, asked, count } = start(
    { ...FIVE, prefetchHits: 2 },
    address(100, 1),
    address(100, 2),
  )
  await ask(0)
  await ask(80)
  await ask(85)
  t.equal(asked(), 1)
  await ask(91)
  await settled()
  t.equal(asked(), 2)
  t.match((await ask(92, early)).answer[0], / 99 .*c0000202/)
  t.match((await ask(92)).answer[0], / 13 .*c0000201/)
  await ask(102)
  await settled()
  t.equal(asked(), 2, 'early clients have a new answer, so no other is needed')
  t.match((await ask(106)).answer[0], / 90 .*c0000202/)
  t.equal(count(CacheCount.Prefetches), 1)
})

t.test('TTLs of fresh replies are within the limits of the cache', async (t) => {
  const { ask } = start(FIVE, address(10_000), denial(Rcode.NXDOMAIN, 9000, 9000))
  t.match((await ask(0)).answer[0], / 3605 /)
  t.match((await ask(600)).answer[0], / 3005 /)
  t.match((await ask(0, { name: 'b.example.' })).authority[0], / 1800 /)
  const kept = start({ ...FIVE, keepsTtl: true }, address(60))
  await kept.ask(0)
  t.match((await kept.ask(20)).answer[0], / 65 /)
  t.match((await kept.ask(20, early)).answer[0], / 60 /)
})

t.test('an answer that cannot be stored is the last that is kept', async (t) => {
  const { ask, asked } = start({ ...FIVE, staleSeconds: 600 }, address(60), (tx) => {
    tx.response.truncated = true
    return address(60, 2)(tx)
  })
  await ask(0)
  await ask(61, early)
  t.match((await ask(62)).answer[0], /c0000201/)
  await ask(70, early)
  await ask(70)
  t.equal(asked(), 4, 'the expired answer is removed')
})

t.test('a refresh that fails ends no valid answer of early clients', async (t) => {
  const { ask, asked } = start(
    { ...FIVE, prefetchHits: 1 },
    address(60, 1),
    address(60, 2),
    failure,
  )
  await ask(0)
  await ask(61, early)
  t.match((await ask(116, early)).answer[0], / 5 .*c0000202/)
  await settled()
  t.equal(asked(), 3)
  t.match((await ask(117, early)).answer[0], / 4 .*c0000202/)
  t.match((await ask(117)).answer[0], / 9 .*c0000202/)
})

t.test('serve_stale verify uses no answer from before a denial', async (t) => {
  const options = { ...FIVE, staleSeconds: 600, verifiesStale: true }
  for (const over of [early, {}]) {
    const { ask, asked } = start(options, address(60), denial(Rcode.NXDOMAIN, 30, 30), failure)
    await ask(0)
    await ask(61, early)
    t.equal(codeOf(await ask(100, over)), 'SERVFAIL')
    t.equal(asked(), 3)
  }
})
