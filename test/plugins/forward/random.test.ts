import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { systemTimers } from '../../../src/base/timers.ts'
import { composeQuery, isReplyTo, readReply } from '../../../src/client/upstream/upstream-query.ts'
import { Rcode, RRType } from '../../../src/dns/iana/index.ts'
import { HeaderFlag } from '../../../src/dns/message/header.ts'
import { parseMessage } from '../../../src/dns/message/parse-message.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { forward } from '../../../src/plugins/forward/setup.ts'
import {
  type Asked,
  addressRecord,
  framed,
  replyTo,
  ScriptedServer,
} from '../../support/scripted-server.ts'
import { SetUp } from '../../support/setup.ts'
import { answering, show, transaction } from '../../support/transaction.ts'

const SEED = 20_261_123

t.test('damaged replies never pass for another question, and never throw', async (t) => {
  const random = new Random(SEED)
  const name = scanName('www.example.org.')!
  const common = { hash: 1, dnssecOk: true, subnet: undefined, hasEdns: true, mixesCase: false }
  const question = { name, type: RRType.A, rrclass: 1, flags: HeaderFlag.RD, ...common }
  let accepted = 0
  for (let i = 0; i < 20_000; i++) {
    const query = composeQuery(question, () => false)
    const octets = replyTo(parseMessage(query.octets)!)
    for (let k = random.below(4); k > 0; k--)
      octets[random.below(octets.length)] = random.below(256)
    const cut = random.below(4) === 0 ? octets.subarray(0, random.below(octets.length + 1)) : octets
    if (!isReplyTo(cut, query)) continue
    const outcome = readReply(cut)
    if ('failure' in outcome) continue
    accepted++
    const { message } = outcome
    t.equal(message.id, query.id)
    if (message.question === undefined) t.not(message.rcode, Rcode.NOERROR)
    else t.same(message.question.type, RRType.A)
  }
  t.ok(accepted > 2000, `${accepted} accepted`)
})

/** What an unreliable upstream does with a query. */
const MISDEEDS: readonly ((received: Asked) => void)[] = [
  () => {},
  ({ query, send }) => send(replyTo({ ...query, id: query.id ^ 0x101 })),
  ({ query, send }) => {
    const question = { ...query.question!, name: scanName('forged.example.')! }
    send(replyTo(query, { question, answer: [addressRecord(query, '203.0.113.66')] }))
  },
  ({ query, send, isTcp }) => {
    const flags = HeaderFlag.QR | HeaderFlag.TC
    send(replyTo(query, isTcp ? {} : { flags, answer: [] }))
  },
  ({ query, send }) => send(replyTo(query).subarray(0, -2)),
  ({ query, send, socket }) => {
    if (socket === undefined) send(new Uint8Array(3))
    else socket.end(framed(replyTo(query)).subarray(0, 9))
  },
  ({ socket }) => socket?.destroy(),
]

t.test('unreliable upstreams: every query ends, and no answer is forged', async (t) => {
  const random = new Random(SEED)
  const answer = (received: Asked): void => {
    const { query, send } = received
    if (random.below(3) === 0) MISDEEDS[random.below(MISDEEDS.length)]!(received)
    // In another order than that of the queries.
    else setImmediate(() => send(replyTo(query)))
  }
  const upstreams = [
    await ScriptedServer.openRaw(t, answer),
    await ScriptedServer.openRaw(t, answer),
  ]
  const to = upstreams.map(({ address }) => address).join(' ')
  const block = '{\nread_timeout 100ms\nhealth_check 50ms\nmax_connect_attempts 8\n}'
  const c = new SetUp(forward, `forward . ${to} ${block}`, undefined, { timers: systemTimers })
  await c.start()
  t.teardown(() => c.stop())
  const handler = c.handler(answering(() => Rcode.REFUSED))
  let answered = 0
  for (let round = 0; round < 10; round++) {
    const replies = Array.from({ length: 60 }, (_, i) => {
      const name = `n${i}.example.`
      const tx = transaction({ name, tcp: i % 2 === 1, seed: round * 100 + i + 1 })
      return show(handler, tx).then(({ status, answer: [record] }) => {
        if (status === 'SERVFAIL' || record === undefined) return
        t.equal(record, `${name} 60 IN A c0000201`)
        answered++
      })
    })
    await Promise.all(replies)
  }
  t.ok(answered > 550, `${answered} of 600 answered`)
})
