import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { openAdmin } from '../../../src/api/admin/open-admin.ts'
import type { AdminSite, AdminTokens } from '../../../src/plugin/admin.ts'
import { adminSite, STATUS } from '../../support/admin-site.ts'
import { selfSigned } from '../../support/certificate.ts'
import { fetchLocal } from '../../support/http-client.ts'

const TOKEN = 'Bearer right'
const tokens: AdminTokens = {
  roleOf: (header) => (header === TOKEN ? 'operate' : undefined),
  fault: '',
}

async function open(t: Test, changed: Partial<AdminSite> = {}) {
  const stage = adminSite(changed)
  const listener = await openAdmin(stage.site, undefined)
  t.teardown(() => listener.close())
  const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
    fetchLocal(listener.port, { path, headers })
  return { ...stage, listener, get, port: listener.port }
}

function problemOf(answer: { body: string; headers: Readonly<Record<string, unknown>> }) {
  const isProblem = String(answer.headers['content-type']).startsWith('application/problem+json')
  return isProblem ? JSON.parse(answer.body) : undefined
}

t.test('the status is what the site reports', async (t) => {
  const { get } = await open(t)
  const answer = await get('/v1/status')
  t.equal(answer.status, 200)
  t.match(answer.headers, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  })
  t.notOk('access-control-allow-origin' in answer.headers, 'no CORS')
  t.strictSame(JSON.parse(answer.body), STATUS)
})

t.test('events after an id', async (t) => {
  const { get, events } = await open(t)
  events.add({ actor: { kind: 'start', name: 'Corefile' }, text: 'the Corefile is served' })
  events.add({
    actor: { kind: 'probe', name: 'default/www' },
    ...{ zone: 'example.org.', serial: 2, name: 'www.example.org.', type: 'A' },
    before: ['192.0.2.1'],
    after: [],
  })
  const all = JSON.parse((await get('/v1/events')).body)
  t.strictSame(all.events, events.after(0, 10))
  t.equal(all.lastId, events.lastId)
  const [first, second] = all.events
  const later = JSON.parse((await get(`/v1/events?after=${first.id}`)).body)
  t.strictSame(later.events, [second])
  t.strictSame(JSON.parse((await get('/v1/events?limit=1')).body).events, [first])
})

t.test('requests that can not be answered are problems', async (t) => {
  const { port, lines } = await open(t)
  const json = { 'content-type': 'application/json' }
  const big = '"'.padEnd(70_000, 'x')
  const table = [
    { path: '/v1/events?after=x', status: 400 },
    { path: '/v1/events?after=-1', status: 400 },
    { path: '/v1/events?after=9007199254740993', status: 400 },
    { path: '/v1/events?limit=1001', status: 400 },
    { path: '/v1/events?limit=1&limit=2', status: 400 },
    { path: '/v1/events?color=red', status: 400 },
    { path: '/v1/status?x', status: 400 },
    { path: '/', status: 404 },
    { path: '/v1/status/', status: 404 },
    { path: '/v2/status', status: 404 },
    { path: '/../../etc/passwd', status: 404 },
    { path: '/%2e%2e/%2e%2e/etc/passwd', status: 404 },
    { path: '/v1/%zz', status: 400 },
    { path: `/${'x'.repeat(3000)}`, status: 404 },
    { method: 'POST', path: '/v1/status', status: 405 },
    { method: 'DELETE', path: '/v1/events', status: 405 },
    { method: 'OPTIONS', path: '/v1/status', status: 405 },
    { method: 'POST', path: '/v1/status', body: '{', headers: json, status: 400 },
    { method: 'POST', path: '/v1/status', body: big, headers: json, status: 413 },
    { path: '/v1/status', headers: { host: 'evil.example' }, status: 403 },
    { path: '/none', headers: { host: 'evil.example' }, status: 403 },
  ]
  for (const { status, body, ...request } of table) {
    const answer = await fetchLocal(port, request, body)
    const what = `${request.method ?? 'GET'} ${request.path.slice(0, 40)}`
    t.equal(answer.status, status, what)
    const problem = problemOf(answer)
    t.match(problem, { type: 'about:blank', status, title: String, detail: /./ }, what)
    t.notMatch(answer.body, /at |\.ts|node_modules/, 'no stack trace')
    if (status === 405) t.equal(answer.headers.allow, 'GET, HEAD', what)
  }
  t.strictSame(
    lines.filter((line) => !line.includes('Host header')),
    [],
  )
})

