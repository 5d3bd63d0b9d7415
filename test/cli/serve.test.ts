import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { freePort, type RunningServer, root, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const COREFILE = 'example.org:{PORT} {\n bind 127.0.0.1\n whoami\n}\n'

/** A query for example.org A with that id. */
function query(id: number): Buffer {
  const name = '076578616d706c65036f726700'
  return Buffer.from(
    `${id.toString(16).padStart(4, '0')}01000001000000000000${name}00010001`,
    'hex',
  )
}

/** Sends queries one after the other until the test stops it; counts those without the right answer. */
async function load(server: RunningServer) {
  const socket = createSocket('udp4')
  const waiting = new Set<number>()
  let sent = 0
  let running = true
  socket.on('message', (reply) => {
    if ((reply.readUInt16BE(2) & 0x800f) === 0x8000) waiting.delete(reply.readUInt16BE(0))
  })
  const over = (async () => {
    for (; running; sent++) {
      const id = sent & 0xffff
      waiting.add(id)
      socket.send(query(id), server.port, '127.0.0.1')
      await new Promise((resolve) => setImmediate(resolve))
      if (waiting.size >= 50) await until(() => waiting.size < 50, 'replies')
    }
    await until(() => waiting.size === 0, 'the last replies').catch(() => {})
    socket.close()
  })()
  return {
    sent: () => sent,
    stop: async () => {
      running = false
      await over
      return { sent, lost: waiting.size }
    },
  }
}

const count = (server: RunningServer, text: string) => server.output().split(text).length - 1

t.test('start-up lines and process id are there, and TERM ends it well', async (t) => {
  const server = await startServer(t, { corefile: COREFILE, args: ['-pidfile', 'pid'] })
  const pidfile = join(server.directory, 'pid')
  await until(() => /linux|darwin/.test(server.output()), 'the last start-up line')
  t.match(
    server.output(),
    new RegExp(
      `^\\[INFO\\] udp: .*\n\\[INFO\\] memory: .*\nexample\\.org\\.:${server.port} on 127\\.0\\.0\\.1\nSextant-\\d.*\n\\w+/\\w+, node v\\d.*, \\w+\n$`,
    ),
  )
  t.equal(readFileSync(pidfile, 'utf8'), `${server.process.pid}\n`)
  server.process.kill('SIGHUP')
  server.process.kill('SIGTERM')
  t.equal(await server.exited(), 0)
  t.match(server.output(), '[INFO] SIGTERM: Shutting down servers then terminating\n')
  t.notOk(existsSync(pidfile))
})

t.test('no query is lost over reloads, good and bad', async (t) => {
  const server = await startServer(t, { corefile: COREFILE })
  const corefile = join(server.directory, 'Corefile')
  const good = readFileSync(corefile, 'utf8')
  const queries = await load(server)
  for (let round = 1; round <= 3; round++) {
    const before = queries.sent()
    await until(() => queries.sent() > before + 200, 'queries before the reload')
    server.process.kill('SIGUSR1')
    await until(() => count(server, '[INFO] Reloading complete\n') === round, 'the reload')
    writeFileSync(corefile, 'example.org {')
    server.process.kill('SIGUSR2')
    await until(() => count(server, '[ERROR] Restart failed: Corefile:1 - ') === round, 'a failure')
    writeFileSync(corefile, good)
  }
  const { sent, lost } = await queries.stop()
  t.ok(sent > 600, `${sent} queries`)
  t.equal(lost, 0)
  t.notMatch(server.output(), /debugger/i, 'USR1 does not start the debugger of Node')
  server.process.kill('SIGINT')
  t.equal(await server.exited(), 0)
})

t.test('INT ends the lameduck only the second time', async (t) => {
  const corefile = `${COREFILE.slice(0, -2)} health 127.0.0.1:0 {\n  lameduck 60s\n }\n}\n`
  const server = await startServer(t, { corefile })
  server.process.kill('SIGINT')
  await until(() => server.output().includes('SIGINT: Shutting down'), 'the first')
  server.process.kill('SIGINT')
  t.equal(await server.exited(), 2)
})

t.test('QUIT leaves at once', async (t) => {
  const corefile = `${COREFILE.slice(0, -2)} health 127.0.0.1:0 {\n  lameduck 60s\n }\n}\n`
  const server = await startServer(t, { corefile })
  server.process.kill('SIGQUIT')
  t.equal(await server.exited(), 0)
})

t.test('a port in use is one line that says who asked for it', async (t) => {
  const port = await freePort()
  const blocker = createServer().listen(port, '127.0.0.1')
  await once(blocker, 'listening')
  t.teardown(() => blocker.close())
  const corefile = `# no port of its own\n.:${port} {\n bind 127.0.0.1\n whoami\n}\n`
  const server = await startServer(t, { corefile, mustStart: false })
  t.equal(await server.exited(), 1)
  const asked = `(asked for by dns://.:${port} on 127.0.0.1)`
  t.equal(
    server.output(),
    `Corefile:2: listen tcp 127.0.0.1:${port}: address already in use ${asked}\n`,
  )
})

/** Runs a command to its end. */
async function run(cwd: string, args: readonly string[], input = '') {
  const child = spawn(process.execPath, [join(root, 'dist/main.js'), ...args], { cwd })
  const got = { out: '', err: '' }
  child.stdout.on('data', (chunk) => {
    got.out += String(chunk)
  })
  child.stderr.on('data', (chunk) => {
    got.err += String(chunk)
  })
  // A command may end before it has read its input.
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  const [code] = await once(child, 'close')
  return { code, ...got }
}

t.test('commands that end by themselves', async (t) => {
  const directory = t.testdir({})
  const table: readonly {
    name: string
    args: readonly string[]
    input?: string
    want: { code: number; out?: RegExp; err?: RegExp }
  }[] = [
    { name: '-version', args: ['-version'], want: { code: 0, out: /^Sextant-/ } },
    {
      name: '-plugins',
      args: ['serve', '-plugins'],
      want: { code: 0, out: /^Server types:\n {2}dns\n.*\n {2}dns\.whoami\n/s },
    },
    {
      name: 'extra words',
      args: ['serve', 'x'],
      want: { code: 1, err: /^extra command line arguments: \[x\]\n$/ },
    },
    {
      name: 'a Corefile on standard input',
      args: ['-conf', 'stdin'],
      input: '.:53 { whoami }',
      want: { code: 1, err: /^\/dev\/stdin:1 - Error during parsing: Unexpected '}'/ },
    },
    {
      name: 'check finds nothing',
      args: ['check', '-conf', 'stdin'],
      input: '. {\n whoami\n}',
      want: { code: 0, out: /^read \/dev\/stdin: 1 server block: \.\nno errors found\n$/ },
    },
  ]
  for (const { name, args, input, want } of table)
    t.match(await run(directory, args, input), want, name)
})
