import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { CookieJar } from '../../src/dns/edns/cookie.ts'
import { CookieSecrets } from '../../src/dns/edns/cookie-secrets.ts'
import { Opcode, Rcode } from '../../src/dns/iana/index.ts'
import { HMAC_SHA256 } from '../../src/dns/tsig/algorithm.ts'
import { createTsigKey } from '../../src/dns/tsig/key.ts'
import type { Handler } from '../../src/plugin/handler.ts'
import { LimitAction, type ReplyLimiter } from '../../src/plugin/reply-limiter.ts'
import { ServerCounts } from '../../src/server/counters.ts'
import { Server } from '../../src/server/server.ts'
import { type QuerySpec, readMessage, wireName, wireQuery } from '../support/wire.ts'

/** Answers with 200 octets of TXT; by the name, with a key, an NSID, an EDE or an error. */
const chain: Handler = {
  name: 'toy',
  serve(tx) {
    const { query, response } = tx
    if (query.qname[1] === 0x65) return Rcode.SERVFAIL
    if (query.qname[1] === 0x6b) tx.tsigKey = key
    response.nsid = new Uint8Array(50)
    response.edeCode = 4
    response.forceEdns = true
    response.scopeBits = 24
    response.add(0, query.qname, 0, 16, 1, 60, new Uint8Array(200), 0, 200)
    return 0
  },
}
const key = createTsigKey(wireName('key'), HMAC_SHA256, new Uint8Array(32))

/** A server whose limiter decides `action` of each reply, and `amplifies` of each length. */
function start(action: LimitAction, amplifies: (octets: number) => boolean = () => false) {
  const asked: string[] = []
  const limiter: ReplyLimiter = {
    decide: (tx) => {
      asked.push(`${tx.response.rcode}`)
      return action
    },
    amplifies: (_tx, _name, octets) => amplifies(octets),
  }
  const server = new Server({
    address: 'dns://:53',
    blocks: [
      {
        zone: wireName('example.org'),
        zoneText: 'example.org.',
        chain,
        filters: [],
        limiter,
        viewName: '',
        bufsizeOctets: 1232,
        debug: false,
      },
    ],
    clock: { now: () => 1559731985_000, monotonic: () => 0 },
    random: new Random(1),
    log: createLogger(
      '',
      () => {},
      () => false,
    ),
    counters: new ServerCounts(),
    cookies: new CookieJar(CookieSecrets.of(new Uint8Array(16))),
  })
  const out = new Uint8Array(65535)
  /** The reply; undefined = silence. */
  const ask = (packet: Uint8Array, protocol: 0 | 1 = 0): Uint8Array | undefined => {
    const tx = server.acquire()
    tx.query.packet = packet
    tx.query.packetOctets = packet.length
    tx.query.protocol = protocol
    tx.query.peerAddress.set([198, 51, 100, 100])
    const octets = server.serve(tx, out) as number
    server.release(tx)
    return octets === 0 ? undefined : out.slice(0, octets)
  }
  return { ask, asked }
}

const CLIENT_COOKIE = Buffer.from('2464c4abcf10c957', 'hex')
const question: QuerySpec = { name: 'www.example.org', type: 16 }
const withCookie = (cookie: Uint8Array): QuerySpec => {
  return { ...question, edns: { payload: 1232, options: [[10, cookie]] } }
}

t.test('the limiter is called for every reply over UDP, whichever plugin made it', async (t) => {
  const { ask, asked } = start(LimitAction.Drop)
  const malformed = wireQuery(question).subarray(0, 20)
  const queries: readonly (readonly [string, Uint8Array, string])[] = [
    ['an answer', wireQuery(question), '0'],
    ['an error of the chain', wireQuery({ ...question, name: 'e.example.org' }), '2'],
    ['a name of no block', wireQuery({ ...question, name: 'example.com' }), '5'],
    ['a malformed packet', malformed, '1'],
    ['an opcode that nothing serves', wireQuery({ ...question, flags: 2 << 11 }), '4'],
    ['a NOTIFY for nothing', wireQuery({ ...question, flags: Opcode.NOTIFY << 11 }), '4'],
    ['an EDNS version', wireQuery({ ...question, edns: { version: 1 } }), '16'],
    ['a cookie that is not ours', wireQuery(withCookie(Buffer.alloc(24, 1))), '0'],
    ['a client cookie alone', wireQuery(withCookie(CLIENT_COOKIE)), '0'],
  ]
  for (const [what, packet, rcode] of queries) {
    asked.length = 0
    t.equal(ask(packet), undefined, what)
    t.strictSame(asked, [rcode], what)
  }
})

t.test('clients whose address is real are never limited', async (t) => {
  const { ask, asked } = start(LimitAction.Drop, () => true)
  t.ok(ask(wireQuery(question), 1), 'TCP')
  t.ok(ask(wireQuery({ ...question, name: 'k.example.org' })), 'a signature')
  const first = readMessage(ask(wireQuery(withCookie(CLIENT_COOKIE)), 1)!)
  const cookie = first.options.get(10)!
  t.equal(cookie.length, 24)
  const again = readMessage(ask(wireQuery(withCookie(cookie)))!)
  t.equal(again.answer.length, 1, 'a cookie')
  t.strictSame(asked, [])
  cookie[23]! ^= 1
  t.equal(ask(wireQuery(withCookie(cookie))), undefined, 'a forged cookie')
})

t.test('truncated replies are no longer than their queries', async (t) => {
  const ecs = [8, Uint8Array.of(0, 1, 24, 0, 192, 0, 2)] as const
  const old = new Uint8Array(24)
  old.set(CLIENT_COOKIE)
  const queries = [
    question,
    { ...question, flags: 0x0110 },
    { ...question, edns: { payload: 4096 } },
    { ...question, edns: { payload: 1232, options: [[3, new Uint8Array(0)] as const, ecs] } },
    withCookie(CLIENT_COOKIE),
    withCookie(old),
  ]
  for (const { ask } of [
    start(LimitAction.Truncate),
    start(LimitAction.Send, (octets) => octets > 0),
  ]) {
    for (const spec of queries) {
      const packet = wireQuery(spec)
      const reply = ask(packet)!
      t.ok(reply.length <= packet.length, `${reply.length} of ${packet.length}`)
      const message = readMessage(reply)
      t.equal(message.flags & 0x0200, 0x0200, 'TC')
      t.equal(message.answer.length + message.authority.length + message.additional.length, 0)
      t.equal(message.rcode, 0)
    }
  }
})

t.test('only the octets above those of the query count', async (t) => {
  const gains: number[] = []
  const { ask } = start(LimitAction.Send, (octets) => gains.push(octets) === 0)
  const packet = wireQuery(question)
  const reply = ask(packet)!
  t.strictSame(gains, [reply.length - packet.length])
  t.ok(gains[0]! > 200)
})
