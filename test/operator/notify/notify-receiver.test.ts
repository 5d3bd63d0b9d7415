import fc from 'fast-check'
import t from 'tap'
import { RefusalLog } from '../../../src/base/telemetry/refusal-log.ts'
import { Opcode, Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { composeMessage } from '../../../src/dns/message/compose-message.ts'
import { HeaderFlag } from '../../../src/dns/message/header.ts'
import type { Message } from '../../../src/dns/message/message.ts'
import { parseMessage } from '../../../src/dns/message/parse-message.ts'
import { Query } from '../../../src/dns/message/query.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { scanAddress, scanCidr } from '../../../src/dns/text/address.ts'
import { HMAC_SHA256, scanAlgorithm } from '../../../src/dns/tsig/algorithm.ts'
import { createTsigKey, type TsigKey } from '../../../src/dns/tsig/key.ts'
import { RequestSigner } from '../../../src/dns/tsig/request-signer.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import type { InformerListener } from '../../../src/kube/informer.ts'
import { KeyIndex } from '../../../src/operator/notify/key-index.ts'
import {
  NOTIFY_REPLY_OCTETS,
  NotifyReceiver,
  type NotifySource,
} from '../../../src/operator/notify/notify-receiver.ts'
import type { HastenOutcome } from '../../../src/operator/notify/outcome.ts'
import { keyIdOf } from '../../../src/operator/provider/key-id.ts'
import { secret } from '../../support/operator-objects.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock } from '../../support/setup.ts'

const KDRNT = scanName('kdrnt.')!
const PEER = '192.0.2.53'
const UNKNOWN_SENDER = '203.0.113.9'
/** Not known either, and in another network. */
const ELSEWHERE = '198.18.7.1'
const SOA_RDATA = Buffer.concat([Buffer.from([0, 0]), Buffer.alloc(20, 1)])

function keyOf(text: string, name = 'peers.example.org.', algorithm = HMAC_SHA256): TsigKey {
  return createTsigKey(scanName(name)!, algorithm, Buffer.from(text))
}

/** A provider Secret with that key. */
function secretOf(name: string, text: string, keyName = 'peers.example.org'): ApiObject {
  return secret('gateways', name, {
    ZONES: 'k.example.com',
    NAMESERVERS: PEER,
    TSIG_NAME: keyName,
    TSIG_SECRET: Buffer.from(text).toString('base64'),
  })
}

const EDNS = {
  payloadOctets: 1232,
  version: 0,
  flags: 0,
  options: [],
}

interface NotifyParts {
  readonly name?: string
  readonly type?: number
  readonly rrclass?: number
  readonly opcode?: number
  readonly flags?: number
  readonly withSoa?: boolean
  readonly withEdns?: boolean
  readonly ednsVersion?: number
}

function notify(parts: NotifyParts = {}): Uint8Array {
  const { name = 'kdrnt.', type = RRType.SOA, rrclass = RRClass.IN, withSoa = false } = parts
  const soa = {
    owner: KDRNT,
    type: RRType.SOA,
    rrclass: RRClass.IN,
    ttlSeconds: 60,
    rdata: SOA_RDATA,
  }
  return composeMessage({
    id: 0x1234,
    opcode: parts.opcode ?? Opcode.NOTIFY,
    flags: parts.flags ?? HeaderFlag.AA,
    rcode: 0,
    question: { name: scanName(name)!, type, rrclass },
    answer: withSoa ? [soa] : [],
    authority: [],
    additional: [],
    edns: parts.withEdns === true ? { ...EDNS, version: parts.ednsVersion ?? 0 } : undefined,
  })
}

function setUp(hastenAs: (sender: NotifySource) => HastenOutcome = hastenPeer) {
  const clock = new FakeClock()
  const { lines, log } = recordLog()
  const outcomes: string[] = []
  const senders: NotifySource[] = []
  let listener: InformerListener = {}
  const keys = new KeyIndex({
    subscribe: (one) => {
      listener = one
      return () => {}
    },
  })
  const receiver = new NotifyReceiver({
    clock,
    keys,
    allowed: [scanCidr('198.51.100.0/24')!, scanCidr('2001:db8::/32')!],
    hasten: (sender) => {
      senders.push(sender)
      return hastenAs(sender)
    },
    count: (outcome) => outcomes.push(outcome),
    refusals: new RefusalLog(log, clock, (host) => `NOTIFY of ${host} is refused`),
    seed: 1,
  })
  const reply = new Uint8Array(NOTIFY_REPLY_OCTETS)
  const send = (packet: Uint8Array, host = PEER): Uint8Array => {
    const query = new Query()
    query.packet = packet
    query.packetOctets = packet.length
    const { bytes, family } = scanAddress(host)!
    query.peerAddress.fill(0)
    query.peerAddress.set(bytes)
    query.peerFamily = family
    return reply.slice(0, receiver.serve(query, reply))
  }
  const put = (object: ApiObject): void =>
    listener.onAdd?.(String(Object(object.metadata).name), object, false)
  const drop = (object: ApiObject): void =>
    listener.onDelete?.(String(Object(object.metadata).name), object)
  const seconds = (): number => Math.floor(clock.nowMs / 1000)
  const sign = (packet: Uint8Array, key: TsigKey, atSeconds = seconds()) => {
    const signer = new RequestSigner(key)
    return { signer, packet: signer.sign(packet, atSeconds) }
  }
  return { clock, lines, outcomes, senders, send, put, drop, sign, seconds }
}

function hastenPeer({ host, keyId, isAllowed }: NotifySource): HastenOutcome {
  return host === PEER || keyId !== '' || isAllowed ? 'hastened' : 'stranger'
}

function read(reply: Uint8Array): Message {
  return parseMessage(reply)!
}

t.test('which senders may send a NOTIFY, and the replies to them', async (t) => {
  const table = [
    { name: 'a peer', packet: notify(), rcode: Rcode.NOERROR, outcome: 'hastened' },
    {
      name: 'a peer, with the SOA',
      packet: notify({ withSoa: true }),
      rcode: Rcode.NOERROR,
      outcome: 'hastened',
    },
    {
      name: 'in any case',
      packet: notify({ name: 'KdRnT.' }),
      rcode: Rcode.NOERROR,
      outcome: 'hastened',
    },
    {
      name: 'a network that is allowed',
      host: '198.51.100.7',
      packet: notify(),
      rcode: Rcode.NOERROR,
      outcome: 'hastened',
    },
    {
      name: 'one of IPv6',
      host: '2001:db8::7',
      packet: notify(),
      rcode: Rcode.NOERROR,
      outcome: 'hastened',
    },
    {
      name: 'its neighbour',
      host: '198.51.101.7',
      packet: notify(),
      rcode: Rcode.REFUSED,
      outcome: 'stranger',
    },
    {
      name: 'an unknown sender',
      host: UNKNOWN_SENDER,
      packet: notify(),
      rcode: Rcode.REFUSED,
      outcome: 'stranger',
    },
    {
      name: 'another zone',
      packet: notify({ name: 'example.org.' }),
      rcode: Rcode.REFUSED,
      outcome: 'other',
    },
    {
      name: 'below kdrnt',
      packet: notify({ name: 'x.kdrnt.' }),
      rcode: Rcode.REFUSED,
      outcome: 'other',
    },
    {
      name: 'another type',
      packet: notify({ type: RRType.A }),
      rcode: Rcode.REFUSED,
      outcome: 'other',
    },
    {
      name: 'another class',
      packet: notify({ rrclass: 3 }),
      rcode: Rcode.REFUSED,
      outcome: 'other',
    },
    {
      name: 'a question',
      packet: notify({ opcode: Opcode.QUERY }),
      rcode: Rcode.REFUSED,
      outcome: 'other',
    },
    { name: 'an update', packet: notify({ opcode: 5 }), rcode: Rcode.NOTIMP, outcome: 'other' },
    {
      name: 'a name that is cut short',
      packet: notify().subarray(0, 15),
      rcode: Rcode.FORMERR,
      outcome: 'malformed',
    },
    {
      name: 'a response gets none',
      packet: notify({ flags: HeaderFlag.QR }),
      rcode: undefined,
      outcome: 'malformed',
    },
    {
      name: 'eleven octets get none',
      packet: notify().subarray(0, 11),
      rcode: undefined,
      outcome: 'malformed',
    },
    {
      name: 'nothing gets none',
      packet: new Uint8Array(0),
      rcode: undefined,
      outcome: 'malformed',
    },
    {
      name: 'too much gets none',
      packet: new Uint8Array(4096),
      rcode: undefined,
      outcome: 'malformed',
    },
  ]
  for (const { name, packet, host = PEER, rcode, outcome } of table) {
    const { send, outcomes } = setUp()
    const reply = send(packet, host)
    t.strictSame(outcomes, [outcome], name)
    if (rcode === undefined) {
      t.equal(reply.length, 0, name)
      continue
    }
    t.match(read(reply), { id: 0x1234, rcode }, name)
    t.equal(read(reply).flags & HeaderFlag.QR, HeaderFlag.QR, name)
    t.ok(reply.length <= packet.length, name)
  }
})

t.test('a standby answers all senders, and polls no peer', async (t) => {
  const { send, outcomes } = setUp(() => 'standby')
  t.equal(read(send(notify(), UNKNOWN_SENDER)).rcode, Rcode.NOERROR)
  t.strictSame(outcomes, ['standby'])
})

t.test(
  'a NOTIFY that is signed counts wherever it comes from, and its answer is signed',
  async (t) => {
    const { send, put, drop, sign, senders, outcomes, seconds } = setUp()
    const key = keyOf('secret')
    const own = secretOf('coredns', 'secret')
    put(own)
    const { signer, packet } = sign(notify({ withSoa: true }), key)
    const reply = send(packet, UNKNOWN_SENDER)
    t.equal(signer.verify(reply, seconds()), '')
    t.equal(read(reply).rcode, Rcode.NOERROR)
    t.strictSame(senders, [{ host: UNKNOWN_SENDER, keyId: keyIdOf(key), isAllowed: false }])
    drop(own)
    t.equal(read(send(sign(notify(), key).packet, UNKNOWN_SENDER)).rcode, Rcode.NOTAUTH)
    t.strictSame(outcomes, ['hastened', 'bad_signature'])
  },
)

t.test('EDNS is answered with EDNS, signed or not', async (t) => {
  const { send, put, sign, seconds } = setUp()
  put(secretOf('coredns', 'secret'))
  const want = { payloadOctets: 1232, version: 0, flags: 0, options: [] }
  t.equal(read(send(notify())).edns, undefined)
  t.strictSame(read(send(notify({ withEdns: true }))).edns, want)
  const { signer, packet } = sign(notify({ withEdns: true }), keyOf('secret'))
  const reply = send(packet, UNKNOWN_SENDER)
  t.equal(signer.verify(reply, seconds()), '')
  t.strictSame(read(reply).edns, want)
})

t.test('an EDNS version above 0 gets BADVERS with version 0, whatever else is asked', async (t) => {
  const { send, outcomes, senders } = setUp()
  const table = [
    { ednsVersion: 1 },
    { ednsVersion: 255 },
    { ednsVersion: 1, withSoa: true },
    { ednsVersion: 1, name: 'example.org.' },
    { ednsVersion: 1, opcode: Opcode.QUERY },
  ]
  for (const parts of table) {
    const packet = notify({ ...parts, withEdns: true })
    const reply = send(packet)
    t.equal(read(reply).rcode, Rcode.BADVERS, JSON.stringify(parts))
    t.equal(read(reply).edns?.version, 0)
    t.ok(reply.length <= packet.length, 'the reply does not amplify')
  }
  t.strictSame(new Set(outcomes), new Set(['other']))
  t.equal(senders.length, 0, 'no peer is polled')
})

t.test('if several Secrets have one key name, each key is valid', async (t) => {
  const { send, put, sign, senders, seconds } = setUp()
  put(secretOf('one', 'secret one'))
  put(secretOf('two', 'secret two'))
  put(secretOf('same', 'secret two'))
  for (const text of ['secret one', 'secret two']) {
    const { signer, packet } = sign(notify(), keyOf(text))
    t.equal(signer.verify(send(packet, UNKNOWN_SENDER), seconds()), '', text)
  }
  t.strictSame(
    senders.map(({ keyId }) => keyId),
    [keyIdOf(keyOf('secret one')), keyIdOf(keyOf('secret two'))],
  )
})

t.test('a bad signature is refused, even of a peer', async (t) => {
  const sha1 = scanAlgorithm('hmac-sha1.')!
  const table = [
    { name: 'another secret', key: keyOf('wrong') },
    { name: 'an unknown name', key: keyOf('secret', 'other.example.org.') },
    { name: 'an hour ago', key: keyOf('secret'), ageSeconds: 3600 },
    { name: 'another secret and algorithm', key: keyOf('wrong', 'peers.example.org.', sha1) },
  ]
  for (const { name, key, ageSeconds = 0 } of table) {
    const { send, put, sign, senders, outcomes, seconds, lines } = setUp()
    put(secretOf('coredns', 'secret'))
    const { packet } = sign(notify({ withSoa: true }), key, seconds() - ageSeconds)
    const reply = send(packet)
    t.equal(read(reply).rcode, Rcode.NOTAUTH, name)
    t.ok(reply.length <= packet.length, name)
    t.strictSame(senders, [], name)
    t.strictSame(outcomes, ['bad_signature'], name)
    t.match(lines, [/NOTIFY of 192\.0\.2\.53 is refused: invalid signature/], name)
  }
})

// The time of day in it makes the answer to one that is too old six octets longer than that.
t.test('a packet is not answered if the reply would be longer', async (t) => {
  const { send, put, sign, seconds } = setUp()
  put(secretOf('coredns', 'secret'))
  const { packet } = sign(notify(), keyOf('secret'), seconds() - 3600)
  t.equal(send(packet).length, 0)
})

t.test(
  'unknown senders get a bounded number of answers per second, and a log line in ten seconds',
  async (t) => {
    const { send, outcomes, lines, clock } = setUp()
    const flood = (count: number): number => {
      let answered = 0
      for (let i = 0; i < count; i++) if (send(notify(), UNKNOWN_SENDER).length > 0) answered++
      return answered
    }
    t.equal(flood(1000), 100)
    t.equal(outcomes.length, 1000, 'all are counted')
    clock.pass(1000)
    t.equal(flood(1000), 100)
    t.equal(lines.length, 1)
    clock.pass(10_000)
    flood(1)
    t.match(lines[1], /1999 others since/)
    t.ok(send(notify()).length > 0, 'a peer is answered beside it')
  },
)

t.test('so do forged packets of a peer, and packets with a forged signature', async (t) => {
  const { send, put, sign, senders, outcomes } = setUp()
  put(secretOf('coredns', 'secret'))
  let answered = 0
  for (let i = 0; i < 1000; i++) if (send(notify()).length > 0) answered++
  t.equal(answered, 200)
  t.equal(senders.length, 1000, 'who asks peers has a bound of his own')
  outcomes.length = 0
  // Unknown keys cost no digest, so they block no sender with a key.
  const unknown = sign(notify(), keyOf('wrong', 'nobody.example.')).packet
  for (let i = 0; i < 1000; i++) send(unknown, UNKNOWN_SENDER)
  t.equal(outcomes.filter((outcome) => outcome === 'dropped').length, 0)
  const { packet } = sign(notify(), keyOf('wrong'))
  for (let i = 0; i < 1000; i++) send(packet, UNKNOWN_SENDER)
  t.equal(outcomes.filter((outcome) => outcome === 'dropped').length, 980)
})

t.test(
  'a sender that knows only the name of a key does not block the owner of the key',
  async (t) => {
    const { send, put, sign, senders, outcomes } = setUp()
    put(secretOf('coredns', 'secret'))
    const wrong = sign(notify(), keyOf('wrong')).packet
    const good = sign(notify(), keyOf('secret')).packet
    for (let i = 0; i < 1000; i++) send(wrong, `203.0.113.${i % 256}`)
    send(good, ELSEWHERE)
    t.equal(senders.length, 1, 'a sender that was unknown before')
    // From everywhere, as he can make up where packets are from.
    for (let i = 0; i < 10_000; i++) send(wrong, `${i >> 8}.${i & 255}.0.1`)
    outcomes.length = 0
    send(good, '192.0.2.77')
    t.strictSame(outcomes, ['dropped'], 'who was never heard of has to wait now')
    send(good, ELSEWHERE)
    t.equal(senders.length, 2, 'not so who was good before')
  },
)

t.test('whatever the octets are, nothing is thrown and no answer is longer', async (t) => {
  const { put, sign } = setUp()
  const signed = sign(notify({ withSoa: true }), keyOf('secret')).packet
  const samples = [notify(), notify({ withSoa: true }), notify({ withEdns: true }), signed]
  const check = (packet: Uint8Array): void => {
    const receiver = setUp()
    receiver.put(secretOf('coredns', 'secret'))
    const reply = receiver.send(packet, UNKNOWN_SENDER)
    if (reply.length > packet.length) t.fail(`${packet} has ${reply}`)
    if (receiver.outcomes.length !== 1) t.fail(`${packet} counts as ${receiver.outcomes}`)
  }
  put(secretOf('coredns', 'secret'))
  for (const sample of samples) {
    for (let octets = 0; octets < sample.length; octets++) check(sample.subarray(0, octets))
    for (let at = 0; at < sample.length; at++) {
      for (const flip of [1, 0x80, 0xff]) {
        const packet = sample.slice()
        packet[at]! ^= flip
        check(packet)
      }
    }
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), (packet) => check(packet)),
    { seed: 1, numRuns: 300 },
  )
})

t.test('a signed NOTIFY with any octet changed polls no peer', async (t) => {
  const { sign } = setUp()
  const { packet: good } = sign(notify({ withSoa: true }), keyOf('secret'))
  for (let at = 0; at < good.length; at++) {
    const { send, put, senders } = setUp()
    put(secretOf('coredns', 'secret'))
    const packet = good.slice()
    packet[at]! ^= 0x01
    send(packet, UNKNOWN_SENDER)
    // A forwarder may change the id: the signer's own is inside. And a name is signed in lower case.
    const asked = senders.some(({ keyId }) => keyId !== '')
    if (asked && at >= 2) t.fail(`octet ${at}`)
  }
})
