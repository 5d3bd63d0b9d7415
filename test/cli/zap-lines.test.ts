import t from 'tap'
import { createLogger, type LogEntry, setLogForm } from '../../src/base/telemetry/log.ts'
import { zapLines } from '../../src/cli/zap-lines.ts'

const NONE = { encoder: '', timeEncoding: '', stacktraceLevel: '' }
const ENTRY: LogEntry = {
  level: 'WARNING',
  origin: '',
  text: 'a\n"b"',
  event: 'peer-failed',
  fields: { peer: '192.0.2.1' },
}
const NOW_MS = Date.UTC(2026, 8, 15, 8, 0, 0, 120)

t.test('lines as zap prints them', (t) => {
  t.equal(zapLines(NONE), undefined)
  const console = 'WARN\ta\\x0a"b"\t{"event":"peer-failed","peer":"192.0.2.1"}'
  const table = [
    [{ encoder: 'console' }, `2026-09-15T08:00:00Z\t${console}`],
    [{ timeEncoding: 'rfc3339' }, `2026-09-15T08:00:00Z\t${console}`],
    [{ timeEncoding: 'rfc3339nano' }, `2026-09-15T08:00:00.12Z\t${console}`],
    [{ timeEncoding: 'iso8601' }, `2026-09-15T08:00:00.120Z\t${console}`],
    [{ timeEncoding: 'epoch' }, `1789459200.12\t${console}`],
    [{ timeEncoding: 'millis' }, `1789459200120\t${console}`],
    [{ timeEncoding: 'nano' }, `1789459200120000000\t${console}`],
    [
      { encoder: 'json' },
      '{"level":"warn","ts":"2026-09-15T08:00:00Z","msg":"a\\n\\"b\\"","event":"peer-failed","peer":"192.0.2.1"}',
    ],
    [
      { encoder: 'json', timeEncoding: 'epoch' },
      '{"level":"warn","ts":1789459200.12,"msg":"a\\n\\"b\\"","event":"peer-failed","peer":"192.0.2.1"}',
    ],
  ] as const
  for (const [options, want] of table) {
    t.equal(zapLines({ ...NONE, ...options })!.print(ENTRY, NOW_MS), want, JSON.stringify(options))
  }
  t.end()
})

t.test('lines from a level on have the calls that led to them', (t) => {
  t.teardown(() => setLogForm(undefined))
  const lines: string[] = []
  const log = createLogger(
    '',
    (line) => lines.push(line),
    () => true,
  )
  const table = [
    { stacktraceLevel: 'info', want: [false, true, true, true] },
    { stacktraceLevel: 'error', want: [false, false, false, true] },
    { stacktraceLevel: 'panic', want: [false, false, false, false] },
    { stacktraceLevel: '', want: [false, false, false, false] },
  ]
  for (const { stacktraceLevel, want } of table) {
    setLogForm(zapLines({ ...NONE, encoder: 'json', stacktraceLevel }))
    lines.length = 0
    log.debug('a', 'x')
    log.info('a', 'x')
    log.warning('a', 'x')
    log.error('a', 'x')
    const stacks = lines.map((line) => (JSON.parse(line) as { stacktrace?: string }).stacktrace)
    t.strictSame(
      stacks.map((stack) => stack?.split('\n')[0]?.includes('zap-lines.test') === true),
      want,
      stacktraceLevel,
    )
  }
  t.end()
})
