import t from 'tap'
import { RRType } from '../../../src/dns/iana/index.ts'
import { printName } from '../../../src/dns/name/name.ts'
import { errorReport } from '../../../src/plugins/error-report/setup.ts'
import { SetUp } from '../../support/setup.ts'
import { answering, type Question, show, transaction } from '../../support/transaction.ts'

const PASSED = 9
const passed = answering(() => PASSED)
const RECEIVE = 'error-report {\nreceive\n}'

function asking(corefile: string, zones: readonly string[] = ['agent.example.']) {
  const c = new SetUp(errorReport, corefile, zones)
  const handler = c.handler(passed)
  return { c, ask: (question: Question) => ({ handler, tx: transaction(question) }) }
}

t.test('the agent in replies', async (t) => {
  const { ask } = asking('error-report ER.example.net', ['example.org.'])
  const table = [
    { name: 'www.example.org.', payloadOctets: 1232, want: 'er.example.net.' },
    { name: 'www.example.org.', want: undefined },
    { name: '_er.1.a.7._er.er.example.net.', payloadOctets: 1232, want: undefined },
  ]
  for (const { want, ...question } of table) {
    const { handler, tx } = ask(question)
    t.equal(await handler.serve(tx), PASSED)
    const { reportAgent } = tx.response
    t.equal(reportAgent === null ? undefined : printName(reportAgent), want, question.name)
  }
})

t.test('reports', async (t) => {
  const { c, ask } = asking(RECEIVE)

  const table = [
    // The example of RFC 9567 section 6.1.1.
    {
      name: '_er.1.broken.test.7._er.agent.example.',
      want: 'received',
      log: '7 for broken.test. A',
    },
    {
      name: '_ER.1.broken.test.7._Er.agent.example.',
      want: 'received',
      log: '7 for broken.test. A',
    },
    { name: '_er.48.22._er.agent.example.', want: 'received', log: '22 for . DNSKEY' },
    { name: '_er.1.broken.test.7._er.agent.example.', type: RRType.A, want: 'empty' },
    { name: '_er.1.broken.test.65536._er.agent.example.', want: 'empty' },
    { name: '_er.x.broken.test.7._er.agent.example.', want: 'empty' },
    { name: '_er.1._er.agent.example.', want: 'empty' },
    { name: '7._er.agent.example.', want: 'empty' },
    { name: '_er.agent.example.', want: 'empty' },
    { name: 'agent.example.', want: 'passed' },
    { name: 'www.agent.example.', want: 'passed' },
    { name: '_er.1.broken.test.7._er.other.example.', want: 'passed' },
  ]
  for (const { name, type = RRType.TXT, want, log } of table) {
    c.lines.length = 0
    const { handler, tx } = ask({ name, type, tcp: true })
    const status = await handler.serve(tx)
    const shown = status === PASSED ? 'passed' : tx.response.count === 0 ? 'empty' : 'received'
    t.equal(shown, want, name)
    t.equal(c.lines.length, log === undefined ? 0 : 1, name)
    if (log !== undefined) t.match(c.lines[0], `a resolver reports error ${log}`)
  }
  const { handler, tx } = ask({ name: '_er.1.broken.test.7._er.agent.example.', type: RRType.TXT })
  const overUdp = await show(handler, tx)
  t.ok(tx.response.truncated, 'over UDP: come back over TCP')
  t.strictSame(overUdp.answer, [])
})

t.test('a name in a report cannot forge lines, and lines are bounded', async (t) => {
  const { c, ask } = asking(RECEIVE)
  for (let i = 0; i < 100; i++) {
    const { handler, tx } = ask({
      name: `_er.1.a\\010[INFO]\\027.7._er.agent.example.`,
      type: RRType.TXT,
      tcp: true,
    })
    await handler.serve(tx)
  }
  t.equal(c.lines.length, 10)
  for (const line of c.lines) t.match(line, /^[ -~]*$/)
})

t.test('invalid lines', (t) => {
  const table: [string, RegExp][] = [
    ['error-report', /Corefile:1 .*needs an agent, or a block with receive/],
    ['error-report a.example b.example', /Wrong argument count/],
    ['error-report .', /invalid agent "\."/],
    ['error-report a..b', /invalid agent/],
    ['error-report {\nrecieve\n}', /unknown property.*receive/],
    ['error-report a.example\nerror-report b.example', /only be used once/],
  ]
  for (const [corefile, message] of table) {
    t.throws(() => new SetUp(errorReport, corefile, ['agent.example.']), { message }, corefile)
  }
  const root = /not for the root/
  t.throws(() => new SetUp(errorReport, RECEIVE, ['.']), { message: root })
  t.end()
})
