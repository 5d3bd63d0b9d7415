import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { MetricsRegistry } from '../../src/base/telemetry/metrics.ts'
import type { ApiClient } from '../../src/kube/api.ts'
import { printEndpoints } from '../../src/webhook/external-endpoint.ts'
import { BODY_OCTETS_MAX, MEDIA_TYPE, WebhookListener } from '../../src/webhook/listener.ts'
import { fetchLocal, type HttpAnswer } from '../support/http-client.ts'
import { recordLog } from '../support/recorded-log.ts'
import { endpoint, openSite, RECORDS, registryOf } from './external-dns.ts'

const A = endpoint({ dnsName: 'shop.example.org', recordType: 'A', targets: ['192.0.2.1'] })
const TYPED = { 'content-type': MEDIA_TYPE }

async function openListener(t: Test, isLocal = true) {
  const site = openSite()
  const recorded = recordLog()
  const metrics = new MetricsRegistry()
  const { provider } = site
  const { log } = recorded
  const listener = new WebhookListener({ address: 'localhost:0', isLocal, provider, log, metrics })
  const port = await listener.listen()
  t.teardown(() => listener.close())
  const send = (
    method: string,
    path: string,
    body?: string | Buffer,
    headers: Readonly<Record<string, string>> = body === undefined ? {} : TYPED,
  ): Promise<HttpAnswer> => fetchLocal(port, { method, path, headers }, body)
  return { ...site, ...recorded, metrics, port, send }
}

t.test('what external-dns asks, in its order', async (t) => {
  const { send, metrics } = await openListener(t)
  const negotiated = await send('GET', '/', undefined, { accept: MEDIA_TYPE })
  t.equal(negotiated.headers['content-type'], MEDIA_TYPE)
  t.same(JSON.parse(negotiated.body), {
    include: ['example.org', 'sub.example.org'],
    exclude: ['internal.example.org'],
  })
  t.match(await send('GET', '/records'), { status: 200, body: '[]' })
  const adjusted = await send('POST', '/adjustendpoints', printEndpoints([A]))
  t.match(adjusted, { status: 200, headers: { 'content-type': MEDIA_TYPE } })
  t.equal(adjusted.body, printEndpoints([A]))
  const create = JSON.parse(printEndpoints([A, registryOf(A)]))
  t.match(await send('POST', '/records', JSON.stringify({ create })), { status: 204, body: '' })
  t.same(JSON.parse((await send('GET', '/records')).body), create)
  t.match(await send('POST', '/records', JSON.stringify({ delete: create })), { status: 204 })
  t.match(await send('GET', '/records'), { status: 200, body: '[]' })
  t.match(await send('GET', '/healthz'), { status: 200, body: 'ok\n' })
  t.match(await send('HEAD', '/healthz'), { status: 200, body: '' })
  t.match(
    await metrics.print(),
    /sextant_webhook_requests_total\{path="\/records",status="204"\} 2/,
  )
})

t.test('Go writes an empty list as null', async (t) => {
  const { send } = await openListener(t)
  t.match(await send('POST', '/adjustendpoints', 'null'), { status: 200, body: '[]' })
  t.match(await send('POST', '/records', '{"create":null}'), { status: 204 })
})

t.test('requests that are refused', async (t) => {
  const { send, records } = await openListener(t)
  const one = (fields: object): string => JSON.stringify({ create: [fields] })
  const cases: readonly [string, Parameters<typeof send>, number, RegExp][] = [
    ['no JSON', ['POST', '/records', '{'], 400, /not JSON/],
    ['no object', ['POST', '/records', '[]'], 400, /must be a JSON object/],
    ['no list', ['POST', '/records', '{"create":{}}'], 400, /create must be a list/],
    ['no endpoint', ['POST', '/records', '{"create":[1]}'], 400, /create\[0\] must be an endpoint/],
    ['a name', ['POST', '/records', one({ dnsName: 1 })], 400, /create\[0\]\.dnsName must be/],
    [
      'a target',
      ['POST', '/records', one({ targets: [{}] })],
      400,
      /targets\[0\] must be a string/,
    ],
    ['a TTL', ['POST', '/records', one({ recordTTL: -1 })], 400, /recordTTL must be an integer/],
    ['labels', ['POST', '/records', one({ labels: { a: 1 } })], 400, /labels\.a must be a string/],
    [
      'properties',
      ['POST', '/records', one({ providerSpecific: [[]] })],
      400,
      /Specific\[0\] must/,
    ],
    ['no UTF-8', ['POST', '/records', Buffer.from([0xff])], 400, /not UTF-8/],
    ['an adjustment', ['POST', '/adjustendpoints', '{}'], 400, /the body must be a list/],
    ['no type', ['POST', '/records', '{}', {}], 415, /Content-Type must be/],
    ['a form', ['POST', '/records', '{}', { 'content-type': 'text/plain' }], 415, /Content-Type/],
    ['gzip', ['POST', '/records', '{}', { ...TYPED, 'content-encoding': 'gzip' }], 415, /Encoding/],
    ['version 2', ['GET', '/', undefined, { accept: MEDIA_TYPE.replace('1', '2') }], 406, /Accept/],
    ['a page', ['GET', '/records', undefined, { accept: 'text/html' }], 406, /Accept/],
    ['a path', ['GET', '/applychanges'], 404, /path/],
    ['a method', ['PUT', '/records', '{}'], 405, /GET or POST/],
    ['another one', ['DELETE', '/'], 405, /GET/],
    ['rebinding', ['GET', '/records', undefined, { host: 'evil.example:8888' }], 403, /Host/],
  ]
  for (const [what, request, status, reason] of cases) {
    const answer = await send(...request)
    t.equal(answer.status, status, what)
    t.match(answer.body, reason, what)
  }
  t.match(await send('GET', '/', undefined, { accept: 'text/html, application/*;q=0.5' }), {
    status: 200,
  })
  t.same(records(), [])
})

