import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readAtMost } from '../../src/base/read.ts'

t.test('reads all, or reports that it is too much', async (t) => {
  const text = 'x'.repeat(100_000)
  const file = join(t.testdir({ file: text }), 'file')
  const read = (path: string, octetsMax: number) => {
    const descriptor = openSync(path, 'r')
    try {
      return readAtMost(descriptor, octetsMax)?.toString()
    } finally {
      closeSync(descriptor)
    }
  }
  t.equal(read(file, 100_000), text)
  t.equal(read(file, 99_999), undefined)
  t.equal(read('/dev/null', 0), '')
  t.equal(read('/dev/zero', 1_000_000), undefined, 'also what has no end')
})
