import t from 'tap'
import { createRing, RingReader, RingWriter } from '../../../src/base/ring.ts'
import { RingGroups, RingLines, RingRecords } from '../../../src/server/data/ring-lines.ts'
import { printLine } from '../../../src/telemetry/lines.ts'

function stage(octets: number) {
  const memory = createRing(octets)
  const [writer, reader] = [new RingWriter(memory), new RingReader(memory)]
  let bells = 0
  const groups = new RingGroups(writer, () => bells++)
  const lines = new RingLines(groups, 7)
  const drain = (): string[] => {
    const records: string[] = []
    reader.waitForWake()
    reader.drain((tag, octets) => records.push(`${tag}: ${octets}`))
    return records
  }
  return { groups, lines, writer, reader, drain, bells: () => bells }
}

t.test('lines of a batch are one record, seen from its end on', async (t) => {
  const { groups, lines, drain, bells } = stage(2 ** 17)
  printLine(lines, 'one')
  printLine(lines, 'two')
  t.strictSame(drain(), [])
  groups.flush()
  t.equal(bells(), 1)
  t.strictSame(drain(), ['7: one\ntwo\n'])
  groups.flush()
  lines.begin(10)
  groups.flush()
  t.equal(bells(), 1, 'where there is nothing nothing is said')
  t.strictSame(drain(), [])
})

t.test('other records go between those of lines', async (t) => {
  const { groups, lines, writer, drain } = stage(2 ** 17)
  printLine(lines, 'one')
  groups.flush()
  const at = writer.begin(5)
  writer.end(9, writer.octets.write('other', at))
  printLine(lines, 'two')
  groups.flush()
  t.strictSame(drain(), ['7: one\n', '9: other', '7: two\n'])
})

t.test('a batch with more than a record holds is several, and lines are whole', async (t) => {
  const { groups, lines, drain } = stage(2 ** 20)
  const texts = Array.from({ length: 500 }, (_, i) => `${i} `.padEnd(100 + (i % 50), 'x'))
  for (const text of texts) printLine(lines, text)
  const long = 'y'.repeat(50_000)
  printLine(lines, long)
  groups.flush()
  const records = drain()
  t.ok(records.length > 2)
  t.ok(records.every((record) => record.endsWith('\n')))
  t.equal(records.map((r) => r.slice(3)).join(''), `${[...texts, long].join('\n')}\n`)
})

t.test('what finds the ring full is dropped and counted, and the rest is whole', async (t) => {
  const { groups, lines, reader, drain } = stage(2 ** 16)
  const write = (count: number): void => {
    for (let i = 0; i < count; i++) {
      printLine(lines, `${i} `.padEnd(99, 'x'))
      groups.flush()
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

t.test('records and lines come in the order in which they were told', async (t) => {
  const { groups, lines, writer, drain } = stage(2 ** 17)
  const records = new RingRecords(groups, 8)
  const record = (...values: number[]): void => {
    const at = records.begin(40)
    records.words.set(values, at)
    records.end(at + values.length)
  }
  record(0x61616161)
  record(0x62626262, 0x63636363)
  printLine(lines, 'one')
  record(0x64646464)
  groups.flush()
  const at = writer.begin(5)
  writer.end(9, writer.octets.write('other', at))
  record(0x65656565)
  t.strictSame(drain(), ['8: aaaabbbbcccc', '7: one\n', '8: dddd', '9: other'])
  groups.flush()
  t.strictSame(drain(), ['8: eeee'])
})

t.test('records that find the ring full are dropped and counted, each by itself', async (t) => {
  const { groups, reader, drain } = stage(2 ** 16)
  const records = new RingRecords(groups, 8)
  const write = (count: number): void => {
    for (let i = 0; i < count; i++) {
      const at = records.begin(80)
      if (at === -1) continue
      records.words.fill(0x30303030 + i, at, at + 16)
      records.end(at + 16)
    }
    groups.flush()
  }
  write(2000)
  const got = drain().reduce((sum, record) => sum + (record.length - 3) / 64, 0)
  t.ok(got > 100)
  t.equal(got + reader.takeDropped(), 2000)
  write(10)
  t.equal(drain().join('').length, 3 + 640, 'and there is room again')
})

t.test('whole lines at once', async (t) => {
  const { groups, lines, reader, drain } = stage(2 ** 16)
  printLine(lines, 'one')
  lines.write(Buffer.from('two\nthree\n'))
  groups.flush()
  t.strictSame(drain(), ['7: one\ntwo\nthree\n'])
  lines.write(Buffer.alloc(2 ** 16))
  groups.flush()
  t.strictSame([drain(), reader.takeDropped()], [[], 1])
})
