import { existsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { QUERY_TAP } from '../../../src/plugin/query-tap.ts'
import { dnstap } from '../../../src/plugins/dnstap/setup.ts'
import { selfSigned } from '../../support/certificate.ts'
import { SinkDouble } from '../../support/dnstap-sink.ts'
import { freePort } from '../../support/free-port.ts'
import { FakeTimers, SetUp } from '../../support/setup.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'

const [START, STOP] = [2, 3]

async function started(t: Test, corefile: string): Promise<SetUp & { timers: FakeTimers }> {
  const timers = new FakeTimers()
  const setUp = new SetUp(dnstap, corefile, undefined, { timers })
  await setUp.start()
  t.teardown(() => setUp.stop())
  return Object.assign(setUp, { timers })
}

/** A query and its reply of `octets` octets. */
function see(setUp: SetUp, octets = 16, times = 1): void {
  const tx = transaction({ name: 'www.example.org.' })
  tx.out = new Uint8Array(octets)
  const tap = setUp.block.shared.find(QUERY_TAP)!
  for (let i = 0; i < times; i++) tap.see(tx, octets)
}

const line = (setUp: SetUp, pattern: RegExp) =>
  until(() => setUp.lines.some((line) => pattern.test(line)), String(pattern))

const isOpen = (sink: SinkDouble) => sink.controls.includes(START)

async function connected(
  t: Test,
  setUp: SetUp,
  ...[to, tls]: Parameters<SinkDouble['connect']>
): Promise<SinkDouble> {
  const sink = new SinkDouble(t)
  const before = setUp.lines.length
  sink.connect(to, tls)
  await until(() => isOpen(sink) && setUp.lines.length > before, 'a connection')
  return sink
}

t.test('endpoints, and several sinks', async (t) => {
  const path = join(temporaryDirectory(t), 'sink')
  const port = await freePort()
  const tcp = `tcp://127.0.0.1:${port}`
  const setUp = await started(t, `dnstap listen ${path} full\ndnstap listen ${tcp}`)
  see(setUp)
  await until(() => setUp.lines.length === 2, 'both listen')
  t.match(setUp.lines.sort(), [/listening on \//, /listening on tcp:/])
  const first = await connected(t, setUp, { path })
  see(setUp)
  await until(() => first.frames.length === 2, 'messages')
  const second = await connected(t, setUp, { path })
  const third = await connected(t, setUp, { host: '127.0.0.1', port })
  see(setUp)
  await until(() => first.frames.length === 4, 'more messages')
  await until(() => second.frames.length === 2 && third.frames.length === 2, 'all sinks')
  t.ok(first.messages().every(({ inner }) => inner.has(10) || inner.has(14)))
  t.notOk(third.messages().some(({ inner }) => inner.has(10) || inner.has(14)))
  first.close()
  await line(setUp, /connection to .* ended: the sink closed the connection/)
  await setUp.stop()
  t.ok(second.controls.includes(STOP))
  t.notOk(existsSync(path))
  t.equal(await setUp.metric(`sextant_dnstap_messages_total{endpoint="${path}"}`), 6)
  t.equal(await setUp.metric(`sextant_dnstap_lost_messages_total{endpoint="${path}"}`), undefined)
})

t.test('a slow sink loses messages, and others do not', async (t) => {
  const path = join(temporaryDirectory(t), 'sink')
  const setUp = await started(t, `dnstap listen ${path} full`)
  await line(setUp, /listening/)
  const stuck = new SinkDouble(t, { isStuck: true })
  stuck.connect({ path })
  const quick = await connected(t, setUp, { path })
  await until(() => isOpen(stuck), 'both sinks')
  let seen = 0
  const series = `sextant_dnstap_lost_messages_total{endpoint="${path}"}`
  await until(async () => {
    see(setUp, 60_000, 20)
    seen += 20
    await until(() => quick.frames.length === 2 * seen, 'all messages at the other sink')
    return ((await setUp.metric(series)) ?? 0) > 0
  }, 'losses')
  const stopped = setUp.stop()
  await setUp.timers.advance(1000)
  await stopped
  t.equal(stuck.frames.length, 0)
})

t.test('after a reload, connections belong to the new instance', async (t) => {
  const path = join(temporaryDirectory(t), 'sink')
  const old = await started(t, `dnstap listen ${path}`)
  await line(old, /listening/)
  const first = await connected(t, old, { path })
  const next = await started(t, `dnstap listen ${path}`)
  await old.stop()
  await until(() => first.closed === 1, 'the end of the connection')
  const second = await connected(t, next, { path })
  see(next)
  await until(() => second.frames.length === 2, 'messages')
  t.equal(first.frames.length, 0)
})

t.test('an address that is in use is tried again', async (t) => {
  const port = await freePort()
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(port, '127.0.0.1', resolve))
  const setUp = await started(t, `dnstap listen tcp://127.0.0.1:${port}`)
  await line(setUp, /cannot listen on tcp:.*, trying again: .*EADDRINUSE/)
  await new Promise((resolve) => other.close(resolve))
  await until(async () => {
    await setUp.timers.advance(1000)
    return setUp.lines.some((line) => line.includes('listening'))
  }, 'listening')
  t.equal(setUp.lines.length, 2)
})

t.test('paths that exist', async (t) => {
  const path = join(temporaryDirectory(t), 'sink')
  writeFileSync(path, 'precious')
  const setUp = await started(t, `dnstap listen ${path}`)
  await line(setUp, /cannot listen on .*: the file exists and is not a socket/)
  await setUp.stop()
  t.ok(existsSync(path))

  // As after a crash, and as during a take-over: the socket of another process is replaced, and stays when that ends.
  const taken = `${path}2`
  const other = createServer()
  await new Promise<void>((resolve) => other.listen(taken, resolve))
  t.teardown(() => other.close())
  const next = await started(t, `dnstap listen ${taken}`)
  await line(next, /listening/)
  const sink = await connected(t, next, { path: taken })
  see(next)
  await until(() => sink.frames.length === 2, 'messages')
})

t.test('TLS', async (t) => {
  const directory = temporaryDirectory(t)
  const { cert, key } = selfSigned('localhost')
  const sinkOwn = selfSigned('localhost')
  writeFileSync(join(directory, 'cert'), cert)
  writeFileSync(join(directory, 'key'), key)
  writeFileSync(join(directory, 'ca'), sinkOwn.cert)
  const open = async (ca: string, more = '') => {
    const port = await freePort()
    const files = `${directory}/cert ${directory}/key ${ca}`
    const tls = `tls://127.0.0.1:${port}`
    const setUp = await started(t, `dnstap listen ${tls} {\ntls ${files}\n${more}\n}`)
    await line(setUp, /listening/)
    return { setUp, to: { host: '127.0.0.1', port } }
  }
  const plain = await open('')
  await connected(t, plain.setUp, plain.to, { ca: cert, servername: 'localhost' })

  const mutual = await open(`${directory}/ca`)
  const without = new SinkDouble(t)
  without.connect(mutual.to, { ca: cert, servername: 'localhost' })
  await until(() => without.closed === 1, 'a sink without a certificate is refused')
  t.notOk(isOpen(without))
  await line(mutual.setUp, /refused a sink: /)
  const own = { ca: cert, servername: 'localhost', cert: sinkOwn.cert, key: sinkOwn.key }
  await connected(t, mutual.setUp, mutual.to, own)

  const lax = await open(`${directory}/ca`, 'skipverify')
  await connected(t, lax.setUp, lax.to, { ca: cert, servername: 'localhost' })

  const files = `${directory}/cert ${directory}/key ${directory}/ca`
  const next = await started(t, `dnstap listen tls://127.0.0.1:${lax.to.port} {\ntls ${files}\n}`)
  await lax.setUp.stop()
  const late = new SinkDouble(t)
  await until(async () => {
    await next.timers.advance(200)
    const isRefused = next.lines.some((line) => line.includes('refused a sink: '))
    if (!isRefused) late.connect(lax.to, { ca: cert, servername: 'localhost' })
    return isRefused || isOpen(late)
  }, 'after a reload, a sink without a certificate is refused')
  t.notOk(isOpen(late))

  const bad = new SetUp(dnstap, `dnstap listen tls://:1 {\ntls ${directory}/none key\n}`)
  await t.rejects(bad.start(), /dnstap tls: ENOENT/)
  await bad.stop()
  t.match((await bad.check()).faults, [/^Corefile:2: dnstap tls: ENOENT/])
  t.strictSame((await lax.setUp.check()).faults, [])
})

t.test('connections are bounded', async (t) => {
  const path = join(temporaryDirectory(t), 'sink')
  const setUp = await started(t, `dnstap listen ${path}`)
  await line(setUp, /listening/)
  for (let i = 0; i < 8; i++) await connected(t, setUp, { path })
  for (let i = 0; i < 2; i++) {
    const ninth = new SinkDouble(t)
    ninth.connect({ path })
    await until(() => ninth.closed === 1, 'it is refused')
  }
  const refused = setUp.lines.filter((line) => /refused a sink: more than 8/.test(line))
  t.equal(refused.length, 1, 'one line')
})
