import t from 'tap'
import { JSON_LINES } from '../../../src/base/telemetry/json-lines.ts'
import { createLogger, setLogForm } from '../../../src/base/telemetry/log.ts'

const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

t.test('lines in JSON have the fields of CoreDNS, an event and its data', (t) => {
  setLogForm(JSON_LINES)
  t.teardown(() => setLogForm(undefined))
  const lines: string[] = []
  const take = (line: string): void => void lines.push(line)
  const log = createLogger('plugin/file', take, () => true)
  log.debug('a', 'one')
  log.info('b', 'two', { zone: 'example.org.', serial: 7 })
  log.warning('c', 'three')
  createLogger('', take, () => false).error('d', 'four')
  createLogger('', take, () => false).debug('not printed', 'five')
  const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  for (const line of parsed) t.match(line.time, RFC_3339)
  t.strictSame(
    parsed.map(({ time, ...rest }) => rest),
    [
      { level: 'DEBUG', msg: 'a', plugin: 'file', event: 'one' },
      { level: 'INFO', msg: 'b', plugin: 'file', event: 'two', zone: 'example.org.', serial: 7 },
      { level: 'WARN', msg: 'c', plugin: 'file', event: 'three' },
      { level: 'ERROR', msg: 'd', event: 'four' },
    ],
  )
  t.end()
})

t.test('no text ends a line or its string, commands a terminal, or is lost', (t) => {
  for (const text of ['"', '\\', 'a\nb', '\u0000\u001b[2J', '\u007f\u009b\u2028', '\u202e\ufeff']) {
    const line = JSON_LINES.print(
      {
        level: 'INFO',
        origin: '',
        text,
        event: 'x',
        fields: { name: text },
      },
      0,
    )
    t.notMatch(line, /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u, encodeURI(text))
    const parsed = JSON.parse(line) as Record<string, unknown>
    t.equal(parsed.msg, text)
    t.equal(parsed.name, text)
    t.equal(parsed.time, '1970-01-01T00:00:00.000Z')
  }
  t.end()
})
