import t from 'tap'
import { DROP, type Handler } from '../../src/plugin/handler.ts'
import { CHAIN_DEPTH_MAX, type Transaction } from '../../src/plugin/transaction.ts'
import { repeatQuery } from '../../src/server/internal-lookup.ts'
import type { RoutedBlock } from '../../src/server/routing.ts'
import { transaction } from '../support/transaction.ts'
import { readMessage, wireName, wireQuery } from '../support/wire.ts'
import { ask, block, chain, open, out, says, start, text } from './server-fixture.ts'

t.test('an internal lookup', async (t) => {
  const target = Buffer.concat([wireName('target.example.net'), Buffer.from('rest of a buffer')])
  /** Returns the result of the internal lookup of `qname`. */
  const chase = (qname: Uint8Array, wait = false): Handler =>
    chain((tx) => {
      const finish = (got: Transaction | undefined): number => {
        if (got === undefined) return (tx.response.rcode = 3)
        const { response } = got
        for (let i = 0; i < response.count; i++) {
          tx.response.add(
            0,
            tx.query.qname,
            0,
            16,
            1,
            60,
            response.rdataBytes[i]!,
            response.rdataOffset[i]!,
            response.rdataOctets[i]!,
          )
        }
        tx.response.rcode = response.rcode
        tx.server.release(got)
        return 0
      }
      const got = tx.server.lookupInternally(tx, qname, 16)
      if (wait !== got instanceof Promise) throw new Error('waits or not')
      return got instanceof Promise ? got.then(finish) : finish(got)
    })
  const seen: unknown[] = []
  const net = block('net.', {
    chain: chain((tx) => {
      const { query } = tx
      seen.push({
        qname: Buffer.from(query.qname.subarray(0, query.qnameOctets)).toString('latin1'),
        labels: query.labelCount,
        qtype: query.qtype,
        depth: tx.chainDepth,
        zone: tx.zone,
        ecs: query.ecsFamily,
        client: [...query.clientAddress.subarray(0, 2)],
        isEcs: query.clientIsEcs,
        port: query.peerPort,
      })
      return says('net').serve(tx)
    }),
  })
  const { server } = start([block('org.', { chain: chase(target) }), net])
  t.equal(
    text(
      ask(server, { name: 'a.org', edns: { options: [[8, Uint8Array.from([0, 1, 8, 0, 10])]] } }),
    ),
    'net',
  )
  t.strictSame(seen, [
    {
      qname: Buffer.from(wireName('target.example.net')).toString('latin1'),
      labels: 3,
      qtype: 16,
      depth: 1,
      zone: 'net.',
      ecs: 1,
      client: [198, 51],
      isEcs: false,
      port: 5353,
    },
  ])

  const rcode = (given: readonly RoutedBlock[]): string =>
    text(ask(start(given).server, { name: 'a.org' }))
  const org = block('org.', { chain: chase(target) })
  t.equal(rcode([org]), 'rcode 3', 'no block serves the target')
  t.equal(
    rcode([org, block('net.', { chain: chain(() => DROP) })]),
    'rcode 3',
    'the target is dropped',
  )
  t.equal(
    rcode([
      org,
      block('net.', {
        chain: chain((tx) => {
          says('x').serve(tx)
          return 2
        }),
      }),
    ]),
    'rcode 2',
    'the target fails: no records',
  )
  const broken = start([
    org,
    block('net.', {
      chain: chain(() => {
        throw new Error('boom')
      }),
    }),
  ])
  t.equal(text(ask(broken.server, { name: 'a.org' })), 'rcode 2', 'the target panics')
  t.equal(broken.counters.panics, 1)

  const waiting = start([
    block('org.', { chain: chase(target, true) }),
    block('net.', { chain: chain(async (tx) => says('net').serve(tx)) }),
  ])
  const octets = await waiting.server.serve(open(waiting.server, wireQuery({ name: 'a.org' })), out)
  t.equal(text(readMessage(out.slice(0, octets))), 'net', 'a chain that waits')
})

t.test('an internal lookup is of the same client, and its scope is ours', async (t) => {
  const target = wireName('target.example.net')
  const clients: string[] = []
  const asks = chain((tx) => {
    // As `geoip` with `edns-subnet` does.
    tx.query.clientAddress = Uint8Array.of(10, 0, 0, 0, ...new Array(12).fill(0))
    tx.query.clientIsEcs = true
    const got = tx.server.lookupInternally(tx, target, 1)
    if (got !== undefined && !(got instanceof Promise)) tx.server.release(got)
    return says('org').serve(tx)
  })
  for (const isServed of [true, false]) {
    const filter = ({ query, response }: Transaction): boolean => {
      clients.push(`${query.clientAddress.subarray(0, 4).join('.')} ${query.clientIsEcs}`)
      response.scopeBits = 20
      return isServed
    }
    const { server } = start([
      block('org.', { chain: asks }),
      block('net.', { filters: [filter], chain: says('net') }),
    ])
    const options = [[8, Uint8Array.from([0, 1, 24, 0, 10, 0, 0])]] as const
    const reply = ask(server, { name: 'a.org', edns: { options } })
    t.strictSame([...reply!.options.get(8)!.subarray(0, 4)], [0, 1, 24, 20], `served: ${isServed}`)
  }
  t.strictSame(clients, ['198.51.100.100 false', '198.51.100.100 false'])
})

t.test('internal lookups end', async (t) => {
  let deepest = 0
  const loop = chain((tx) => {
    deepest = Math.max(deepest, tx.chainDepth)
    const got = tx.server.lookupInternally(tx, tx.query.qname, 1)
    if (got === undefined || got instanceof Promise) return 2
    tx.server.release(got)
    return 2
  })
  t.equal(text(ask(start([block('.', { chain: loop })]).server, { name: 'a' })), 'rcode 2')
  t.equal(deepest, CHAIN_DEPTH_MAX)
})

t.test(
  'a query that is repeated has the same client, and does not depend on the first one',
  async (t) => {
    const tx = transaction({ name: 'www.example.org.', from: '198.51.100.7', dnssecOk: true })
    const { query } = tx
    query.hasEcs = true
    query.ecsFamily = 1
    query.ecsSourceBits = 24
    query.ecsAddress.set([10, 1, 2, 0])
    for (const isSubnet of [false, true]) {
      query.clientIsEcs = isSubnet
      const copy = transaction({ name: 'other.example.' })
      repeatQuery(copy, tx)
      t.equal(Buffer.compare(copy.query.packet, query.packet), 0)
      t.not(copy.query.packet, query.packet, 'the packet is copied: the memory gets another one')
      t.strictSame(
        [...copy.query.clientAddress.subarray(0, 4), copy.query.clientBits],
        isSubnet ? [10, 1, 2, 0, 24] : [198, 51, 100, 7, 32],
      )
      t.equal(copy.query.clientIsEcs, isSubnet)
      t.equal(copy.query.dnssecOk, true)
      t.equal(copy.query.suffixHash[0], query.suffixHash[0])
    }
  },
)
