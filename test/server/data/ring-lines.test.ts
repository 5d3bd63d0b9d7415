import t from 'tap'
import { createRing, RingReader, RingWriter } from '../../../src/base/ring.ts'
import { RingLines } from '../../../src/server/data/ring-lines.ts'
import { printLine } from '../../../src/telemetry/lines.ts'

function stage(octets: number) {
  const memory = createRing(octets)
  const [writer, reader] = [new RingWriter(memory), new RingReader(memory)]
  let bells = 0
  const lines = new RingLines(writer, 7, () => bells++)
  const drain = (): string[] => {
    const records: string[] = []
    reader.hearBell()
    reader.drain((tag, octets) => records.push(`${tag}: ${octets}`))
    return records
  }
  return { lines, writer, reader, drain, bells: () => bells }
}

t.test('lines of a batch are one record, seen from its end on', async (t) => {
  const { lines, drain, bells } = stage(2 ** 17)
  printLine(lines, 'one')
  printLine(lines, 'two')
  t.strictSame(drain(), [])
  lines.flush()
  t.equal(bells(), 1)
  t.strictSame(drain(), ['7: one\ntwo\n'])
  lines.flush()
  lines.begin(10)
  lines.flush()
  t.equal(bells(), 1, 'where there is nothing nothing is said')
  t.strictSame(drain(), [])
})

t.test('other records go between those of lines', async (t) => {
  const { lines, writer, drain } = stage(2 ** 17)
  printLine(lines, 'one')
  lines.flush()
  const at = writer.begin(5)
  writer.end(9, writer.octets.write('other', at))
  printLine(lines, 'two')
  lines.flush()
  t.strictSame(drain(), ['7: one\n', '9: other', '7: two\n'])
})

t.test('a batch with more than a record holds is several, and lines are whole', async (t) => {
  const { lines, drain } = stage(2 ** 20)
  const texts = Array.from({ length: 500 }, (_, i) => `${i} `.padEnd(100 + (i % 50), 'x'))
  for (const text of texts) printLine(lines, text)
  const long = 'y'.repeat(50_000)
  printLine(lines, long)
  lines.flush()
  const records = drain()
  t.ok(records.length > 2)
  t.ok(records.every((record) => record.endsWith('\n')))
  t.equal(records.map((r) => r.slice(3)).join(''), `${[...texts, long].join('\n')}\n`)
})

t.test('what finds the ring full is dropped and counted, and the rest is whole', async (t) => {
  const { lines, reader, drain } = stage(2 ** 16)
  const write = (count: number): void => {
    for (let i = 0; i < count; i++) {
      printLine(lines, `${i} `.padEnd(99, 'x'))
      lines.flush()
    }
  }
  write(2000)
  const got = drain()
  const dropped = reader.takeDropped()
  t.ok(got.length > 100 && dropped > 0)
  t.equal(got.length + dropped, 2000)
  t.ok(got.every((record) => /^7: \d+ x+\n$/.test(record)))
  write(10)
  t.equal(drain().length, 10, 'and there is room again')
})
