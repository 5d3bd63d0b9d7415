import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { composeMessage } from '../../../src/dns/message/compose-message.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { findAlgorithm, scanAlgorithm } from '../../../src/dns/tsig/algorithm.ts'
import { createTsigKey, TsigKeyring } from '../../../src/dns/tsig/key.ts'
import {
  appendTsig,
  findTsig,
  parseTsig,
  type TsigRecord,
  tsigOctets,
} from '../../../src/dns/tsig/record.ts'
import { RequestSigner } from '../../../src/dns/tsig/request-signer.ts'
import { BADSIG, verifyRequest } from '../../../src/dns/tsig/verify-request.ts'

const UNSIGNED_MAX = 99

const NOW = 1_700_000_000
const NAMES = ['hmac-sha1', 'hmac-sha224', 'hmac-sha256', 'hmac-sha384', 'hmac-sha512']
const wire = (name: string): Uint8Array => scanName(name)!
const KEY_NAME = wire('key.example.')

function keyOf(algorithm = 'hmac-sha256', secret = 'secret', name = KEY_NAME) {
  return createTsigKey(name, scanAlgorithm(algorithm)!, Buffer.from(secret))
}

function ringOf(...keys: ReturnType<typeof keyOf>[]): TsigKeyring {
  const ring = new TsigKeyring()
  ring.replace(keys)
  return ring
}

/** A query, or with `answers` a reply with that many records. */
function message(id = 0x1234, answers = 0): Uint8Array {
  const name = wire('www.example.')
  const record = { owner: name, type: RRType.A, rrclass: RRClass.IN, ttlSeconds: 1 }
  return composeMessage({
    id,
    opcode: 0,
    flags: answers === 0 ? 0 : 0x8000,
    rcode: 0,
    question: { name, type: RRType.A, rrclass: RRClass.IN },
    answer: Array.from({ length: answers }, (_, i) => ({
      ...record,
      rdata: Uint8Array.of(192, 0, 2, i),
    })),
    authority: [],
    additional: [],
    edns: undefined,
  })
}

function verify(packet: Uint8Array, ring: TsigKeyring, now = NOW) {
  return verifyRequest(packet, findTsig(packet, packet.length), packet.length, ring, now)
}

/** What the server sends: `reply`, signed by what `verify` returned. */
function signReply(verified: ReturnType<typeof verify>, reply: Uint8Array, now = NOW): Uint8Array {
  const out = new Uint8Array(reply.length + verified!.signer.octets)
  out.set(reply)
  t.equal(verified!.signer.sign(out, reply.length, now), out.length, 'is as long as announced')
  return out
}

for (const algorithm of NAMES) {
  t.test(`${algorithm}: a request is known to be genuine, and so is the reply`, async (t) => {
    const client = new RequestSigner(keyOf(algorithm))
    const verified = verify(client.sign(message(), NOW), ringOf(keyOf(algorithm)))
    t.equal(verified?.error, 0)
    t.equal(verified?.key?.nameText, 'key.example.')
    t.equal(client.verify(signReply(verified, message(0x1234, 1)), NOW), '')
    t.ok(client.isSettled)
  })
}

t.test('the packet is left as it came, also where it is a Buffer', async (t) => {
  const packet = Buffer.from(new RequestSigner(keyOf()).sign(message(), NOW))
  const before = packet.toString('hex')
  t.equal(verify(packet, ringOf(keyOf()))?.error, 0)
  t.equal(packet.toString('hex'), before)
})

t.test('the id that a forwarder put in its place is not covered', async (t) => {
  const packet = new RequestSigner(keyOf()).sign(message(), NOW)
  packet[0]! ^= 0xff
  t.equal(verify(packet, ringOf(keyOf()))?.error, 0)
})

const REFUSALS = [
  { name: 'another secret', ring: ringOf(keyOf('hmac-sha256', 'other')), now: NOW, want: BADSIG },
  { name: 'no such key', ring: ringOf(), now: NOW, want: Rcode.BADKEY },
  { name: 'too late', ring: ringOf(keyOf()), now: NOW + 301, want: Rcode.BADTIME },
  { name: 'too early', ring: ringOf(keyOf()), now: NOW - 301, want: Rcode.BADTIME },
  { name: 'just in time', ring: ringOf(keyOf()), now: NOW + 300, want: 0 },
  {
    name: 'BADSIG goes before BADTIME',
    ring: ringOf(keyOf('hmac-sha1', 'x')),
    now: 0,
    want: BADSIG,
  },
]
for (const { name, ring, now, want } of REFUSALS) {
  t.test(`a request: ${name}`, async (t) => {
    const verified = verify(new RequestSigner(keyOf()).sign(message(), NOW), ring, now)
    t.equal(verified?.error, want)
    const reply = signReply(verified, message(0x1234, 0), now)
    const record = parseTsig(reply, findTsig(reply, reply.length), reply.length)!
    t.equal(record.error, want)
    const isSigned = want === 0 || want === Rcode.BADTIME
    t.equal(record.mac.length, isSigned ? 32 : 0, 'is signed if the sender is known')
    if (want !== Rcode.BADTIME) return
    t.equal(record.timeSeconds, NOW, 'repeats the time of the request')
    t.equal(Buffer.from(record.other).readUIntBE(0, 6), now, 'says what time it is here')
  })
}

