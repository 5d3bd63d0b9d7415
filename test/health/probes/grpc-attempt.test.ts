import { createServer as createHttpServer } from 'node:http'
import {
  createServer as createHttp2Server,
  createSecureServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import type { ProbeOutcome } from '../../../src/health/probes/probe.ts'
import { selfSigned } from '../../support/certificate.ts'
import { ask, type Given, listen } from './stage.ts'

/** Frames of HTTP/2 that @grpc/grpc-js 1.14.7 with grpc-health-check 2.1.0 sent as a server. */
const SETTINGS = '000000040000000000000000040100000000'
const HEADERS =
  '00005f010400000001885f901d75d0620d263d4c4d6564ff75d8749f408e9acac8b0c842d6958b510f21aa9b903485a9264fafa90b2d03497ea6' +
  'f66aff408a9acac8b16a21e435537f863485a9264faf6196d07abe94132a693f75040138a099b8d02e34253168df'
const TRAILERS = '00001a01050000000140889acac8b21234da8f013040899acac8b5254207317f024f4b'
const NOT_FOUND =
  '0000630105000000018840889acac8b21234da8f013540899acac8b5254207317fa0c651d099d5101091a6d42a205b575a8fe2a544094f62a202' +
  '0b677310aa881e7f5f901d75d0620d263d4c4d6564ff75d8749f6196d07abe94132a693f75040138a099b8d02e34253168df'
/** The DATA frames of the requests: what they ask for. */
const ASKS_SERVER = '0000050001000000010000000000'
const ASKS_CART = '00001300010000000100' + '0000000e0a0c73686f702e76312e43617274'
const ASKS_X = '00000800010000000100000000030a0178'

t.test('answers that a server of grpc-js gave', async (t) => {
  const table = [
    {
      service: '',
      request: ASKS_SERVER,
      answer: `${SETTINGS}${HEADERS}00000700000000000100000000020801${TRAILERS}`,
      want: { kind: 'healthy', httpStatus: 0 },
    },
    {
      service: 'shop.v1.Cart',
      request: ASKS_CART,
      answer: `${SETTINGS}${HEADERS}00000700000000000100000000020802${TRAILERS}`,
      want: { kind: 'unhealthy', httpStatus: 0, reason: 'health NOT_SERVING' },
    },
    {
      service: 'x',
      request: ASKS_X,
      answer: `${SETTINGS}${NOT_FOUND}`,
      want: { kind: 'unhealthy', httpStatus: 0, reason: 'gRPC status 5' },
    },
  ]
  for (const { service, request, answer, want } of table) {
    const server = createServer((socket) => {
      let received = ''
      socket.on('error', () => {})
      socket.on('data', (chunk) => {
        received += chunk.toString('hex')
        if (!received.includes(request)) return
        socket.write(Buffer.from(answer, 'hex'))
        received = ''
      })
    })
    const port = await listen(t, server)
    const part = service === '' ? {} : { grpcService: service }
    t.strictSame(await ask({ port, protocol: 'GRPC', ...part }), want, service)
  }
})

interface Called {
  readonly headers: IncomingHttpHeaders
  body: string
}

type Reply = (stream: ServerHttp2Stream) => void

function reply(body: Buffer, trailers = { 'grpc-status': '0' }): Reply {
  return (stream) => {
    stream.respond({ ':status': 200 }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers(trailers))
    stream.end(body)
  }
}

const SERVING = Buffer.from('00000000020801', 'hex')

/** A server of HTTP/2 that answers each call with `how.reply`, and a function that probes it. */
async function serve(t: Test, tls?: { readonly key: string; readonly cert: string }) {
  const server = tls === undefined ? createHttp2Server() : createSecureServer(tls)
  const how = { reply: reply(SERVING) }
  const called: Called[] = []
  server.on('stream', (stream, headers) => {
    const call = { headers, body: '' }
    called.push(call)
    stream.on('error', () => {})
    stream.on('data', (chunk: Buffer) => {
      call.body += chunk.toString('hex')
    })
    stream.on('end', () => how.reply(stream))
  })
  const port = await listen(t, server)
  const protocol = tls === undefined ? 'GRPC' : 'GRPCS'
  const probe = (given: Given = {}): Promise<ProbeOutcome> => ask({ port, protocol, ...given })
  return { port, probe, called, how }
}

t.test('what is asked', async (t) => {
  const { probe, called, port } = await serve(t)
  t.match(await probe(), { kind: 'healthy', httpStatus: 0 })
  t.match(called[0], {
    body: '0000000000',
    headers: {
      ':method': 'POST',
      ':path': '/grpc.health.v1.Health/Check',
      ':scheme': 'http',
      ':authority': 'app.example.org',
      'content-type': 'application/grpc',
      te: 'trailers',
    },
  })
  t.match(await probe({ hostname: '', grpcService: 'a'.repeat(255) }), { kind: 'healthy' })
  t.equal(called[1]!.headers[':authority'], '127.0.0.1')
  t.equal(called[1]!.body, `0000000102${'0aff01'}${'61'.repeat(255)}`)
  const headers = new Map([
    ['X-Token', 'secret'],
    ['TE', 'gzip'],
    ['Keep-Alive', 'x'],
    ['Content-Type', 'text/plain'],
  ])
  const given = { port, protocol: 'GRPC', headersSecret: 's' } as const
  t.match(await ask(given, { readHeaders: async () => headers }), { kind: 'healthy' })
  t.match(called[2]!.headers, { 'x-token': 'secret', te: 'trailers' })
  t.equal(called[2]!.headers['content-type'], 'application/grpc')
})

t.test('only a complete answer with SERVING is healthy', async (t) => {
  const { probe, how } = await serve(t)
  const malformed = 'the reply is not a gRPC health response'
  const frame = (hex: string): Reply => reply(Buffer.from(hex, 'hex'))
  const table: readonly { name: string; given: Reply; reason: string }[] = [
    { name: 'zero, which is omitted', given: frame('0000000000'), reason: 'health UNKNOWN' },
    { name: 'zero', given: frame('00000000020800'), reason: 'health UNKNOWN' },
    { name: 'no such service', given: frame('00000000020803'), reason: 'health SERVICE_UNKNOWN' },
    { name: 'an unknown number', given: frame('00000000020809'), reason: malformed },
    { name: 'another field', given: frame('00000000021001'), reason: malformed },
    { name: 'compressed', given: frame('01000000020801'), reason: malformed },
    { name: 'cut off', given: frame('000000000208'), reason: malformed },
    { name: 'two messages', given: frame('0000000002080100000000020801'), reason: malformed },
    { name: 'no message', given: frame(''), reason: malformed },
    { name: 'too much', given: reply(Buffer.alloc(1_000_000)), reason: malformed },
    {
      name: 'an error after the message',
      given: reply(SERVING, { 'grpc-status': '14' }),
      reason: 'gRPC status 14',
    },
    { name: 'a wrong status', given: reply(SERVING, { 'grpc-status': 'ok' }), reason: malformed },
    {
      name: 'no trailers',
      given: (stream) => {
        stream.respond({ ':status': 200 })
        stream.end(SERVING)
      },
      reason: malformed,
    },
    {
      name: 'no gRPC',
      given: (stream) => stream.respond({ ':status': 404 }, { endStream: true }),
      reason: 'status 404',
    },
    { name: 'no answer', given: (stream) => stream.session?.destroy(), reason: '' },
    {
      name: 'a reset stream',
      given: (stream) => stream.close(7),
      reason: 'ERR_HTTP2_STREAM_ERROR',
    },
  ]
  for (const { name, given, reason } of table) {
    how.reply = given
    const outcome = await probe()
    t.match(outcome, { kind: 'unhealthy', httpStatus: 0 }, name)
    if (outcome.kind === 'unhealthy' && reason !== '') t.equal(outcome.reason, reason, name)
  }
  how.reply = reply(SERVING)
  t.match(await probe(), { kind: 'healthy' })
})

t.test('GRPCS: the certificate counts', async (t) => {
  const { probe, called } = await serve(t, selfSigned('app.example.org'))
  t.match(await probe(), { kind: 'unhealthy', reason: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
  t.match(await probe({ allowsInsecureCertificate: true }), { kind: 'healthy' })
  t.match(called[0]!.headers, { ':scheme': 'https', ':authority': 'app.example.org' })
})

t.test('servers that do not speak HTTP/2', async (t) => {
  const http = createHttpServer((_, response) => response.end())
  const given = { protocol: 'GRPC' } as const
  t.match(await ask({ ...given, port: await listen(t, http) }), {
    kind: 'unhealthy',
    reason: 'invalid HTTP/2 response',
  })
  const closing = createServer((socket) => socket.on('error', () => {}).end())
  t.match(await ask({ ...given, port: await listen(t, closing) }), {
    kind: 'unhealthy',
    reason: /^(the connection failed|connection reset)$/,
  })
  const silent = createServer((socket) => socket.on('error', () => {}))
  t.match(await ask({ ...given, port: await listen(t, silent), intervalMs: 300 }), {
    kind: 'unhealthy',
    reason: 'no answer within 0.3 s',
  })
  t.match(await ask({ ...given, port: 1 }), { kind: 'unhealthy', reason: 'connection refused' })
})
