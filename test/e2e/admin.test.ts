import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { fetchLocal } from '../support/http-client.ts'
import { freePort, type RunningServer, runSextant, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

// Long: it starts many servers.

const endpoint = (setIdentifier: string, address: string, code: string) => ({
  dnsName: 'app.k.example.com',
  recordType: 'A',
  setIdentifier,
  targets: [address],
  providerSpecific: [
    { name: 'geo-code', value: code },
    { name: 'weight', value: '10' },
  ],
})
const RECORD = {
  apiVersion: 'kuadrant.io/v1alpha1',
  kind: 'DNSRecord',
  metadata: { name: 'app', namespace: 'gateways' },
  spec: {
    rootHost: 'app.k.example.com',
    endpoints: [
      endpoint('eu-1', '192.0.2.1', 'GEO-EU'),
      endpoint('eu-2', '192.0.2.2', 'GEO-EU'),
      endpoint('us', '192.0.2.3', '*'),
    ],
  },
}
const PROBE = {
  apiVersion: 'kuadrant.io/v1alpha1',
  kind: 'DNSHealthCheckProbe',
  metadata: {
    name: 'app-192.0.2.1',
    namespace: 'gateways',
    labels: { 'kuadrant.io/health-probes-owner': 'app' },
  },
  spec: { address: '192.0.2.1' },
  status: { healthy: false },
}
const FILES = {
  'records/app.json': JSON.stringify(RECORD, undefined, 2),
  'records/probe.json': JSON.stringify(PROBE),
}
const corefile = (adminPort: number, extra = '') => `k.example.com:{PORT} {
    bind 127.0.0.1
    admin 127.0.0.1:${adminPort}
    geoip {
        edns-subnet
        net 198.51.100.0/24 GB
    }
    kuadrant {
        manifests records
    }
${extra}
}
`
const QUESTION = ['app.k.example.com', 'A', '--subnet', '198.51.100.0/24']

async function pidOf(port: number): Promise<number> {
  const { status, body } = await fetchLocal(port, { path: '/v1/status' })
  return status === 200 ? JSON.parse(body).pid : 0
}

/** What `sextant explain` prints as JSON, without what only the server knows. */
async function explained(server: RunningServer, ...args: string[]): Promise<unknown> {
  const { stdout, stderr } = await runSextant(server.directory, [
    ...['explain', ...QUESTION, '-o', 'json'],
    ...args,
  ])
  if (stdout === '') throw new Error(stderr)
  return JSON.parse(stdout, (key, value) => (key === 'serial' ? undefined : value))
}

t.test('a running server explains its answers', async (t) => {
  const port = await freePort()
  const server = await startServer(t, { corefile: corefile(port), files: FILES })
  const at = `@127.0.0.1:${port}`
  const online = await explained(server, at, '--seed', '7')
  t.strictSame(online, await explained(server, '--seed', '7'), 'as without the server')
  t.match(online, {
    rcode: 'NOERROR',
    seed: 7,
    location: { country: 'GB' },
    steps: [{ rdata: ['192.0.2.2'], choice: { rungs: Array } }],
  })
  t.strictSame(await explained(server, '@', '-conf', 'Corefile', '--seed', '7'), online)
  const { stdout } = await runSextant(server.directory, ['explain', ...QUESTION, at])
  t.match(stdout, /^app\.k\.example\.com\. A for 198\.51\.100\.0\/24: NOERROR$/m)
  t.match(stdout, /zone k\.example\.com\., serial \d+/)
  t.match(stdout, /eu-1: 192\.0\.2\.1, .* \(.*records\/app\.json:12\)\n +dropped: all its targets/)
  t.match(stdout, /served: 192\.0\.2\.2/)
})

t.test('questions that are invalid get one line', async (t) => {
  const port = await freePort()
  const server = await startServer(t, { corefile: corefile(port), files: FILES })
  const ask = (body: unknown) =>
    fetchLocal(
      port,
      { method: 'POST', path: '/v1/explain', headers: { 'content-type': 'application/json' } },
      JSON.stringify(body),
    )
  const name = 'app.k.example.com'
  const client = '192.0.2.9'
  for (const { body, detail } of [
    { body: undefined, detail: /./ },
    { body: [], detail: /object/ },
    { body: { client }, detail: /name/ },
    { body: { name }, detail: /^a client is missing/ },
    { body: { name: 'a..b', client }, detail: /^invalid name: "a\.\.b"$/ },
    { body: { name: 'x'.repeat(2000), client }, detail: /1020 characters/ },
    { body: { name, type: 'NOPE', client }, detail: /^unknown record type: "NOPE"$/ },
    { body: { name, client: 'here' }, detail: /^invalid client address: "here"$/ },
    {
      body: { name, subnet: '192.0.2.0/33' },
      detail: /^invalid client subnet: "192\.0\.2\.0\/33"/,
    },
    { body: { name, client, seed: -1 }, detail: /seed/ },
    { body: { name, client, seed: 2 ** 32 }, detail: /seed/ },
    { body: { name, client, color: 'red' }, detail: /additional properties/ },
  ]) {
    const answer = await ask(body)
    t.equal(answer.status, 400, answer.body)
    t.match(JSON.parse(answer.body).detail, detail)
    t.notMatch(JSON.parse(answer.body).detail, '\n')
  }
  t.match(JSON.parse((await ask({ name: 'other.example', client })).body), { rcode: 'REFUSED' })
  // A client has 16 connections: one more ends its oldest.
  const many = await Promise.all(
    Array.from({ length: 40 }, () =>
      ask({ name, client }).then(
        ({ status }) => status,
        (error: NodeJS.ErrnoException) => error.code,
      ),
    ),
  )
  t.strictSame(
    many.filter((one) => one !== 200 && one !== 503 && one !== 'ECONNRESET'),
    [],
  )
  t.ok(many.includes(200))
  t.equal((await ask({ name, client })).status, 200, 'the server goes on')
  const { stderr, code } = await runSextant(server.directory, [
    ...['explain', name, '--client', client, '@127.0.0.1:1'],
  ])
  t.equal(code, 1)
  t.match(stderr, /^no server listens on http:\/\/127\.0\.0\.1:1; start .*\n$/)
})

t.test('the API follows a reload, and a process that takes over', async (t) => {
  const [port, nextPort] = [await freePort(), await freePort()]
  const server = await startServer(t, { corefile: corefile(port), files: FILES })
  t.equal(await pidOf(port), server.process.pid)
  await explained(server, `@127.0.0.1:${port}`)
  const reload = async (text: string, done: () => Promise<boolean>) => {
    writeFileSync(
      join(server.directory, 'Corefile'),
      text.replaceAll('{PORT}', String(server.port)),
    )
    server.process.kill('SIGUSR1')
    await until(done, 'the reload')
  }
  await reload(corefile(nextPort), async () => {
    return (await pidOf(nextPort).catch(() => 0)) === server.process.pid
  })
  await t.rejects(pidOf(port), { code: 'ECONNREFUSED' }, 'the old address is closed')
  await explained(server, `@127.0.0.1:${nextPort}`)
  const events = async () => {
    const { body } = await fetchLocal(nextPort, { path: '/v1/events' })
    const all: readonly { readonly actor: { readonly kind: string } }[] = JSON.parse(body).events
    return all.map(({ actor }) => actor.kind)
  }
  t.ok((await events()).includes('start'), 'the log of events lasts over a reload')
  const hosted = corefile(nextPort).replace(/(admin .*)/, '$1 {\n host admin.example.org\n }')
  await reload(hosted, async () => {
    const headers = { host: 'admin.example.org' }
    return (await fetchLocal(nextPort, { path: '/v1/status', headers })).status === 200
  })
  // The event follows the first reply of the new Corefile.
  await until(async () => {
    return (await events()).filter((kind) => kind === 'reload').length === 2
  }, 'both reloads')
  const text = readFileSync(join(server.directory, 'Corefile'), 'utf8')
  const args = ['-takeover']
  const next = await startServer(t, { corefile: text, beside: server, args })
  server.process.kill('SIGTERM')
  // Connections that the old process accepted before are served by it.
  await until(async () => (await pidOf(nextPort)) === next.process.pid, 'the new process')
  t.equal(await server.exited(), 0)
  t.equal(await pidOf(nextPort), next.process.pid)
  await explained(next, `@127.0.0.1:${nextPort}`)
})
