import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'

const PAGE = 'docs/reference/log-lines.md'
/** Calls of a logger. A text that is built elsewhere has its level in a comment before it. */
const CALL =
  /(?:\blog(?:ger)?\??\.(info|warning|error)\(|\/\* (info|warning|error) \*\/)\s*(`(?:[^`\\]|\\.)*`|'(?:[^'\\]|\\.)*')/gi

/** The text of a literal of the source, with `…` for parts that vary. */
function textOf(literal: string): string {
  const body = literal.slice(1, -1).replaceAll('\\`', '`')
  let text = ''
  let depth = 0
  for (let i = 0; i < body.length; i++) {
    if (depth === 0 && body.startsWith('${', i)) {
      text += '…'
      depth = 1
      i++
    } else if (depth === 0) text += body[i]
    else if (body[i] === '{') depth++
    else if (body[i] === '}') depth--
  }
  return text.replaceAll(/…+/g, '…')
}

/** A line without what says nothing: `…: …` is any line. */
const hasText = (text: string): boolean => /[a-z]{2}/i.test(text)

const inSource = new Map<string, string>()
for (const file of readdirSync('src', { recursive: true, encoding: 'utf8' })) {
  if (!file.endsWith('.ts')) continue
  for (const [, called, noted, literal] of readFileSync(`src/${file}`, 'utf8').matchAll(CALL)) {
    const text = textOf(literal!)
    const level = (called ?? noted)!.toLowerCase()
    if (hasText(text)) inSource.set(`${level} ${text}`, file)
  }
}

const ROW = /^\| (info|warning|error) \| (`{1,2})(.*?)\2 \| (.+) \|$/gm
const onPage = [...readFileSync(PAGE, 'utf8').matchAll(ROW)]
  .map(([, level, , text]) => ({ level: level!, text: text! }))
  .filter(({ text }) => hasText(text))
  .map(({ level, text }) => `${level} ${text}`)

t.test('the page has each line of the source, and no other', async (t) => {
  t.ok(inSource.size > 90, 'the lines were found')
  for (const [line, file] of inSource) t.ok(onPage.includes(line), `${file}: ${line}`)
  for (const line of onPage) t.ok(inSource.has(line), `${PAGE}: ${line}`)
  t.equal(new Set(onPage).size, onPage.length, 'no line twice')
})
