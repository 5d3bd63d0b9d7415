import fc from 'fast-check'
import t from 'tap'
import { StepRing } from '../../../../src/plugins/admin/traffic/step-ring.ts'

const near = (a: number, b: number): boolean => Math.abs(a - b) < 1e-6 * Math.max(1, b)

function print(ring: StepRing, count = 100): string[] {
  return ring.last(count).map(({ index, ms, row }) => `${index}: ${row.join()} in ${ms}`)
}

t.test('growth is spread over the time in which it was counted', async (t) => {
  const ring = new StepRing(10, 4, 2, 5)
  t.strictSame(print(ring), ['0: 0,0 in 0'])
  ring.add(10, [5, 1])
  t.strictSame(print(ring), ['0: 5,1 in 5', '1: 0,0 in 0'])
  ring.add(30, [8, 0])
  t.strictSame(print(ring), ['0: 5,1 in 5', '1: 4,0 in 10', '2: 4,0 in 10', '3: 0,0 in 0'])
  ring.add(30, [1, 1])
  t.strictSame(print(ring, 2), ['2: 4,0 in 10', '3: 1,1 in 0'])
  ring.add(45, [3, 0])
  t.strictSame(print(ring), ['1: 4,0 in 10', '2: 4,0 in 10', '3: 3,1 in 10', '4: 1,0 in 5'])
})

t.test('after a long pause, only the steps of the ring are counted', async (t) => {
  const ring = new StepRing(10, 4, 1, 0)
  ring.add(10, [7])
  ring.add(1010, [100])
  t.strictSame(print(ring), ['98: 1 in 10', '99: 1 in 10', '100: 1 in 10', '101: 0 in 0'])
})

t.test('nothing is lost or counted twice within the ring', async (t) => {
  const events = fc.array(fc.tuple(fc.integer({ min: 0, max: 25 }), fc.nat(1000)), {
    maxLength: 30,
  })
  fc.assert(
    fc.property(fc.nat(50), events, (startMs, pauses) => {
      const ring = new StepRing(10, 100, 1, startMs)
      let nowMs = startMs
      let sum = 0
      for (const [pause, growth] of pauses) {
        nowMs += pause
        sum += growth
        ring.add(nowMs, [growth])
      }
      const steps = ring.last(100)
      return (
        near(
          steps.reduce((all, { row }) => all + row[0]!, 0),
          sum,
        ) &&
        near(
          steps.reduce((all, { ms }) => all + ms, 0),
          nowMs - startMs,
        )
      )
    }),
  )
  t.pass()
})
