import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { HttpsClient } from '../../src/kube/https-client.ts'
import { loadKubeConfig } from '../../src/kube/kubeconfig.ts'
import { readText } from '../../src/kube/read-body.ts'
import { freePort } from '../support/free-port.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

const never = (): AbortSignal => new AbortController().signal

/** A client of a server that answers as `handle` does, and the way to change its token. */
async function stage(
  t: Test,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
) {
  const port = await freePort()
  const server = createServer(handle).listen(port, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const kubeconfig = join(t.testdir({}), 'kubeconfig')
  const write = (token: string, user = `{token: ${token}}`): void => {
    writeFileSync(
      kubeconfig,
      `current-context: main
clusters: [{name: c, cluster: {server: "http://127.0.0.1:${port}/prefix/"}}]
users: [{name: u, user: ${user}}]
contexts: [{name: main, context: {cluster: c, user: u}}]
`,
    )
  }
  write('first')
  const load = () => loadKubeConfig({ kubeconfig, context: '' })
  return { client: new HttpsClient(await load(), load), write, server }
}

t.test('the request that is sent, and its response', async (t) => {
  const seen: IncomingMessage[] = []
  const { client } = await stage(t, (request, response) => {
    seen.push(request)
    const date = 'Tue, 24 Nov 2026 18:00:00 GMT'
    response.writeHead(429, { 'retry-after': '7', date }).end('slow down')
  })
  const response = await client.get('/apis?limit=1', never())
  t.equal(response.status, 429)
  t.equal(response.retryAfterSeconds, 7)
  t.equal(response.dateMs, Date.UTC(2026, 10, 24, 18))
  t.equal(await readText(response, 100, () => {}), 'slow down')
  t.match(seen[0], {
    method: 'GET',
    url: '/prefix/apis?limit=1',
    headers: {
      authorization: 'Bearer first',
      accept: 'application/json',
      'user-agent': /^sextant\//,
    },
  })
})

t.test('a body goes out with its type', async (t) => {
  const seen: { method: string | undefined; type: string | undefined; body: string }[] = []
  const { client } = await stage(t, (request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk) => chunks.push(chunk))
    request.on('end', () => {
      const { method, headers } = request
      seen.push({ method, type: headers['content-type'], body: Buffer.concat(chunks).toString() })
      response.writeHead(201).end('{}')
    })
  })
  const body = { contentType: 'application/merge-patch+json', body: '{"grüße":1}' }
  const response = await client.send('PATCH', '/apis', body, never())
  t.equal(response.status, 201)
  t.equal(await readText(response, 100, () => {}), '{}')
  await readText(await client.send('DELETE', '/apis', body, never()), 100, () => {})
  await readText(await client.send('DELETE', '/apis', undefined, never()), 100, () => {})
  t.strictSame(seen, [
    { method: 'PATCH', type: 'application/merge-patch+json', body: '{"grüße":1}' },
    { method: 'DELETE', type: 'application/merge-patch+json', body: '{"grüße":1}' },
    { method: 'DELETE', type: undefined, body: '' },
  ])
})

t.test('a connection is used again, for as long as the credentials hold', async (t) => {
  const { client, server, write } = await stage(t, (_, response) => response.end('{}'))
  let connections = 0
  server.on('connection', () => connections++)
  const ask = async () => void (await readText(await client.get('/', never()), 100, () => {}))
  for (let i = 0; i < 3; i++) await ask()
  t.equal(connections, 1)
  write('second')
  client.refresh()
  await ask()
  t.equal(connections, 1, 'a token goes with each request')
  const [certFile, keyFile] = [join(t.testdirName, 'cert'), join(t.testdirName, 'key')]
  for (const file of [certFile, keyFile]) writeFileSync(file, 'other')
  write('', JSON.stringify({ 'client-certificate': certFile, 'client-key': keyFile }))
  client.refresh()
  await ask()
  t.equal(connections, 2, 'a certificate goes with the connection')
})

t.test('a date to try again at is no number of seconds', async (t) => {
  const { client } = await stage(t, (_, response) => {
    response.writeHead(503, { 'retry-after': 'Fri, 31 Dec 1999 23:59:59 GMT' }).end()
  })
  t.equal((await client.get('/', never())).retryAfterSeconds, 0)
})

