import t from 'tap'
import { IgnoredLog } from '../../src/sources/ignored-log.ts'

function stage() {
  const lines: string[] = []
  let printed = 0
  const note = (text: string): void => void lines.push(text)
  const log = { debug: note, info: note, warning: note, error: note }
  const ignored = new IgnoredLog()
  const put = (key: string, ...messages: readonly string[]): void => {
    const problems = messages.map((message) => ({ path: [], message }))
    ignored.note(key, problems, ({ message }) => {
      printed++
      return `${key}: ${message}`
    })
  }
  const flush = (): string[] => {
    ignored.flush(log)
    return lines.splice(0)
  }
  return { ignored, put, flush, printed: () => printed }
}

t.test('a hundred thousand records with one typo are one line', async (t) => {
  const { put, flush, printed } = stage()
  for (let i = 0; i < 100_000; i++) put(`ns/${i}`, 'property "wieght"')
  t.strictSame(flush(), ['ns/0: property "wieght"; the same in 99999 more records'])
  t.equal(printed(), 1, 'places are looked up for what is logged alone')
  for (let i = 0; i < 100_000; i++) put(`ns/${i}`, 'property "wieght"')
  t.strictSame(flush(), [], 'read again')
})

t.test('new findings are logged, and corrected ones that return', async (t) => {
  const { ignored, put, flush } = stage()
  put('ns/a', 'x')
  t.strictSame(flush(), ['ns/a: x'])
  put('ns/a', 'x', 'y')
  t.strictSame(flush(), ['ns/a: y'])
  put('ns/a')
  put('ns/a', 'x')
  t.strictSame(flush(), ['ns/a: x'])
  ignored.forget('ns/a')
  put('ns/a', 'x')
  t.strictSame(flush(), ['ns/a: x'])
  for (let i = 0; i < 25; i++) put('ns/b', ...Array.from({ length: i + 1 }, (_, n) => `z${n}`))
  const lines = flush()
  t.equal(lines.length, 21)
  t.match(lines.at(-1), /^and 5 more kinds of fields that are ignored/)
})
