import { once } from 'node:events'
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer, type Socket } from 'node:net'
import t from 'tap'
import type { Timers } from '../../../src/base/timers.ts'
import type { ProbeOutcome } from '../../../src/health/probes/probe.ts'
import { ProbePolicy } from '../../../src/health/probes/probe-policy.ts'
import { createProber } from '../../../src/health/probes/prober.ts'
import type { Resolution } from '../../../src/health/probes/resolve.ts'
import { selfSigned } from '../../support/certificate.ts'
import { FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'
import { ask, LOCAL, listen, probeOf } from './stage.ts'

t.test('HTTP: what is asked, and which answers are healthy', async (t) => {
  const seen: IncomingMessage[] = []
  let answer = (response: ServerResponse): void => void response.end()
  const server = createHttpServer((request, response) => {
    seen.push(request)
    answer(response)
  })
  const port = await listen(t, server)
  t.strictSame(await ask({ port, path: '/healthz?a=b' }), { kind: 'healthy', httpStatus: 200 })
  t.match(seen[0], { method: 'GET', url: '/healthz?a=b' })
  t.match(seen[0]!.headers, { host: 'app.example.org', 'user-agent': 'sextant-probe' })
  await ask({ port, path: '?x', hostname: '' })
  t.match(seen[1], { url: '/?x', headers: { host: '127.0.0.1' } })
  for (const [status, kind] of [
    [201, 'healthy'],
    [204, 'unhealthy'],
    [301, 'unhealthy'],
    [404, 'unhealthy'],
    [503, 'unhealthy'],
  ] as const) {
    answer = (response) => {
      response.writeHead(status, { Location: `http://127.0.0.1:${port}/elsewhere` }).end()
    }
    const before = seen.length
    t.match(await ask({ port }), { kind, httpStatus: status })
    t.equal(seen.length, before + 1, `${status}: redirects are not followed`)
  }
})

t.test('HTTP: an endless body is not read, a head without end ends it', async (t) => {
  let written = 0
  const endless = createHttpServer((_, response) => {
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536))) written += 65_536
    }
    response.on('drain', more)
    response.on('error', () => {})
    more()
  })
  const port = await listen(t, endless)
  t.match(await ask({ port }), { kind: 'healthy' })
  t.ok(written < 16 * 1024 * 1024, `${written} octets were taken off it`)
  const heads = createServer((socket) => {
    socket.on('error', () => {})
    const line = Buffer.from(`X-A: ${'a'.repeat(1000)}\r\n`)
    socket.write('HTTP/1.1 200 OK\r\n')
    const more = (): void => {
      while (!socket.destroyed && socket.write(line));
    }
    socket.on('drain', more)
    more()
  })
  t.strictSame(await ask({ port: await listen(t, heads) }), {
    kind: 'unhealthy',
    httpStatus: 0,
    reason: 'HTTP header too long',
  })
})

t.test('HTTP: what is no HTTP, or no answer', async (t) => {
  const talk = async (text: string): Promise<ProbeOutcome> => {
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.end(text)
    })
    return ask({ port: await listen(t, server) })
  }
  t.match(await talk('SSH-2.0-x\x1b[31m\r\n'), {
    kind: 'unhealthy',
    reason: 'invalid HTTP response',
  })
  t.match(await talk(''), { kind: 'unhealthy', reason: 'connection reset' })
  t.match(await talk('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n'), { kind: 'healthy' })
  const closed = createServer()
  const port = await listen(t, closed)
  closed.close()
  t.match(await ask({ port }), { kind: 'unhealthy', reason: 'connection refused', httpStatus: 0 })
})