t.test('keys of prototypes are ordinary names', async (t) => {
  const { send } = await openListener(t)
  const labels = '{"__proto__":"a","constructor":"b","ownedRecord":"x.example.org"}'
  const texts = `{"dnsName":"a-x.example.org","recordType":"TXT","targets":["t"],"labels":${labels}}`
  const body = `{"__proto__":{"delete":1},"create":[${texts}]}`
  t.match(await send('POST', '/records', body), { status: 204 })
  t.equal((await send('GET', '/records')).body, `[${texts}]`)
  t.equal(({} as Record<string, unknown>).delete, undefined)
})

t.test('a body that is too long', async (t) => {
  const { send, port } = await openListener(t)
  const text = JSON.stringify('x'.repeat(BODY_OCTETS_MAX - 2))
  t.match(await send('POST', '/records', text), { status: 400 }, '10 MiB are read')
  t.match(await send('POST', '/records', `${text} `), { status: 413, body: /10485760 octets/ })
  const socket = connect(port, '127.0.0.1')
  let got = ''
  socket.on('data', (chunk) => (got += String(chunk)))
  // The server may close while octets are on their way.
  socket.on('error', () => {})
  const chunk = 'x'.repeat(1 << 20)
  socket.write(`POST /records HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${MEDIA_TYPE}\r\n`)
  socket.write('transfer-encoding: chunked\r\n\r\n')
  for (let i = 0; i < 11; i++) socket.write(`100000\r\n${chunk}\r\n`)
  await once(socket, 'close')
  t.match(got, /^HTTP\/1\.1 413 /)
  t.match(await send('GET', '/healthz'), { status: 200 }, 'it goes on')
})

t.test('a body that arrives slowly, or not as a whole', async (t) => {
  const { send, port, lines } = await openListener(t)
  const head = `POST /records HTTP/1.1\r\nhost: localhost\r\ncontent-type: ${MEDIA_TYPE}\r\ncontent-length: 100\r\n\r\n{`
  const slow = connect(port, '127.0.0.1')
  slow.on('error', () => {})
  slow.write(head)
  const cut = connect(port, '127.0.0.1')
  cut.on('error', () => {})
  cut.end(head)
  slow.resume()
  cut.resume()
  await Promise.all([once(slow, 'close'), once(cut, 'close')])
  t.match(await send('GET', '/healthz'), { status: 200 })
  t.same(lines, [], 'a client that leaves is no fault of the server')
})

t.test('a plan that fails in part, and is repeated', async (t) => {
  const { send, api, lines, records } = await openListener(t)
  const other = { ...A, dnsName: 'wiki.example.org' }
  const body = JSON.stringify({ create: JSON.parse(printEndpoints([A, other])) })
  api.refuse = ({ method, body }) => {
    return method === 'POST' && JSON.stringify(body).includes('wiki') ? 403 : undefined
  }
  for (let round = 0; round < 2; round++) {
    t.match(await send('POST', '/records', body), { status: 500, body: /^wiki\.example\.org: 403/ })
  }
  t.equal(records().length, 1)
  t.equal(lines.length, 1, 'logged once')
  api.refuse = () => undefined
  t.match(await send('POST', '/records', body), { status: 204 })
  t.equal(records().length, 2)
  t.equal(api.writes.length, 2, 'nothing is written twice')
})

t.test('an API server that is away, and back', async (t) => {
  const { send, api, lines } = await openListener(t)
  const body = JSON.stringify({ create: JSON.parse(printEndpoints([A])) })
  const reach: ApiClient['send'] = api.send.bind(api)
  api.send = async () => {
    throw new Error('connect ECONNREFUSED 127.0.0.1:6443')
  }
  for (const [method, text] of [['GET'], ['POST', body]] as const) {
    t.match(await send(method, '/records', text), {
      status: 503,
      body: 'the API server: connect ECONNREFUSED 127.0.0.1:6443\n',
    })
  }
  t.match(lines, [/webhook: GET \/records failed with 503: the API server: connect/, /POST/])
  api.send = reach
  t.match(await send('POST', '/records', body), { status: 204 })
  t.equal(api.all(RECORDS).size, 1)
})

t.test('an error has one line, and no controls', async (t) => {
  const { send, lines } = await openListener(t)
  const bad = { ...A, dnsName: 'a\u001b[2J\n\u202e.example.org' }
  const { status, body } = await send('POST', '/records', `{"create":${printEndpoints([bad])}}`)
  t.equal(status, 500)
  t.notMatch(body.trimEnd() + lines.join(''), /[\p{Cc}\p{Cf}]/u)
  t.equal(lines.length, 1)
})