t.test('the detail of a problem names the field', async (t) => {
  const { port } = await open(t)
  const post = async (body: object): Promise<string> => {
    const headers = { 'content-type': 'application/json' }
    const request = { method: 'POST', path: '/v1/explain', headers }
    return problemOf(await fetchLocal(port, request, JSON.stringify(body))).detail
  }
  t.match(await post({ name: 'a', colour: 'red' }), /"colour"/)
  t.match(await post({ client: '192.0.2.1' }), /'name'/)
  t.match(await post({ name: 'a', seed: -1 }), /seed/)
})

t.test('an explanation names the alias that an endpoint is from', async (t) => {
  const endpoint = {
    record: 'default/app',
    origin: { kind: 'cluster' },
    ...{ setIdentifier: '', codes: [], location: '', ttlSeconds: 60, targets: ['192.0.2.1'] },
    ...{ alias: 'lb.example.com.', out: [], dropped: '', share: 1, isChosen: true },
  }
  const step = {
    ...{ name: 'a.', owner: 'a.', type: 'A', zone: '.', rdata: [], notes: [] },
    ...{ ttlSeconds: 60, ttlReason: '', endpoints: [endpoint] },
  }
  const explanation = {
    ...{ name: 'a.', type: 'A', seed: 1, answer: [], rcode: 'NOERROR', reply: '', steps: [step] },
    client: { address: '192.0.2.1/32', source: 'source address', reason: '' },
    server: { address: '', zone: '', view: '', directive: '' },
    end: { kind: 'answer', text: '' },
  }
  const { port } = await open(t, { explain: async () => explanation })
  const headers = { 'content-type': 'application/json' }
  const request = { method: 'POST', path: '/v1/explain', headers }
  const answer = await fetchLocal(port, request, '{"name": "a.", "client": "192.0.2.1"}')
  t.strictSame(JSON.parse(answer.body), explanation)
})

t.test('web pages of other sites can not make a browser send a question', async (t) => {
  let asked = 0
  const explain = async () => {
    asked++
    return undefined
  }
  const { port } = await open(t, { explain })
  const host = `127.0.0.1:${port}`
  const body = JSON.stringify({ name: 'app.example.org', client: '192.0.2.1' })
  const json = { 'content-type': 'application/json; charset=utf-8' }
  const table = [
    { headers: {}, status: 415 },
    { headers: { 'content-type': 'text/plain' }, status: 415 },
    { headers: { 'content-type': 'application/x-www-form-urlencoded' }, status: 415 },
    { headers: { 'content-type': 'text/plain; application/json' }, status: 415 },
    { headers: { ...json, origin: 'https://evil.example' }, status: 403 },
    { headers: { ...json, origin: 'null' }, status: 403 },
    { headers: { ...json, origin: `http://${host}.evil.example` }, status: 403 },
    { headers: { ...json, origin: 'http://127.0.0.1:1' }, status: 403 },
    { headers: { ...json, 'sec-fetch-site': 'cross-site' }, status: 403 },
    { headers: { ...json, 'sec-fetch-site': 'same-site' }, status: 403 },
    { headers: json, status: 503 },
    {
      headers: { ...json, origin: `http://${host}`, 'sec-fetch-site': 'same-origin' },
      status: 503,
    },
    { headers: { ...json, 'sec-fetch-site': 'none' }, status: 503 },
  ]
  for (const { headers, status } of table) {
    const before = asked
    const request = { method: 'POST', path: '/v1/explain', headers: { host, ...headers } }
    const answer = await fetchLocal(port, request, body)
    t.equal(answer.status, status, JSON.stringify(headers))
    t.equal(problemOf(answer)?.status, status)
    t.equal(asked - before, status === 503 ? 1 : 0, 'no effect')
  }
})

t.test('web pages of other sites can not change drains', async (t) => {
  const fail = async () => {
    throw new Error('called')
  }
  const { port } = await open(t, {
    drains: { list: () => ({ drains: [], drainsOmitted: 0 }), add: fail, end: fail },
  })
  const json = { 'content-type': 'application/json' }
  const path = '/v1/drains'
  const body = JSON.stringify({ selector: 'site:dublin' })
  for (const [headers, status] of [
    [{ 'content-type': 'text/plain' }, 415],
    [{ ...json, origin: 'https://evil.example' }, 403],
    [{ ...json, 'sec-fetch-site': 'cross-site' }, 403],
  ] as const) {
    t.equal((await fetchLocal(port, { method: 'POST', path, headers }, body)).status, status)
  }
  for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'same-site' }]) {
    const request = { method: 'DELETE', path: `${path}?id=1`, headers }
    t.equal((await fetchLocal(port, request)).status, 403)
  }
  const preflight = { origin: 'https://evil.example', 'access-control-request-method': 'DELETE' }
  const answer = await fetchLocal(port, { method: 'OPTIONS', path, headers: preflight })
  t.equal(answer.status, 405)
  t.notOk('access-control-allow-methods' in answer.headers)
})

