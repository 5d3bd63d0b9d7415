import t from 'tap'
import { InputError } from '../../../src/base/errors.ts'
import { PodEvents, podOf } from '../../../src/plugins/reload/pod-events.ts'
import { reload } from '../../../src/plugins/reload/setup.ts'
import { MemoryApi } from '../../support/memory-api.ts'
import { FakeTimers, SetUp, setupError } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

function harness(corefile: string, random = () => 0.5) {
  const timers = new FakeTimers()
  return { timers, setUp: new SetUp(reload, corefile, undefined, { timers, random }) }
}

t.test('reloads once per change', async (t) => {
  const { timers, setUp } = harness('reload 10s 2s')
  await setUp.start()
  t.match(setUp.lines, ['[INFO] plugin/reload: Running configuration SHA512 = one'])
  await timers.advance(60_000)
  t.equal(setUp.reloadReasons.length, 0)
  setUp.digest = 'two'
  await timers.advance(9_000)
  t.equal(setUp.reloadReasons.length, 0, 'not before the interval is over')
  await timers.advance(30_000)
  t.equal(setUp.reloadReasons.length, 1)
  t.equal(await setUp.metric('coredns_reload_failed_total'), 0)
  t.equal(await setUp.metric('coredns_reload_version_info{hash="sha512",value="one"}'), 1)
  await setUp.stop()
  t.equal(timers.count, 0)
})

t.test('a Corefile that fails is not tried again until it changes', async (t) => {
  const { timers, setUp } = harness('reload 10s 2s')
  await setUp.start()
  setUp.reloads = 'Corefile:2 - Error during parsing: no'
  setUp.digest = 'two'
  await timers.advance(60_000)
  t.equal(setUp.reloadReasons.length, 1)
  t.equal(await setUp.metric('coredns_reload_failed_total'), 1)
  t.match(
    setUp.lines.at(-1),
    '[ERROR] plugin/reload: Corefile changed but reload failed: Corefile:2 - Error during parsing: no',
  )
  setUp.digest = 'three'
  await timers.advance(10_000)
  t.equal(setUp.reloadReasons.length, 2)
})

t.test('a Corefile that can not be parsed is logged once and left', async (t) => {
  const { timers, setUp } = harness('reload 10s 2s')
  let broken = true
  setUp.corefile.digest = () => {
    if (broken) throw new InputError(undefined, 'Unexpected EOF')
    return 'two'
  }
  await setUp.start()
  await timers.advance(60_000)
  t.strictSame(setUp.lines.slice(1), [
    '[WARNING] plugin/reload: Corefile parse failed: Unexpected EOF',
  ])
  broken = false
  await timers.advance(10_000)
  t.equal(setUp.reloadReasons.length, 1)
})

t.test('intervals and jitter', async (t) => {
  const table = [
    { name: 'defaults, least jitter', given: 'reload', random: () => 0, want: 22_500 },
    { name: 'most jitter', given: 'reload 10s 4s', random: () => 1 - 2 ** -53, want: 11_999 },
    { name: 'no jitter', given: 'reload 2s 0s', random: () => 0.9, want: 2000 },
    { name: 'jitter is at most half', given: 'reload 10s 1h', random: () => 0, want: 7500 },
  ]
  for (const { name, given, random, want } of table) {
    const { timers, setUp } = harness(given, random)
    await setUp.start()
    setUp.digest = 'two'
    await timers.advance(want - 1)
    t.equal(setUp.reloadReasons.length, 0, name)
    await timers.advance(1)
    t.equal(setUp.reloadReasons.length, 1, name)
  }
})

t.test('bad lines', async (t) => {
  const table = [
    { given: 'reload 1s 2s 3s', want: 'Wrong argument count' },
    { given: 'reload soon', want: 'time: invalid duration "soon"' },
    { given: 'reload 1s', want: 'interval value must be greater or equal to 2s' },
    { given: 'reload 10s 500ms', want: 'jitter value must be 0 or greater or equal to 1s' },
  ]
  for (const { given, want } of table) t.match(setupError(reload, given), want, given)
})

t.test('a fault of ours does not end the watch', async (t) => {
  const { timers, setUp } = harness('reload 10s 2s')
  let broken = true
  setUp.corefile.digest = () => {
    if (broken) throw new TypeError('boom')
    return 'two'
  }
  await setUp.start()
  await timers.advance(60_000)
  t.strictSame(setUp.lines.slice(1), [
    '[ERROR] plugin/reload: Checking the Corefile for changes failed, the last valid state is kept: boom',
  ])
  broken = false
  await timers.advance(10_000)
  t.equal(setUp.reloadReasons.length, 1)
})

t.test('a rejected Corefile is an Event of the Pod, if there is one', async (t) => {
  t.equal(podOf({ POD_NAMESPACE: 'dns' }), undefined)
  const pod = podOf({ POD_NAME: 'one', POD_NAMESPACE: 'dns', POD_UID: 'u' })!
  const { timers, setUp } = harness('reload 10s 2s')
  const api = new MemoryApi()
  let isAway = true
  const events = new PodEvents(setUp, pod, async () => {
    if (isAway) throw new InputError(undefined, 'no service account')
    return api
  })
  await events.recordFault('Corefile:2 - no')
  t.match(setUp.lines.at(-1), 'events are not written: no service account')
  isAway = false
  await events.recordFault('Corefile:2 - no')
  await timers.advance(1000)
  const resource = { group: 'events.k8s.io', version: 'v1', plural: 'events' }
  const isWritten = () => api.all(resource).size > 0
  await until(isWritten, 'the Event')
  const [event] = api.all(resource).values()
  t.match(event, {
    reason: 'CorefileRejected',
    type: 'Warning',
    regarding: { name: 'one', uid: 'u' },
  })
  t.match(event?.note, 'Corefile:2 - no')
  await events.close()
})
