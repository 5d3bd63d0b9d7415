import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LineBuffer } from '../../../src/base/telemetry/lines.ts'
import { UdpClient } from '../../support/client.ts'
import { DataServer } from '../../support/data-server.ts'
import { until } from '../../support/until.ts'
import { DIRECTIVES } from './all-directives.ts'

// Long: it starts servers with each form of log.

/* The log of queries that data threads answer: sent as entries, printed by the control thread. */

// Threads start slowly on a machine that is busy.
const PATIENCE_MS = 120_000

const ZONE = `$ORIGIN z.example.
@ 60 SOA ns hostmaster 1 60 60 60 60
* 60 A 192.0.2.1
www 60 A 192.0.2.2
`

const corefile = (zone: string, log: string): string => `z.example:0 {
  bind 127.0.0.1
  multisocket 1
  log ${log}
  file ${zone} z.example
}
`

/** A server that logs so, and a way to ask it; `queryLines`: where to. */
async function start(t: Test, log: string, queryLines?: LineBuffer) {
  const directory = t.testdir({ zone: ZONE, Corefile: '' })
  const path = join(directory, 'Corefile')
  const write = (log: string): void => {
    writeFileSync(path, corefile(join(directory, 'zone'), log))
  }
  write(log)
  const server = new DataServer(t, {
    module: new URL('./all-directives.ts', import.meta.url),
    directives: DIRECTIVES,
    corefile: { kind: 'file', path },
    threads: 1,
    ...(queryLines === undefined ? {} : { queryLines }),
  })
  const client = await UdpClient.connect(await server.start())
  t.teardown(() => client.close())
  const ask = (name: string): Promise<Buffer> => {
    return client.ask({ name: `${name}.z.example`, type: 'A' }, 1, PATIENCE_MS)
  }
  const reload = async (log: string): Promise<void> => {
    write(log)
    if (!(await server.supervisor.reload())) throw new Error(server.lines.join('\n'))
  }
  return { server, ask, reload }
}

/** Those of `log`: plugins have words of their own for the zone. */
const ofQueries = (lines: readonly string[]): string[] => {
  return lines.filter((line) => line.includes('z.example. ') && !line.includes('plugin/'))
}

t.test(
  'a line per query in the order of the queries, by the short way and by the long one',
  async (t) => {
    const { server, ask } = await start(t, '')
    const want: string[] = []
    for (let i = 0; i < 50; i++) {
      const name = ['www', `host-${i}`, 'a.b\\010'][i % 3]!
      await ask(name)
      want.push(
        `"A IN ${name}.z.example. udp ${12 + 11 + 4 + (name === 'a.b\\010' ? 4 : name.length) + 12} false 1232"`,
      )
    }
    await until(() => ofQueries(server.lines).length >= 50, 'all lines', PATIENCE_MS)
    const got = ofQueries(server.lines)
    t.strictSame(
      got.map((line) => /"A IN [^"]*"/.exec(line)?.[0]),
      want,
    )
    const whole = /^\[INFO\] 127\.0\.0\.1:\d+ - \d+ ".*" NOERROR qr,aa,rd \d+ [\d.]+s$/
    t.strictSame(
      got.filter((line) => !whole.test(line)),
      [],
    )
  },
)

t.test('each line has the format of the rule that logged it, also during reloads', async (t) => {
  const formats = [
    '. "one {name} one"',
    '. "two {name} {local} two"',
    'z.example "three {name} {remote} three"',
  ]
  const { server, ask, reload } = await start(t, formats[0]!)
  let isOver = false
  let asked = 0
  const asking = Array.from({ length: 8 }, async () => {
    for (; !isOver; asked++) await ask(asked % 2 === 0 ? 'www' : `w-${asked}`)
  })
  for (let i = 1; i <= 6; i++) {
    const before = asked
    await until(() => asked > before + 20, 'queries under way', PATIENCE_MS)
    await reload(formats[i % 3]!)
  }
  isOver = true
  await Promise.all(asking)
  await until(() => ofQueries(server.lines).length >= asked, 'all lines', PATIENCE_MS)
  const lines = ofQueries(server.lines)
  t.equal(lines.length, asked)
  const whole = /^\[INFO\] (one|two|three) [\w-]+\.z\.example\. (127\.0\.0\.1 )?\1$/
  t.strictSame(
    lines.filter((line) => !whole.test(line)),
    [],
  )
  for (const word of ['one', 'two', 'three'])
    t.ok(
      lines.some((line) => line.includes(` ${word} `)),
      word,
    )
})

t.test('entries that were sent before the end are printed', async (t) => {
  const { server, ask } = await start(t, '')
  await Promise.all(Array.from({ length: 200 }, (_, i) => ask(`w-${i}`)))
  await server.supervisor.stop()
  t.equal(ofQueries(server.lines).length, 200)
})

t.test(
  'lines that no reader takes are dropped and counted, and queries are answered',
  async (t) => {
    let isBusy = true
    let text = ''
    const buffer = new LineBuffer(
      {
        isBusy: () => isBusy,
        write: (octets) => {
          text += octets.toString()
        },
      },
      setImmediate,
    )
    const { ask } = await start(t, `. "{name} ${'x'.repeat(4000)}|"`, buffer)
    const COUNT = 600
    for (let i = 0; i < COUNT; i += 50) {
      await Promise.all(Array.from({ length: 50 }, (_, k) => ask(`w-${i + k}`)))
    }
    await until(() => buffer.dropped > 200, 'lines to be dropped', PATIENCE_MS)
    isBusy = false
    buffer.flush()
    const lines = (): string[] => text.split('\n').slice(0, -1)
    await until(() => lines().length + buffer.dropped >= COUNT, 'the rest', PATIENCE_MS)
    t.equal(lines().length + buffer.dropped, COUNT)
    await ask('www')
    await until(() => lines().length + buffer.dropped > COUNT, 'lines again', PATIENCE_MS)
    t.match(lines().at(-1), '[INFO] www.z.example. xx')
    t.ok(
      lines().every((line) => /^\[INFO\] [\w-]+\.z\.example\. x{4000}\|$/.test(line)),
      'whole lines',
    )
  },
)
