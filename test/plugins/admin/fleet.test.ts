import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createServer as createTcpServer, type Server } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { FleetServer } from '../../../src/plugin/admin-fleet.ts'
import { Fleet } from '../../../src/plugins/admin/fleet.ts'
import type { FleetMember } from '../../../src/plugins/admin/fleet-member.ts'
import { readFleetReport } from '../../../src/plugins/admin/fleet-report.ts'
import { ownViews } from '../../../src/plugins/admin/own-views.ts'
import { STATUS } from '../../support/admin-site.ts'
import { selfSigned } from '../../support/certificate.ts'
import { freePort } from '../../support/free-port.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

const TOKEN = 'a'.repeat(32)
const OTHER_STATUS = { ...STATUS, pid: 2, version: '9.9.9' }
/** Ample, for a machine on which other tests run too. */
const READ_MS = 30_000
const SLOW_MS = 300

async function listen(t: Test, server: Server): Promise<number> {
  const open = new Set<{ destroy(): void }>()
  server.on('connection', (socket) => open.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

const serve = (t: Test, listener: RequestListener) => listen(t, createServer(listener))
const json = (body: unknown, status = 200): RequestListener => {
  return (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }
}
/** An admin API: its status and drains. */
const healthy: RequestListener = (request, response) => {
  if (request.url === '/v1/status') return json(OTHER_STATUS)(request, response)
  if (request.url === '/v1/drains') {
    return json({ drains: [{ selector: 'site:a' }], drainsOmitted: 2 })(request, response)
  }
  if (request.url === '/v1/traffic?period=10m') {
    return json({ queries: [0, 7.5] })(request, response)
  }
  return json({ detail: 'not known' }, 404)(request, response)
}

function member(name: string, origin: string, files: Partial<FleetMember> = {}): FleetMember {
  return { name, origin, token: '', ca: '', ...files }
}

function openFleet(t: Test, members: readonly FleetMember[], msMax = READ_MS) {
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const drains = { list: () => ({ drains: [], drainsOmitted: 0 }) }
  const own = ownViews({
    status: () => STATUS,
    drains: { ...drains, add: async () => undefined, end: async () => [] },
    traffic: () => undefined,
  })
  const bounds = { msMax, octetsMax: 100_000 }
  const parts = { clock, timers }
  const fleet = new Fleet(members, 'localhost:9154', own, parts, { read: bounds, ask: bounds })
  t.teardown(() => fleet.close())
  return { fleet, clock, timers }
}

/** Reads one other server. */
async function readOne(t: Test, one: FleetMember, msMax = READ_MS): Promise<FleetServer> {
  const servers = await openFleet(t, [one], msMax).fleet.list()
  return servers.find(({ name }) => name === one.name)!
}

t.test('this server, and one that can be read', async (t) => {
  const port = await serve(t, healthy)
  const { fleet, clock } = openFleet(t, [member('ns2', `http://127.0.0.1:${port}`)])
  const [self, other] = await fleet.list()
  t.match(self, { name: '', address: 'localhost:9154', isSelf: true, state: 'up', ageSeconds: 0 })
  t.match(self?.report, { version: STATUS.version, uptimeSeconds: 60, drains: [] })
  t.match(other, { name: 'ns2', isSelf: false, state: 'up', error: '' })
  t.match(other?.report, {
    version: '9.9.9',
    uptimeSeconds: 60,
    notReady: ['kuadrant: records are not loaded yet'],
    problemCounts: { 'refused-record': 3 },
    queriesPerSecond: 7.5,
    zones: [
      { zone: 'example.net.', directive: 'file', serial: null },
      { zone: 'example.org.', directive: 'kuadrant', serial: 2026010100 },
    ],
    zonesOmitted: 0,
    peers: [{ peer: '192.0.2.53:53', site: 'eu1', isUp: false, ageSeconds: null }],
    drains: ['site:a'],
    drainsOmitted: 2,
  })
  clock.pass(1500)
  t.equal((await fleet.list())[1]?.ageSeconds, 1.5)
})

t.test(
  'servers are read only while a client asks, and not more often than every 4 s',
  async (t) => {
    let asked = 0
    const port = await serve(t, (request, response) => {
      if (request.url === '/v1/status') asked++
      healthy(request, response)
    })
    const { fleet, clock } = openFleet(t, [member('ns2', `http://127.0.0.1:${port}`)])
    t.equal(asked, 0)
    await Promise.all([fleet.list(), fleet.list()])
    await fleet.list()
    t.equal(asked, 1)
    clock.pass(3999)
    await fleet.list()
    t.equal(asked, 1)
    clock.pass(1)
    await fleet.list()
    await until(async () => asked === 2, 'the second read')
  },
)

t.test('a server that fails keeps its last report, with its age', async (t) => {
  let isUp = true
  const port = await serve(t, (request, response) => {
    if (isUp) healthy(request, response)
    else request.socket.destroy()
  })
  const { fleet, clock } = openFleet(t, [member('ns2', `http://127.0.0.1:${port}`)])
  await fleet.list()
  isUp = false
  clock.pass(5000)
  await until(async () => (await fleet.list())[1]?.state === 'down', 'the failure')
  const failed = (await fleet.list())[1]
  t.match(failed, { error: /ended without a reply/, ageSeconds: 5, report: { version: '9.9.9' } })
  isUp = true
  clock.pass(5000)
  await until(async () => (await fleet.list())[1]?.state === 'up', 'the recovery')
  t.match((await fleet.list())[1], { error: '', ageSeconds: 0 })
})

t.test('a slow server does not delay the others', async (t) => {
  const [slow, port] = [await serve(t, () => {}), await serve(t, healthy)]
  const members = [
    member('slow', `http://127.0.0.1:${slow}`),
    member('ns2', `http://127.0.0.1:${port}`),
  ]
  const { fleet, timers } = openFleet(t, members)
  const list = async (): Promise<readonly FleetServer[]> => {
    const listed = fleet.list()
    await timers.advance(1500)
    return await listed
  }
  await until(async () => (await list())[2]?.state === 'up', 'the other server')
  t.match((await list())[1], { name: 'slow', state: 'unread', error: '', report: null })
  fleet.close()
  await until(async () => (await list())[1]?.state === 'down', 'the end of the read')
})

t.test('a server that does not answer in time is down', async (t) => {
  const port = await serve(t, () => {})
  const server = await readOne(t, member('slow', `http://127.0.0.1:${port}`), SLOW_MS)
  t.match(server, { state: 'down', error: /no complete reply within 0.3 s/ })
})

t.test('bad servers are down, each with the reason', async (t) => {
  const elsewhere = await serve(t, healthy)
  const { cert, key } = selfSigned('localhost')
  const other = selfSigned('ns9.example.org')
  const tls = await listen(t, createTlsServer({ cert, key }, healthy))
  const otherTls = await listen(t, createTlsServer({ ...other }, healthy))
  const files = t.testdir({
    token: TOKEN,
    ca: cert,
    otherCa: other.cert,
    noToken: 'a b',
    noCa: 'x',
  })
  const file = (name: string) => join(files, name)
  const redirect: RequestListener = (_, response) => {
    response.writeHead(302, { location: `http://127.0.0.1:${elsewhere}/v1/status` }).end()
  }
  const huge: RequestListener = (_, response) => {
    response.writeHead(200)
    response.write(`{"version":"1","zones":["${'x'.repeat(200_000)}`)
  }
  const raw = (text: string) =>
    listen(
      t,
      createTcpServer((socket) => void socket.end(text)),
    )
  const refuses = json({ detail: 'the request needs the header `Authorization`' }, 401)
  type Row = readonly [what: string, port: number, error: RegExp, origin?: string, at?: object]
  const table: readonly Row[] = [
    ['down', await freePort(), /no server listens/],
    ['huge', await serve(t, huge), /too long/],
    ['redirects', await serve(t, redirect), /status 302: redirects are not followed/],
    ['HTML', await serve(t, (_, r) => void r.end('<html>')), /not that of an admin API/],
    ['empty', await serve(t, (_, r) => void r.end()), /not that of an admin API/],
    ['null', await serve(t, json(null)), /not that of an admin API/],
    ['a list', await serve(t, json([])), /not that of an admin API/],
    ['a number as version', await serve(t, json({ version: 1 })), /not that of an admin API/],
    ['a long problem', await serve(t, json({ detail: 'x'.repeat(9999) }, 500)), /^x{500}…$/],
    ['a wrong token', await serve(t, refuses), /needs the header/],
    ['no HTTP', await raw('SSH-2.0-x\r\n'), /Parse Error|without a reply/],
    [
      'another protocol',
      await raw('HTTP/1.1 101 x\r\nupgrade: y\r\nconnection: upgrade\r\n\r\n'),
      /101/,
    ],
    ['no TLS', elsewhere, /does not use TLS/, 'https://localhost'],
    ['unknown authority', tls, /self-signed/, 'https://localhost'],
    ['another name', otherTls, /altnames/, 'https://localhost', { ca: file('otherCa') }],
    ['a lost token file', elsewhere, /ENOENT/, 'http://localhost', { token: file('lost') }],
    [
      'an invalid token file',
      elsewhere,
      /has no token/,
      'http://localhost',
      { token: file('noToken') },
    ],
    ['a lost ca file', tls, /ENOENT/, 'https://localhost', { ca: file('lost') }],
    ['an invalid ca file', tls, /self-signed/, 'https://localhost', { ca: file('noCa') }],
  ]
  for (const [what, port, error, origin = 'http://127.0.0.1', at = {}] of table) {
    const server = await readOne(t, member('bad', `${origin}:${port}`, at))
    t.match(server, { state: 'down', error, report: null, ageSeconds: null }, what)
  }
  const good = await readOne(
    t,
    member('ns2', `https://localhost:${tls}`, { ca: file('ca'), token: file('token') }),
  )
  t.match(good, { state: 'up', error: '' }, 'the right authority')
})

t.test('the token goes to its server, and a redirect does not take it elsewhere', async (t) => {
  const seen: (string | undefined)[] = []
  const port = await serve(t, (request, response) => {
    seen.push(request.headers.authorization)
    response.writeHead(302, { location: `http://127.0.0.1:${port}/x` }).end()
  })
  const token = join(t.testdir({ token: `${TOKEN}\n` }), 'token')
  const server = await readOne(t, member('ns2', `http://127.0.0.1:${port}`, { token }))
  t.strictSame(seen, Array(3).fill(`Bearer ${TOKEN}`))
  t.notMatch(JSON.stringify(server), TOKEN)
})

t.test('the server that replies can be one of those that are named', async (t) => {
  const port = await serve(t, json(STATUS))
  const servers = await openFleet(t, [member('ns1', `http://127.0.0.1:${port}`)]).fleet.list()
  t.match(servers, [{ name: 'ns1', isSelf: true, state: 'up' }])
  t.equal(servers.length, 1)
})

t.test('a report of a status of another version or with hostile members', async (t) => {
  const many = (one: object) => Array.from({ length: 300 }, () => one)
  const table: readonly (readonly [unknown, object])[] = [
    [{ version: '0.0.1' }, { uptimeSeconds: null, zones: [], peers: [], notReady: [] }],
    [{ version: 'x'.repeat(999) }, { version: /^x{500}…$/ }],
    [{ version: '1', zones: many({ zone: 'a.' }) }, { zonesOmitted: 100 }],
    [{ version: '1', zones: [null, 5, { serial: '7' }] }, { zones: [{ zone: '', serial: null }] }],
    [{ version: '1', zones: [{ serial: 2 ** 40 }] }, { zones: [{ serial: null }] }],
    [{ version: '1', peers: [{ ageSeconds: {}, isUp: 'yes' }] }, { peers: [{ isUp: false }] }],
    [{ version: '1', problemCounts: { a: 'x', b: 2.5 } }, { problemCounts: { a: 0, b: 2 } }],
    [{ version: '1', problemCounts: [1] }, { problemCounts: {} }],
    [{ version: '1', started: 5, now: 'x' }, { uptimeSeconds: null }],
    [{ version: '1', notReady: [{ plugin: '<b>', text: {} }] }, { notReady: ['<b>: '] }],
  ]
  for (const [status, report] of table) {
    t.match(
      readFleetReport(status, undefined, undefined),
      report,
      JSON.stringify(status).slice(0, 60),
    )
  }
  const drains = { drains: many({ selector: 'site:a' }), drainsOmitted: 5 }
  t.match(readFleetReport({ version: '1' }, drains, { queries: [1, 2.5] }), {
    drainsOmitted: 285,
    queriesPerSecond: 2.5,
  })
  t.match(readFleetReport({ version: '1' }, 'x', { queries: ['y'] }), {
    drains: null,
    queriesPerSecond: null,
  })
})

t.test('a request through this server', async (t) => {
  const port = await serve(t, (request, response) => {
    let body = ''
    request.on('data', (piece) => (body += piece))
    request.on('end', () => {
      const { method, url, headers } = request
      if (url === '/refused') json({ detail: 'no token' }, 401)(request, response)
      else if (url === '/unknown') json({ detail: 'no such name' }, 404)(request, response)
      else json({ method, url, body, type: headers['content-type'] })(request, response)
    })
  })
  const { fleet } = openFleet(t, [member('ns2', `http://127.0.0.1:${port}`)])
  const get = (path: string, name = 'ns2') =>
    fleet.ask(name, { method: 'GET', path, body: undefined })
  t.match(await get('/v1/events?after=5'), { json: { method: 'GET', url: '/v1/events?after=5' } })
  t.match(await fleet.ask('ns2', { method: 'POST', path: '/v1/explain', body: { name: 'a' } }), {
    json: { method: 'POST', body: '{"name":"a"}', type: 'application/json' },
  })
  t.match(await get('/refused'), { status: 502, detail: 'no token' })
  t.match(await get('/unknown'), { status: 404, detail: 'no such name' })
  t.match(await get('/v1/status', 'ns3'), { status: 400, detail: 'it is not one of ns2' })
  t.match(await openFleet(t, []).fleet.ask('a', { method: 'GET', path: '/', body: undefined }), {
    status: 400,
    detail: 'the Corefile names no servers',
  })
})

t.test('requests that wait are bounded, and a stop ends them', async (t) => {
  const port = await serve(t, () => {})
  const { fleet } = openFleet(t, [member('ns2', `http://127.0.0.1:${port}`)])
  const asked = Array.from({ length: 17 }, () => {
    return fleet.ask('ns2', { method: 'GET', path: '/v1/status', body: undefined })
  })
  t.match(await asked[16], { status: 503 })
  fleet.close()
  for (const answer of await Promise.all(asked.slice(0, 16))) t.match(answer, { status: /502|504/ })
})

t.test('texts of a hostile server that are no texts end no read', async (t) => {
  const notPrintable = { toString: null, valueOf: null }
  const status = { ...STATUS, pid: notPrintable, started: notPrintable }
  const port = await serve(t, json(status))
  const one = await readOne(t, member('ns2', `http://127.0.0.1:${port}`))
  t.match(one, { state: 'up', isSelf: false })
})

t.test('a fault of a read is that of the server', async (t) => {
  const clock = new FakeClock()
  const own = async (): Promise<never> => {
    throw new Error('a bug')
  }
  const fleet = new Fleet([], 'localhost:9154', own, { clock, timers: new FakeTimers() })
  t.teardown(() => fleet.close())
  t.match(await fleet.list(), [{ isSelf: true, state: 'down', error: 'a bug' }])
})
