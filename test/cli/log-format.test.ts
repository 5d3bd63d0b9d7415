import t from 'tap'
import { takeLogFormat } from '../../src/cli/main.ts'
import { ask } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { freePort, root, runSextant, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

t.test('-log-format is taken out of the command line of every command', (t) => {
  const table = [
    { given: ['-conf', 'x'], want: { rest: ['-conf', 'x'], format: 'text' } },
    { given: ['-log-format', 'json', '-p', '1'], want: { rest: ['-p', '1'], format: 'json' } },
    { given: ['status', '--log-format=json'], want: { rest: ['status'], format: 'json' } },
    { given: ['-log-format=json', '-log-format=text'], want: { rest: [], format: 'text' } },
    {
      given: ['--', '-log-format=json'],
      want: { rest: ['--', '-log-format=json'], format: 'text' },
    },
    { given: ['-log-format'], want: { rest: [], format: '' } },
  ]
  for (const { given, want } of table) t.strictSame(takeLogFormat(given), want, given.join(' '))
  t.end()
})

const isRight = ({ status }: { readonly status: string }): boolean => status === 'NOERROR'

type Line = Readonly<Record<string, unknown>>

/** Every line of the output must be JSON with the fields that all lines have. */
function linesOf(output: string): readonly Line[] {
  return output
    .trim()
    .split('\n')
    .map((line) => {
      const parsed = JSON.parse(line) as Line
      for (const key of ['time', 'level', 'msg']) {
        if (typeof parsed[key] !== 'string') throw new Error(`no ${key}: ${line}`)
      }
      return parsed
    })
}

t.test('a server prints only JSON, from its start to its end', needs('dig'), async (t) => {
  const server = await startServer(t, {
    corefile: '.:{PORT} {\n bind 127.0.0.1\n errors\n log . "{name} {rcode}"\n whoami\n}\n',
    args: ['-log-format', 'json'],
    mustStart: false,
  })
  await server.prints(/"msg":"Sextant-/)
  const name = 'A\\"\\\\.Example.org'
  await ask('dig', server.port, [name, 'A'])
  await ask('dig', server.port, ['+tcp', name, 'AAAA'])
  const queries = () => server.output().split('"plugin":"log"').length - 1
  await until(() => queries() === 2, 'two lines')
  server.process.kill('SIGTERM')
  t.equal(await server.exited(), 0)
  const lines = linesOf(server.output())
  const logged = lines.filter(({ plugin }) => plugin === 'log')
  t.match(
    logged.map(({ qname, qtype, protocol, rcode, client_ip: ip }) => [
      qname,
      qtype,
      protocol,
      rcode,
      ip,
    ]),
    [
      [/example\.org\.$/, 'A', 'udp', 'NOERROR', '127.0.0.1'],
      [/example\.org\.$/, 'AAAA', 'tcp', 'NOERROR', '127.0.0.1'],
    ],
  )
  for (const { msg, qname } of logged) t.equal(msg, `${String(qname)} NOERROR`)
  const others = lines.filter(({ plugin }) => plugin !== 'log')
  for (const line of others) t.match(line.event, /^[a-z0-9-]+$/, String(line.msg))
  t.ok(others.some(({ event }) => event === 'signal-stop'))
})

t.test('a start that fails prints one FATAL line, and other commands an ERROR', async (t) => {
  const directory = t.testdir({ Corefile: '. {\n nosuch\n}\n' })
  const table = [
    { args: ['-log-format=json'], want: { level: 'FATAL', event: 'start-failed' } },
    { args: ['-log-format=json', 'extra'], want: { level: 'FATAL', event: 'start-failed' } },
    { args: ['geo', '-log-format=json', 'x'], want: { level: 'ERROR', event: 'command-failed' } },
  ]
  for (const { args, want } of table) {
    const { code, stderr, stdout } = await runSextant(directory, args)
    t.equal(code, 1, args.join(' '))
    t.match(linesOf(stderr).at(-1), want, args.join(' '))
    if (want.level === 'FATAL') t.equal(linesOf(stdout + stderr).length, 1)
  }
  const { code, stderr } = await runSextant(root, ['-log-format', 'xml'])
  t.equal(code, 1)
  t.equal(stderr.trim(), 'invalid value "xml" for flag -log-format: must be text or json')
})

t.test(
  'a full disk loses lines and nothing else, and the lines are counted',
  needs('dig'),
  async (t) => {
    const port = await freePort()
    const server = await startServer(t, {
      corefile: `.:{PORT} {\n bind 127.0.0.1\n log\n prometheus 127.0.0.1:${port}\n whoami\n}\n`,
      args: ['-log-format', 'json'],
      wrapper: ['sh', '-c', 'exec "$@" >/dev/full', 'sh'],
      mustStart: false,
    })
    const isServing = () =>
      ask('dig', server.port, ['+tries=1', '+time=1', 'example.org']).then(isRight)
    await until(() => isServing().catch(() => false), 'the server')
    for (let i = 0; i < 3; i++) t.ok(await isServing())
    const lost = async (): Promise<number> => {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
      return Number(/^sextant_log_dropped_lines_total (\d+)$/m.exec(text)?.[1])
    }
    // Those of the start are lost too.
    await until(async () => (await lost()) >= 4, 'the lines to be counted')
    server.process.kill('SIGTERM')
    t.equal(await server.exited(), 0)
  },
)
