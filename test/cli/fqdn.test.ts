import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runFqdn } from '../../src/cli/fqdn.ts'
import type { ListedName } from '../../src/egress/agent/api/names-api.ts'
import { UdpClient } from '../support/client.ts'
import { recordOutput } from '../support/recorded-output.ts'
import { type RunningServer, root, runSextant, startServer } from '../support/server.ts'

/** Two Pods, with addresses of this machine: this test asks as they do. */
const OBJECTS = ['web', 'db']
  .map(
    (name, i) => `---
apiVersion: v1
kind: Pod
metadata: { name: ${name}, namespace: shop, uid: u${i}, labels: { app: ${name} } }
status: { podIPs: [{ ip: 127.0.0.${i + 2} }] }
---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: ${name}, namespace: shop }
spec:
  endpointSelector: { matchLabels: { app: ${name} } }
  egress:
    - toPorts: [{ ports: [{ port: "53", protocol: ANY }] }]
    - toFQDNs: [{ matchPattern: "*.example.com" }, { matchName: ${name}.example.net }]
`,
  )
  .join('')

/** Paths of sockets are short. */
function socketPath(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'sextant-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  return join(directory, 'node.sock')
}

async function startAgent(t: Test): Promise<RunningServer & { readonly socket: string }> {
  const socket = socketPath(t)
  const server = await startServer(t, {
    corefile: `.:{PORT} {
    bind 127.0.0.1
    errors
    egress {
        policies objects.yaml
        dry_run
        cluster 127.0.0.0/8
        api ${socket}
    }
    hosts names
}
`,
    files: {
      'objects.yaml': OBJECTS,
      names: '192.0.2.1 a.example.com\n192.0.2.2 b.example.com\n192.0.2.3 db.example.net\n',
    },
  })
  return { ...server, socket }
}

async function look(t: Test, { port }: RunningServer, from: string, ...names: readonly string[]) {
  const client = await UdpClient.connect(port, from)
  t.teardown(() => client.close())
  for (const name of names) await client.ask({ name, type: 'A' })
}

t.test('the commands and an agent', async (t) => {
  const agent = await startAgent(t)
  const run = (...args: readonly string[]) =>
    runSextant(agent.directory, ['fqdn', ...args, '--socket', agent.socket])
  const listed = async (...filter: readonly string[]): Promise<readonly string[]> => {
    const { code, stdout, stderr } = await run('cache', 'list', '-o', 'json', ...filter)
    t.strictSame([code, stderr], [0, ''])
    const rows: readonly ListedName[] = JSON.parse(stdout)
    return rows.map(({ fqdn, ips, ...row }) => `${row['endpoint-id']} ${fqdn} ${ips.join()}`)
  }

  t.strictSame(await listed(), [])
  const empty = await run('cache', 'list')
  t.match(empty, { code: 0, stdout: /^Endpoint +Source +FQDN +TTL +ExpirationTime +IPs\n$/ })

  await look(t, agent, '127.0.0.2', 'a.example.com', 'db.example.net')
  await look(t, agent, '127.0.0.3', 'b.example.com')
  const [webA, webNet, dbB] = [
    'shop/web/u0 a.example.com. 192.0.2.1',
    'shop/web/u0 db.example.net. 192.0.2.3',
    'shop/db/u1 b.example.com. 192.0.2.2',
  ]
  t.strictSame([...(await listed())].sort(), [dbB, webA, webNet])
  t.strictSame(await listed('-e', 'shop/db'), [dbB])
  t.strictSame(await listed('--endpoint', 'shop/web/u0', '-p', '*.example.com'), [webA])
  t.strictSame(await listed('--matchpattern=DB.example.net'), [webNet])
  t.strictSame(await listed('-s', 'connection'), [])
  t.equal((await listed('--source', 'lookup')).length, 3)
  t.strictSame(await listed('-e', '../../names'), [])
  const table = await run('cache', 'list', '-e', 'shop/db')
  t.match(table.stdout.split('\n')[1], /^shop\/db\/u1 +lookup +b\.example\.com\. +3600 +\S+Z +192/)

  const names = await run('names', '-o', 'json')
  t.equal(names.code, 0)
  t.match(JSON.parse(names.stdout), {
    DNSPollNames: [],
    FQDNPolicySelectors: [
      { selectorString: '*.example.com', regexString: /example\[\.\]com/ },
      { selectorString: 'db.example.net' },
      { selectorString: 'web.example.net' },
    ],
  })

  for (const command of ['list', 'clean']) {
    const force = command === 'clean' ? ['-f'] : []
    const { code, stderr } = await run('cache', command, ...force, '-p', 'a..b')
    t.strictSame([code, /^"|\\/.test(stderr)], [1, false], 'the reason, not as JSON')
    t.match(stderr, /a\.\.b/)
  }
  t.equal((await listed()).length, 3, 'an invalid pattern removes nothing')
  t.match(await run('cache', 'list', '-o', 'text'), {
    code: 1,
    stderr: /^invalid value text for -o/,
  })
  t.match(await run('cache'), { code: 1, stderr: /use: sextant fqdn cache list/ })

  const clean = async (answer: string, ...args: readonly string[]) => {
    const words = ['dist/main.js', 'fqdn', 'cache', 'clean', '--socket', agent.socket, ...args]
    const child = spawn(process.execPath, words, { cwd: root })
    let asked = ''
    child.stderr.on('data', (chunk) => (asked += String(chunk)))
    child.stdin.end(answer)
    const [code] = await once(child, 'close')
    return `${code} ${asked}`
  }
  t.match(await clean('n\n'), /^0 All names are removed, and what they allow\. Proceed\?/)
  t.match(await clean('', '-p', '*.example.com'), /^0 Names that match \*\.example\.com are/)
  t.equal((await listed()).length, 3)
  t.match(await clean('y\n', '-p', '*.example.com'), /^0 /)
  t.strictSame(await listed(), [webNet])
  const cleaned = await run('cache', 'clean', '--force')
  t.strictSame(cleaned, { code: 0, stdout: 'FQDN proxy cache cleared\n', stderr: '' })
  t.strictSame(await listed(), [])

  agent.process.kill('SIGTERM')
  await agent.exited()
  t.match(await run('names'), { code: 1, stdout: '', stderr: /^no node agent listens on / })
})

/** Runs the command in this process. */
async function runHere(socket: string, args: readonly string[], timeoutMs?: number) {
  const { output, printed, errors } = recordOutput()
  const code = await runFqdn([...args, '--socket', socket], output, timeoutMs)
  return { code, printed, error: errors.join('\n').replaceAll(socket, 'SOCKET') }
}

/** A server that does something else with each connection. */
async function serveOther(t: Test, onConnection: (socket: Socket) => void): Promise<string> {
  const path = socketPath(t)
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    onConnection(socket)
  })
  server.listen(path)
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return path
}

