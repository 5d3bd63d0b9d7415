import t from 'tap'
import { Rcode, RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { local } from '../../../src/plugins/local/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { answering, show, transaction } from '../../support/transaction.ts'

const LOCALHOST = '096c6f63616c686f737400'
const SOA = `${LOCALHOST}04726f6f74${LOCALHOST}0000000100000000000000000000000000093a80`

const denied = (owner: string) => ({ answer: [], authority: [`${owner} 604800 IN SOA ${SOA}`] })
const answered = (record: string) => ({ answer: [record], authority: [] })

t.test('local names', async (t) => {
  const a = (name: string) => answered(`${name} 604800 IN A 7f000001`)
  const table = [
    { name: 'localhost.', type: RRType.A, status: 'NOERROR', want: a('localhost.') },
    {
      name: 'localhost.',
      type: RRType.AAAA,
      status: 'NOERROR',
      want: answered('localhost. 604800 IN AAAA 00000000000000000000000000000001'),
    },
    { name: 'localhost.', type: RRType.MX, status: 'NOERROR', want: denied('localhost.') },
    {
      name: 'localhost.',
      type: RRType.NS,
      status: 'NOERROR',
      want: answered(`localhost. 604800 IN NS ${LOCALHOST}`),
    },
    { name: 'a.localhost.', type: RRType.A, status: 'NOERROR', want: a('a.localhost.') },
    { name: 'a.localhost.', type: RRType.TXT, status: 'NOERROR', want: denied('a.localhost.') },
    {
      name: 'localhost.example.org.',
      type: RRType.A,
      status: 'NOERROR',
      want: a('localhost.example.org.'),
    },
    {
      name: '127.in-addr.arpa.',
      type: RRType.SOA,
      status: 'NOERROR',
      want: answered(`127.in-addr.arpa. 604800 IN SOA ${SOA}`),
    },
    {
      name: '0.in-addr.arpa.',
      type: RRType.A,
      status: 'NOERROR',
      want: denied('0.in-addr.arpa.'),
    },
    {
      name: '1.0.0.127.in-addr.arpa.',
      type: RRType.PTR,
      status: 'NOERROR',
      want: answered(`1.0.0.127.in-addr.arpa. 604800 IN PTR ${LOCALHOST}`),
    },
    {
      name: '1.0.0.127.in-addr.arpa.',
      type: RRType.A,
      status: 'NOERROR',
      want: denied('127.in-addr.arpa.'),
    },
    {
      name: '2.0.0.127.in-addr.arpa.',
      type: RRType.PTR,
      status: 'NXDOMAIN',
      want: denied('127.in-addr.arpa.'),
    },
    {
      name: 'example.org.',
      type: RRType.A,
      status: 'YXDOMAIN',
      want: { answer: [], authority: [] },
    },
    {
      name: 'localhosts.example.org.',
      type: RRType.A,
      status: 'YXDOMAIN',
      want: { answer: [], authority: [] },
    },
  ]
  const below = answering((tx) => {
    tx.response.rcode = 6
    return 6
  })
  const handler = new SetUp(local, 'local').handler(below)
  for (const { name, type, status, want } of table) {
    const shown = await show(handler, transaction({ name, type }))
    t.equal(shown.status, status, `${name} ${type}`)
    t.strictSame({ answer: shown.answer, authority: shown.authority }, want, `${name} ${type}`)
    const chaos = transaction({ name, type, class: RRClass.CH })
    t.match(await show(handler, chaos), { status: 'YXDOMAIN', answer: [] }, `${name} in class CH`)
  }
})

t.test('names around localhost are counted, across a reload too', async (t) => {
  const setUp = new SetUp(local, 'local')
  const handler = setUp.handler(answering(() => 0))
  await setUp.start()
  for (const name of ['a.localhost.', 'localhost.example.org.', 'localhost.', 'example.org.']) {
    handler.serve(transaction({ name }))
  }
  t.equal(await setUp.metric('coredns_local_localhost_requests_total'), 2)
  handler.serve(transaction({ name: 'b.localhost.' }))
  await setUp.stop()
  t.equal(await setUp.metric('coredns_local_localhost_requests_total'), 3)
})

t.test('localhost_prefix off leaves names that begin with localhost to others', async (t) => {
  const below = answering((tx) => {
    tx.response.rcode = Rcode.REFUSED
    return Rcode.REFUSED
  })
  for (const [setting, want] of [
    ['on', 'NOERROR'],
    ['off', 'REFUSED'],
  ] as const) {
    const setUp = new SetUp(local, `local {\n localhost_prefix ${setting}\n}`)
    const handler = setUp.handler(below)
    const statusOf = async (name: string) => (await show(handler, transaction({ name }))).status
    t.equal(await statusOf('localhost.example.org.'), want, setting)
    for (const name of ['a.localhost.', 'localhost.', 'localhost.localhost.']) {
      t.equal(await statusOf(name), 'NOERROR', `${name} ${setting}`)
    }
    t.equal(await statusOf('example.org.'), 'REFUSED', setting)
  }
})

t.test('takes no argument', async (t) => {
  t.match(setupError(local, 'local x'), 'Wrong argument count')
})
