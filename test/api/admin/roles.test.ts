import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { openAdmin } from '../../../src/api/admin/open-admin.ts'
import { ROUTES } from '../../../src/api/admin/routes.ts'
import type { AdminSite, AdminTokens } from '../../../src/plugin/admin.ts'
import { adminSite } from '../../support/admin-site.ts'
import { fetchLocal } from '../../support/http-client.ts'

const VIEW = 'Bearer viewing'
const OPERATE = 'Bearer operating'
const tokens: AdminTokens = {
  roleOf: (header) => (header === VIEW ? 'view' : header === OPERATE ? 'operate' : undefined),
  fault: '',
}

async function open(t: Test, changed: Partial<AdminSite>) {
  const stage = adminSite(changed)
  const listener = await openAdmin(stage.site, undefined)
  t.teardown(() => listener.close())
  return { ...stage, port: listener.port }
}

/** A valid request of each route; of a change, it has no effect. */
function requestOf(method: string, path: string) {
  const query = method === 'DELETE' ? '?id=00000000' : QUERIES[path]
  const body = BODIES[path]
  const isPost = method === 'POST'
  return {
    request: {
      method,
      path: `${path}${query ?? ''}`,
      headers: isPost ? { 'content-type': 'application/json' } : {},
    },
    body: isPost ? JSON.stringify(body) : undefined,
  }
}

const QUERIES: Readonly<Record<string, string>> = { '/v1/map': '?name=app.example.org' }
const BODIES: Readonly<Record<string, object>> = {
  '/v1/explain': { name: 'app.example.org', client: '192.0.2.1' },
  '/v1/map': { name: 'app.example.org', drain: 'site:nowhere' },
  '/v1/what-if': { drain: 'site:nowhere' },
  '/v1/shifts': { name: 'app.example.org', to: 'a', steps: '5%', bake: '1m' },
  '/v1/drains': { selector: 'site:nowhere' },
}

/** The operations that change something. */
const ACTS = [
  ...['POST /v1/drains', 'DELETE /v1/drains'],
  ...['POST /v1/shifts', 'DELETE /v1/shifts'],
]

/** What a client of a listen address may do, by its token. */
const CLIENTS: readonly {
  readonly what: string
  readonly site: Partial<AdminSite>
  readonly headers: Readonly<Record<string, string>>
  /** Status of requests that read, and that act; 0 = they are admitted. */
  readonly reads: number
  readonly acts: number
}[] = [
  { what: 'no token is configured', site: {}, headers: {}, reads: 0, acts: 0 },
  {
    what: 'no token is configured, DNS rebinding',
    site: {},
    headers: { host: 'evil.example' },
    reads: 403,
    acts: 403,
  },
  ...(['cross-site', 'same-site'] as const).flatMap((from) => {
    const headers = { 'sec-fetch-site': from }
    return [
      { what: `no token is configured, ${from}`, site: {}, headers, reads: 403, acts: 403 },
      {
        what: `console on loopback, ${from}`,
        site: { tokens, readsOpenly: true },
        headers,
        reads: 403,
        acts: 403,
      },
    ]
  }),
  {
    what: 'no token is configured, own page',
    site: {},
    headers: { 'sec-fetch-site': 'same-origin' },
    reads: 0,
    acts: 0,
  },
  ...(
    [
      ['console on loopback', true],
      ['console on another address', false],
    ] as const
  ).flatMap(([place, readsOpenly]) => {
    const site = { tokens, readsOpenly }
    const open = readsOpenly ? 0 : 401
    return [
      { what: `${place}, no token`, site, headers: {}, reads: open, acts: 401 },
      ...[
        { host: 'evil.example' },
        { 'x-forwarded-for': '192.0.2.1' },
        { forwarded: 'for=192.0.2.1' },
        { via: '1.1 proxy' },
        { 'x-forwarded-proto': 'https' },
        { 'x-real-ip': '192.0.2.1' },
        { 'x-envoy-external-address': '192.0.2.1' },
        { authorization: '' },
        { authorization: 'Bearer wrong' },
        { authorization: 'viewing' },
      ].map((headers) => {
        const what = `${place}, no token, ${JSON.stringify(headers)}`
        return { what, site, headers, reads: 401, acts: 401 }
      }),
      ...[{}, { host: 'ns1.example.org' }, { via: '1.1 proxy' }].flatMap((more) => {
        const what = `${place}, ${JSON.stringify(more)}`
        return [
          { what, site, headers: { ...more, authorization: VIEW }, reads: 0, acts: 403 },
          { what, site, headers: { ...more, authorization: OPERATE }, reads: 0, acts: 0 },
        ]
      }),
    ]
  }),
]

