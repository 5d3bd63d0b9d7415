import t from 'tap'
import { RRType } from '../../../src/dns/iana/index.ts'
import { DROP } from '../../../src/plugin/handler.ts'
import { erratic } from '../../../src/plugins/erratic/setup.ts'
import { FakeTimers, SetUp, setupError } from '../../support/setup.ts'
import { show, transaction } from '../../support/transaction.ts'

/** What happens to eight queries: `-` dropped, `t` truncated, `d` late, `.` answered. */
const TABLE = [
  { options: '', want: '-.-.-.-.' },
  { options: 'drop 3', want: '-..-..-.' },
  { options: 'drop', want: '-.-.-.-.' },
  { options: 'drop 0', want: '........' },
  { options: 'drop 1', want: '--------' },
  { options: 'truncate', want: 't.t.t.t.' },
  { options: 'truncate 3', want: 't..t..t.' },
  { options: 'delay', want: 'd.d.d.d.' },
  { options: 'delay 4 5ms', want: 'd...d...' },
  { options: 'delay 3 5ms\n truncate 5', want: 'dt..d.dt' },
  { options: 'drop 2\n truncate 4', want: '-.-.-.-.' },
]

t.test('which replies are dropped, cut or late', async (t) => {
  for (const { options } of TABLE) t.equal(setupError(erratic, `erratic {\n ${options}\n}`), '')
  for (const { options, want } of TABLE.filter((row) => !row.options.includes('\n truncate 5'))) {
    const timers = new FakeTimers()
    const handler = new SetUp(erratic, `erratic {\n ${options}\n}`, undefined, { timers }).handler()
    let found = ''
    for (let i = 0; i < want.length; i++) {
      const tx = transaction({ name: 'example.org.' })
      const status = handler.serve(tx)
      if (typeof status !== 'number') {
        await timers.advance(options.includes('5ms') ? 5 : 100)
        t.equal(await status, 0)
        found += 'd'
      } else if (status === DROP) found += '-'
      else found += tx.response.truncated ? 't' : '.'
    }
    t.equal(found, want, options)
  }
})

t.test('a late reply may be cut too', async (t) => {
  const timers = new FakeTimers()
  const options = 'erratic {\n delay 1 10s\n truncate 1\n}'
  const handler = new SetUp(erratic, options, undefined, { timers }).handler()
  const tx = transaction({ name: 'example.org.' })
  const status = handler.serve(tx)
  let isDone = false
  void Promise.resolve(status).then(() => (isDone = true))
  await timers.advance(9999)
  t.notOk(isDone)
  await timers.advance(1)
  t.equal(await status, 0)
  t.ok(tx.response.truncated)
})

t.test('answers', async (t) => {
  const table = [
    { type: RRType.A, status: 'NOERROR', answer: ['a.example.org. 0 IN A c0000235'] },
    {
      type: RRType.AAAA,
      status: 'NOERROR',
      answer: ['a.example.org. 0 IN AAAA 20010db8000000000000000000000053'],
    },
    { type: RRType.TXT, status: /^SERVFAIL/, answer: [] },
    { type: RRType.AXFR, status: /^SERVFAIL/, answer: [] },
  ]
  for (const { type, status, answer } of table) {
    const handler = new SetUp(erratic, 'erratic {\n drop 0\n}').handler()
    const shown = await show(handler, transaction({ name: 'a.Example.org.', type }))
    t.match(shown.status, status)
    t.strictSame(shown.answer, answer)
  }
})

t.test('arguments', async (t) => {
  const table = [
    { given: 'erratic 2', want: 'Corefile:1 .* Wrong argument count' },
    { given: 'erratic {\n drop -1\n}', want: 'Corefile:2 .* invalid amount "-1"' },
    { given: 'erratic {\n drop 1 2\n}', want: 'Corefile:2 .* Wrong argument count' },
    { given: 'erratic {\n truncate x\n}', want: 'Corefile:2 .* invalid amount "x"' },
    { given: 'erratic {\n truncate 2147483648\n}', want: 'Corefile:2 .* invalid amount' },
    { given: 'erratic {\n delay 2 fast\n}', want: 'Corefile:2 .* invalid duration "fast"' },
    { given: 'erratic {\n delay 2 -5s\n}', want: 'Corefile:2 .* invalid duration "-5s"' },
    { given: 'erratic {\n dropp\n}', want: "Corefile:2 .* unknown property 'dropp'.*drop" },
  ]
  for (const { given, want } of table) t.match(setupError(erratic, given), new RegExp(want), given)
})
