import t from 'tap'
import type { DecidedBy, HealthDecision, Statement } from '../../../src/peering/quorum/decide.ts'
import { keepDown } from '../../../src/peering/quorum/keep-down.ts'

const ADDRESS = '192.0.2.2'
const EARLIER = { down: new Set([ADDRESS]), heardMs: 10_000, probedMs: 40_000 }
const UP: Statement = { site: 'here', health: 'up', ageMs: 0, silentMs: 0 }

const CASES: readonly {
  readonly name: string
  readonly outcome: HealthDecision['outcome']
  readonly by: DecidedBy
  readonly own?: Statement
  /** Milliseconds after the start; it is down before. */
  readonly untilMs: number
}[] = [
  { name: 'nothing is known', outcome: 'unknown', by: 'nothing', untilMs: EARLIER.probedMs },
  { name: 'its site reports it up', outcome: 'up', by: 'home', untilMs: EARLIER.probedMs },
  { name: 'our probes reach it', outcome: 'up', by: 'this site', own: UP, untilMs: 0 },
  { name: 'the sites find it up', outcome: 'up', by: 'sites', untilMs: EARLIER.heardMs },
  {
    name: 'too few sites find it down',
    outcome: 'unknown',
    by: 'sites',
    untilMs: EARLIER.probedMs,
  },
  { name: 'so do we', outcome: 'up', by: 'sites', own: UP, untilMs: EARLIER.heardMs },
]

t.test('an address that was down before the start stays down until more is known', async (t) => {
  for (const { name, outcome, by, own, untilMs } of CASES) {
    const decision: HealthDecision = { outcome, by, isDisputed: false, nextMs: undefined }
    const statements = { home: [], observers: own === undefined ? [] : [own] }
    const at = (
      nowMs: number,
      earlier: typeof EARLIER | undefined = EARLIER,
      address = ADDRESS,
    ) => {
      return keepDown({ address, statements, decision }, earlier, 'here', nowMs)
    }
    if (untilMs > 0) t.match(at(untilMs - 1), { outcome: 'down', by: 'start', nextMs: 1 }, name)
    t.equal(at(untilMs), decision, `${name}: decided anew`)
    t.equal(at(0, EARLIER, '192.0.2.9'), decision, `${name}: another address`)
    t.equal(keepDown({ address: ADDRESS, statements, decision }, undefined, 'here', 0), decision)
  }
})