t.test('what a client may do, by address, token, role, method and route', async (t) => {
  for (const { what, site, headers, reads, acts } of CLIENTS) {
    const { port } = await open(t, site)
    for (const { method, path } of ROUTES) {
      const { request, body } = requestOf(method, path)
      const all = { ...request, headers: { ...request.headers, ...headers } }
      const answer = await fetchLocal(port, all, body)
      const expected = ACTS.includes(`${method} ${path}`) ? acts : reads
      const name = `${method} ${path}: ${what}, ${headers.authorization ?? ''}`
      if (expected === 0) t.notOk([401, 403].includes(answer.status), `${name}: ${answer.status}`)
      else {
        t.equal(answer.status, expected, name)
        t.match(JSON.parse(answer.body), { status: expected, detail: /./ }, name)
        t.equal('www-authenticate' in answer.headers, expected === 401, name)
      }
    }
  }
})

t.test('the reason of a refusal', async (t) => {
  const { port } = await open(t, { tokens, readsOpenly: true })
  const detailOf = async (authorization?: string): Promise<string> => {
    const headers = {
      'content-type': 'application/json',
      ...(authorization === undefined ? {} : { authorization }),
    }
    const request = { method: 'POST', path: '/v1/drains', headers }
    return JSON.parse((await fetchLocal(port, request, '{"selector":"site:a"}')).body).detail
  }
  t.match(await detailOf(), /token of the role `operate`: without a token/)
  t.match(await detailOf(VIEW), /the token has the role `view`.* needs the role `operate`/)
  t.match(await detailOf('Bearer wrong'), /with a valid token$/)
})

t.test('a session says what is possible', async (t) => {
  const session = async (site: Partial<AdminSite>, headers: Readonly<Record<string, string>>) => {
    const { port } = await open(t, site)
    return JSON.parse((await fetchLocal(port, { path: '/v1/session', headers })).body)
  }
  const base = { hasTokens: true }
  t.strictSame(await session({}, {}), {
    ...{ ...base, role: 'operate', mayAct: true, reason: '', hasTokens: false },
  })
  const site = { tokens, readsOpenly: true }
  t.match(await session(site, {}), { ...base, role: 'view', mayAct: false, reason: /acts need/ })
  t.match(await session(site, { authorization: VIEW }), { role: 'view', reason: /role `view`/ })
  t.match(await session(site, { authorization: OPERATE }), { ...base, role: 'operate', reason: '' })
})

t.test('acts are in the log and in the events, in one line', async (t) => {
  const drain = { id: '0123abcd', selector: 'site:dublin', file: 'drains', reason: '', actor: '' }
  const hostile = 'racks\n[ERROR] forged \u202e \u001b[31m <b>'
  const { port, lines, events } = await open(t, {
    drains: {
      list: () => ({ drains: [], drainsOmitted: 0 }),
      add: async ({ reason = '', actor = '' }) => {
        return { ...drain, reason, actor, endpoints: 1, records: 1 }
      },
      end: async () => [drain],
    },
  })
  const headers = { 'content-type': 'application/json' }
  const path = '/v1/drains'
  const body = JSON.stringify({ selector: drain.selector, actor: 'ops\n', reason: hostile })
  t.equal((await fetchLocal(port, { method: 'POST', path, headers }, body)).status, 200)
  const query = `id=${drain.id}&actor=ops&reason=${encodeURIComponent(hostile)}`
  t.equal((await fetchLocal(port, { method: 'DELETE', path: `${path}?${query}` })).status, 200)
  const why = 'racks\\x0a[ERROR] forged \\u202e \\x1b[31m <b>'
  const texts = [
    `drain ${drain.id} site:dublin ordered by ops\\x0a from 127.0.0.1: ${why}`,
    `undrain ${drain.id} site:dublin ordered by ops from 127.0.0.1: ${why}`,
  ]
  t.strictSame(
    lines,
    texts.map((text) => `[INFO] plugin/admin: ${text}`),
  )
  t.match(events.after(0, 9), [
    { actor: { kind: 'act', name: 'ops\\x0a' }, text: texts[0] },
    { actor: { kind: 'act', name: 'ops' }, text: texts[1] },
  ])
})

t.test('a link of another page leads to the data that is open, and to no other', async (t) => {
  const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-dest': 'document' }
  for (const [site, status] of [
    [{}, 200],
    [{ tokens, readsOpenly: true }, 200],
    [{ tokens }, 401],
  ] as const) {
    const { port } = await open(t, site)
    t.equal((await fetchLocal(port, { path: '/v1/status', headers })).status, status)
  }
})

t.test('HTTP/1.0, as proxies speak by default, opens nothing', async (t) => {
  const { port } = await open(t, { tokens, readsOpenly: true })
  const statusOf = async (text: string): Promise<string> => {
    const socket = connect(port, '127.0.0.1')
    socket.end(text)
    let reply = ''
    for await (const octets of socket) reply += String(octets)
    return reply.slice(9, 12)
  }
  const rest = `Host: 127.0.0.1:${port}\r\nConnection: close\r\n\r\n`
  t.equal(await statusOf(`GET /v1/status HTTP/1.1\r\n${rest}`), '200')
  t.equal(await statusOf(`GET /v1/status HTTP/1.0\r\n${rest}`), '401')
  t.equal(await statusOf(`GET /v1/status HTTP/1.0\r\nAuthorization: ${VIEW}\r\n${rest}`), '200')
})
