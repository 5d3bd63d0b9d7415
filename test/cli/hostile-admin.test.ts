import { createServer } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import t, { type Test } from 'tap'
import { runDrain, runDrains } from '../../src/cli/drain.ts'
import { runExplain } from '../../src/cli/explain.ts'
import { runStatus } from '../../src/cli/status.ts'
import { STATUS } from '../support/admin-site.ts'
import { recordOutput } from '../support/recorded-output.ts'

type Command = typeof runStatus
type Hostile = readonly [name: string, command: Command, argv: readonly string[], reply: string]

const DEEP = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
/** Control sequences of terminals, and characters that reorder a line. */
const CONTROLS = '\u001b[2J\u009b2J\u202e\u2028'
const RAW = /[\p{Cc}\u2028\u202e]/u
const DRAIN = { id: '01234567', selector: 'site:a', reason: '', actor: '' }
const EXPLAIN = ['www.example.com', '--client', '192.0.2.1']
const EXPLANATION = { steps: [], answer: [], client: {}, server: {}, end: {} }

/** Runs a command against a server that replies with `body`. */
async function ask(t: Test, command: Command, argv: readonly string[], body: string, status = 200) {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(status, { 'content-type': 'application/json' }).end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  const { output, printed, errors } = recordOutput()
  const code = await command([...argv, `@127.0.0.1:${port}`], output)
  return { code, printed, errors }
}

const UNEXPECTED: readonly Hostile[] = [
  ['a null zone', runStatus, [], JSON.stringify({ ...STATUS, zones: [null] })],
  ['no Corefile', runStatus, [], JSON.stringify({ ...STATUS, corefile: null })],
  [
    'a deep member',
    runStatus,
    ['-o', 'json'],
    `${JSON.stringify(STATUS).slice(0, -1)},"a":${DEEP}}`,
  ],
  ['a number as time', runDrains, [], JSON.stringify({ drains: [{ ...DRAIN, until: 5 }] })],
  ['an object as number', runDrains, [], JSON.stringify({ drains: [], drainsOmitted: {} })],
  [
    'a deep drain',
    runDrains,
    ['-o', 'json'],
    `{"drains":[${JSON.stringify(DRAIN).slice(0, -1)},"a":${DEEP}}]}`,
  ],
  [
    'objects as counts',
    runDrain,
    ['site:a'],
    JSON.stringify({ ...DRAIN, endpoints: {}, records: [] }),
  ],
  ['a null step', runExplain, EXPLAIN, JSON.stringify({ ...EXPLANATION, steps: [null] })],
  ['an empty step', runExplain, EXPLAIN, JSON.stringify({ ...EXPLANATION, steps: [{}] })],
]
for (const [name, command, argv, reply] of UNEXPECTED) {
  t.test(`a reply with ${name} is one line`, async (t) => {
    const { code, printed, errors } = await ask(t, command, argv, reply)
    t.strictSame([code, printed], [1, []])
    t.match(errors, [/^the server did not reply with .*; use the same version of sextant/])
    t.equal(errors.length, 1)
  })
}

t.test('a reply that switches to another protocol is one line', async (t) => {
  const upgrade = 'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n'
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.write(upgrade))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as { port: number }
  const { output, errors } = recordOutput()
  t.equal(await runStatus([`@127.0.0.1:${port}`], output), 1)
  t.match(errors, [/: the reply is not that of an admin API \(status 101\)$/])
})

t.test('the detail of a problem must be a text', async (t) => {
  for (const detail of [DEEP, '{"toString":1}', '5']) {
    for (const [command, argv] of [
      [runStatus, []],
      [runDrains, []],
      [runExplain, EXPLAIN],
    ] as const) {
      const { code, errors } = await ask(t, command, argv, `{"detail":${detail}}`, 400)
      t.equal(code, 1)
      t.match(errors, [/: the reply is not that of an admin API \(status 400\)$/])
    }
  }
})

t.test('JSON has no characters that control a terminal', async (t) => {
  const drain = { ...DRAIN, reason: CONTROLS }
  const drains = await ask(t, runDrains, ['-o', 'json'], JSON.stringify({ drains: [drain] }))
  t.notMatch(drains.printed.join(''), RAW)
  t.same(JSON.parse(drains.printed.join('')), [drain])
  const version = CONTROLS
  const status = await ask(t, runStatus, ['-o', 'json'], JSON.stringify({ ...STATUS, version }))
  t.notMatch(status.printed.join(''), RAW)
  t.equal(JSON.parse(status.printed.join('')).version, version)
})

t.test('tables of any size are printed', async (t) => {
  const drains = new Array(200_000).fill(DRAIN)
  const many = await ask(t, runDrains, [], JSON.stringify({ drains }))
  t.strictSame([many.code, many.printed.length], [0, drains.length + 1])
  const long = [{ ...DRAIN, reason: 'r', actor: 'x'.repeat(1_000_000) }, ...drains]
  const wide = await ask(t, runDrains, [], JSON.stringify({ drains: long }))
  t.equal(wide.code, 0)
  t.ok(wide.printed.at(-1)!.length < 1000, 'a long cell does not widen the others')
})