t.test('names of `host`, localhost and addresses reach an API without a token', async (t) => {
  const { get } = await open(t, { hosts: ['admin.example.org'] })
  for (const host of [
    'admin.example.org',
    'ADMIN.example.org:9154',
    'localhost:1',
    '127.0.0.1',
    '[::1]:9154',
  ]) {
    t.equal((await get('/v1/status', { host })).status, 200, host)
  }
  for (const host of ['x.admin.example.org', 'localhost.evil.example', '127.0.0.1.evil.example']) {
    t.equal((await get('/v1/status', { host })).status, 403, host)
  }
})

t.test('a token', async (t) => {
  const { get, lines } = await open(t, { tokens })
  for (const path of ['/v1/status', '/openapi.json', '/none']) {
    for (const authorization of ['Bearer wrong', 'Basic right', '', 'right']) {
      const answer = await get(path, { authorization, host: 'any.example' })
      t.equal(answer.status, 401, `${path} ${authorization}`)
      t.equal(answer.headers['www-authenticate'], 'Bearer realm="sextant"')
      t.equal(problemOf(answer)?.status, 401)
    }
  }
  t.equal((await get('/v1/status', { authorization: TOKEN, host: 'any.example' })).status, 200)
  t.strictSame(lines, ['[WARNING] plugin/admin: request of 127.0.0.1 is refused: no valid token'])
})

t.test('a fault of the server is logged, and the client gets no details', async (t) => {
  const status = () => {
    throw new Error('secret reason')
  }
  const { get, lines } = await open(t, { status })
  const answer = await get('/v1/status')
  t.equal(answer.status, 500)
  t.equal(problemOf(answer)?.status, 500)
  t.notMatch(answer.body, 'secret')
  t.match(lines[0], '[ERROR] plugin/admin: GET /v1/status: Error: secret reason')
})

t.test('a listener serves another site from the next request on', async (t) => {
  const { get, listener } = await open(t)
  t.equal((await get('/v1/status')).status, 200)
  listener.use(adminSite({ tokens }).site)
  t.equal((await get('/v1/status')).status, 401)
  listener.use(adminSite({ status: () => ({ ...STATUS, pid: 7 }) }).site)
  t.equal(JSON.parse((await get('/v1/status')).body).pid, 7)
})

t.test('a client that sends slowly is cut', async (t) => {
  const { port } = await open(t)
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.on('data', (chunk) => {
    text += String(chunk)
  })
  socket.write('GET /v1/status HTTP/1.1\r\nHost: loc')
  await new Promise((resolve) => socket.once('close', resolve))
  t.match(text, /^HTTP\/1\.1 408 /)
  t.match(JSON.parse(text.split('\r\n\r\n')[1]!), { status: 408, detail: /too long to arrive/ })
})

t.test('malformed HTTP gets 400, and the server goes on', async (t) => {
  const { port, get } = await open(t)
  for (const octets of [
    'nonsense\r\n\r\n',
    '\0\x01\x02\r\n',
    `GET / HTTP/1.1\r\nx: ${'y'.repeat(9000)}\r\n\r\n`,
  ]) {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    socket.on('data', (chunk) => {
      text += String(chunk)
    })
    socket.on('error', () => {})
    socket.write(octets)
    await new Promise((resolve) => socket.once('close', resolve))
    const [, status] = /^HTTP\/1\.1 (400|431) /.exec(text) ?? []
    t.match(text, '\r\ncontent-type: application/problem+json', JSON.stringify(octets.slice(0, 10)))
    const problem = JSON.parse(text.split('\r\n\r\n')[1]!)
    t.match(problem, { type: 'about:blank', status: Number(status), title: String, detail: /./ })
  }
  t.equal((await get('/v1/status')).status, 200)
})

t.test('TLS, with a certificate that changes', async (t) => {
  const first = selfSigned('ns1.example.org')
  const second = selfSigned('ns1.example.org')
  let changed: typeof first | undefined
  const certificate = {
    read: () => first,
    readChanged: () => {
      const now = changed
      changed = undefined
      return now
    },
  }
  const { port } = await open(t, { tokens, certificate })
  const get = (ca: string) =>
    fetchLocal(port, {
      path: '/v1/status',
      headers: { authorization: TOKEN },
      ca,
      servername: 'ns1.example.org',
    })
  t.equal((await get(first.cert)).status, 200)
  await t.rejects(get(second.cert), 'the second certificate is not used yet')
  changed = second
  t.equal((await get(second.cert)).status, 200)
  await t.rejects(get(first.cert), 'the first certificate is not used any more')
  const plain = await fetchLocal(port, { path: '/v1/status' }).catch(() => undefined)
  t.not(plain?.status, 200, 'no HTTP without TLS')
})
