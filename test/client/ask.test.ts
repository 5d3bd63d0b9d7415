import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'
import t, { type Test } from 'tap'
import { ask, questionOf } from '../../src/client/ask.ts'
import { Rcode, RRClass, RRType } from '../../src/dns/iana/index.ts'
import { composeMessage } from '../../src/dns/message/compose-message.ts'
import { HeaderFlag } from '../../src/dns/message/header.ts'
import type { Message } from '../../src/dns/message/message.ts'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { HMAC_SHA256 } from '../../src/dns/tsig/algorithm.ts'
import { createTsigKey } from '../../src/dns/tsig/key.ts'
import { until } from '../support/until.ts'

/** An address of ours alone: a port that is free for UDP is free for TCP as well. */
const HOST = '127.53.0.1'
const NAME = scanName('k.example.')!
const record = {
  owner: NAME,
  type: RRType.A,
  rrclass: RRClass.IN,
  ttlSeconds: 60,
  rdata: new Uint8Array([192, 0, 2, 1]),
}

function replyOf(query: Message, more: Partial<Message> = {}): Uint8Array {
  const flags = HeaderFlag.QR | HeaderFlag.AA
  return composeMessage({ ...query, flags, answer: [record], edns: undefined, ...more })
}

interface Sent {
  readonly query: Message
  readonly peer: RemoteInfo
  readonly send: (octets: Uint8Array) => void
}

/** A server on UDP that does with each query as `take` says; `tcp` answers there, on the same port. */
async function serve(
  t: Test,
  take: (sent: Sent) => void,
  tcp: (query: Message) => Uint8Array = (query) => replyOf(query),
): Promise<{ host: string; port: number }> {
  const socket = createSocket('udp4')
  socket.on('message', (packet, peer) => {
    const send = (octets: Uint8Array): void => socket.send(octets, peer.port, peer.address)
    take({ query: parseMessage(packet)!, peer, send })
  })
  socket.bind(0, HOST)
  await once(socket, 'listening')
  const { port } = socket.address()
  const server = createServer((connection) => {
    connection.on('error', () => {})
    connection.on('data', (chunk: Buffer) => {
      const reply = tcp(parseMessage(chunk.subarray(2))!)
      connection.write(Buffer.concat([Buffer.from([reply.length >> 8, reply.length]), reply]))
    })
  }).listen(port, HOST)
  t.teardown(() => {
    socket.close()
    server.close()
  })
  await once(server, 'listening')
  return { host: HOST, port }
}

const asked = (server: { host: string; port: number }) => {
  return { server, query: questionOf(NAME, RRType.A), timeoutMs: 20_000, tries: 2 }
}

t.test('a question has EDNS, and an id and a port of its own each time', async (t) => {
  const ids = new Set<number>()
  const ports = new Set<number>()
  const server = await serve(t, ({ query, peer, send }) => {
    ids.add(query.id)
    ports.add(peer.port)
    t.equal(query.edns?.payloadOctets, 1232)
    send(replyOf(query))
  })
  const answers = await Promise.all(Array.from({ length: 8 }, () => ask(asked(server))))
  for (const answer of answers) t.match(answer, { kind: 'reply', overTcp: false })
  t.ok(ids.size >= 6, 'ids differ')
  t.equal(ports.size, 8, 'ports differ')
})

const PASSED_OVER: { name: string; make: (query: Message) => Uint8Array }[] = [
  { name: 'another id', make: (q) => replyOf({ ...q, id: q.id ^ 1 }) },
  {
    name: 'another question',
    make: (q) => replyOf(q, { question: { ...q.question!, type: RRType.AAAA } }),
  },
  {
    name: 'another class',
    make: (q) => replyOf(q, { question: { ...q.question!, rrclass: RRClass.CH } }),
  },
  {
    name: 'another name',
    make: (q) => replyOf(q, { question: { ...q.question!, name: scanName('l.example.')! } }),
  },
  { name: 'a reply without a question', make: (q) => replyOf(q, { question: undefined }) },
  { name: 'an empty packet', make: () => new Uint8Array() },
  { name: 'a query', make: (q) => replyOf(q, { flags: 0 }) },
  { name: 'no message', make: () => new Uint8Array([1, 2, 3]) },
]
for (const { name, make } of PASSED_OVER) {
  t.test(`${name} is passed over, and the reply behind it is taken`, async (t) => {
    const server = await serve(t, ({ query, send }) => {
      send(make(query))
      send(replyOf(query))
    })
    const answer = await ask(asked(server))
    t.match(answer, { kind: 'reply', message: { rcode: Rcode.NOERROR } })
    t.equal(answer.kind === 'reply' && answer.message.answer.length, 1)
  })
}

