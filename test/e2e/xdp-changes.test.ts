import { readdirSync } from 'node:fs'
import t, { type Test } from 'tap'
import { needs, needsRoot } from '../support/peer.ts'
import { putFile, type RunningServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { wireQuery } from '../support/wire.ts'
import { composePacket } from '../transport/udp/xdp/packets.ts'
import { corefile, SERVER, XdpPlace } from './xdp-place.ts'

/* What changes under a server with AF_XDP: its threads, and the queues and the MTU of the interface. */

t.setTimeout(600_000)

const NEEDS = { ...needsRoot(), ...needs('ip', 'dig') }
const NAME = 'www.example.org'

async function reload(server: RunningServer, text: string): Promise<void> {
  const count = () => server.output().split('Reloading complete').length
  const before = count()
  putFile(server.directory, 'Corefile', text)
  server.process.kill('SIGUSR1')
  await until(() => count() > before, 'the reload')
}

/** The lines that say how the interface is attached. */
const attachments = (server: RunningServer): string[] =>
  [...server.output().matchAll(/^\[INFO\] xdp eth0: (.*)$/gm)].map(([, text = '']) => text)

const attached = (server: RunningServer, count: number): Promise<void> =>
  until(() => attachments(server).length >= count, `attachment ${count}`)

/**
 * Runs `change` while queries arrive from many ports, and checks that none is lost. The next queries
 * are sent when those of before are answered.
 */
async function checkLossless(t: Test, place: XdpPlace, change: () => Promise<void>): Promise<void> {
  const client = place.openFrames()
  const { ipv4 } = await place.packets()
  let last = 0
  const send = async (): Promise<void> => {
    const frames = Array.from({ length: 20 }, () => {
      const message = wireQuery({ id: ++last, name: NAME })
      return composePacket({ ...ipv4, message, sourcePort: 10_000 + last })
    })
    await client.send(frames)
    // Beside the replies to dig.
    const sent = Array.from({ length: 20 }, (_, i) => last - i)
    await until(() => sent.every((id) => client.replies().has(id)), `replies to ${last} queries`)
  }
  await send()
  let isOver = false
  const changed = change().finally(() => {
    isOver = true
  })
  while (!isOver) await send()
  await changed
  await send()
  t.ok(last > 40, `${last} queries`)
  await client.end()
}

t.test('a reload with fewer threads, and with more', NEEDS, async (t) => {
  const place = await XdpPlace.create(t)
  await place.removeInterface()
  await place.addInterface(2)
  const threads = (count: number): string => corefile(`multisocket ${count}\n xdp eth0`)
  const server = await place.start(threads(2))
  await attached(server, 1)
  await place.untilPast(true)
  for (const [i, count] of [1, 2, 1].entries()) {
    await checkLossless(t, place, async () => {
      await reload(server, threads(count))
      await attached(server, i + 2)
    })
    await place.untilPast(true)
  }
  t.strictSame(new Set(attachments(server)), new Set(['generic (veth), copy, 2 queues']))
  t.notMatch(server.output(), /panic|Recovered|WARNING/)
})

t.test('reloads lose no query, and leave no descriptor behind', NEEDS, async (t) => {
  const place = await XdpPlace.create(t)
  const server = await place.start()
  await attached(server, 1)
  await place.untilPast(true)
  const descriptors = (): number => readdirSync(`/proc/${server.process.pid}/fd`).length
  const cycle = async (): Promise<void> => {
    const before = attachments(server).length
    await reload(server, corefile(''))
    await place.untilPast(false)
    await reload(server, corefile())
    await attached(server, before + 1)
  }
  await checkLossless(t, place, cycle)
  const before = descriptors()
  await checkLossless(t, place, async () => {
    for (let i = 0; i < 5; i++) await cycle()
  })
  await until(() => descriptors() <= before, `${before} descriptors`)
  t.notMatch(server.output(), /panic|Recovered|WARNING/)
})

t.test('other numbers of queues', NEEDS, async (t) => {
  const place = await XdpPlace.create(t)
  await place.removeInterface()
  await place.addInterface(4)
  t.equal(await place.setQueues(2), '')
  const server = await place.start()
  await attached(server, 1)
  t.equal(await place.setQueues(4), '')
  await attached(server, 2)
  await place.untilPast(true)
  t.equal(await place.setQueues(1), 'EINVAL', 'the kernel refuses to remove queues in use')
  t.strictSame(attachments(server), [
    'generic (veth), copy, 2 queues',
    'generic (veth), copy, 4 queues',
  ])
  t.equal(await place.isPast(), true)
  t.notMatch(server.output(), /panic|Recovered|WARNING/)
})

t.test('queues that can receive and not send are left to the kernel', NEEDS, async (t) => {
  const place = await XdpPlace.create(t)
  await place.removeInterface()
  await place.addInterface(4, 2)
  const server = await place.start()
  await attached(server, 1)
  await place.untilPast(true)
  t.strictSame(attachments(server), ['generic (veth), copy, 2 queues'])
  await checkLossless(t, place, async () => {
    for (let i = 0; i < 3; i++) await place.dig(`@${SERVER}`, NAME)
  })
  t.notMatch(server.output(), /panic|Recovered|WARNING/)
})

t.test('another MTU', NEEDS, async (t) => {
  const place = await XdpPlace.create(t)
  const server = await place.start()
  await attached(server, 1)
  await place.untilPast(true)
  /** Whether the reply of 1 400 octets leaves past the sockets. */
  const isSentPast = async (): Promise<boolean> => {
    const sent = async () => (await place.counters()).Udp!.OutDatagrams!
    const before = await sent()
    const text = await place.dig(`@${SERVER}`, 'mid.example.org', 'TXT', '+bufsize=4096', '+ignore')
    t.match(text, /ANSWER: 25/)
    return (await sent()) === before
  }
  const setMtu = async (octets: number): Promise<void> => {
    await place.server.run('ip', 'link', 'set', 'eth0', 'mtu', String(octets))
    await place.client.run('ip', 'link', 'set', 'eth0', 'mtu', String(octets))
    await place.setSwitchMtu(octets)
  }
  t.equal(await isSentPast(), true)
  await setMtu(1280)
  await attached(server, 2)
  await place.untilPast(true)
  t.equal(await isSentPast(), false)

  await setMtu(9000)
  await attached(server, 3)
  await place.untilPast(true)
  t.equal(await isSentPast(), true)
  // A frame that is longer than the memory for one passes to the kernel.
  const options = [[65_001, new Uint8Array(2500)]] as const
  const message = wireQuery({ id: 7, name: NAME, edns: { payload: 4096, options } })
  const before = await place.socketDatagrams()
  const client = place.openFrames()
  await client.send([composePacket({ ...(await place.packets()).ipv4, message })])
  await until(() => client.replies().has(7), 'the reply to a long query')
  t.equal(await place.socketDatagrams(), before + 1)
  t.notMatch(server.output(), /panic|Recovered|WARNING/)
})

t.test('queries for which no frame is free are counted', NEEDS, async (t) => {
  const place = await XdpPlace.create(t)
  const metrics = corefile('xdp eth0 {\n queues 1\n}\n prometheus 127.0.0.1:9153')
  const server = await place.start(metrics)
  await attached(server, 1)
  await place.untilPast(true)
  const count = async (pattern: RegExp): Promise<number> => {
    return [...(await place.metrics()).matchAll(pattern)].reduce(
      (sum, [, value]) => sum + Number(value),
      0,
    )
  }
  const lost = () => count(/^sextant_dns_dropped_queries_total\{reason="buffer"\} (\d+)$/gm)
  const asked = () => count(/^coredns_dns_requests_total\{.*\} (\d+)$/gm)
  const [lostBefore, askedBefore] = [await lost(), await asked()]
  const { ipv4 } = await place.packets()
  const client = place.openFrames()
  server.process.kill('SIGSTOP')
  const frame = composePacket({ ...ipv4, message: wireQuery({ name: NAME }) })
  await client.send(Array.from({ length: 3000 }, () => frame))
  t.equal(await client.end(), 3000)
  server.process.kill('SIGCONT')
  const all = async () => (await lost()) - lostBefore + (await asked()) - askedBefore
  await until(async () => (await all()) === 3000, 'all 3 000 queries in the counters')
  const dropped = (await lost()) - lostBefore
  // Frames of replies are free again with the next query.
  t.ok(dropped >= 3000 - 2048 && dropped < 3000 - 2048 + 64, String(dropped))
  t.equal(await place.isPast(), true)

  // The count is kept after the end of the socket.
  await reload(server, metrics.replace(/xdp eth0 \{\n queues 1\n\}/g, ''))
  await place.untilPast(false)
  t.equal((await lost()) - lostBefore, dropped)
})
