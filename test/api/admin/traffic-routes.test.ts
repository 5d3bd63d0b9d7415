import t, { type Test } from 'tap'
import { openAdmin } from '../../../src/api/admin/open-admin.ts'
import { InputError } from '../../../src/base/errors.ts'
import type {
  AdminTraffic,
  TrafficQuestion,
  TrafficReport,
} from '../../../src/plugin/admin-traffic.ts'
import { adminSite } from '../../support/admin-site.ts'
import { fetchLocal } from '../../support/http-client.ts'

const REPORT: TrafficReport = {
  now: '2026-01-01T00:01:00.000Z',
  since: '2026-01-01T00:00:00.000Z',
  period: '10m',
  start: '2026-01-01T00:00:00.000Z',
  stepSeconds: 10,
  queries: [0, 1.25],
  dropped: [0, 0],
  rcodes: [{ rcode: 'NOERROR', rates: [0, 1.25] }],
  latencyMs: { p50: [null, 0.01], p90: [null, 0.02], p99: [null, 0.5] },
  topNames: [{ name: '<b>\\007.example.org.', type: 'A', rcode: 'NOERROR', share: 0.5 }],
  countedSeconds: 60,
  endpoints: [
    {
      zone: 'example.org.',
      endpoint: 'dublin',
      tier: 'GEO-EU',
      weight: 3,
      share: 0.75,
      answers: 3,
      answeredShare: 1,
    },
    {
      zone: 'example.org.',
      endpoint: '',
      tier: '',
      weight: null,
      share: 1,
      answers: 0,
      answeredShare: null,
    },
  ],
  endpointsOmitted: 1,
}

async function open(t: Test, traffic: AdminTraffic | undefined) {
  const listener = await openAdmin(adminSite({ traffic: () => traffic }).site, undefined)
  t.teardown(() => listener.close())
  return async (path: string) => {
    const { status, body } = await fetchLocal(listener.port, { path, headers: {} })
    return { status, body: JSON.parse(body) }
  }
}

t.test('the report, and the question', async (t) => {
  const asked: unknown[] = []
  const report = (question: TrafficQuestion) => {
    asked.push({ ...question })
    return REPORT
  }
  const get = await open(t, { report })
  t.strictSame(await get('/v1/traffic'), { status: 200, body: REPORT })
  await get('/v1/traffic?period=24h&name=app.example.org&type=AAAA')
  t.strictSame(asked, [
    { period: '1h', type: 'A' },
    { period: '24h', name: 'app.example.org', type: 'AAAA' },
  ])
  for (const query of ['period=2h', 'period=', 'limit=1', `name=${'x'.repeat(1021)}`]) {
    t.equal((await get(`/v1/traffic?${query}`)).status, 400, query)
  }
})

t.test('no report', async (t) => {
  const off = await (await open(t, undefined))('/v1/traffic')
  t.match(off, { status: 404, body: { detail: /set `console on`/ } })
  const early = await (await open(t, { report: () => undefined }))('/v1/traffic')
  t.match(early, { status: 503 })
  const report = () => {
    throw new InputError(undefined, 'name: not a domain name')
  }
  const invalid = await (await open(t, { report }))('/v1/traffic?name=a..b')
  t.match(invalid, { status: 400, body: { detail: 'name: not a domain name' } })
})
