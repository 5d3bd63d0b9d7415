import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { openAdmin } from '../../../src/api/admin/open-admin.ts'
import type { AdminSite, AdminTokens } from '../../../src/plugin/admin.ts'
import { adminSite } from '../../support/admin-site.ts'
import { selfSigned } from '../../support/certificate.ts'
import { fetchLocal } from '../../support/http-client.ts'

// Long: it sends many requests at once.

const HOST = 'Host: localhost\r\n'
const TOKEN = 'Bearer right'
const tokens: AdminTokens = {
  roleOf: (header) => (header === TOKEN ? 'operate' : undefined),
  fault: '',
}

async function open(t: Test, changed: Partial<AdminSite> = {}) {
  const stage = adminSite(changed)
  const { port, close } = await openAdmin(stage.site, undefined)
  t.teardown(close)
  return { ...stage, port }
}

/** Longer than all limits of the server, for a busy machine. */
const EXCHANGE_MS_MAX = 30_000

/** Sends octets on a connection of their own; resolves to all that is received until the server ends it. */
function exchange(port: number, octets: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    let text = ''
    socket.setEncoding('latin1')
    socket.on('data', (chunk) => {
      text += chunk
    })
    // A server that ends a connection before it has read everything resets it.
    socket.on('error', () => {})
    socket.on('close', () => resolve(text))
    socket.setTimeout(EXCHANGE_MS_MAX, () => {
      text = 'the server did not end the connection'
      socket.destroy()
    })
    socket.write(octets, 'latin1')
  })
}

/** The problem document of a reply, whether or not it is in chunks. */
function problemOf(reply: string): unknown {
  t.match(reply, /\r\ncontent-type: application\/problem\+json/i)
  t.notMatch(reply, /\.ts:\d|node_modules/, 'no stack trace')
  return JSON.parse(/\{.*\}/.exec(reply)?.[0] ?? 'null')
}

t.test('requests that clients and proxies could read in different ways', async (t) => {
  const { port } = await open(t, { tokens })
  const allowed = `Authorization: ${TOKEN}\r\n`
  const end = 'Connection: close\r\n\r\n'
  const post = `POST /v1/explain HTTP/1.1\r\n${HOST}${allowed}Content-Type: application/json\r\n`
  const get = (headers: string): string => `GET /v1/status HTTP/1.1\r\n${headers}${end}`
  const table: readonly [string, string, number][] = [
    ['a valid request', get(HOST + allowed), 200],
    ['no Host', get(allowed), 400],
    ['two Hosts', get(`${HOST}Host: other.example\r\n${allowed}`), 400],
    ['a valid token, then another', get(`${HOST}${allowed}Authorization: Bearer wrong\r\n`), 400],
    [
      'another token, then a valid one',
      get(`${HOST}Authorization: Bearer wrong\r\n${allowed}`),
      400,
    ],
    ['a folded header', get(`${HOST}X: y\r\n ${allowed}`), 400],
    ['a space before the colon', get(`${HOST}Authorization : ${TOKEN}\r\n`), 400],
    [
      'a token in the user information',
      `GET http://right@localhost/v1/status HTTP/1.1\r\n${HOST}${end}`,
      401,
    ],
    ['HTTP/1.0 without Host', `GET /v1/status HTTP/1.0\r\n${allowed}\r\n`, 200],
    ['HTTP/1.0 without a token', 'GET /v1/status HTTP/1.0\r\n\r\n', 401],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400],
    ['an unknown expectation', get(`${HOST}${allowed}Expect: magic\r\n`), 200],
    ['an unknown expectation without a token', get(`${HOST}Expect: magic\r\n`), 401],
    ['TRACE', `TRACE /v1/status HTTP/1.1\r\n${HOST}${allowed}${end}`, 405],
    ['an unknown method', `BREW /v1/status HTTP/1.1\r\n${HOST}${allowed}${end}`, 400],
    ['OPTIONS *', `OPTIONS * HTTP/1.1\r\n${HOST}${allowed}${end}`, 404],
    ['two lengths', `${post}Content-Length: 2\r\nContent-Length: 3\r\n${end}{} `, 400],
    [
      'a length and chunks',
      `${post}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n${end}{}`,
      400,
    ],
    ['a chunk that is no chunk', `${post}Transfer-Encoding: chunked\r\n${end}zz\r\n{}`, 400],
    [
      'a chunk of 2^64 octets',
      `${post}Transfer-Encoding: chunked\r\n${end}10000000000000000\r\n{`,
      400,
    ],
    ['a length above the limit', `${post}Content-Length: 9007199254740991\r\n${end}`, 413],
    ['a negative length', `${post}Content-Length: -1\r\n${end}`, 400],
    ['a body that ends early', `${post}Content-Length: 100\r\n${end}{`, 408],
  ]
  for (const [what, octets, status] of table) {
    const reply = await exchange(port, octets)
    t.match(reply, new RegExp(`^HTTP/1\\.1 ${status} `), what)
    if (status !== 200) t.match(problemOf(reply), { status, detail: /./ }, what)
  }
})

