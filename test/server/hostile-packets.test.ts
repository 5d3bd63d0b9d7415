import fc from 'fast-check'
import t from 'tap'
import { CookieJar } from '../../src/dns/edns/cookie.ts'
import { CookieSecrets } from '../../src/dns/edns/cookie-secrets.ts'
import { wireQuery } from '../support/wire.ts'
import { ask, block, chain, out, says, start } from './server-fixture.ts'

const CORPUS: readonly Uint8Array[] = [
  wireQuery({ name: 'www.example.org' }),
  wireQuery({ name: '.', type: 2 }),
  wireQuery({ name: 'a.b.c.d.e.f.g.h', type: 255, rrclass: 255 }),
  wireQuery({
    name: 'www.example.org',
    type: 28,
    edns: {
      flags: 0x8000,
      options: [
        [3, new Uint8Array(0)],
        [8, Uint8Array.from([0, 2, 56, 0, 32, 1, 13, 184, 0, 1, 2])],
        [10, new Uint8Array(24).fill(1)],
        [11, new Uint8Array(0)],
        [12, new Uint8Array(30)],
      ],
    },
  }),
]

t.test('no packet breaks the server', async (t) => {
  const { server, counters } = start(
    [
      block('.', {
        chain: chain((tx) => {
          tx.response.nsid = Buffer.from('n')
          return says('ok').serve(tx)
        }),
      }),
    ],
    new CookieJar(CookieSecrets.of(new Uint8Array(16))),
  )
  /** Serves and checks what every reply must fulfil; returns a fault or ''. */
  const fault = (packet: Uint8Array): string => {
    const message = ask(server, packet)
    if (message === undefined) return packet.length < 12 || packet[2]! & 0x80 ? '' : 'silence'
    if (message.id !== ((packet[0]! << 8) | packet[1]!)) return 'another id'
    if (message.trailing !== 0) return 'trailing octets'
    if ((message.flags & 0x8000) === 0) return 'not a response'
    if (message.questions.length > 1) return 'questions'
    const [question] = message.questions
    if (question === undefined)
      return message.rcode === 1 || message.rcode === 4 ? '' : 'no question'
    const echoed = out.subarray(12, 12 + wireNameOctets(out) + 4)
    return Buffer.compare(echoed, packet.subarray(12, 12 + echoed.length)) === 0
      ? ''
      : 'another question'
  }
  let packets = 0
  for (const whole of CORPUS) {
    t.equal(fault(whole), '')
    for (let octets = 0; octets < whole.length; octets++) {
      const wrong = fault(whole.slice(0, octets))
      if (wrong !== '') t.fail(`cut at ${octets}: ${wrong}`)
      packets++
    }
    for (let i = 0; i < whole.length; i++) {
      for (let flip = 1; flip < 256; flip++) {
        const packet = whole.slice()
        packet[i]! ^= flip
        const wrong = fault(packet)
        if (wrong !== '') t.fail(`octet ${i} xor ${flip}: ${wrong}`)
        packets++
      }
    }
  }
  fc.assert(
    fc.property(
      fc.constantFrom(...CORPUS),
      fc.array(fc.tuple(fc.nat(300), fc.nat(255)), { maxLength: 12 }),
      (whole, edits) => {
        const packet = whole.slice()
        for (const [at, value] of edits) packet[at % packet.length] = value
        return fault(packet) === ''
      },
    ),
    { seed: 3, numRuns: 3000 },
  )
  t.ok(packets > 30_000)
  t.equal(counters.panics, 0)
  const { formErr, notImp, badVers } = counters.dropped.get('dns://:53')!
  t.ok(formErr > 0 && notImp > 0 && badVers > 0 && counters.ignored > 0)
})

function wireNameOctets(message: Uint8Array): number {
  let at = 12
  while (message[at] !== 0) at += message[at]! + 1
  return at + 1 - 12
}
