import t from 'tap'
import { openText, sealText } from '../../../src/base/persist/sealed-text.ts'

const FORM = { what: 'things', version: '1' }

t.test('lines are sealed and opened', async (t) => {
  for (const lines of [[], ['a'], ['a', '', 'sha256 b']]) {
    const text = [
      ...sealText(
        FORM,
        lines.map((line) => `${line}\n`),
      ),
    ].join('')
    t.strictSame(openText(text, FORM), { kind: 'opened', mark: '', lines })
  }
})

t.test('whatever octet is lost or another, the seal is broken', async (t) => {
  const text = [...sealText(FORM, ['one\n', 'two\n'])].join('')
  for (let at = 0; at < text.length; at++) {
    const flipped = `${text.slice(0, at)}${text[at] === 'x' ? 'y' : 'x'}${text.slice(at + 1)}`
    t.match(openText(flipped, FORM), { kind: 'refused' }, `octet ${at} is another`)
    t.match(openText(text.slice(0, at), FORM), { kind: 'refused' }, `cut at ${at}`)
  }
})

t.test('a mark follows the version, if the form has marks', async (t) => {
  const form = { ...FORM, marks: ['clean', 'open'] }
  const text = [...sealText(form, ['one\n'], 'open')].join('')
  t.match(text, /^sextant things 1 open\none\nsha256 /)
  t.strictSame(openText(text, form), { kind: 'opened', mark: 'open', lines: ['one'] })
  const refused = { kind: 'refused', reason: /first line/, isForeign: false }
  t.match(openText(text, FORM), refused)
  t.match(openText([...sealText(form, [])].join(''), form), refused)
})
