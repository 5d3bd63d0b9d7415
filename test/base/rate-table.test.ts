import fc from 'fast-check'
import t from 'tap'
import { createRateTable, Debit, RateTable, rateOf, ticksOf } from '../../src/base/rate-table.ts'

const TICKS_PER_SECOND = 65_536

const { Paid, Slipped, Denied } = Debit

/** Debits one account at these milliseconds; `slip` as in `debit`. */
function debits(perSecond: number, windowSeconds: number, slip: number, times: readonly number[]) {
  const table = new RateTable(createRateTable(64))
  const rate = rateOf(perSecond, windowSeconds)
  return times.map((ms) => table.debit(0x1234_5678, ticksOf(ms), rate, slip))
}

/** `count` times `ms`. */
const at = (ms: number, count: number): number[] => Array<number>(count).fill(ms)

t.test('credit, debt and slips over time', async (t) => {
  const count = (outcomes: readonly Debit[], one: Debit) => outcomes.filter((o) => o === one).length
  for (const [name, perSecond, window, times, paid] of [
    ['a fresh account has the credit of one second', 5, 15, at(0, 9), 5],
    ['credit does not grow over that', 5, 15, [...at(0, 5), ...at(60_000, 9)], 10],
    ['credit comes back at the rate', 5, 15, [...at(0, 5), 201, 402, 603], 8],
    ['and no faster', 5, 15, [...at(0, 5), 100, 150, 190], 5],
    ['denials are debts', 5, 15, [...at(0, 10), ...at(901, 1)], 5],
    ['debts are those of the window at most', 5, 2, [...at(0, 1000), ...at(2300, 2)], 6],
    ['a window of debt lasts that long', 5, 15, [...at(0, 1000), ...at(14_000, 2)], 5],
    ['rates below one per second', 0.5, 15, [0, 1000, 5200], 2],
    ['without a window denials are no debts', 5, 0, [...at(0, 1000), 201, 202, ...at(402, 9)], 7],
    ['a flood is paid at the rate', 5, 0, Array.from({ length: 10_000 }, (_, i) => i), 54],
  ] as const) {
    t.equal(count(debits(perSecond, window, 0, times), Paid), paid, name)
  }
  const over = (slip: number) => debits(1, 15, slip, at(0, 7)).slice(1)
  t.strictSame(over(0), [Denied, Denied, Denied, Denied, Denied, Denied])
  t.strictSame(over(1), [Slipped, Slipped, Slipped, Slipped, Slipped, Slipped])
  t.strictSame(over(2), [Denied, Slipped, Denied, Slipped, Denied, Slipped])
  t.strictSame(over(3), [Denied, Denied, Slipped, Denied, Denied, Slipped])
})

t.test('time goes on where ticks wrap', async (t) => {
  const turnMs = (2 ** 32 / TICKS_PER_SECOND) * 1000
  for (const nowMs of [turnMs / 2, turnMs, 3.5 * turnMs]) {
    const times = [...at(nowMs - 400, 3), ...at(nowMs, 9), ...at(nowMs + 1000, 12)]
    const paid = debits(10, 15, 0, times).filter((outcome) => outcome === Paid)
    t.equal(paid.length, 3 + 9 + 10, `around ${nowMs}`)
  }
})

t.test(
  'an account never pays more than the rate over any span, plus one second of credit',
  async () => {
    const span = fc.array(fc.integer({ min: 0, max: 700 }), { minLength: 1, maxLength: 300 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), span, (perSecond, gaps) => {
        let ms = 5000
        const times = gaps.map((gap) => {
          ms += gap % 7 === 0 ? gap : gap % 7
          return ms
        })
        const outcomes = debits(perSecond, 15, 0, times)
        const paidAt = times.filter((_, i) => outcomes[i] === Paid)
        return paidAt.every((from, i) =>
          paidAt.slice(i).every((to, k) => {
            const seconds = (to - from) / 1000
            return k + 1 <= Math.floor(perSecond * (seconds + 1) + 1e-3)
          }),
        )
      }),
    )
  },
)

t.test('memory is fixed, and accounts in debt outlive any number of new ones', async (t) => {
  const words = createRateTable(1000)
  t.equal(words.length, 1024 * 2)
  const table = new RateTable(words)
  const rate = rateOf(2, 15)
  const victim = 0x00c0_ffe0
  for (let i = 0; i < 50; i++) table.debit(victim, 0, rate, 0)
  for (let i = 0; i < 200_000; i++) table.debit(Math.imul(i, 0x9e3779b1), i >> 8, rate, 0)
  t.equal(table.debit(victim, 200_000 >> 8, rate, 0), Denied)
  t.equal(words.length, 1024 * 2)
})

t.test('returned credit can be used again', async (t) => {
  const table = new RateTable(createRateTable(64))
  const rate = rateOf(1, 15)
  t.equal(table.debit(0x50, 0, rate, 0), Paid)
  table.credit(0x50, rate)
  table.credit(0x60, rate)
  t.equal(table.debit(0x50, 0, rate, 0), Paid)
  t.equal(table.debit(0x50, 0, rate, 0), Denied)
})
