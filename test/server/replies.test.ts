import t from 'tap'
import { CookieJar } from '../../src/dns/edns/cookie.ts'
import { CookieSecrets } from '../../src/dns/edns/cookie-secrets.ts'
import type { Handler } from '../../src/plugin/handler.ts'
import { sentOctets } from '../../src/plugin/status.ts'
import { type QuerySpec, type WireMessage, wireQuery } from '../support/wire.ts'
import { ask, block, chain, open, out, says, start } from './server-fixture.ts'

t.test(
  'RD and CD are copied from queries, whatever is wrong with them, and from nothing else',
  async (t) => {
    const RD_CD = 0x0110
    const table: { name: string; given: QuerySpec; flags: number }[] = [
      { name: 'REFUSED', given: { name: 'a.test', flags: RD_CD }, flags: 0x8115 },
      { name: 'BADVERS', given: { name: 'a', flags: RD_CD, edns: { version: 1 } }, flags: 0x8110 },
      { name: 'NOTIMP to STATUS', given: { name: 'a', flags: 0x1000 | RD_CD }, flags: 0x9004 },
      { name: 'NOTIMP to UPDATE', given: { name: 'a', flags: 0x2800 | RD_CD }, flags: 0xa804 },
      { name: 'NOTIMP to opcode 15', given: { name: 'a', flags: 0x7800 | RD_CD }, flags: 0xf804 },
      { name: 'NOTIMP, all bits set', given: { name: 'a', flags: 0x7ff0 }, flags: 0xf804 },
      { name: 'NOTIMP to NOTIFY', given: { name: 'a', flags: 0x2000 | RD_CD }, flags: 0xa004 },
    ]
    for (const { name, given, flags } of table) {
      const { server } = start([block('a', { chain: says('x') })])
      t.equal(ask(server, given)?.flags.toString(16), flags.toString(16), name)
    }
  },
)

t.test('size limits', async (t) => {
  const big = chain(({ query, response }) => {
    for (let i = 0; i < 60; i++)
      response.add(0, query.qname, 0, 16, 1, 60, new Uint8Array(100), 0, 100)
    return 0
  })
  const size = (records: number): Handler =>
    chain(({ query, response }) => {
      for (let i = 0; i < records; i++)
        response.add(0, query.qname, 0, 16 + i, 1, 60, new Uint8Array(100), 0, 100)
      return 0
    })
  const table: { name: string; payload?: number; bufsize?: number; tcp?: boolean; want: number }[] =
    [
      { name: 'no EDNS: 512', want: 4 },
      { name: 'a payload below 512 counts as 512', payload: 100, want: 4 },
      { name: 'a payload of 0 too', payload: 0, want: 4 },
      { name: 'the payload of the client', payload: 800, want: 6 },
      { name: 'no more than bufsize', payload: 65535, bufsize: 1232, want: 10 },
      { name: 'bufsize 4096', payload: 65535, bufsize: 4096, want: 36 },
      { name: 'TCP', payload: 512, tcp: true, want: 60 },
      { name: 'TCP without EDNS', tcp: true, want: 60 },
    ]
  for (const { name, payload, bufsize = 1232, tcp, want } of table) {
    const { server } = start([block('.', { chain: size(60), bufsizeOctets: bufsize })])
    const spec = payload === undefined ? { name: 'a' } : { name: 'a', edns: { payload } }
    const message = ask(server, spec, tcp ? 1 : 0)
    t.equal(message?.answer.length, want, name)
    t.equal(((message?.flags ?? 0) & 0x0200) !== 0, want < 60, `${name}: TC`)
    if (payload !== undefined)
      t.equal(message?.opt?.rrclass, bufsize, `${name}: we advertise bufsize`)
  }
  const { server } = start([block('.', { chain: big })])
  t.equal(ask(server, { name: 'a' })?.answer.length, 0)
})

t.test('server cookies', async (t) => {
  const jar = new CookieJar(
    CookieSecrets.of(Buffer.from('e5e973e5a6b2a43f48e7dc849e37bfcf', 'hex')),
  )
  const cookie = Buffer.from('2464c4abcf10c957', 'hex')
  const spec: QuerySpec = { name: 'example.com', edns: { options: [[10, cookie]] } }
  const hex = (message: WireMessage | undefined): string | undefined => {
    const data = message?.options.get(10)
    return data === undefined ? undefined : Buffer.from(data).toString('hex')
  }
  t.equal(
    hex(ask(start([block('.')], jar).server, spec)),
    '2464c4abcf10c957010000005cf79f111f8130c3eee29480',
  )
  t.equal(
    hex(ask(start([], jar).server, spec)),
    '2464c4abcf10c957010000005cf79f111f8130c3eee29480',
    'with REFUSED',
  )
  t.equal(hex(ask(start([block('.')]).server, spec)), undefined, 'without a secret')
})

t.test(
  'what logs and metrics report of a reply has its cookie and its keepalive timeout',
  async (t) => {
    const jar = new CookieJar(CookieSecrets.of(new Uint8Array(16)))
    const options: [number, Uint8Array][] = [
      [10, new Uint8Array(8)],
      [11, new Uint8Array(0)],
    ]
    for (const protocol of [0, 1] as const) {
      let counted = 0
      const counting = chain((tx) => {
        counted = sentOctets(tx, 5)
        return 5
      })
      const { server } = start([block('.', { chain: counting })], jar)
      const tx = open(server, wireQuery({ name: 'example.com', edns: { options } }), protocol)
      t.equal(server.serve(tx, out), counted, `protocol ${protocol}`)
      server.release(tx)
    }
  },
)

t.test('the keepalive timeout is the idle timeout', async (t) => {
  const message = ask(
    start([block('.')]).server,
    { name: 'a', edns: { options: [[11, new Uint8Array(0)]] } },
    1,
  )
  t.strictSame([...(message?.options.get(11) ?? [])], [0, 100])
})
