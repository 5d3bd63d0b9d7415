import t from 'tap'
import { createLogger, escapeControls } from '../../../src/base/telemetry/log.ts'

/** Controls, the line and paragraph separators, and format characters: zero-width and bidirectional ones. */
const CONTROLS = /^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]$/u

t.test('no text forges a line, commands a terminal or reorders what is read', (t) => {
  for (let code = 0; code < 0x110000; code++) {
    if (code >= 0xd800 && code < 0xe000) continue
    const text = String.fromCodePoint(code)
    const isControl = CONTROLS.test(text)
    const hex = code.toString(16)
    const long = code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\u{${hex}}`
    const want = code < 0x100 ? `\\x${hex.padStart(2, '0')}` : long
    const got = escapeControls(`a${text}b`)
    if (got !== `a${isControl ? want : text}b`) t.fail(`U+${hex}: ${encodeURI(got)}`)
  }
  const lines: string[] = []
  const log = createLogger(
    'plugin/x',
    (line) => lines.push(line),
    () => true,
  )
  log.error('a\n[INFO] b\u202ec\u200bd\u2066', 'x')
  t.strictSame(lines, ['[ERROR] plugin/x: a\\x0a[INFO] b\\u202ec\\u200bd\\u2066'])
  t.end()
})
