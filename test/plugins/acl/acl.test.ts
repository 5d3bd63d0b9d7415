import t from 'tap'
import { RRType } from '../../../src/dns/iana/index.ts'
import { acl } from '../../../src/plugins/acl/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { answering, type Question, transaction } from '../../support/transaction.ts'

const PASSED = 9

function decide(corefile: string, question: Partial<Question>): string {
  const handler = new SetUp(acl, corefile).handler(answering(() => PASSED))
  const tx = transaction({ name: 'www.example.org.', from: '192.168.1.7', ...question })
  const status = handler.serve(tx)
  if (status === PASSED) return 'allow'
  if (status === -1) return 'drop'
  if (tx.response.rcode !== status || !tx.response.forceEdns) return 'inconsistent'
  return `${status === 5 ? 'block' : 'filter'} ede ${tx.response.edeCode}`
}

t.test('a policy behind another one that matches all of its queries is a warning', async (t) => {
  const table: { given: string; warned: string }[] = [
    { given: 'allow\n block net 192.0.2.0/24', warned: '3' },
    { given: 'block net 192.0.2.0/24\n allow net 192.0.2.7', warned: '3' },
    { given: 'drop net 192.0.2.0/24 2001:db8::/32\n allow type A net 192.0.2.7', warned: '3' },
    { given: 'block net *\n allow net 192.0.2.7\n allow net 192.0.2.8', warned: '3 4' },
    { given: 'allow net 192.0.2.7\n block net 192.0.2.0/24', warned: '' },
    { given: 'block type A net 192.0.2.0/24\n allow net 192.0.2.7', warned: '' },
    { given: 'block net 192.0.2.0/24\n allow net 192.0.2.7 192.0.3.7', warned: '' },
    { given: 'block net 192.0.2.0/24\n block net 192.0.2.7', warned: '' },
    { given: 'block net 0.0.0.0/0\n allow net ::1', warned: '' },
    { given: 'allow net 192.0.2.7\n block', warned: '' },
  ]
  for (const { given, warned } of table) {
    const { warnings } = new SetUp(acl, `acl {\n ${given}\n}`)
    t.equal(warnings.map((line) => line.split(':')[0]).join(' '), warned, given)
    for (const line of warnings) t.match(line, /never applies.* line 2 .*move this one above it$/)
  }
})

t.test('the first policy that matches decides', async (t) => {
  const table: { name: string; given: string; question?: Partial<Question>; want: string }[] = [
    { name: 'nothing matches', given: 'block net 10.0.0.0/8', want: 'allow' },
    { name: 'block', given: 'block', want: 'block ede 15' },
    { name: 'filter', given: 'FILTER net *', want: 'filter ede 17' },
    { name: 'drop', given: 'drop type *', want: 'drop' },
    {
      name: 'an exception before the rule',
      given: 'allow net 192.168.1.0/24\n block net 192.168.0.0/16',
      want: 'allow',
    },
    {
      name: 'an exception behind the rule has no effect',
      given: 'block net 192.168.0.0/16\n allow net 192.168.1.0/24',
      want: 'block ede 15',
    },
    { name: 'a lone address', given: 'block net 192.168.1.7', want: 'block ede 15' },
    { name: 'a lone address beside it', given: 'block net 192.168.1.8', want: 'allow' },
    { name: 'type and net both must match', given: 'block type AAAA net *', want: 'allow' },
    { name: 'types add up', given: 'block type AAAA A net *', want: 'block ede 15' },
    {
      name: 'sections in any order and any case',
      given: 'block NET 10.0.0.0/8 192.168.0.0/16 Type MX A',
      want: 'block ede 15',
    },
    {
      name: 'IPv6',
      given: 'block net 2001:db8::/32',
      question: { from: '2001:db8::1' },
      want: 'block ede 15',
    },
    {
      name: 'a star covers IPv6',
      given: 'drop net *',
      question: { from: '2001:db8::1' },
      want: 'drop',
    },
    {
      name: 'a type by number',
      given: 'block type TYPE65280',
      question: { type: 65280 },
      want: 'block ede 15',
    },
    { name: 'an empty block', given: '', want: 'allow' },
  ]
  for (const { name, given, question, want } of table) {
    t.equal(decide(`acl {\n ${given}\n}`, question ?? {}), want, name)
  }
})

t.test('zones and several directives', async (t) => {
  const other = 'acl other.example.org {\n block\n}'
  t.equal(decide(other, {}), 'allow')
  t.equal(decide(other, { name: 'a.other.example.org.' }), 'block ede 15')
  t.equal(decide(`${other}\nacl {\n drop\n}`, {}), 'drop')
  t.equal(decide('acl {\n allow\n}\nacl {\n drop\n}', {}), 'allow', 'allow ends it')
})

t.test('the ECS address plays no part', async (t) => {
  const handler = new SetUp(acl, 'acl {\n block net 192.168.1.7\n}').handler(
    answering(() => PASSED),
  )
  const tx = transaction({ name: 'www.example.org.', from: '192.168.1.7' })
  tx.query.clientAddress.set([203, 0, 113, 1])
  tx.query.clientIsEcs = true
  t.equal(handler.serve(tx), 5)
})

t.test('decisions are counted', async (t) => {
  const setUp = new SetUp(acl, 'acl a.example.org example.org {\n block type A\n drop type MX\n}')
  const handler = setUp.handler(answering(() => 0))
  await setUp.start()
  const ask = (name: string, type: number) =>
    handler.serve(transaction({ name, type, zone: 'example.org.', view: 'inside' }))
  ask('x.a.example.org.', RRType.A)
  ask('x.a.example.org.', RRType.A)
  ask('b.example.org.', RRType.MX)
  ask('b.example.org.', RRType.TXT)
  const labels = (zone: string) => `{server="dns://:53",zone="${zone}",view="inside"}`
  t.equal(await setUp.metric(`coredns_acl_blocked_requests_total${labels('a.example.org.')}`), 2)
  t.equal(await setUp.metric(`coredns_acl_dropped_requests_total${labels('example.org.')}`), 1)
  t.equal(
    await setUp.metric('coredns_acl_allowed_requests_total{server="dns://:53",view="inside"}'),
    1,
  )
  ask('b.example.org.', RRType.TXT)
  await setUp.stop()
  t.equal(
    await setUp.metric('coredns_acl_allowed_requests_total{server="dns://:53",view="inside"}'),
    2,
  )
})

t.test('bad lines', async (t) => {
  const table = [
    {
      given: 'reject',
      want: `unexpected token "reject"; expect 'allow', 'block', 'filter' or 'drop'`,
    },
    { given: 'block A', want: `unexpected token "A"; expect 'type | net'` },
    { given: 'block type', want: 'no token specified in "type" section' },
    { given: 'block type net *', want: 'no token specified in "type" section' },
    { given: 'block type a', want: 'unexpected token "a"; expect legal QTYPE' },
    { given: 'block net 192.168.1', want: 'illegal CIDR notation "192.168.1/32"' },
    { given: 'block net ::/129', want: 'illegal CIDR notation "::/129"' },
  ]
  for (const { given, want } of table) t.match(setupError(acl, `acl {\n ${given}\n}`), want, given)
})
