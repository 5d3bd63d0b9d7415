import t from 'tap'
import { createLogger, escapeControls } from '../../src/telemetry/log.ts'

/** C0, DEL and C1, the line and paragraph separators, the bidirectional controls. */
const CONTROLS = [
  [0x00, 0x1f],
  [0x7f, 0x9f],
  [0x2028, 0x2029],
  [0x61c, 0x61c],
  [0x200e, 0x200f],
  [0x202a, 0x202e],
  [0x2066, 0x2069],
] as const

t.test('no text forges a line, commands a terminal or reorders what is read', (t) => {
  for (let code = 0; code < 0x10000; code++) {
    if (code >= 0xd800 && code < 0xe000) continue
    const text = String.fromCharCode(code)
    const isControl = CONTROLS.some(([first, last]) => code >= first && code <= last)
    const hex = code.toString(16)
    const want = code < 0x100 ? `\\x${hex.padStart(2, '0')}` : `\\u${hex.padStart(4, '0')}`
    const got = escapeControls(`a${text}b`)
    if (got !== `a${isControl ? want : text}b`) t.fail(`U+${hex}: ${encodeURI(got)}`)
  }
  const lines: string[] = []
  const log = createLogger(
    'plugin/x',
    (line) => lines.push(line),
    () => true,
  )
  log.error('a\n[INFO] b\u202ec')
  t.strictSame(lines, ['[ERROR] plugin/x: a\\x0a[INFO] b\\u202ec'])
  t.end()
})