t.test('a server that talks slowly has as long as any other', async (t) => {
  const timers = new FakeTimers()
  let socketOf: Socket | undefined
  const slow = createServer((socket) => {
    socketOf = socket
    socket.on('error', () => {})
    // Who doesn't read doesn't see the end.
    socket.resume()
    socket.write('HTTP/1.1 200 OK\r\nX-A: ')
  })
  const port = await listen(t, slow)
  let outcome: ProbeOutcome | undefined
  void ask({ port }, { timers }).then((found) => (outcome = found))
  await until(() => socketOf !== undefined && timers.count === 2, 'the connection')
  for (let second = 1; second < 8; second++) {
    socketOf!.write('a')
    await timers.advance(1000)
    t.equal(outcome, undefined, `${second} s`)
  }
  await timers.advance(1000)
  await until(() => outcome !== undefined, 'the end of patience')
  t.match(outcome, { kind: 'unhealthy', reason: 'no answer within 8 s' })
  await until(() => socketOf!.destroyed, 'the connection to be closed')
  t.equal(timers.count, 0)
})

t.test('a connection that does not come', async (t) => {
  const delays: number[] = []
  const timers: Timers = {
    every: () => () => {},
    // The time for a connection is over before any can be there.
    after: (delayMs, run) => {
      delays.push(delayMs)
      if (delayMs === 3000) process.nextTick(run)
      return () => {}
    },
  }
  const port = await listen(t, createServer())
  for (const protocol of ['TCP', 'HTTP', 'HTTPS'] as const) {
    const outcome = await ask({ port, protocol }, { timers })
    t.match(outcome, { kind: 'unhealthy', reason: 'no connection within 3 s' }, protocol)
  }
  t.strictSame(delays.slice(0, 2), [8000, 3000])
  delays.length = 0
  await ask({ port, protocol: 'TCP', intervalMs: 1000 }, { timers })
  t.strictSame(delays, [1000, 1000], 'never longer than the interval')
})

t.test('TCP: a connection is enough', async (t) => {
  const server = createServer()
  const port = await listen(t, server)
  t.strictSame(await ask({ port, protocol: 'TCP' }), { kind: 'healthy', httpStatus: 0 })
  server.close()
  t.match(await ask({ port: 1, protocol: 'TCP' }), {
    kind: 'unhealthy',
    reason: 'connection refused',
  })
})

t.test('HTTPS: certificates, and the name that is asked for', async (t) => {
  const names: string[] = []
  const pair = selfSigned('app.example.org')
  const server = createHttpsServer(
    {
      ...pair,
      SNICallback: (name, done) => {
        names.push(name)
        done(null)
      },
    },
    (_, response) => response.end(),
  )
  const port = await listen(t, server)
  const given = { port, protocol: 'HTTPS' } as const
  t.match(await ask(given), {
    kind: 'unhealthy',
    httpStatus: 0,
    reason: 'DEPTH_ZERO_SELF_SIGNED_CERT',
  })
  t.match(await ask({ ...given, allowsInsecureCertificate: true }), { kind: 'healthy' })
  t.strictSame(names, ['app.example.org', 'app.example.org'])
  const other = { ...given, hostname: '', allowsInsecureCertificate: true }
  t.match(await ask(other), { kind: 'healthy' })
  t.equal(names.length, 2, 'an address is no server name')
  const plain = await listen(
    t,
    createHttpServer((_, response) => response.end()),
  )
  t.match(await ask({ ...given, port: plain }), {
    kind: 'unhealthy',
    reason: 'TLS handshake failed',
  })
})

