import t, { type Test } from 'tap'
import { openAdmin } from '../../../src/api/admin/open-admin.ts'
import { ROUTES } from '../../../src/api/admin/routes.ts'
import type { AdminSite } from '../../../src/plugin/admin.ts'
import type { FleetAnswer, FleetQuestion, FleetServer } from '../../../src/plugin/admin-fleet.ts'
import { Fleet } from '../../../src/plugins/admin/fleet.ts'
import { ownViews } from '../../../src/plugins/admin/own-views.ts'
import { adminSite, STATUS } from '../../support/admin-site.ts'
import { fetchLocal } from '../../support/http-client.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

const SERVER: FleetServer = {
  name: 'ns2',
  address: 'https://192.0.2.2:9154',
  isSelf: false,
  state: 'up',
  error: '',
  ageSeconds: 0.5,
  report: {
    version: '1',
    uptimeSeconds: 60,
    notReady: ['kuadrant: records are not loaded yet'],
    problemCounts: { manifest: 2 },
    queriesPerSecond: 1.5,
    zones: [{ zone: 'example.org.', directive: 'file', serial: null }],
    zonesOmitted: 1,
    peers: [{ peer: '192.0.2.1:53', site: 'rome', isUp: true, ageSeconds: null }],
    peersOmitted: 2,
    drains: ['site:a'],
    drainsOmitted: 3,
  },
}

async function open(t: Test, answer: FleetAnswer, changed: Partial<AdminSite> = {}) {
  const asked: (readonly [string, FleetQuestion])[] = []
  const ask = async (name: string, question: FleetQuestion) => {
    asked.push([name, question])
    return answer
  }
  const down: FleetServer = {
    ...SERVER,
    name: 'ns3',
    state: 'unread',
    ageSeconds: null,
    report: null,
  }
  const { site } = adminSite({ fleet: { list: async () => [SERVER, down], ask }, ...changed })
  const listener = await openAdmin(site, undefined)
  t.teardown(() => listener.close())
  const { port } = listener
  const get = (path: string) => fetchLocal(port, { path })
  const post = (path: string, body: object) => {
    const headers = { 'content-type': 'application/json' }
    return fetchLocal(port, { method: 'POST', path, headers }, JSON.stringify(body))
  }
  return { get, post, port, asked }
}

const DEEP = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
const reply = (json: unknown): FleetAnswer => ({ kind: 'reply', json })

t.test('the servers of the fleet', async (t) => {
  const { get } = await open(t, reply(null))
  const { servers } = JSON.parse((await get('/v1/fleet')).body)
  t.strictSame(servers[0], SERVER)
  t.match(servers[1], { state: 'unread', report: null })
})

t.test('a view of another server', async (t) => {
  const { get, post, asked } = await open(
    t,
    reply({ ...STATUS, later: 'a member of a later version' }),
  )
  const answer = await get('/v1/status?server=ns2')
  t.match(JSON.parse(answer.body), { ...STATUS, later: 'a member of a later version' })
  t.match(answer.headers, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
  })
  await get('/v1/events?limit=5&server=ns2')
  const question = { name: 'a&b=c.example.org', client: '192.0.2.1' }
  await post('/v1/explain?server=ns2', question)
  t.strictSame(asked, [
    ['ns2', { method: 'GET', path: '/v1/status', body: undefined }],
    ['ns2', { method: 'GET', path: '/v1/events?limit=5&after=0', body: undefined }],
    ['ns2', { method: 'POST', path: '/v1/explain', body: { ...question, type: 'A', seed: 1 } }],
  ])
})

t.test('what is not a view stays on this server', async (t) => {
  const { get, post, port, asked } = await open(t, reply({}))
  const table = [
    await get('/v1/fleet?server=ns2'),
    await get('/openapi.json?server=ns2'),
    await post('/v1/drains?server=ns2', { selector: 'site:a' }),
    await fetchLocal(port, { method: 'DELETE', path: '/v1/drains?id=1&server=ns2' }),
    await get('/v1/status?server=ns2&server=ns3'),
    await get('/v1/status?server='),
    await get(`/v1/status?server=${'x'.repeat(64)}`),
    await get('/v1/events?limit=x&server=ns2'),
  ]
  for (const [i, { status }] of table.entries()) t.equal(status, 400, `row ${i}`)
  t.strictSame(asked, [])
})

t.test('no operation that changes something can be sent on', async (t) => {
  const { port, asked } = await open(t, reply({}))
  const headers = { 'content-type': 'application/json' }
  for (const { method, path } of ROUTES.filter(({ method }) => method !== 'GET')) {
    await fetchLocal(port, { method, path: `${path}?server=ns2`, headers }, '{"name":"a"}')
  }
  t.strictSame(
    asked.map(([, { path }]) => path),
    ['/v1/explain'],
  )
})

t.test('faults of another server are problems that name it', async (t) => {
  const table: readonly (readonly [FleetAnswer, number, RegExp])[] = [
    [{ kind: 'fault', status: 502, detail: 'no server listens' }, 502, /server ns2: no server/],
    [{ kind: 'fault', status: 504, detail: 'no reply' }, 504, /server ns2: no reply/],
    [{ kind: 'fault', status: 400, detail: 'invalid name' }, 400, /server ns2: invalid name/],
    [reply(null), 502, /server ns2: the reply has another form/],
    [reply([]), 502, /another form/],
    [reply('text'), 502, /another form/],
    [reply({ ...STATUS, zones: 5 }), 502, /another form/],
    [reply({ ...STATUS, zones: [null] }), 502, /another form/],
    [reply({ version: '1' }), 502, /another form/],
    [reply({ ...STATUS, later: JSON.parse(DEEP) }), 502, /another form/],
  ]
  for (const [answer, status, detail] of table) {
    const { get } = await open(t, answer)
    const answered = await get('/v1/status?server=ns2')
    t.equal(answered.status, status, String(detail))
    t.match(JSON.parse(answered.body).detail, detail)
  }
})

t.test('a client needs the token for the fleet and for views of others', async (t) => {
  const tokens = { roleOf: () => undefined, fault: '' }
  const { get, asked } = await open(t, reply(STATUS), { tokens })
  for (const path of ['/v1/fleet', '/v1/status?server=ns2']) t.equal((await get(path)).status, 401)
  t.strictSame(asked, [])
})

t.test('a server that is named as its own peer answers once', async (t) => {
  let asked = 0
  const status = () => {
    asked++
    return STATUS
  }
  const held: { fleet?: Fleet } = {}
  const fleet: AdminSite['fleet'] = {
    list: () => held.fleet!.list(),
    ask: (name, question) => held.fleet!.ask(name, question),
  }
  const { site } = adminSite({ status, fleet })
  const listener = await openAdmin(site, undefined)
  t.teardown(() => listener.close())
  const { port } = listener
  const self = { name: 'me', origin: `http://127.0.0.1:${port}`, token: '', ca: '' }
  const parts = { clock: new FakeClock(), timers: new FakeTimers() }
  held.fleet = new Fleet([self], site.address, ownViews(site), parts)
  t.teardown(() => held.fleet?.close())
  const answer = await fetchLocal(port, { path: '/v1/status?server=me' })
  t.strictSame(JSON.parse(answer.body), STATUS)
  t.equal(asked, 1)
  const list = JSON.parse((await fetchLocal(port, { path: '/v1/fleet' })).body)
  t.match(list, { servers: [{ name: 'me', isSelf: true, state: 'up' }] })
  t.equal(asked, 3, 'its own status, and the one over HTTP')
})
