import t, { type Test } from 'tap'
import { RRType } from '../../../src/dns/iana/index.ts'
import { printName } from '../../../src/dns/name/name.ts'
import { loopWith } from '../../../src/plugins/loop/setup.ts'
import { ask } from '../../support/dig.ts'
import { needs } from '../../support/peer.ts'
import { replyTo, ScriptedServer } from '../../support/scripted-server.ts'
import { startServer } from '../../support/server.ts'
import { FakeTimers, SetUp, setupError } from '../../support/setup.ts'
import { answering, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'

const NEXT = answering(() => 0)

/** A `loop` whose probes go to a server of the test, which answers only if `replies`. */
async function probing(t: Test, replies: boolean, zones = ['example.org.']) {
  const timers = new FakeTimers()
  const codes: number[] = []
  const server = await ScriptedServer.openRaw(t, ({ query, send }) => {
    if (replies) send(replyTo(query, { answer: [] }))
  })
  const c = new SetUp(
    loopWith((code) => codes.push(code)),
    'loop',
    zones,
    { timers },
  )
  const [key] = c.block.keys
  Object.assign(key!, { port: server.port })
  const handler = c.handler(NEXT)
  await c.start()
  t.teardown(() => c.stop())
  await until(() => server.asked.length === 1, 'the probe')
  const name = printName(server.asked[0]!.query.question!.name)
  return { c, timers, codes, server, handler, name }
}

t.test('the probe is a random name of type HINFO in the first zone', async (t) => {
  const { server, name } = await probing(t, true, ['example.org.', 'example.net.'])
  t.match(name, /^\d+\.\d+\.example\.org\.$/)
  t.equal(server.asked[0]!.query.question!.type, RRType.HINFO)
  const root = await probing(t, true, ['.'])
  t.match(root.name, /^\d+\.\d+\.$/)
})

t.test('the third time that the probe arrives ends the process', async (t) => {
  const { c, codes, handler, name } = await probing(t, false)
  const probe = () => transaction({ name, type: RRType.HINFO, from: '192.0.2.7', port: 4321 })
  handler.serve(probe())
  handler.serve(transaction({ name, type: RRType.A }))
  handler.serve(transaction({ name: `x.${name}`, type: RRType.HINFO }))
  handler.serve(transaction({ name: 'other.example.org.', type: RRType.HINFO }))
  handler.serve(probe())
  t.strictSame(codes, [])
  handler.serve(probe())
  t.strictSame(codes, [1])
  t.match(
    c.lines.join('\n'),
    `[FATAL] plugin/loop: Loop (192.0.2.7:4321) detected for zone "example.org.": a server in \`forward\` sends ` +
      `queries back to this server; change its address. Query: "HINFO ${name}"`,
  )
})

t.test('a probe that is repeated is not a loop', async (t) => {
  // The handler gets each probe once, as in front of an upstream that does not reply.
  const { codes, timers, server, handler, name } = await probing(t, false)
  for (let probes = 1; probes <= 3; probes++) {
    await until(() => server.asked.length === probes, 'a probe')
    handler.serve(transaction({ name, type: RRType.HINFO }))
    await until(() => timers.count === 1, 'the timeout of the probe')
    await timers.advance(2000)
  }
  t.strictSame(codes, [])
})

t.test('after a reply, the probe is ignored', async (t) => {
  const { codes, timers, handler, name } = await probing(t, true)
  await until(() => timers.count === 1, 'the reply')
  await timers.advance(2000)
  for (let i = 0; i < 5; i++) handler.serve(transaction({ name, type: RRType.HINFO }))
  t.strictSame(codes, [])
})

t.test('the probe is repeated for 30 s until a server answers', async (t) => {
  const { c, codes, timers, server, handler, name } = await probing(t, true)
  await server.stop()
  await until(() => timers.count === 1, 'a reply')
  t.equal(server.asked.length, 1)
  // With a dead server.
  const dead = new SetUp(
    loopWith((code) => codes.push(code)),
    'loop',
    undefined,
    { timers },
  )
  Object.assign(dead.block.keys[0]!, { port: server.port })
  await dead.start()
  t.teardown(() => dead.stop())
  await until(() => timers.count === 2, 'the failure')
  await server.start()
  await timers.advance(2000)
  await until(() => server.asked.length === 2, 'the second probe')
  await c.stop()
  for (let i = 0; i < 5; i++) handler.serve(transaction({ name, type: RRType.HINFO }))
  t.strictSame(codes, [])
})

t.test('syntax', async (t) => {
  const loop = loopWith(() => {})
  t.match(
    setupError(loop, 'loop a'),
    "Corefile:1 - Error during parsing: Wrong argument count or unexpected line ending after 'a'",
  )
  t.match(
    setupError(loop, 'loop\nloop'),
    'Corefile:2 - Error during parsing: this plugin can only be used once',
  )
})

t.test('a server that forwards to itself ends; another one does not', needs('dig'), async (t) => {
  const corefile = (upstream: string): string => `.:{PORT} {
  bind 127.0.0.1
  errors
  loop
  forward . ${upstream}
}
`
  const looping = await startServer(t, {
    corefile: corefile('127.0.0.1:{PORT}'),
    mustStart: false,
  })
  t.equal(await looping.exited(), 1)
  t.match(
    looping.output(),
    /\[FATAL\] plugin\/loop: Loop \(127\.0\.0\.1:\d+\) detected for zone "\."/,
  )
  const upstream = await ScriptedServer.openRaw(t, ({ query, send }) => send(replyTo(query)))
  const well = await startServer(t, { corefile: corefile(upstream.address) })
  await until(() => upstream.asked.length === 1, 'the probe')
  t.equal((await ask('dig', well.port, ['www.example', 'A'])).status, 'NOERROR')
})
