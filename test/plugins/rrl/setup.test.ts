import t from 'tap'
import { LIMITER, LimitAction } from '../../../src/plugin/reply-limiter.ts'
import { rrl } from '../../../src/plugins/rrl/setup.ts'
import { FakeTimers, followerOf, SetUp, setupError } from '../../support/setup.ts'
import { askFrom, transactionOf } from './transactions.ts'

for (const [corefile, message] of [
  ['rrl', 'rrl limits nothing; set responses-per-second, or another limit'],
  ['rrl {\n window 5\n}', 'rrl limits nothing'],
  ['rrl {\n responses-per-second\n}', 'responses-per-second needs one number from 0 to 10000'],
  ['rrl {\n responses-per-second 5 6\n}', 'responses-per-second needs one number'],
  ['rrl {\n responses-per-second -1\n}', 'responses-per-second needs one number'],
  ['rrl {\n responses-per-second 10001\n}', 'from 0 to 10000'],
  ['rrl {\n responses-per-second 1e3\n}', 'responses-per-second needs one number'],
  ['rrl {\n window 0\n}', 'window needs one number from 1 to 3600'],
  ['rrl {\n ipv4-prefix-length 33\n}', 'ipv4-prefix-length needs one number from 1 to 32'],
  ['rrl {\n ipv4-prefix-length 24.5\n}', 'ipv4-prefix-length needs one whole number'],
  ['rrl {\n ipv6-prefix-length 0\n}', 'ipv6-prefix-length needs one number from 1 to 128'],
  ['rrl {\n slip-ratio 11\n}', 'slip-ratio needs one number from 0 to 10'],
  ['rrl {\n max-table-size 1\n}', 'max-table-size needs one number from 64 to 10000000'],
  ['rrl {\n exempt\n}', "unexpected line ending after 'exempt'"],
  [
    'rrl {\n exempt 10.0.0.0/33\n}',
    '"10.0.0.0/33" is not a network; write ADDRESS or ADDRESS/BITS',
  ],
  ['rrl {\n report-only yes\n}', "unexpected line ending after 'yes'"],
  ['rrl {\n limit 5\n}', "unknown property 'limit'"],
  ['rrl {\n responses-per-second 5\n}\nrrl {\n responses-per-second 5\n}', 'only be used once'],
] as const) {
  t.test(`refused: ${corefile.replaceAll('\n', ' ')}`, async (t) => {
    t.match(setupError(rrl, corefile), message)
  })
}

const limits = (...lines: string[]) => `rrl {\n${lines.join('\n')}\n}`

/** How many of ten equal replies go out. */
function passing(setUp: SetUp, over: Parameters<typeof transactionOf>[0] = {}): number {
  const tx = transactionOf(over)
  const actions = Array.from({ length: 10 }, () => setUp.block.shared.find(LIMITER)!.decide(tx))
  return actions.filter((action) => action === LimitAction.Send).length
}

t.test('limits that are not set are those of responses', async (t) => {
  const setUp = new SetUp(
    rrl,
    limits('responses-per-second 3', 'nxdomains-per-second 5', 'errors-per-second 0'),
  )
  await setUp.start()
  t.equal(passing(setUp), 3)
  t.equal(passing(setUp, { rcode: 3 }), 5)
  t.equal(passing(setUp, { kind: 'nodata' }), 3)
  t.equal(passing(setUp, { rcode: 5 }), 10)
  await setUp.stop()
})

t.test('all threads have the same accounts', async (t) => {
  const corefile = limits('responses-per-second 6')
  const control = new SetUp(rrl, corefile)
  const follower = followerOf(control, rrl, corefile)
  t.equal(passing(follower), 10, 'before there is any memory')
  await control.start()
  t.equal(passing(control), 6)
  t.equal(passing(follower), 0)
  await control.stop()
})

t.test('lines and metrics are few, whatever comes', async (t) => {
  const timers = new FakeTimers()
  const setUp = new SetUp(rrl, limits('responses-per-second 1', 'slip-ratio 2'), undefined, {
    timers,
  })
  await setUp.start()
  for (let i = 0; i < 3000; i++) {
    const tx = transactionOf({ name: `h${i % 7}\x01.example.org.`, zone: 'example.org.' })
    askFrom(tx, `192.${i & 127}.2.${i & 255}`)
    for (let k = 0; k < 3; k++) setUp.block.shared.find(LIMITER)!.decide(tx)
  }
  t.equal(setUp.lines.length, 10)
  t.match(
    setUp.lines[0],
    /^\[INFO\] plugin\/rrl: limited: 192\.0\.2\.0\/24: response h0\\001\.example\.org\. A$/,
  )
  t.notMatch(setUp.lines.join(''), /[^\x20-\x7e]/)
  await timers.advance(60_000)
  t.match(
    setUp.lines[10],
    /^\[INFO\] plugin\/rrl: replies over the limit: \d{4} in the last minute$/,
  )
  t.equal(setUp.lines.length, 11)
  await timers.advance(120_000)
  t.equal(setUp.lines.length, 11, 'nothing happened since')
  const labels = '{server="dns://:53",zone="example.org.",view=""'
  const value = async (series: string) => (await setUp.metric(series)) ?? 0
  const exceeded = await value(`coredns_rrl_responses_exceeded_total${labels},category="response"}`)
  const truncated = await value(`sextant_rrl_truncated_total${labels}}`)
  const dropped = await value(`sextant_rrl_dropped_total${labels}}`)
  t.ok(exceeded > 5000)
  t.equal(truncated + dropped, exceeded)
  t.ok(Math.abs(truncated - dropped) <= 7 * 128 * 2)
  await setUp.stop()
  t.equal(timers.count, 0)
})

t.test('report-only counts and lets pass', async (t) => {
  const setUp = new SetUp(rrl, limits('responses-per-second 1', 'report-only'))
  await setUp.start()
  t.equal(passing(setUp), 10)
  t.match(setUp.lines, [/over the limit: 192\.0\.2\.0\/24/])
  const series =
    'coredns_rrl_responses_exceeded_total{server="dns://:53",zone="",view="",category="response"}'
  t.equal(await setUp.metric(series), 9)
  t.equal(
    await setUp.metric('sextant_rrl_dropped_total{server="dns://:53",zone="",view=""}'),
    undefined,
  )
  await setUp.stop()
})
