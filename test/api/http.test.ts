import { request } from 'node:http'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { openHttp, type Route } from '../../src/api/http.ts'

interface Got {
  readonly status: number | undefined
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

function ask(port: number, method: string, path: string, body?: string): Promise<Got> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, method, path, agent: false }, (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += String(chunk)
      })
      response.on('end', () => {
        resolve({ status: response.statusCode, headers: response.headers, body: text })
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

const ok = (path: string, body: string): Route => ({
  path,
  reply: () => ({ status: 200, contentType: 'text/plain; charset=utf-8', body }),
})

async function open(t: Test, routes: readonly Route[]) {
  const errors: string[] = []
  const onError = (path: string, error: unknown) => errors.push(`${path} ${error}`)
  const listener = await openHttp({ address: '127.0.0.1:0', routes, onError })
  t.teardown(() => listener.close())
  return { listener, errors, port: listener.port }
}

t.test('an endpoint answers GET and HEAD, and nothing else', async (t) => {
  const { port } = await open(t, [ok('/health', 'OK')])
  const table: readonly { method: string; path: string; status: number; body: string }[] = [
    { method: 'GET', path: '/health', status: 200, body: 'OK' },
    { method: 'GET', path: '/health?verbose=1', status: 200, body: 'OK' },
    { method: 'HEAD', path: '/health', status: 200, body: '' },
    { method: 'POST', path: '/health', status: 405, body: '405 method not allowed\n' },
    { method: 'DELETE', path: '/health', status: 405, body: '405 method not allowed\n' },
    { method: 'GET', path: '/health/', status: 404, body: '404 page not found\n' },
    { method: 'GET', path: '/', status: 404, body: '404 page not found\n' },
    { method: 'POST', path: '/nope', status: 404, body: '404 page not found\n' },
    { method: 'GET', path: '/../etc/passwd', status: 404, body: '404 page not found\n' },
  ]
  for (const { method, path, status, body } of table) {
    const got = await ask(port, method, path)
    t.equal(got.status, status, `${method} ${path}`)
    t.equal(got.body, body, `${method} ${path}`)
  }
  t.equal((await ask(port, 'POST', '/health')).headers.allow, 'GET, HEAD')
})

t.test('a body is never read', async (t) => {
  const { port } = await open(t, [ok('/health', 'OK')])
  t.equal((await ask(port, 'POST', '/health', 'x'.repeat(10_000))).status, 405)
})

t.test("status and type are the endpoint's, and it may wait", async (t) => {
  const run = async () => ({ status: 503, contentType: 'text/x-why', body: 'file' })
  const { port } = await open(t, [{ path: '/ready', reply: run }])
  const got = await ask(port, 'GET', '/ready')
  t.match(got, { status: 503, body: 'file', headers: { 'content-type': 'text/x-why' } })
})

t.test('an endpoint that throws is an error without details for the client', async (t) => {
  const run = () => {
    throw new Error('secret')
  }
  const { port, errors } = await open(t, [{ path: '/broken', reply: run }])
  const got = await ask(port, 'GET', '/broken')
  t.match(got, { status: 500, body: '500 internal server error\n' })
  t.strictSame(errors, ['/broken Error: secret'])
})

t.test('routes change while the listener stays', async (t) => {
  const { port, listener } = await open(t, [ok('/old', 'old'), ok('/both', 'old')])
  listener.use([ok('/new', 'new'), ok('/both', 'new')])
  t.equal((await ask(port, 'GET', '/old')).status, 404)
  t.equal((await ask(port, 'GET', '/new')).body, 'new')
  t.equal((await ask(port, 'GET', '/both')).body, 'new')
})

t.test('an address in use is refused', async (t) => {
  const { port } = await open(t, [])
  const again = openHttp({ address: `127.0.0.1:${port}`, routes: [], onError: () => {} })
  await t.rejects(again, { code: 'EADDRINUSE' })
})

t.test('requests that are not HTTP or too large are rejected', async (t) => {
  const { port } = await open(t, [ok('/health', 'OK')])
  const send = (text: string) =>
    new Promise<string>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(text))
      let got = ''
      socket.on('data', (chunk) => {
        got += String(chunk)
      })
      socket.on('close', () => resolve(got))
      // It may be reset behind the answer.
      socket.on('error', () => {})
    })
  t.match(await send('nonsense\r\n\r\n'), /^HTTP\/1\.1 400/)
  t.match(await send(`GET /health HTTP/1.1\r\nX: ${'a'.repeat(9000)}\r\n\r\n`), /^HTTP\/1\.1 431/)
})

t.test(
  'close answers connections that wait to be accepted, and those without a request so far',
  async (t) => {
    const { listener, port } = await open(t, [ok('/health', 'OK')])
    const early = connect(port, '127.0.0.1')
    await new Promise((resolve) => early.once('connect', resolve))
    const asked = Array.from({ length: 10 }, () => ask(port, 'GET', '/health'))
    // By now the kernel has them all, and the listener none.
    await new Promise((resolve) => process.nextTick(resolve))
    const closing = listener.close()
    for (const { status } of await Promise.all(asked)) t.equal(status, 200)
    let got = ''
    early.on('data', (chunk) => (got += String(chunk)))
    early.write('GET /health HTTP/1.1\r\nhost: a\r\n\r\n')
    await new Promise((resolve) => early.once('close', resolve))
    t.match(got, /^HTTP\/1.1 200 OK/)
    await closing
  },
)
