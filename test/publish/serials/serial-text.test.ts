import t from 'tap'
import type { SerialEntry } from '../../../src/publish/serials/serial-index.ts'
import { printSerials, scanSerials, UNSAVED_MAX } from '../../../src/publish/serials/serial-text.ts'

const ENTRIES: readonly SerialEntry[] = [
  { zone: 'k.example.com.', place: 'dns://k.example.com.:53@/', digest: '1a-2b', serial: 1 },
  { zone: 'kdrnt.', place: '-', digest: '3c-4d', serial: 0xffffffff },
]

t.test('what was printed is read again', async (t) => {
  for (const entries of [ENTRIES, []]) {
    t.strictSame(scanSerials(printSerials('clean', entries)), entries)
  }
})

t.test('a file that was open tells of no content, and of the highest serials', async (t) => {
  t.strictSame(scanSerials(printSerials('open', ENTRIES)), [
    { ...ENTRIES[0], digest: '?', serial: 1 + UNSAVED_MAX },
    { ...ENTRIES[1], digest: '?', serial: UNSAVED_MAX - 1 },
  ])
})

t.test('a file that is cut off anywhere is ours, and refused', async (t) => {
  const text = printSerials('clean', ENTRIES)
  for (let length = 0; length < text.length; length++) {
    const got = scanSerials(text.slice(0, length))
    t.match(got, { kind: 'refused', isForeign: false }, `${length} octets`)
  }
})

t.test('a file with any octet changed is refused', async (t) => {
  const octets = Buffer.from(printSerials('clean', ENTRIES))
  for (let i = 0; i < octets.length; i++) {
    octets[i]! ^= 1
    t.match(scanSerials(octets.toString('latin1')), { kind: 'refused' }, `octet ${i}`)
    octets[i]! ^= 1
  }
})

t.test('why files are refused', async (t) => {
  const later = printSerials('clean', ENTRIES).replace('serials 1', 'serials 2')
  const table = [
    { given: '', want: { reason: /empty/, isForeign: false } },
    { given: 'root:x:0:0\n', want: { reason: /something else/, isForeign: true } },
    { given: later, want: { reason: /version is "2", not 1/, isForeign: true } },
    {
      given: printSerials('clean', [{ ...ENTRIES[0]!, serial: 0 }]),
      want: { reason: /none of a serials file/, isForeign: false },
    },
  ]
  for (const { given, want } of table) t.match(scanSerials(given), want, given.slice(0, 20))
})
