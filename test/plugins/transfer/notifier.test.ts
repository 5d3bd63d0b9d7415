import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { Opcode, Rcode } from '../../../src/dns/iana/index.ts'
import { composeMessage } from '../../../src/dns/message/compose-message.ts'
import type { Message } from '../../../src/dns/message/message.ts'
import { parseMessage } from '../../../src/dns/message/parse-message.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
import { printRdata } from '../../../src/dns/rdata/index.ts'
import { scanAlgorithm } from '../../../src/dns/tsig/algorithm.ts'
import { createTsigKey, TSIG_KEYS, TsigKeyring } from '../../../src/dns/tsig/key.ts'
import { findTsig } from '../../../src/dns/tsig/record.ts'
import { verifyRequest } from '../../../src/dns/tsig/verify-request.ts'
import { Notifier } from '../../../src/plugins/transfer/notifier.ts'
import { transfer } from '../../../src/plugins/transfer/setup.ts'
import { ZONE_VERSIONS } from '../../../src/xfr/zone-versions.ts'
import { FakeClock, FakeTimers, SetUp } from '../../support/setup.ts'
import { until } from '../../support/until.ts'
import { imageOf } from '../../support/zone-version.ts'

const TRIES_MAX = 6
const FIRST_ATTEMPTS_MAX = 64
const PLACE_MS = 100

const APEX = 'example.org.'
const KEY = createTsigKey(scanName('k.example.')!, scanAlgorithm('hmac-sha256')!, Buffer.from('s'))

interface Heard {
  readonly message: Message
  readonly packet: Buffer
  readonly from: RemoteInfo
}

/** A server that keeps what it hears. */
class Listener {
  readonly heard: Heard[] = []
  readonly socket: Socket

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('message', (packet, from) => {
      this.heard.push({ message: parseMessage(packet)!, packet, from })
    })
  }

  static async open(t: Test): Promise<Listener> {
    const socket = createSocket('udp4')
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    t.teardown(() => new Promise<void>((done) => socket.close(() => done())))
    return new Listener(socket)
  }

  get port(): number {
    return this.socket.address().port
  }

  serials(): string[] {
    return this.heard.map(({ message }) => {
      const { type, rdata } = message.answer[0]!
      return printRdata(type, rdata).split(' ')[2]!
    })
  }

  reply({ message, from }: Heard, change: Partial<Message> = {}): void {
    const reply = { ...message, flags: 0x8400, answer: [], additional: [], ...change }
    this.socket.send(composeMessage(reply), from.port, from.address)
  }
}