t.test('an algorithm that is none of ours is BADKEY', async (t) => {
  const packet = withTsig({ algorithmName: wire('hmac-md5.sig-alg.reg.int.') })
  t.equal(verify(packet, ringOf(keyOf()))?.error, Rcode.BADKEY)
})

/** A query with a TSIG record of our making. */
function withTsig(change: Partial<TsigRecord>): Uint8Array {
  const record = {
    keyName: KEY_NAME,
    algorithmName: wire('hmac-sha256.'),
    timeSeconds: NOW,
    fudgeSeconds: 300,
    mac: new Uint8Array(32),
    originalId: 0x1234,
    error: 0,
    other: new Uint8Array(0),
    ...change,
  }
  const { keyName, algorithmName, mac, other } = record
  const plain = message()
  const out = new Uint8Array(
    plain.length + tsigOctets(keyName, algorithmName, mac.length, other.length),
  )
  out.set(plain)
  appendTsig(out, plain.length, record)
  return out
}

const LENGTHS = [
  { octets: 0, want: undefined },
  { octets: 9, want: undefined },
  { octets: 15, want: undefined },
  { octets: 16, want: Rcode.BADTRUNC },
  { octets: 31, want: Rcode.BADTRUNC },
  { octets: 32, want: 0 },
  { octets: 33, want: undefined },
]
for (const { octets, want } of LENGTHS) {
  const name = want === undefined ? 'malformed' : want === 0 ? 'good' : 'BADTRUNC'
  t.test(`a MAC of ${octets} octets is ${name}`, async (t) => {
    const signed = new RequestSigner(keyOf()).sign(message(), NOW)
    const record = parseTsig(signed, findTsig(signed, signed.length), signed.length)!
    const mac = new Uint8Array(octets)
    mac.set(record.mac.subarray(0, octets))
    t.equal(verify(withTsig({ mac }), ringOf(keyOf()))?.error, want)
  })
}

t.test(
  'a record that is not the last, or not in the additional section, is malformed',
  async (t) => {
    const signed = withTsig({})
    t.ok(findTsig(signed, signed.length) > 0)
    t.equal(findTsig(message(), message().length), 0)
    const inAnswer = signed.slice()
    inAnswer[7] = 1
    inAnswer[11] = 0
    t.equal(findTsig(inAnswer, inAnswer.length), -1)
    const twice = Buffer.concat([signed, signed.subarray(message().length)])
    twice[11] = 2
    t.equal(findTsig(twice, twice.length), -1)
  },
)

t.test('cut anywhere, or changed anywhere, a request is never taken for genuine', async (t) => {
  const ring = ringOf(keyOf())
  const signed = new RequestSigner(keyOf()).sign(message(), NOW)
  for (let octets = 0; octets < signed.length; octets++) {
    const offset = findTsig(signed, octets)
    if (offset <= 0) continue
    t.equal(verifyRequest(signed, offset, octets, ring, NOW), undefined, `${octets} octets`)
  }
  const start = message().length
  const property = fc.property(
    fc.nat(signed.length - 1),
    fc.integer({ min: 1, max: 255 }),
    (at, x) => {
      // The ID is not covered, nor the case of the two names.
      if (at < 2) return
      const changed = signed.slice()
      changed[at]! ^= x
      const offset = findTsig(changed, changed.length)
      if (offset <= 0) return
      const verified = verifyRequest(changed, offset, changed.length, ring, NOW)
      const onlyCase = at >= start && x === 0x20
      // The original ID stands in for the ID.
      if (onlyCase || verified === undefined) return
      if (verified.error === 0) throw new Error(`octet ${at} ^ ${x} is not noticed`)
    },
  )
  fc.assert(property, { seed: 7, numRuns: 3000 })
})

/** The messages of a stream, all signed. */
function stream(client: RequestSigner, count: number): Uint8Array[] {
  const verified = verify(client.sign(message(), NOW), ringOf(keyOf()))
  return Array.from({ length: count }, (_, i) => signReply(verified, message(0x1234, i % 5)))
}

t.test('a stream of signed messages', async (t) => {
  const client = new RequestSigner(keyOf())
  for (const reply of stream(client, 20)) t.equal(client.verify(reply, NOW), '')
  t.ok(client.isSettled)
})

