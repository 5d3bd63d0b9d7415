import { randomFillSync } from 'node:crypto'
import t from 'tap'
import { RRType } from '../../../src/dns/iana/types.ts'
import {
  createBudgetMemory,
  SignatureBudget,
} from '../../../src/plugins/dnssec/signature-budget.ts'
import { transaction } from '../../support/transaction.ts'

const { query } = transaction({ name: 'example.org.', type: RRType.A })

function paid(budget: SignatureBudget, nowMs: number, tries: number): number {
  let count = 0
  for (let i = 0; i < tries; i++) if (budget.take(query, nowMs)) count++
  return count
}

t.test('a budget pays at its rate, also while more is asked for', async (t) => {
  const budget = new SignatureBudget({ total: 1000, perNetwork: 100 })
  t.equal(paid(budget, 0, 1000), 1000, 'without memory there is no limit')
  budget.use(createBudgetMemory(randomFillSync))
  t.equal(paid(budget, 0, 1000), 100)
  let later = 0
  for (let ms = 1; ms <= 10_000; ms++) later += paid(budget, ms, 3)
  t.ok(later >= 995 && later <= 1005, `${later} in 10 s`)
  t.equal(paid(budget, 60_000, 1000), 100, 'one second at most')
})

t.test('the clock of ticks wraps', async (t) => {
  const wrapMs = 2 ** 32 / 65.536
  const budget = new SignatureBudget({ total: 1000, perNetwork: 10 })
  budget.use(createBudgetMemory(randomFillSync))
  for (const ms of [0, wrapMs / 2, wrapMs - 1, wrapMs + 2000, 5.3 * wrapMs]) {
    t.ok(paid(budget, ms + 3000, 100) >= 10, `after ${ms} ms`)
  }
})

t.test('threads share a budget', async (t) => {
  const memory = createBudgetMemory(randomFillSync)
  const budgets = [0, 1].map(() => new SignatureBudget({ total: 1000, perNetwork: 100 }))
  for (const budget of budgets) budget.use(structuredClone(memory))
  t.equal(paid(budgets[0]!, 1000, 70), 70)
  const rest = paid(budgets[1]!, 1000, 70)
  t.ok(rest >= 29 && rest <= 31, `${rest} of 100 are left`)
})
