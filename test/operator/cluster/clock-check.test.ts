import t from 'tap'
import type { ApiClient, ApiResponse } from '../../../src/kube/api.ts'
import { ClockCheck } from '../../../src/operator/cluster/clock-check.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock } from '../../support/setup.ts'

t.test('the clock of the API server is compared with ours', async (t) => {
  for (const { name, aheadMs, takesMs = 0, says } of [
    { name: 'it agrees', aheadMs: 0, says: '' },
    { name: 'a small difference', aheadMs: 9000, says: '' },
    { name: 'behind', aheadMs: -3_600_000, says: 'is behind ours' },
    { name: 'ahead', aheadMs: 3_600_000, says: 'is ahead of ours' },
    { name: 'a slow response', aheadMs: 0, takesMs: 60_000, says: '' },
    {
      name: 'a slow response of a server that is ahead',
      aheadMs: 80_000,
      takesMs: 60_000,
      says: 'ahead',
    },
    { name: 'no date', aheadMs: undefined, says: '' },
  ]) {
    const clock = new FakeClock()
    const { log, lines } = recordLog()
    let ahead: number | undefined = aheadMs
    let slowMs = takesMs
    const answer = async (): Promise<ApiResponse> => {
      clock.pass(slowMs / 2)
      const dateMs =
        ahead === undefined ? undefined : Math.floor((clock.now() + ahead) / 1000) * 1000
      clock.pass(slowMs / 2)
      return { status: 200, retryAfterSeconds: 0, dateMs, body: (async function* () {})() }
    }
    const api: ApiClient = { place: 'https://k.test', get: answer, send: answer, refresh: () => {} }
    const check = new ClockCheck(api, { clock, log })
    const { signal } = new AbortController()
    await check.get('/version', signal)
    await check.send('PATCH', '/x', undefined, signal)
    t.match(check.fault, says === '' ? /^$/ : new RegExp(`API server .*${says}`), name)
    t.equal(lines.length, says === '' ? 0 : 1, `${name}: once`)
    ahead = 0
    slowMs = 0
    clock.pass(30_000)
    await check.get('/version', signal)
    t.equal(check.fault, '', name)
    t.match(lines[1] ?? '', says === '' ? /^$/ : /agrees with ours again/, name)
  }
})

t.test('a fault begins and ends as that of a nameserver', async (t) => {
  const clock = new FakeClock()
  const { log, lines } = recordLog()
  let aheadMs = 0
  const answer = async (): Promise<ApiResponse> => {
    const dateMs = clock.now() + aheadMs
    return { status: 200, retryAfterSeconds: 0, dateMs, body: (async function* () {})() }
  }
  const api: ApiClient = { place: 'https://k.test', get: answer, send: answer, refresh: () => {} }
  const check = new ClockCheck(api, { clock, log })
  let changes = 0
  const stop = check.onFault(() => changes++)
  const faults: boolean[] = []
  for (const [afterMs, ahead] of [
    [0, 8000],
    [30_000, 10_500],
    [30_000, 11_500],
    [1000, 7000],
    [30_000, 9000],
    [0, 7000],
    [1000, 60_000],
    [30_000, 60_000],
  ] as const) {
    clock.pass(afterMs)
    aheadMs = ahead
    await check.get('/version', new AbortController().signal)
    faults.push(check.fault !== '')
  }
  t.strictSame(faults, [false, false, true, true, true, false, false, true])
  t.equal(lines.length, 3)
  t.equal(changes, 3, 'each change once')
  stop()
  aheadMs = 0
  clock.pass(30_000)
  await check.get('/version', new AbortController().signal)
  t.equal(changes, 3)
})
