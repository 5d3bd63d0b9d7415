import t from 'tap'
import { Rcode } from '../../../src/dns/iana/index.ts'
import { parseQuery } from '../../../src/dns/message/parse-query.ts'
import { ParseStatus, Protocol } from '../../../src/dns/message/query.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { HMAC_SHA256 } from '../../../src/dns/tsig/algorithm.ts'
import { createTsigKey, TsigKeyring } from '../../../src/dns/tsig/key.ts'
import { RequestSigner } from '../../../src/dns/tsig/request-signer.ts'
import { readSignedRequest } from '../../../src/dns/tsig/verify-request.ts'
import { CounterSlots } from '../../../src/plugin/counter-slots.ts'
import { DROP } from '../../../src/plugin/handler.ts'
import { Tsig } from '../../../src/plugins/tsig/tsig.ts'
import { ZoneSet } from '../../../src/zone/lookup/zone-set.ts'
import { FakeClock } from '../../support/setup.ts'
import { answering, refill, transaction } from '../../support/transaction.ts'
import { wireName, wireQuery } from '../../support/wire.ts'
import { askFrom } from '../rrl/transactions.ts'

const UNKNOWN_PER_SECOND = 20
const KNOWN_PER_SECOND = 500
const ALL_PER_SECOND = 1000

const keyOf = (name: string, secret: number) =>
  createTsigKey(scanName(name)!, HMAC_SHA256, new Uint8Array(32).fill(secret))
const GOOD = keyOf('k.example.', 1)
const keyring = new TsigKeyring()
keyring.replace([GOOD])
const QUERY = wireQuery({ name: 'www.example.org' })
const clock = new FakeClock()
const seconds = Math.floor(clock.now() / 1000)
const signedWith = (key: typeof GOOD, at = seconds) => new RequestSigner(key).sign(QUERY, at)

/** Octets of the TSIG record behind its owner, algorithm, time and fudge: the length of the MAC. */
const MAC_LENGTH_AT = QUERY.length + 11 + 10 + 13 + 8
const truncated = ((): Uint8Array => {
  const whole = signedWith(GOOD)
  const from = MAC_LENGTH_AT + 2
  const cut = new Uint8Array(whole.length - 16)
  cut.set(whole.subarray(0, from + 16))
  cut.set(whole.subarray(from + 32), from + 16)
  cut[MAC_LENGTH_AT + 1] = 16
  const rdataAt = QUERY.length + 11 + 8
  cut[rdataAt + 1] = whole[rdataAt + 1]! - 16
  return cut
})()
const otherAlgorithm = ((): Uint8Array => {
  const packet = signedWith(GOOD)
  packet[QUERY.length + 11 + 10 + 1] = 0x78
  return packet
})()
const [UNKNOWN_KEY, WRONG_MAC, BAD_TIME] = [
  signedWith(keyOf('u.example.', 1)),
  signedWith(keyOf('k.example.', 2)),
  signedWith(GOOD, seconds - 4000),
]

const reused = transaction({ name: '.' })

function start() {
  const slots = new CounterSlots()
  const options = {
    zones: new ZoneSet([wireName('')]),
    keyring,
    clock,
    qtypes: new Set<number>(),
    opcodes: new Set<number>(),
    slots,
  }
  const handler = new Tsig(
    answering(() => 0),
    options,
  )
  const ask = (packet: Uint8Array, from: string, protocol: 0 | 1 = Protocol.Udp): number => {
    const tx = refill(reused, { name: 'www.example.org' })
    const status = parseQuery(tx.query, packet, packet.length)
    if (status !== ParseStatus.Ok) throw new Error(`status ${status}`)
    tx.query.protocol = protocol
    askFrom(tx, from)
    tx.response.reset(tx.query)
    return handler.serve(tx) as number
  }
  /** How many of `count` get that status. */
  const count = (packet: Uint8Array, status: number, times: number, from = () => '192.0.2.1') => {
    let found = 0
    for (let i = 0; i < times; i++) if (ask(packet, from()) === status) found++
    return found
  }
  return { ask, count }
}

t.test('signatures that need no MAC are never dropped, and make none', async (t) => {
  for (const [what, packet] of [
    ['an unknown key', UNKNOWN_KEY],
    ['an unknown algorithm', otherAlgorithm],
  ] as const) {
    t.equal(start().count(packet, Rcode.NOTAUTH, 3000), 3000, what)
    const tx = transaction({ name: 'www.example.org' })
    parseQuery(tx.query, packet, packet.length)
    const read = readSignedRequest(packet, tx.query.tsigOffset, packet.length, keyring)
    t.ok(read !== undefined && 'signer' in read, `${what}: decided without a MAC`)
  }
})

t.test('few wrong signatures of a network are verified', async (t) => {
  for (const [what, packet] of [
    ['a wrong MAC', WRONG_MAC],
    ['a wrong time', BAD_TIME],
    ['a truncated MAC', truncated],
  ] as const) {
    const { count } = start()
    t.equal(count(packet, Rcode.NOTAUTH, 3000), UNKNOWN_PER_SECOND, what)
    t.equal(count(packet, DROP, 10), 10, what)
    clock.monotonicMs += 5000
    t.equal(count(packet, Rcode.NOTAUTH, 3000), UNKNOWN_PER_SECOND, `${what}, later`)
  }
})

t.test('wrong signatures of many networks are verified up to a limit', async (t) => {
  const { ask, count } = start()
  let i = 0
  const next = () => `10.${(++i >> 8) & 255}.${i & 255}.1`
  t.equal(ask(signedWith(GOOD), '192.0.2.1'), 0, 'a peer before')
  const verified = count(WRONG_MAC, Rcode.NOTAUTH, 20_000, next)
  // The account of all networks is replaced if its set in the table is full while it has the most credit: in the first 50.
  t.ok(verified >= ALL_PER_SECOND && verified < 1.1 * ALL_PER_SECOND, `${verified}`)
  t.equal(count(signedWith(GOOD), 0, 2000), 2000, 'the peer is verified still')
  t.equal(ask(signedWith(GOOD), '198.51.100.1'), DROP, 'another network has to come by TCP')
  t.equal(ask(signedWith(GOOD), '198.51.100.1', Protocol.Tcp), 0)
})

t.test('right signatures cost nothing, and networks that had some get more', async (t) => {
  const { ask, count } = start()
  t.equal(count(signedWith(GOOD), 0, 5000), 5000)
  const verified = count(WRONG_MAC, Rcode.NOTAUTH, 5000)
  t.ok(verified > KNOWN_PER_SECOND - 10 && verified <= KNOWN_PER_SECOND, `${verified}`)
  t.equal(ask(signedWith(GOOD), '192.0.2.1'), DROP, 'forged addresses of a peer can do so much')
  t.equal(ask(signedWith(GOOD), '192.0.2.1', Protocol.Tcp), 0, 'but not over TCP')
})
