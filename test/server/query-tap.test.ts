import t from 'tap'
import { SharedValues } from '../../src/base/shared-values.ts'
import { DROP, type Handler } from '../../src/plugin/handler.ts'
import { addTap, QUERY_TAP, type QueryTap } from '../../src/plugin/query-tap.ts'
import type { Transaction } from '../../src/plugin/transaction.ts'
import { wireQuery } from '../support/wire.ts'
import { block, chain, open, out, says, start } from './server-fixture.ts'

/** A tap that copies what it sees. */
class CopyingTap implements QueryTap {
  readonly queries: Buffer[] = []
  readonly replies: Buffer[] = []

  see({ query, out }: Transaction, octets: number): void {
    this.queries.push(Buffer.from(query.packet.subarray(0, query.packetOctets)))
    this.replies.push(Buffer.from(out.subarray(0, Math.max(0, octets))))
  }
}

t.test('a tap sees each query of its block as it came, and the reply as it is sent', async (t) => {
  const late = says('late')
  const big: Handler = chain(({ query, response }) => {
    for (let i = 0; i < 9; i++)
      response.add(0, query.qname, 0, 16, 1, 60, new Uint8Array(200), 0, 200)
    return 0
  })
  const streaming = chain((tx) => {
    tx.stream = { next: () => 0, isBroken: false, close: () => {} }
    return 0
  })
  const table = [
    { name: 'an answer', below: says('hello') },
    { name: 'a late answer', below: chain(async (tx) => late.serve(tx)) },
    { name: 'an error that the server writes', below: chain(() => 2) },
    { name: 'a truncated reply', below: big },
    { name: 'an exception', below: chain(() => Promise.reject(new Error('test'))) },
    { name: 'no reply', below: chain(() => DROP), isSilent: true },
    { name: 'a stream', below: streaming, isSilent: true },
  ]
  for (const { name, below, isSilent } of table) {
    const tap = new CopyingTap()
    const { server } = start([block('example.org.', { chain: below, tap })])
    const packet = wireQuery({ name: 'WWW.example.org', type: 16 })
    const octets = await server.serve(open(server, packet), out)
    t.strictSame(tap.queries, [Buffer.from(packet)], name)
    const sent = isSilent === true ? [] : out.subarray(0, octets)
    t.strictSame(tap.replies, [Buffer.from(sent)], name)
    t.equal(tap.replies[0]!.length > 0, isSilent !== true, name)
  }
})

t.test('queries of other blocks are not seen', async (t) => {
  const tap = new CopyingTap()
  const { server } = start([block('example.org.', { tap }), block('example.com.')])
  for (const name of ['example.com', 'example.net']) {
    await server.serve(open(server, wireQuery({ name })), out)
  }
  t.strictSame(tap.queries, [])
})

t.test('several taps of a block see the same', async (t) => {
  const shared = new SharedValues()
  const taps = [new CopyingTap(), new CopyingTap(), new CopyingTap()]
  for (const tap of taps) addTap(shared, tap)
  const { server } = start([block('example.org.', { tap: shared.find(QUERY_TAP) })])
  const packet = wireQuery({ name: 'example.org', type: 16 })
  const octets = await server.serve(open(server, packet), out)
  for (const { queries, replies } of taps) {
    t.strictSame(queries, [Buffer.from(packet)])
    t.strictSame(replies, [Buffer.from(out.subarray(0, Number(octets)))])
  }
})
