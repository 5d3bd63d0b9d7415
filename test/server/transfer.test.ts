import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { Opcode, Rcode, RRType } from '../../src/dns/iana/index.ts'
import { composeMessage } from '../../src/dns/message/compose-message.ts'
import { HeaderFlag } from '../../src/dns/message/header.ts'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { scanAlgorithm } from '../../src/dns/tsig/algorithm.ts'
import { createTsigKey, TsigKeyring } from '../../src/dns/tsig/key.ts'
import { RequestSigner } from '../../src/dns/tsig/request-signer.ts'
import { CHAIN_END } from '../../src/plugin/chain-end.ts'
import { CounterSlots } from '../../src/plugin/counter-slots.ts'
import type { Handler } from '../../src/plugin/handler.ts'
import { Tsig } from '../../src/plugins/tsig/tsig.ts'
import { besideNotify, linkChain } from '../../src/server/chain.ts'
import { ServerCounts } from '../../src/server/counters.ts'
import type { RoutedBlock } from '../../src/server/routing.ts'
import { Server } from '../../src/server/server.ts'
import { STREAMED } from '../../src/transport/exchange.ts'
import { ZoneSet } from '../../src/zone/lookup/zone-set.ts'

const NOW = 1_700_000_000
const zone = scanName('example.org.')!
const KEY = createTsigKey(scanName('k.')!, scanAlgorithm('hmac-sha256')!, Buffer.from('secret'))
const clock = { now: () => NOW * 1000, monotonic: () => 0 }

function serverOf(...blocks: Partial<RoutedBlock>[]): Server {
  const log = createLogger(
    '',
    () => {},
    () => false,
  )
  const whole = blocks.map((block) => ({
    zone,
    zoneText: 'example.org.',
    chain: CHAIN_END,
    filters: [],
    viewName: '',
    bufsizeOctets: 1232,
    debug: false,
    ...block,
  }))
  const random = new Random(1)
  return new Server({
    address: 'dns://:53',
    blocks: whole,
    clock,
    random,
    log,
    counters: new ServerCounts(),
  })
}

function query(opcode: number = Opcode.QUERY, name = zone, type: number = RRType.SOA): Uint8Array {
  return composeMessage({
    id: 9,
    opcode,
    flags: 0,
    rcode: 0,
    question: { name, type, rrclass: 1 },
    answer: [],
    authority: [],
    additional: [],
    edns: undefined,
  })
}

function serve(server: Server, packet: Uint8Array, protocol: 0 | 1 = 0) {
  const tx = server.acquire()
  tx.query.packet = packet
  tx.query.packetOctets = packet.length
  tx.query.protocol = protocol
  const out = new Uint8Array(65535)
  const octets = server.serve(tx, out)
  if (typeof octets !== 'number') throw new Error('the chain waits')
  return { octets, tx, reply: out.slice(0, Math.max(0, octets)) }
}

/** Answers with `count` TXT records of their own owners. */
function talkative(count: number): Handler {
  const rdata = Buffer.concat([Buffer.from([50]), Buffer.alloc(50, 'x')])
  return {
    name: 'talkative',
    serve({ response }) {
      for (let i = 0; i < count; i++) {
        const owner = scanName(`n${i}.example.org.`)!
        response.add(0, owner, 0, RRType.TXT, 1, 60, rdata, 0, rdata.length)
      }
      return Rcode.NOERROR
    },
  }
}

function signedChain(next: Handler, qtypes: ReadonlySet<number> | 'all' = new Set()): Handler {
  const keyring = new TsigKeyring()
  keyring.replace([KEY])
  const zones = new ZoneSet([scanName('.')!])
  const slots = new CounterSlots()
  return new Tsig(next, { zones, keyring, clock, qtypes, opcodes: new Set(), slots })
}

for (const [count, protocol, isCut] of [
  [1, 0, false],
  [100, 0, true],
  [100, 1, false],
] as const) {
  t.test(`a signed reply of ${count} records by ${protocol === 0 ? 'UDP' : 'TCP'}`, async (t) => {
    const server = serverOf({ chain: signedChain(talkative(count)) })
    const client = new RequestSigner(KEY)
    const { reply } = serve(server, client.sign(query(), NOW), protocol)
    t.equal(client.verify(reply, NOW), '')
    t.ok(protocol === 1 || reply.length <= 512, `${reply.length} octets`)
    const message = parseMessage(reply)!
    t.equal((message.flags & HeaderFlag.TC) !== 0, isCut)
    t.equal(message.additional.at(-1)?.type, RRType.TSIG)
  })
}

t.test('bare errors of a chain are signed too', async (t) => {
  const refusing: Handler = { name: 'refusing', serve: () => Rcode.REFUSED }
  const client = new RequestSigner(KEY)
  const server = serverOf({ chain: signedChain(refusing) })
  const { reply } = serve(server, client.sign(query(), NOW))
  t.equal(client.verify(reply, NOW), '')
  t.equal(parseMessage(reply)?.rcode, Rcode.REFUSED)
})

t.test('internal lookups of a signed query count as signed', async (t) => {
  const other = scanName('other.')!
  let asked: number | undefined
  const asking: Handler = {
    name: 'asking',
    serve(tx) {
      const nested = tx.server.lookupInternally(tx, other, RRType.A)
      if (nested === undefined || nested instanceof Promise) return Rcode.SERVFAIL
      asked = nested.response.rcode
      tx.server.release(nested)
      return Rcode.NOERROR
    },
  }
  const server = serverOf(
    { chain: signedChain(asking) },
    { zone: other, zoneText: 'other.', chain: signedChain(talkative(1), 'all') },
  )
  const { tx } = serve(server, new RequestSigner(KEY).sign(query(), NOW))
  t.equal(asked, Rcode.NOERROR)
  t.not(tx.response.signer, null)
  serve(server, query())
  t.equal(asked, Rcode.REFUSED, 'and of an unsigned one does not')
})

t.test('a NOTIFY passes by links that know queries only', async (t) => {
  const seen: string[] = []
  const link =
    (name: string) =>
    (next: Handler): Handler => ({
      name,
      serve(tx) {
        seen.push(name)
        return name === 'taker' ? Rcode.NOERROR : next.serve(tx)
      },
    })
  const chain = linkChain([link('log'), besideNotify(link('file')), link('taker')])
  const server = serverOf({ chain, takesNotify: true })
  const reply = parseMessage(serve(server, query(Opcode.NOTIFY)).reply)
  t.equal(reply?.opcode, Opcode.NOTIFY)
  t.strictSame(seen.splice(0), ['log', 'taker'])
  serve(server, query())
  t.strictSame(seen, ['log', 'file', 'taker'])
})

t.test('NOTIFYs get NOTIMP if no plugin accepts them', async (t) => {
  const server = serverOf({ chain: talkative(1) })
  t.equal(parseMessage(serve(server, query(Opcode.NOTIFY)).reply)?.rcode, Rcode.NOTIMP)
  const elsewhere = query(Opcode.NOTIFY, scanName('example.com.')!)
  t.equal(parseMessage(serve(server, elsewhere).reply)?.rcode, Rcode.NOTIMP)
})

t.test('a stream takes the place of the reply', async (t) => {
  const stream = { next: () => 0, isBroken: false, close: () => {} }
  const streaming: Handler = {
    name: 'streaming',
    serve(tx) {
      tx.stream = stream
      return Rcode.NOERROR
    },
  }
  const { octets, tx } = serve(serverOf({ chain: streaming }), query(), 1)
  t.equal(octets, STREAMED)
  t.equal(tx.stream, stream)
})
