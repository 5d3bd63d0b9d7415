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
    const answer = async (): Promise<ApiResponse> => {
      clock.pass(takesMs / 2)
      const dateMs =
        ahead === undefined ? undefined : Math.floor((clock.now() + ahead) / 1000) * 1000
      clock.pass(takesMs / 2)
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
    await check.get('/version', signal)
    t.equal(check.fault, '', name)
    t.match(lines[1] ?? '', says === '' ? /^$/ : /agrees with ours again/, name)
  }
})
