import { createHash } from 'node:crypto'
import t from 'tap'
import { openText, sealText } from '../../../../src/base/persist/sealed-text.ts'
import type { SerialEntry } from '../../../../src/publish/zone/serials/serial-index.ts'
import {
  printSerials,
  RESERVED_COMMITS,
  SERIALS,
} from '../../../../src/publish/zone/serials/serial-text.ts'

const ENTRIES: readonly SerialEntry[] = [
  { zone: 'k.example.com.', place: 'dns://k.example.com.:53@/', digest: '1a-2b', serial: 1 },
  { zone: 'kdrnt.', place: '-', digest: '3c-4d', serial: 0xffffffff },
]
const RAISED = [
  { ...ENTRIES[0], digest: '?', serial: 1 + RESERVED_COMMITS },
  { ...ENTRIES[1], digest: '?', serial: RESERVED_COMMITS - 1 },
]

/** A file as Sextant 0.1.0 writes it. */
function oldFile(state: string): string {
  const text = `sextant serials 1 ${state}
k.example.com. dns://k.example.com.:53@/ 1a-2b 1
kdrnt. - 3c-4d 4294967295
`
  return `${text}sha256 ${createHash('sha256').update(text).digest('hex')}\n`
}

function scan(text: string) {
  const opened = openText(text, SERIALS)
  return opened.kind === 'refused' ? opened : SERIALS.scan(opened.lines, opened.mark)
}

t.test('an exact file is read as it was printed', async (t) => {
  for (const entries of [ENTRIES, []]) {
    const text = [...sealText(SERIALS, printSerials(entries), 'clean')].join('')
    t.strictSame(scan(text), entries)
  }
})

t.test('a file with a reservation has no digests, and the highest serials', async (t) => {
  const text = [...sealText(SERIALS, printSerials(ENTRIES), 'open')].join('')
  t.strictSame(scan(text), RAISED)
})

t.test('files of earlier versions are read, and earlier versions read ours', async (t) => {
  t.strictSame(scan(oldFile('clean')), ENTRIES)
  t.strictSame(scan(oldFile('open')), RAISED)
  for (const mark of ['clean', 'open']) {
    t.equal([...sealText(SERIALS, printSerials(ENTRIES), mark)].join(''), oldFile(mark))
  }
})

t.test('lines of another format are refused', async (t) => {
  const table = ['z. p d 0', 'z. p d 4294967296', 'z. p d', 'z. p d 1 x', 'z.  d 1', '']
  for (const line of table) t.equal(SERIALS.scan([line], 'clean'), undefined, line)
  t.match(scan(oldFile('closed')), { kind: 'refused', reason: /first line/, isForeign: false })
})
