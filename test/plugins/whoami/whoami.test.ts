import t from 'tap'
import { RRType } from '../../../src/dns/iana/index.ts'
import { Whoami } from '../../../src/plugins/whoami/whoami.ts'
import { type Question, show, transaction } from '../../support/transaction.ts'

const handler = new Whoami()

t.test('the client, as records', async (t) => {
  const table: { name: string; given: Question; want: string[] }[] = [
    {
      name: 'IPv4 over UDP',
      given: { name: 'www.Example.org.', from: '10.240.0.1', port: 40212 },
      want: ['www.example.org. 0 IN A 0af00001', '_udp.www.example.org. 0 IN SRV 000000009d1400'],
    },
    {
      name: 'IPv6 over TCP, whatever the type',
      given: { name: '.', type: RRType.TXT, from: '2001:db8::7', port: 1, tcp: true },
      want: ['. 0 IN AAAA 20010db8000000000000000000000007', '_tcp. 0 IN SRV 00000000000100'],
    },
    {
      name: 'a name that has no room for one more label',
      given: { name: `${'a.'.repeat(126)}`, from: '192.0.2.1' },
      want: [`${'a.'.repeat(126)} 0 IN A c0000201`],
    },
  ]
  for (const { name, given, want } of table) {
    const shown = await show(handler, transaction(given))
    t.strictSame(
      shown,
      { status: 'NOERROR', flags: 'aa', answer: [], authority: [], additional: want },
      name,
    )
  }
})

t.test('two transactions in flight keep their records apart', async (t) => {
  const first = transaction({ name: 'a.example.org.', port: 1 })
  const second = transaction({ name: 'b.example.org.', port: 2 })
  handler.serve(first)
  handler.serve(second)
  t.equal(first.response.rdataBytes[1]?.[5], 1)
  t.equal(first.response.ownerBytes[1]?.[6], 'a'.charCodeAt(0))
  t.equal(second.response.rdataBytes[1]?.[5], 2)
})