t.test(
  'a reply that is cut or changed anywhere ends no exchange of another question',
  async (t) => {
    // The flags, which may ask for TCP, and the records are not compared.
    const compared = [0, 1, ...Array.from({ length: NAME.length + 4 }, (_, i) => 12 + i)]
    const server = await serve(t, ({ query, send }) => {
      const right = replyOf(query)
      for (let length = 0; length < right.length; length++) send(right.subarray(0, length))
      for (const at of compared) {
        // The name is the same in upper case.
        const isLetter = at >= 12 && at < 12 + NAME.length
        for (const bits of isLetter ? [0x01, 0x80, 0xc0, 0xff] : [0x01, 0x20, 0x80, 0xff]) {
          const changed = Uint8Array.from(right)
          changed[at]! ^= bits
          send(changed)
        }
      }
      send(right)
    })
    const answer = await ask(asked(server))
    t.match(answer, { kind: 'reply', overTcp: false, message: { question: { name: NAME } } })
    t.equal(answer.kind === 'reply' && answer.message.answer.length, 1)
  },
)

t.test('a reply from another port is passed over', async (t) => {
  const forger = createSocket('udp4')
  t.teardown(() => forger.close())
  const server = await serve(t, ({ query, peer, send }) => {
    const forged = replyOf(query, { answer: [] })
    forger.send(forged, peer.port, peer.address, () => send(replyOf(query)))
  })
  const answer = await ask(asked(server))
  t.equal(answer.kind === 'reply' && answer.message.answer.length, 1)
})

t.test('a query with a truncated reply is repeated over TCP', async (t) => {
  const server = await serve(t, ({ query, send }) => {
    send(replyOf(query, { answer: [], flags: HeaderFlag.QR | HeaderFlag.TC }))
  })
  const answer = await ask(asked(server))
  t.match(answer, { kind: 'reply', overTcp: true })
  t.equal(answer.kind === 'reply' && answer.message.answer.length, 1)
})

t.test('a lost query is sent again', async (t) => {
  let count = 0
  const server = await serve(t, ({ query, send }) => {
    if (++count >= 2) send(replyOf(query))
  })
  t.match(await ask({ ...asked(server), timeoutMs: 200, tries: 100 }), { kind: 'reply' })
  t.ok(count >= 2)
})

t.test('silence is a failure, after a bounded time', async (t) => {
  let count = 0
  const server = await serve(t, () => count++)
  const answer = await ask({ ...asked(server), timeoutMs: 30 })
  t.match(answer, { kind: 'failed', reason: 'timed out' })
  await until(() => count === 2, 'both to come')
})

t.test('a signed question without a reply is asked over TCP', async (t) => {
  const key = createTsigKey(scanName('key.example.')!, HMAC_SHA256, new Uint8Array(32))
  let byTcp = 0
  const server = await serve(
    t,
    () => {},
    (query) => {
      byTcp++
      return replyOf(query)
    },
  )
  const answer = await ask({ ...asked(server), timeoutMs: 1500, tries: 1, key })
  t.match(answer, { kind: 'failed', overTcp: true, reason: /signature/ })
  t.equal(byTcp, 1)
  const plain = await ask({ ...asked(server), timeoutMs: 30, tries: 1 })
  t.match(plain, { kind: 'failed', overTcp: false, reason: 'timed out' }, 'others are not')
})

t.test('a question can be broken off', async (t) => {
  const aborting = new AbortController()
  const server = await serve(t, () => aborting.abort())
  const { signal } = aborting
  const reason = 'cancelled'
  t.match(await ask({ ...asked(server), timeoutMs: 60_000, signal }), { kind: 'failed', reason })
  t.match(await ask({ ...asked(server), signal }), { kind: 'failed', reason })
  t.match(await ask({ ...asked(server), tries: 0, signal }), { kind: 'failed', reason })
})

t.test('with a key, a reply without a signature is ignored', async (t) => {
  const key = createTsigKey(scanName('key.example.')!, HMAC_SHA256, new Uint8Array(32))
  const server = await serve(t, ({ query, send }) => {
    t.equal(query.additional.at(-1)?.type, RRType.TSIG)
    send(replyOf(query, { rcode: Rcode.NOTAUTH, answer: [], additional: [] }))
  })
  const answer = await ask({ ...asked(server), timeoutMs: 1000, tries: 1, key })
  t.match(answer, { kind: 'failed', reason: /not signed, rcode NOTAUTH/ })
})
