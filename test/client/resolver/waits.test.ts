import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import {
  answerWaitMs,
  failureWaitMs,
  RESOLVER_RULES_DEFAULT,
} from '../../../src/client/resolver/waits.ts'

t.test('the wait after failures', async (t) => {
  const table = [
    [1, 5],
    [10, 5],
    [11, 10],
    [12, 20],
    [14, 80],
    [15, 120],
    [1000, 120],
  ]
  for (const [failures, want] of table)
    t.equal(failureWaitMs(failures!), want! * 1000, `${failures}`)
})

t.test('the wait after an answer', async (t) => {
  const random = new Random(1)
  const table: [number, number, number, number][] = [
    // TTL and lead in seconds, bounds of the wait in milliseconds
    [60, 0, 60_000, 62_000],
    [10, 0, 10_000, 11_000],
    [0, 0, 5000, 5500],
    [86_400, 0, 1_800_000, 1_802_000],
    [60, 5, 55_000, 57_000],
    [20, 60, 10_000, 12_000],
  ]
  for (const [ttl, lead, least, most] of table) {
    const rules = { ...RESOLVER_RULES_DEFAULT, leadMs: lead * 1000 }
    const waits = Array.from({ length: 200 }, () => answerWaitMs(ttl, rules, random))
    t.ok(Math.min(...waits) >= least && Math.max(...waits) <= most, `${ttl} ${lead}`)
    t.ok(new Set(waits).size > 50, 'waits differ')
  }
})

t.test('a name waits for the caches of its servers', async (t) => {
  const rules = { ...RESOLVER_RULES_DEFAULT, afterMs: 800, spreadMs: 0, maxMs: 60_000 }
  const table: [number, number][] = [
    [30, 30_800],
    [59, 59_800],
    [60, 60_000],
    [0, 5000],
  ]
  for (const [ttl, want] of table) {
    t.equal(answerWaitMs(ttl, rules, new Random(1)), want, `TTL ${ttl}`)
  }
})
