import { createServer as createHttpServer, type ServerResponse } from 'node:http'
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import { ask, type Given, listen } from './stage.ts'

/** Serves every request with `answer` until the test ends; returns a function that probes it. */
async function serve(t: Test, answer: (response: ServerResponse) => void) {
  const port = await listen(
    t,
    createHttpServer((_, response) => answer(response)),
  )
  return (given: Given = {}) => ask({ port, ...given })
}

t.test('expectedStatus replaces the statuses that are healthy', async (t) => {
  let status = 200
  const probe = await serve(t, (response) => response.writeHead(status).end())
  const expectedStatus = [
    { first: 204, last: 204 },
    { first: 301, last: 308 },
  ]
  for (const [given, kind] of [
    [200, 'unhealthy'],
    [204, 'healthy'],
    [300, 'unhealthy'],
    [301, 'healthy'],
    [308, 'healthy'],
    [309, 'unhealthy'],
  ] as const) {
    status = given
    t.match(await probe({ expectedStatus }), { kind, httpStatus: given }, String(given))
  }
})

t.test('expectedBody is searched in the body', async (t) => {
  const text = '"status":"ready ✓"'
  const body = Buffer.from(`{"a":1,${text}}`)
  let parts: readonly Buffer[] = []
  const probe = await serve(t, (response) => {
    for (const part of parts) response.write(part)
    response.end()
  })
  const lacking = {
    kind: 'unhealthy',
    httpStatus: 200,
    reason: 'status 200, but the body is not as expected',
  }
  const single = [...body].map((octet) => Buffer.from([octet]))
  for (const [name, given, want] of [
    ['at once', [body], { kind: 'healthy', httpStatus: 200 }],
    ['octet by octet', single, { kind: 'healthy', httpStatus: 200 }],
    ['at the end of 64 KiB', [Buffer.alloc(65_536 - body.length), body], { kind: 'healthy' }],
    ['one octet too late', [Buffer.alloc(65_538 - body.length), body], lacking],
    ['no body', [], lacking],
    ['another text', [Buffer.from('{"status":"ready"}')], lacking],
  ] as const) {
    parts = given
    t.match(await probe({ expectedBody: text }), want, name)
  }
  t.match(
    await probe({ expectedBody: 'x', expectedStatus: [{ first: 500, last: 599 }] }),
    { kind: 'unhealthy', reason: 'status 200' },
    'the status comes first',
  )
})

t.test('a body without the expected text is read up to a bound', async (t) => {
  let written = 0
  const probe = await serve(t, (response) => {
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(65_536))) written += 65_536
    }
    response.on('drain', more)
    response.on('error', () => {})
    more()
  })
  t.match(await probe({ expectedBody: 'x' }), { kind: 'unhealthy', httpStatus: 200 })
  t.ok(written < 16 * 1024 * 1024, `${written} octets were sent`)
})

t.test('interim responses without end are a failure', async (t) => {
  const server = createServer((socket) => {
    const send = (): void => {
      while (!socket.destroyed && socket.write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(1000)));
    }
    socket.on('drain', send)
    socket.on('error', () => {})
    send()
  })
  const port = await listen(t, server)
  const reason = 'the answer is larger than 1 MiB'
  t.match(await ask({ port, intervalMs: 60_000 }), { kind: 'unhealthy', reason })
})

t.test('a body that breaks off is a failure of the connection', async (t) => {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort')
  })
  const port = await listen(t, server)
  t.match(await ask({ port, expectedBody: 'long' }), {
    kind: 'unhealthy',
    httpStatus: 0,
    reason: 'connection reset',
  })
  t.match(await ask({ port, expectedBody: 'short' }), { kind: 'healthy' })
})