t.test('a token counts before the body is read', async (t) => {
  const { port } = await open(t, { tokens })
  const headers = `${HOST}Content-Type: application/json\r\nContent-Length: 60000\r\nConnection: close\r\n\r\n`
  t.match(problemOf(await exchange(port, `POST /v1/explain HTTP/1.1\r\n${headers}`)), {
    status: 401,
  })
})

t.test('values of a body keep their types, and numbers of a query are digits', async (t) => {
  const { port } = await open(t)
  const headers = { 'content-type': 'application/json' }
  const post = (path: string, body: unknown) =>
    fetchLocal(port, { method: 'POST', path, headers }, JSON.stringify(body))
  for (const changed of [
    { reason: 5 },
    { reason: null },
    { reason: ['x'] },
    { allowEmpty: 'true' },
    { allowEmpty: 1 },
    { selector: 5 },
  ]) {
    const answer = await post('/v1/drains', { selector: 'site:dublin', ...changed })
    t.equal(answer.status, 400, JSON.stringify(changed))
  }
  for (const body of [
    null,
    [],
    'x',
    5,
    { name: 'a', seed: '1' },
    { name: 'a', seed: true },
    { name: 5 },
  ]) {
    t.equal((await post('/v1/explain', body)).status, 400, JSON.stringify(body))
  }
  for (const value of [
    '',
    '%20',
    '1e2',
    '0x10',
    '1.5',
    '1.0',
    'true',
    'null',
    '+1',
    '-0.5',
    '1,2',
  ]) {
    const answer = await fetchLocal(port, { path: `/v1/events?limit=${value}` })
    t.equal(answer.status, 400, `limit=${value}`)
  }
  for (const query of ['limit=1&limit=2', 'limit[]=1', '__proto__=1', 'constructor=1', 'LIMIT=1']) {
    t.equal((await fetchLocal(port, { path: `/v1/events?${query}` })).status, 400, query)
  }
  t.equal((await fetchLocal(port, { path: '/v1/events?limit=1&after=0' })).status, 200)
})

t.test('a client that does not finish a TLS handshake is cut', async (t) => {
  const certificate = { read: () => selfSigned('ns1.example.org'), readChanged: () => undefined }
  const { port, lines } = await open(t, { tokens, certificate })
  const table = [
    ['nothing', ''],
    ['the start of a record', '\x16\x03\x01\x02'],
    ['the start of a ClientHello', '\x16\x03\x01\x02\x00\x01\x00'],
    ['a record that is too long', '\x16\x03\x01\xff\xff'],
    ['HTTP without TLS', `GET /v1/status HTTP/1.1\r\n${HOST}\r\n`],
  ] as const
  const replies = await Promise.all(table.map(([, octets]) => exchange(port, octets)))
  for (const [i, reply] of replies.entries()) {
    // TLS may send an alert.
    t.notMatch(reply, /HTTP|the server did not/, table[i]![0])
  }
  t.strictSame(lines, [])
})
