import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import t from 'tap'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { HeaderFlag } from '../../../src/dns/message/header.ts'
import type { ResourceRecord } from '../../../src/dns/message/message.ts'
import { printName } from '../../../src/dns/name/name.ts'
import { ScriptedServer } from '../../support/scripted-server.ts'
import { ask, type Given } from './stage.ts'

const QUERY = { name: 'health.example.org', type: RRType.A }
/** RFC 6895 section 3.1: for private use. */
const PRIVATE_TYPE = 65_280

function record(owner: Uint8Array, type: number, rdata: readonly number[]): ResourceRecord {
  return { owner, type, rrclass: RRClass.IN, ttlSeconds: 5, rdata: new Uint8Array(rdata) }
}

function probe(port: number, given: Given = {}) {
  return ask({ port, protocol: 'DNS', query: QUERY, ...given })
}

t.test('what is asked, and which answers are healthy', async (t) => {
  let answer: readonly ResourceRecord[] | number = []
  const server = await ScriptedServer.open(t, () => answer)
  const { port } = server
  t.strictSame(await probe(port), { kind: 'healthy', httpStatus: 0 })
  const { query, isTcp } = server.asked[0]!
  t.equal(printName(query.question!.name), 'health.example.org.')
  t.match(query, { question: { type: RRType.A }, flags: HeaderFlag.RD, edns: undefined })
  t.equal(isTcp, false)
  const owner = query.question!.name
  answer = Rcode.SERVFAIL
  t.match(await probe(port), { kind: 'unhealthy', httpStatus: 0, reason: 'rcode SERVFAIL' })
  answer = Rcode.NXDOMAIN
  t.match(await probe(port, { expectedRcode: Rcode.NXDOMAIN }), { kind: 'healthy' })
  const expectedAddress = '192.0.2.7'
  const lacking = 'rcode NOERROR, but the answer lacks the expected address'
  for (const [name, records, reason] of [
    ['an empty answer', [], lacking],
    ['another address', [record(owner, RRType.A, [192, 0, 2, 8])], lacking],
    ['another type', [record(owner, PRIVATE_TYPE, [192, 0, 2, 7])], lacking],
    [
      'one of two',
      [record(owner, RRType.A, [192, 0, 2, 8]), record(owner, RRType.A, [192, 0, 2, 7])],
      '',
    ],
  ] as const) {
    answer = records
    const outcome = await probe(port, { expectedAddress })
    t.equal(outcome.kind === 'unhealthy' ? outcome.reason : '', reason, name)
  }
  answer = [record(owner, RRType.AAAA, [0x20, 1, 13, 184, ...Array(11).fill(0), 1])]
  t.match(await probe(port, { expectedAddress: '2001:DB8::1' }), { kind: 'healthy' })
})

t.test('a truncated answer is asked for again over TCP', async (t) => {
  const server = await ScriptedServer.open(t, (query, isTcp) => {
    return isTcp ? [record(query.question!.name, RRType.A, [192, 0, 2, 7])] : []
  })
  const { answer } = server
  server.answer = (asked) => {
    const send = (octets: Uint8Array): void => {
      const truncated = Uint8Array.from(octets)
      truncated[2]! |= 0x02
      asked.send(truncated)
    }
    answer(asked.isTcp ? asked : { ...asked, send })
  }
  t.match(await probe(server.port, { expectedAddress: '192.0.2.7' }), { kind: 'healthy' })
  t.strictSame(
    server.asked.map(({ isTcp }) => isTcp),
    [false, true],
  )
})

t.test('servers that are dead, silent or lost a packet', async (t) => {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const { port } = socket.address()
  t.match(await probe(port, { intervalMs: 200 }), {
    kind: 'unhealthy',
    reason: /^(timed out|no answer)/,
  })
  socket.close()
  await once(socket, 'close')
  t.match(await probe(port), { kind: 'unhealthy', reason: 'connection refused' })
  let lost = 2
  const server = await ScriptedServer.open(t, () => (lost-- > 0 ? undefined : []))
  t.match(await probe(server.port, { intervalMs: 1000 }), { kind: 'healthy' }, 'the third try')
  t.equal(server.asked.length, 3)
  server.answer = ({ octets, send }) => send(octets)
  t.match(
    await probe(server.port, { intervalMs: 200 }),
    { kind: 'unhealthy' },
    'a query that comes back is no answer',
  )
})
