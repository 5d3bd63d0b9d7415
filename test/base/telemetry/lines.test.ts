import fc from 'fast-check'
import t from 'tap'
import { LineBuffer, printLine } from '../../../src/base/telemetry/lines.ts'

const HALF_OCTETS = 2 ** 20

/** A sink that takes what it is given when the test says so, and turns of the loop that end likewise. */
function stage() {
  const written: string[] = []
  const turns: (() => void)[] = []
  const takes: (() => void)[] = []
  const lines = new LineBuffer(
    {
      isBusy: () => takes.length > 0,
      write: (octets, done) => {
        // What the sink has must not change before it says so.
        takes.push(() => {
          written.push(octets.toString())
          done()
        })
      },
    },
    (run) => turns.push(run),
  )
  const endTurn = (): void => {
    for (const run of turns.splice(0)) run()
  }
  const take = (): void => takes.shift()?.()
  return { lines, written, endTurn, take }
}

t.test('lines of one turn go out in one write', async (t) => {
  const { lines, written, endTurn, take } = stage()
  printLine(lines, 'one')
  printLine(lines, 'zwö')
  lines.write(Buffer.from('three\nfour\n'))
  take()
  t.strictSame(written, [], 'not before the end of the turn')
  endTurn()
  take()
  t.strictSame(written, ['one\nzwö\nthree\nfour\n'])
  endTurn()
  take()
  t.equal(written.length, 1, 'and nothing where there is nothing')
})

t.test('a line is written in place: begin, octets, end', async (t) => {
  const { lines, written, endTurn, take } = stage()
  for (const text of ['a', 'bcd']) {
    const at = lines.begin(100)
    lines.end(at + lines.octets.write(text, at))
  }
  lines.begin(100)
  endTurn()
  take()
  t.strictSame(written, ['a\nbcd\n'], 'one that was begun only does not exist')
})

t.test('lines wait while the sink is busy', async (t) => {
  const { lines, written, endTurn, take } = stage()
  printLine(lines, 'one')
  endTurn()
  printLine(lines, 'two')
  endTurn()
  printLine(lines, 'three')
  endTurn()
  t.strictSame(written, [])
  take()
  take()
  t.strictSame(written, ['one\n', 'two\nthree\n'])
})

t.test('much goes out before the turn ends', async (t) => {
  const { lines, written, take } = stage()
  const text = 'x'.repeat(1000)
  for (let i = 0; i < 100; i++) printLine(lines, text)
  take()
  t.ok(written[0] !== undefined && written[0].length >= 65_536)
})

t.test('a sink that is too slow costs lines, and they are counted', async (t) => {
  const { lines, written, endTurn, take } = stage()
  const text = 'y'.repeat(9999)
  const count = Math.ceil((3 * HALF_OCTETS) / 10_000)
  for (let i = 0; i < count; i++) printLine(lines, `${i}`.padEnd(9999, text))
  const { dropped } = lines
  t.ok(dropped > 0)
  lines.write(Buffer.from('a\nb\n'.repeat(20_000)))
  t.equal(lines.dropped, dropped + 40_000, 'a block is dropped as a whole')
  endTurn()
  take()
  take()
  take()
  const got = written.join('').split('\n').slice(0, -1)
  t.equal(got.length, count - dropped)
  t.ok(
    got.every((line, i) => line.startsWith(`${i}y`) && line.length === 9999),
    'the oldest are there, each whole',
  )
  printLine(lines, 'later')
  endTurn()
  take()
  t.match(written.at(-1), /later\n$/)
})

t.test('a line that is too long is cut', async (t) => {
  const { lines, written, endTurn, take } = stage()
  printLine(lines, '€'.repeat(400_000))
  endTurn()
  take()
  t.equal(written[0], `${'€'.repeat(327_680)}\n`)
  t.equal(lines.dropped, 0)
})

t.test('whatever the order, lines are whole and in order, or counted', async () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: fc.record({ octets: fc.integer({ min: 1, max: 200_000 }) }) },
    { weight: 2, arbitrary: fc.constant('turn' as const) },
    { weight: 2, arbitrary: fc.constant('take' as const) },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { lines, written, endTurn, take } = stage()
      let [asked, number] = [0, 0]
      for (const one of steps) {
        if (one === 'turn') endTurn()
        else if (one === 'take') take()
        else {
          printLine(lines, `${number++} ${'z'.repeat(one.octets)}`)
          asked++
        }
      }
      for (let i = 0; i < 4; i++) {
        endTurn()
        take()
      }
      const got = written.join('').split('\n').slice(0, -1)
      const numbers = got.map((line) => Number(line.split(' ')[0]))
      const isSorted = numbers.every((n, i) => i === 0 || n > numbers[i - 1]!)
      return got.length + lines.dropped === asked && isSorted && got.every((l) => / z+$/.test(l))
    }),
    { seed: 20261121, numRuns: 60 },
  )
})