t.test('a stream whose messages were swapped, left out or repeated is noticed', async (t) => {
  for (const order of [[0, 2], [1], [0, 0], [0, 1, 3]]) {
    const client = new RequestSigner(keyOf())
    const replies = stream(client, 4)
    const faults = order.map((i) => client.verify(replies[i]!, NOW)).filter((text) => text !== '')
    t.strictSame(faults, ['the signature is wrong'], order.join())
  }
})

t.test('unsigned messages between signed ones are covered by the next, 99 at most', async (t) => {
  for (const [unsigned, want] of [
    [UNSIGNED_MAX, ''],
    [UNSIGNED_MAX + 1, `more than ${UNSIGNED_MAX} messages are not signed`],
  ] as const) {
    const client = new RequestSigner(keyOf())
    const server = new StreamSigner(client.sign(message(), NOW))
    t.equal(client.verify(server.sign(message(0x1234, 1)), NOW), '')
    let fault = ''
    for (let i = 0; i < unsigned && fault === ''; i++) {
      const plain = message(0x1234, i % 7)
      server.skip(plain)
      fault = client.verify(plain, NOW)
      if (fault === '') t.notOk(client.isSettled)
    }
    if (fault === '') fault = client.verify(server.sign(message(0x1234, 2)), NOW)
    t.equal(fault, want)
  }
})

t.test('an unsigned first message is not taken', async (t) => {
  const client = new RequestSigner(keyOf())
  client.sign(message(), NOW)
  t.equal(client.verify(message(0x1234, 1), NOW), 'the reply is not signed')
})

t.test("the error of the peer's TSIG is returned", async (t) => {
  const client = new RequestSigner(keyOf())
  const verified = verify(client.sign(message(), NOW), ringOf(keyOf('hmac-sha256', 'other')))
  t.equal(client.verify(signReply(verified, message()), NOW), 'the peer replied BADSIG')
})

const WRONG_FIRST = [
  { name: 'a wrong MAC', mac: new Uint8Array(32), now: NOW, want: /the signature is wrong/ },
  {
    name: 'another time',
    mac: undefined,
    now: NOW + 301,
    want: /the time of the signature differs/,
  },
]
for (const { name, mac, now, want } of WRONG_FIRST) {
  t.test(`after ${name}, even twice, the right reply is still known`, async (t) => {
    const client = new RequestSigner(keyOf())
    const verified = verify(client.sign(message(), NOW), ringOf(keyOf()))
    const right = signReply(verified, message(0x1234, 1))
    const wrong = mac === undefined ? right : withTsig({ mac })
    for (let i = 0; i < 2; i++) t.match(client.verify(wrong, now), want)
    t.equal(client.verify(right, NOW), '')
  })
}

t.test('a reply to another request is not accepted, also with the same id', async (t) => {
  const recorded = signReply(
    verify(new RequestSigner(keyOf()).sign(message(), NOW), ringOf(keyOf())),
    message(0x1234, 1),
  )
  const client = new RequestSigner(keyOf())
  client.sign(message(), NOW + 1)
  t.match(client.verify(recorded, NOW + 1), /the signature is wrong/)
})

t.test('every algorithm is found by its name, in any case', async (t) => {
  for (const name of NAMES) t.equal(findAlgorithm(wire(name.toUpperCase()))?.text, name)
  t.equal(scanAlgorithm('hmac-md5'), undefined)
})

function hmacSha256(parts: readonly Uint8Array[]): Uint8Array {
  const hmac = createHmac('sha256', 'secret')
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}

/** Signs a stream as RFC 8945 section 5.3.1 says, written down apart from what is tested. */
class StreamSigner {
  #prior: Uint8Array
  #since: Uint8Array[] = []
  #isFirst = true

  constructor(request: Uint8Array) {
    this.#prior = parseTsig(request, findTsig(request, request.length), request.length)!.mac
  }

  skip(plain: Uint8Array): void {
    this.#since.push(plain)
  }

  sign(plain: Uint8Array): Uint8Array {
    const time = Buffer.alloc(8)
    time.writeUIntBE(NOW, 0, 6)
    time.writeUInt16BE(300, 6)
    const head = Buffer.concat([KEY_NAME, Buffer.from('00ff00000000', 'hex'), wire('hmac-sha256.')])
    const covered = this.#isFirst ? [head, time, Buffer.alloc(4)] : [time]
    const length = Buffer.from([this.#prior.length >> 8, this.#prior.length & 0xff])
    const mac = hmacSha256([length, this.#prior, ...this.#since, plain, ...covered])
    this.#since = []
    this.#prior = mac
    this.#isFirst = false
    const record = {
      keyName: KEY_NAME,
      algorithmName: wire('hmac-sha256.'),
      timeSeconds: NOW,
      fudgeSeconds: 300,
      mac,
      originalId: 0x1234,
      error: 0,
      other: new Uint8Array(0),
    }
    const out = new Uint8Array(plain.length + tsigOctets(KEY_NAME, record.algorithmName, 32, 0))
    out.set(plain)
    appendTsig(out, plain.length, record)
    return out
  }
}
