import t from 'tap'
import { repeatsRepetition } from '../../../src/plugins/view/pattern.ts'

t.test('patterns that may take exponential time are recognised', async (t) => {
  const table = [
    { pattern: '^(([a-z])+.)+[A-Z]([a-z])+$', want: true },
    { pattern: '(a+)+', want: true },
    { pattern: '(a*)*b', want: true },
    { pattern: '((ab+)c)*', want: true },
    { pattern: '(a+){2,}', want: true },
    { pattern: '(?:a{1,}b)+', want: true },
    { pattern: '(a+){2}', want: false },
    { pattern: '^[a-z]+\\.example\\.com\\.$', want: false },
    { pattern: '^(www|api)+\\.example', want: false },
    { pattern: '^(a+)b+', want: false },
    { pattern: '\\(a+\\)+', want: false },
    { pattern: '([+*])+', want: false },
    { pattern: '(\\+)+', want: false },
  ]
  for (const { pattern, want } of table) t.equal(repeatsRepetition(pattern), want, pattern)
})