function reply(body: string, status = 200, length = Buffer.byteLength(body)): string {
  return `HTTP/1.1 ${status} X\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n${body}`
}

const LIST = ['cache', 'list']

t.test('sockets without an agent', async (t) => {
  const path = socketPath(t)
  const absent = 'no node agent listens on SOCKET; start `sextant node`, or use --socket'
  t.equal((await runHere(path, LIST)).error, absent)
  writeFileSync(path, '')
  t.equal((await runHere(path, LIST)).error, absent)
  t.match((await runHere(join(path, 'below'), LIST)).error, /ENOTDIR/)
  t.match((await runHere('x'.repeat(200), LIST)).error, /SOCKET/, 'a path that is too long')
})

t.test('a socket without permission', async (t) => {
  const path = await serveOther(t, (socket) => socket.end(reply('[]')))
  const directory = join(path, '..')
  const isRoot = process.geteuid!() === 0
  chmodSync(directory, isRoot ? 0o700 : 0)
  // Root may connect to all sockets.
  if (isRoot) process.seteuid!(65534)
  const result = await runHere(path, LIST).finally(() => {
    if (isRoot) process.seteuid!(0)
    chmodSync(directory, 0o700)
  })
  t.match(result, { code: 1, printed: [], error: 'no permission for SOCKET; run this as the user' })
})

t.test('replies that are no result', async (t) => {
  const isNames = / is not a list of names; is this the socket of a node agent\?$/
  const table: [string, RegExp][] = [
    ['SSH-2.0-OpenSSH_9\r\n', /^SOCKET: Parse Error/],
    ['', /^SOCKET: socket hang up/],
    [reply('[', 200, 99), /^SOCKET: aborted/],
    [reply(''), isNames],
    [reply('['), isNames],
    [reply('null'), isNames],
    [reply('{"fqdn":"a."}'), isNames],
    [reply('[1]'), isNames],
    [reply('[{"fqdn":"a."}]'), isNames],
    [reply('"why"\n', 400), /^why$/],
    [reply('', 500), /^the node agent replied with status 500$/],
    [reply('<html>', 502), /^<html>$/],
    [reply('', 301), /status 301/],
  ]
  for (const [text, want] of table) {
    const path = await serveOther(t, (socket) => socket.once('data', () => socket.end(text)))
    t.match(await runHere(path, LIST), { code: 1, printed: [], error: want }, text)
  }
  const path = await serveOther(t, (socket) => socket.once('data', () => socket.end(reply('[]'))))
  t.match((await runHere(path, ['names'])).error, /is not a list of selectors/)
  t.match(await runHere(path, LIST), { code: 0, error: '' })
  t.match(await runHere(path, [...LIST, '-o', 'json']), { code: 0, printed: ['[]'] })
})

t.test('a long list is whole JSON', async (t) => {
  const time = '2026-11-28T14:00:00Z'
  const rows = Array.from({ length: 4000 }, (_, i): ListedName => {
    const times = { 'lookup-time': time, 'expiration-time': time }
    const of = { 'endpoint-id': 'shop/web/u0', source: 'lookup' as const }
    return { fqdn: `n${i}.example.com.`, ips: ['192.0.2.1'], ttl: 60, ...times, ...of }
  })
  const text = JSON.stringify(rows)
  const path = await serveOther(t, (socket) => socket.once('data', () => socket.end(reply(text))))
  const args = ['fqdn', ...LIST, '-o', 'json', '--socket', path]
  const { stdout } = await runSextant(t.testdir(), args)
  t.strictSame(JSON.parse(stdout), rows)
})

t.test('a server that never ends its reply', async (t) => {
  const silent = await serveOther(t, () => {})
  const slow = await serveOther(t, (socket) => {
    socket.write(reply('[', 200, 1_000_000))
    const timer = setInterval(() => socket.write(' '), 10)
    socket.once('close', () => clearInterval(timer))
  })
  for (const path of [silent, slow]) {
    const error = 'SOCKET: no whole reply within 0.2 seconds'
    t.match(await runHere(path, LIST, 200), { code: 1, printed: [], error })
  }
})
