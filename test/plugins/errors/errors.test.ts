import t from 'tap'
import { Rcode } from '../../../src/dns/iana/index.ts'
import { errors } from '../../../src/plugins/errors/setup.ts'
import { FakeTimers, SetUp, setupError } from '../../support/setup.ts'
import { answering, transaction } from '../../support/transaction.ts'

const LINES_MAX = 100
const LINES_PERIOD_MS = 10_000

function harness(corefile: string) {
  const timers = new FakeTimers()
  const setUp = new SetUp(errors, corefile, undefined, { timers })
  const fail = async (error: string, late = false) => {
    const below = answering((tx) => {
      tx.response.error = error
      return Rcode.SERVFAIL
    }, late)
    return setUp.factories[0]!(below).serve(transaction({ name: 'Example.org.' }))
  }
  return { setUp, timers, fail }
}

t.test('an error is one line', async (t) => {
  const { setUp, fail } = harness('errors')
  t.equal(await fail('no next plugin found'), Rcode.SERVFAIL)
  await fail('with\na break', true)
  await fail('')
  t.strictSame(setUp.lines, [
    '[ERROR] plugin/errors: 2 example.org. A: no next plugin found',
    '[ERROR] plugin/errors: 2 example.org. A: with\\x0aa break',
  ])
})

t.test('errors that match are counted for a while', async (t) => {
  const { setUp, timers, fail } = harness('errors {\n consolidate 30s timeout$\n}')
  await fail('i/o timeout')
  await timers.advance(20_000)
  await fail('i/o timeout')
  await fail('else')
  t.strictSame(setUp.lines, ['[ERROR] plugin/errors: 2 example.org. A: else'])
  await timers.advance(10_000)
  t.equal(
    setUp.lines.at(-1),
    `[ERROR] plugin/errors: 2 errors like 'timeout$' occurred in last 30s`,
  )
  await timers.advance(60_000)
  t.equal(setUp.lines.length, 2, 'a period without errors is no line')
  await fail('i/o timeout')
  await timers.advance(30_000)
  t.match(setUp.lines.at(-1), "1 errors like 'timeout$' occurred in last 30s")
})

t.test('a pattern that takes a backtracking search practically forever', async (t) => {
  const { setUp, timers, fail } = harness('errors {\n consolidate 30s (a|a)*b$ info\n}')
  await fail('a'.repeat(500))
  await fail(`${'a'.repeat(1000)}b`)
  await timers.advance(30_000)
  t.match(setUp.lines.at(-1), "[INFO] plugin/errors: 1 errors like '(a|a)*b$'")
})

t.test('a flood of errors is few lines, and their number', async (t) => {
  const { setUp, timers, fail } = harness('errors')
  await setUp.start()
  for (let i = 0; i < 5000; i++) await fail('TSIG: BADSIG\n[ERROR] forged')
  t.equal(setUp.lines.length, LINES_MAX)
  t.notMatch(setUp.lines.join(''), '\n')
  await timers.advance(LINES_PERIOD_MS)
  const summary = '[ERROR] plugin/errors: errors not logged: 4900 in the last 10s'
  t.equal(setUp.lines.at(-1), summary)
  await timers.advance(LINES_PERIOD_MS)
  t.equal(setUp.lines.length, LINES_MAX + 1, 'once')
  setUp.clock.pass(LINES_PERIOD_MS)
  await fail('another period')
  t.match(setUp.lines.at(-1), 'another period')
  for (let i = 0; i < 200; i++) await fail('again')
  await setUp.stop()
  t.match(setUp.lines.at(-1), 'errors not logged: 101 ')
})

t.test('levels, show_first, first pattern that matches', async (t) => {
  const options = 'consolidate 1m (?i)TIMEOUT warning show_first\n consolidate 2s .* info'
  const { setUp, timers, fail } = harness(`errors {\n ${options}\n}`)
  await fail('timeout 1')
  t.strictSame(setUp.lines, ['[WARNING] plugin/errors: 2 example.org. A: timeout 1'])
  await timers.advance(60_000)
  t.equal(setUp.lines.length, 1, 'one that was shown has no summary')
  await fail('timeout 2')
  await fail('timeout 3')
  await fail('other')
  await timers.advance(60_000)
  t.strictSame(setUp.lines.slice(2), [
    "[INFO] plugin/errors: 1 errors like '.*' occurred in last 2s",
    "[WARNING] plugin/errors: 2 errors like '(?i)TIMEOUT' occurred in last 1m0s",
  ])
})

t.test('counts are written when the instance ends', async (t) => {
  const { setUp, timers, fail } = harness('errors {\n consolidate 1h .*\n}')
  await fail('a')
  await setUp.stop()
  t.strictSame(setUp.lines, ["[ERROR] plugin/errors: 1 errors like '.*' occurred in last 1h0m0s"])
  t.equal(timers.count, 0)
  await fail('b')
  t.match(setUp.lines.at(-1), 'A: b', 'later errors are logged one by one')
})

t.test('bad lines', async (t) => {
  const table = [
    { given: 'errors errors.txt', want: 'invalid log file: errors.txt' },
    { given: 'errors a b', want: 'Wrong argument count' },
    { given: 'errors\nerrors', want: 'this plugin can only be used once per Server Block' },
    { given: 'errors {\n visible\n}', want: 'Unknown field visible' },
    { given: 'errors {\n consolidate\n}', want: 'Wrong argument count' },
    { given: 'errors {\n consolidate 1m\n}', want: 'Wrong argument count' },
    {
      given: 'errors {\n consolidate 1m .* extra\n}',
      want: 'unknown log level argument in consolidate: extra',
    },
    { given: 'errors {\n consolidate abc .*\n}', want: 'time: invalid duration "abc"' },
    { given: 'errors {\n consolidate 1 .*\n}', want: 'time: invalid duration "1"' },
    { given: 'errors {\n consolidate 1m ())\n}', want: 'invalid regular expression' },
    { given: 'errors {\n consolidate 1m .* info error\n}', want: 'Wrong argument count' },
  ]
  for (const { given, want } of table) t.match(setupError(errors, given), want, given)
  for (const given of ['errors stdout', 'errors {\n stacktrace\n}']) {
    t.equal(setupError(errors, given), '', given)
  }
})