t.test('headers of a Secret', async (t) => {
  const seen: IncomingMessage[] = []
  const server = createHttpServer((request, response) => {
    seen.push(request)
    response.end()
  })
  const port = await listen(t, server)
  const given = { port, headersSecret: 'token' }
  const withHeaders = (headers: Readonly<Record<string, string>> | undefined) => {
    const readHeaders = async (namespace: string, secret: string, isEncrypted: boolean) => {
      t.equal(`${namespace}/${secret} ${isEncrypted}`, 'n/token false')
      return headers === undefined ? 'is missing' : new Map(Object.entries(headers))
    }
    return ask(given, { readHeaders })
  }
  t.match(await withHeaders({ Authorization: 'Bearer x', Host: 'evil', 'Content-Length': '5' }), {
    kind: 'healthy',
  })
  t.match(seen[0]!.headers, { authorization: 'Bearer x', host: 'app.example.org' })
  t.equal(seen[0]!.headers['content-length'], undefined)
  for (const bad of [{ 'a b': 'secret' }, { a: 'secret\r\nX: y' }]) {
    const outcome = await withHeaders(bad)
    t.match(outcome, { kind: 'skipped', reason: /^Secret token with headers has a name or value/ })
    t.notMatch(JSON.stringify(outcome), /secret/)
  }
  t.match(await withHeaders(undefined), {
    kind: 'skipped',
    reason: 'Secret token with headers is missing',
  })
  t.match(await ask(given), { kind: 'skipped', reason: /cannot be read here$/ })
  t.equal(seen.length, 1, 'nothing is asked without them')
})

t.test('a host name is healthy where any address is', async (t) => {
  const server = createHttpServer((_, response) => response.end())
  const port = await listen(t, server, '127.0.0.2')
  const name = 'gateway.example.net'
  const to =
    (...addresses: string[]) =>
    async (): Promise<Resolution> => ({ kind: 'addresses', addresses })
  const given = { address: name, port, hostname: '' }
  t.match(await ask(given, { resolve: to('127.0.0.1', '127.0.0.2') }), { kind: 'healthy' })
  t.match(await ask(given, { resolve: to('127.0.0.1') }), {
    kind: 'unhealthy',
    reason: 'connection refused',
  })
  t.match(await ask(given, { resolve: to('169.254.169.254', '127.0.0.2') }), { kind: 'healthy' })
  t.match(await ask(given, { resolve: to('169.254.169.254') }), {
    kind: 'skipped',
    reason: /metadata/,
  })
  t.match(await ask(given), { kind: 'unhealthy', reason: 'its host name has no address' })
  const failing = async (): Promise<Resolution> => ({ kind: 'failed', reason: 'no answer' })
  t.match(await ask(given, { resolve: failing }), { kind: 'skipped', reason: 'no answer' })
})

t.test('a look that is ended is over at once', async (t) => {
  const silent = createServer()
  const port = await listen(t, silent)
  const abort = new AbortController()
  const prober = createProber({
    policy: LOCAL,
    resolve: async () => ({ kind: 'none' }),
    readHeaders: undefined,
    timers: new FakeTimers(),
  })
  const connected = once(silent, 'connection')
  const looking = prober(probeOf({ port }), abort.signal)
  await connected
  abort.abort()
  t.match(await looking, { kind: 'skipped' })
  t.match(
    await prober(probeOf({ port }), abort.signal),
    { kind: 'skipped' },
    'also before it began',
  )
})

t.test('a test address is asked in place of the address', async (t) => {
  const seen: IncomingMessage[] = []
  const server = createHttpServer((request, response) => {
    seen.push(request)
    response.end()
  })
  const port = await listen(t, server, '127.0.0.2')
  const given = { port, address: '192.0.2.1', hostname: 'app.example.org' }
  t.match(await ask({ ...given, testAddress: '127.0.0.2' }), { kind: 'healthy' })
  t.match(seen[0]!.headers, { host: 'app.example.org' })
  const resolve = async (): Promise<Resolution> => {
    return { kind: 'addresses', addresses: ['127.0.0.2'] }
  }
  const named = { port, address: 'lb.example.net', hostname: '', testAddress: 'test.example.net' }
  t.match(await ask(named, { resolve }), { kind: 'healthy' })
  t.match(seen[1]!.headers, { host: 'lb.example.net' }, 'the name of the target')
  t.match(
    await ask({ ...given, testAddress: '169.254.169.254' }),
    { kind: 'skipped', reason: /metadata/ },
    'a test address is refused like any other',
  )
  t.match(await ask({ port, address: '127.0.0.2' }, { policy: new ProbePolicy() }), {
    kind: 'skipped',
  })
  t.equal(seen.length, 2)
})
