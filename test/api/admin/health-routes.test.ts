import t, { type Test } from 'tap'
import { openAdmin } from '../../../src/api/admin/open-admin.ts'
import type { EndpointPage, EndpointQuery } from '../../../src/plugin/admin-health.ts'
import { adminSite } from '../../support/admin-site.ts'
import { fetchLocal } from '../../support/http-client.ts'

const HOSTILE = '<script>alert(1)</script>\u0000\u001b[2J\u202e"\\'

const PAGE: EndpointPage = {
  from: '2026-01-01T00:00:00.000Z',
  now: '2026-01-02T00:00:00.000Z',
  endpoints: [
    {
      ...{ zone: 'example.org.', name: 'www.example.org.', type: 'A', setIdentifier: HOSTILE },
      ...{ site: HOSTILE, targets: ['192.0.2.1'], record: 'default/www', state: 'down' },
      ...{ detail: HOSTILE, weightPercent: 100, since: '2026-01-01T12:00:00.000Z', before: 'up' },
      transitions: [
        {
          time: '2026-01-01T12:00:00.000Z',
          state: 'down',
          reason: HOSTILE,
          actor: { kind: 'probe', name: HOSTILE },
        },
      ],
    },
  ],
  total: 1,
  states: { down: 1 },
  recordsOmitted: 0,
}

async function open(t: Test, list: (query: EndpointQuery) => Promise<EndpointPage | undefined>) {
  const { site } = adminSite({ health: { list } })
  const listener = await openAdmin(site, undefined)
  t.teardown(() => listener.close())
  return (query: string) => fetchLocal(listener.port, { path: `/v1/health${query}` })
}

t.test('the reply is what the site lists', async (t) => {
  const asked: EndpointQuery[] = []
  const get = await open(t, async (query) => {
    asked.push({ ...query })
    return PAGE
  })
  const { status, body } = await get('')
  t.equal(status, 200)
  t.strictSame(JSON.parse(body), PAGE)
  await get('?zone=example.org&name=%3Cb%3E&state=not%20up&offset=50&limit=200')
  t.strictSame(asked, [
    { offset: 0, limit: 50 },
    { zone: 'example.org', name: '<b>', state: 'not up', offset: 50, limit: 200 },
  ])
})

t.test('parameters are checked', async (t) => {
  const get = await open(t, async () => PAGE)
  for (const query of [
    'limit=201',
    'limit=0',
    'offset=-1',
    'state=broken',
    'x=1',
    'name=a&name=b',
  ]) {
    t.equal((await get(`?${query}`)).status, 400, query)
  }
})

t.test('a server with too many requests refuses more', async (t) => {
  const get = await open(t, async () => undefined)
  t.equal((await get('')).status, 503)
})