t.test('credentials are read anew when asked to, not before', async (t) => {
  const tokens: (string | undefined)[] = []
  const { client, write } = await stage(t, (request, response) => {
    tokens.push(request.headers.authorization)
    response.end()
  })
  await client.get('/', never())
  write('second')
  await client.get('/', never())
  client.refresh()
  await client.get('/', never())
  t.strictSame(tokens, ['Bearer first', 'Bearer first', 'Bearer second'])
})

t.test('a token file may end with a newline, and counts more than a token', async (t) => {
  const tokens: (string | undefined)[] = []
  const { client, write } = await stage(t, (request, response) => {
    tokens.push(request.headers.authorization)
    response.end()
  })
  const tokenFile = join(temporaryDirectory(t), 'token')
  writeFileSync(tokenFile, 'rotated\n')
  for (const user of [{ tokenFile }, { tokenFile, token: 'first' }]) {
    write('', JSON.stringify(user))
    client.refresh()
    await client.get('/', never())
  }
  t.strictSame(tokens, ['Bearer rotated', 'Bearer rotated'])
})

/** A user whose credentials a shell command prints. */
function execUser(script: string): string {
  const apiVersion = 'client.authentication.k8s.io/v1'
  return JSON.stringify({ exec: { apiVersion, command: 'sh', args: ['-c', script] } })
}

t.test('the output of a credential plugin is not logged', async (t) => {
  const table = [
    { name: 'on its error output', user: execUser('echo very-secret >&2; exit 1') },
    { name: 'as nonsense', user: execUser('echo very-secret') },
    { name: 'no such plugin', user: JSON.stringify({ exec: { command: '/very-secret' } }) },
  ]
  const { client, write } = await stage(t, (_, response) => response.end())
  for (const { name, user } of table) {
    write('', user)
    client.refresh()
    const refused = await client.get('/', never()).catch((error) => error)
    t.match(refused, { name: 'ApiError', status: 0 }, name)
    t.match(refused.message, /^credentials could not be fetched/, name)
    t.notMatch(refused.message, /secret/, name)
  }
})

t.test('while a credential plugin hangs no other is started', async (t) => {
  const { client, write } = await stage(t, (_, response) => response.end())
  const directory = temporaryDirectory(t)
  const [log, gate] = [join(directory, 'log'), join(directory, 'gate')]
  const credential = JSON.stringify({ status: { token: 'late' } })
  const script = `echo started >>${log}; until [ -e ${gate} ]; do sleep 0.02; done; echo '${credential}'`
  t.teardown(() => writeFileSync(gate, ''))
  write('', execUser(script))
  client.refresh()
  const impatient = new AbortController()
  const unanswered = client.get('/', impatient.signal)
  // The shell makes the file before it writes the line.
  await until(() => existsSync(log) && readFileSync(log, 'utf8') !== '', 'the plugin to start')
  impatient.abort(new Error('given up'))
  await t.rejects(unanswered, { message: 'given up' })
  await t.rejects(client.get('/', never()), { message: 'credentials are still being fetched' })
  t.equal(readFileSync(log, 'utf8'), 'started\n')
  writeFileSync(gate, '')
  await until(
    () =>
      client.get('/', never()).then(
        ({ status }) => status === 200,
        () => false,
      ),
    'the plugin to end',
  )
})

t.test('a request can be given up, before its answer and within', async (t) => {
  const { client } = await stage(t, (request, response) => {
    if (request.url?.endsWith('/half')) response.write('half')
  })
  const before = new AbortController()
  const unanswered = client.get('/none', before.signal)
  before.abort(new Error('given up'))
  await t.rejects(unanswered)
  const within = new AbortController()
  const response = await client.get('/half', within.signal)
  await t.rejects(readText(response, 100, () => within.abort(new Error('given up'))))
})

t.test('an answer longer than allowed is not read to its end', async (t) => {
  const { client } = await stage(t, (_, response) => {
    response.write('x'.repeat(1000))
  })
  t.equal(await readText(await client.get('/', never()), 100, () => {}), undefined)
})

t.test('a server that does not exist', async (t) => {
  const { client, server } = await stage(t, () => {})
  server.close()
  await once(server, 'close')
  await t.rejects(client.get('/', never()), { message: /ECONNREFUSED/ })
})