/** Resolves when a version that was put is known to the notifier. */
function isNoticed(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

async function setUp(t: Test, lines = '') {
  const listener = await Listener.open(t)
  const timers = new FakeTimers()
  const corefile = `transfer {\nto 127.0.0.1:${listener.port}\n${lines}\n}`
  const c = new SetUp(transfer, corefile, undefined, { timers })
  c.block.shared.acquire(TSIG_KEYS).replace([KEY])
  const source = c.block.shared.acquire(ZONE_VERSIONS).source()
  t.teardown(() => c.stop())
  const put = (serial: number): void => {
    const text = `@ 60 SOA ns host ${serial} 2 3 4 5\n@ 60 NS ns\n`
    source.put(imageOf(text, APEX).version)
  }
  const heard = (count: number) => until(() => listener.heard.length >= count, `${count} NOTIFYs`)
  return { c, put, listener, timers, heard }
}

t.test('a NOTIFY with the SOA is sent at the start and for each new serial', async (t) => {
  const { c, put, listener, heard } = await setUp(t)
  put(1)
  await c.start()
  await heard(1)
  const { message } = listener.heard[0]!
  t.equal(message.opcode, Opcode.NOTIFY)
  t.equal(message.flags, 0x0400)
  t.equal(printName(message.question!.name), APEX)
  listener.reply(listener.heard[0]!)
  await until(async () => {
    put(2)
    return listener.heard.length >= 2
  }, 'the second')
  t.strictSame(listener.serials().slice(0, 2), ['1', '2'])
})

t.test('without an answer it is tried again, ever later, and then given up', async (t) => {
  const { c, put, listener, timers, heard } = await setUp(t)
  put(1)
  await c.start()
  await heard(1)
  for (let tries = 2; tries <= TRIES_MAX; tries++) {
    const waitMs = 1000 * 2 ** (tries - 2)
    await timers.advance(waitMs - 1)
    t.equal(listener.heard.length, tries - 1, 'not before its time')
    await timers.advance(1)
    await heard(tries)
  }
  t.notMatch(c.lines.join(), 'failed')
  await timers.advance(1000 * 2 ** (TRIES_MAX - 1))
  t.match(c.lines.join(), 'NOTIFY of example.org. 1 to 127.0.0.1:')
  t.match(c.lines.join(), 'failed: no reply')
  t.equal(await c.metric('coredns_transfer_notifies_failed_total'), 1)
  t.equal(await c.metric('coredns_transfer_notifies_sent_total'), TRIES_MAX)
  t.equal(timers.count, 0)
})

t.test('an answer ends it, an error too; answers to something else do not', async (t) => {
  const { c, put, listener, timers, heard } = await setUp(t)
  put(1)
  await c.start()
  await heard(1)
  const first = listener.heard[0]!
  listener.reply(first, { id: first.message.id ^ 1 })
  listener.reply(first, { opcode: Opcode.QUERY })
  listener.reply(first, { flags: 0 })
  listener.reply(first, { question: { ...first.message.question!, name: scanName('x.')! } })
  await timers.advance(1000)
  await heard(2)
  listener.reply(listener.heard[1]!, { rcode: Rcode.NOTAUTH })
  await until(() => timers.count === 0, 'the end')
  t.match(c.lines.join(), 'failed: the reply is NOTAUTH')
})

t.test('changes during a NOTIFY are in the next one, once', async (t) => {
  const { c, put, listener, timers, heard } = await setUp(t)
  put(1)
  await c.start()
  await heard(1)
  put(2)
  await isNoticed()
  put(3)
  await isNoticed()
  await timers.advance(1000)
  await heard(2)
  t.equal(listener.serials()[1], '3', 'tries say what is newest')
  listener.reply(listener.heard[1]!)
  await until(() => timers.count === 0, 'the end')
  t.equal(listener.heard.length, 2)
})

t.test('a new serial starts the attempts anew, at most one a second', async (t) => {
  const { c, put, listener, timers, heard } = await setUp(t)
  put(1)
  await c.start()
  await heard(1)
  await timers.advance(1000)
  await heard(2)
  await timers.advance(2000)
  await heard(3)
  // The next attempt at serial 1 would come after 4 seconds.
  await timers.advance(1000)
  put(2)
  await heard(4)
  t.equal(listener.serials()[3], '2', 'sent at once: the last attempt is a second old')
  put(3)
  await isNoticed()
  await timers.advance(999)
  t.equal(listener.heard.length, 4)
  await timers.advance(1)
  await heard(5)
  t.equal(listener.serials()[4], '3')
  // Waits begin with a second again.
  await timers.advance(1000)
  await heard(6)
  await timers.advance(2000)
  await heard(7)
  listener.reply(listener.heard[6]!)
  await until(() => timers.count === 0, 'the end')
})

t.test(
  'a target without replies is logged once, also if each attempt has a new serial',
  async (t) => {
    const { c, put, timers, heard } = await setUp(t)
    put(1)
    await c.start()
    for (let serial = 2; serial < 3 * TRIES_MAX; serial++) {
      await heard(serial - 1)
      put(serial)
      await timers.advance(1000)
    }
    t.equal(c.lines.filter((line) => line.includes('failed: no reply')).length, 1)
    t.equal(await c.metric('coredns_transfer_notifies_failed_total'), 2)
  },
)

/** Sends NOTIFYs to any targets: the n-th dead one never replies. */
async function sendAnywhere(t: Test) {
  const timers = new FakeTimers()
  const [dead, live] = [await Listener.open(t), await Listener.open(t)]
  const notifier = new Notifier({
    clock: new FakeClock(),
    timers,
    log: createLogger(
      '',
      () => {},
      () => false,
    ),
    onSent: () => {},
    onFailed: () => {},
  })
  t.teardown(() => notifier.close())
  const { version } = imageOf('@ 60 SOA ns host 1 2 3 4 5\n@ 60 NS ns\n', APEX)
  const send = (host: string, port: number): void =>
    notifier.notify(version, { target: { host, port }, source: '', key: undefined })
  const sendToDead = (count: number): void => {
    for (let i = 0; i < count; i++) send(`127.0.${1 + (i >> 6)}.${1 + (i & 63)}`, dead.port)
  }
  return { timers, live, sendToDead, sendToLive: () => send('127.0.0.1', live.port) }
}

t.test('dead targets whose zones change all the time leave their turn to others', async (t) => {
  const { timers, live, sendToDead, sendToLive } = await sendAnywhere(t)
  sendToDead(FIRST_ATTEMPTS_MAX)
  sendToLive()
  for (let second = 0; second < 3 && live.heard.length === 0; second++) {
    sendToDead(FIRST_ATTEMPTS_MAX)
    await timers.advance(1000)
  }
  await until(() => live.heard.length > 0, 'the NOTIFY to the target that replies')
})

t.test('960 dead targets delay a live one by a second and a half', async (t) => {
  const { timers, live, sendToDead, sendToLive } = await sendAnywhere(t)
  const turns = 15
  sendToDead(turns * FIRST_ATTEMPTS_MAX)
  sendToLive()
  await timers.advance(turns * PLACE_MS - 1)
  await isNoticed()
  t.equal(live.heard.length, 0)
  await timers.advance(1)
  await until(() => live.heard.length === 1, 'the NOTIFY to the target that replies')
})

t.test('with a key it is signed, and an unsigned answer is none', async (t) => {
  const { c, put, listener, timers, heard } = await setUp(t, 'key k.example.')
  put(1)
  await c.start()
  await heard(1)
  const ring = new TsigKeyring()
  ring.replace([KEY])
  const first = listener.heard[0]!
  t.ok(findTsig(first.packet, first.packet.length) > 0)
  listener.reply(first)
  listener.reply(first, { rcode: Rcode.REFUSED })
  await timers.advance(1000)
  await heard(2)
  const { packet, message, from } = listener.heard[1]!
  const seconds = Math.floor(c.clock.now() / 1000)
  const at = findTsig(packet, packet.length)
  const verified = verifyRequest(packet, at, packet.length, ring, seconds)!
  t.equal(verified.error, 0)
  const plain = composeMessage({ ...message, flags: 0x8400, answer: [], additional: [] })
  const reply = new Uint8Array(plain.length + verified.signer.octets)
  reply.set(plain)
  verified.signer.sign(reply, plain.length, seconds)
  listener.socket.send(reply, from.port, from.address)
  await until(() => timers.count === 0, 'the end')
  t.notMatch(c.lines.join(), 'failed')
})

t.test('with a key the one unsigned answer that ends it is NOTAUTH', async (t) => {
  const { c, put, listener, timers, heard } = await setUp(t, 'key k.example.')
  put(1)
  await c.start()
  await heard(1)
  listener.reply(listener.heard[0]!, { rcode: Rcode.REFUSED })
  listener.reply(listener.heard[0]!, { rcode: Rcode.NOTAUTH })
  await until(() => timers.count === 0, 'the end')
  t.match(c.lines.join(), 'failed: the reply is NOTAUTH')
})

t.test('NOTIFYs come from the source that is named, or from the address of bind', async (t) => {
  const named = await setUp(t, 'source 127.0.0.7')
  named.put(1)
  await named.c.start()
  await named.heard(1)
  t.equal(named.listener.heard[0]?.from.address, '127.0.0.7')
  const bound = await setUp(t)
  bound.c.block.listenHosts.push('127.0.0.8', '::1')
  bound.put(1)
  await bound.c.start()
  await bound.heard(1)
  t.equal(bound.listener.heard[0]?.from.address, '127.0.0.8')
})
