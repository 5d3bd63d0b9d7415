import t from 'tap'
import { createRing, RingReader, RingWriter } from '../../../src/base/ring.ts'
import { printLine } from '../../../src/base/telemetry/lines.ts'
import { RingGroups, RingLines, RingOctets } from '../../../src/server/data/ring-lines.ts'

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
  t.equal(bells(), 1, 'an empty group sends no wakeup')
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

t.test(
  'lines for which the ring has no room are dropped and counted, and the others are whole',
  async (t) => {
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
  },
)

t.test('lines and other octets arrive in the order in which they were written', async (t) => {
  const { groups, lines, writer, drain } = stage(2 ** 17)
  const out = new RingOctets(groups, 8)
  const write = (text: string): void => {
    const at = out.begin(40)
    out.end(at + out.octets.write(text, at))
  }
  write('aaaa')
  write('bbbbcccc')
  printLine(lines, 'one')
  write('dddd')
  groups.flush()
  const at = writer.begin(5)
  writer.end(9, writer.octets.write('other', at))
  write('eeee')
  t.strictSame(drain(), ['8: aaaabbbbcccc', '7: one\n', '8: dddd', '9: other'])
  groups.flush()
  t.strictSame(drain(), ['8: eeee'])
})

t.test(
  'octets for which the ring has no room are dropped and counted, each piece by itself',
  async (t) => {
    const { groups, reader, drain } = stage(2 ** 16)
    const out = new RingOctets(groups, 8)
    const write = (count: number): void => {
      for (let i = 0; i < count; i++) {
        const at = out.begin(320)
        if (at === -1) continue
        out.octets.fill(0x30 + (i % 10), at, at + 64)
        out.end(at + 64)
      }
      groups.flush()
    }
    write(2000)
    const got = drain().reduce((sum, record) => sum + (record.length - 3) / 64, 0)
    t.ok(got > 100)
    t.equal(got + reader.takeDropped(), 2000)
    write(10)
    t.equal(drain().join('').length, 3 + 640, 'and there is room again')
  },
)

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
