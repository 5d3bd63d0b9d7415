import t from 'tap'
import { noteHeard, printSilent } from '../../../src/operator/delegation/heard-clusters.ts'
import { PeerStateStore } from '../../../src/operator/peers/peer-state-store.ts'
import { AUTHORITATIVE, address, HOST } from '../../support/delegation-fixture.ts'
import { FakeClock } from '../../support/setup.ts'
import { DelegationSimulation } from '../delegation-simulation.ts'

const NEVER = Number.NEGATIVE_INFINITY

t.test('a cluster is silent 8 s after its last answer, or after the start', async (t) => {
  const simulation = new DelegationSimulation()
  const dublin = simulation.add('dublin')
  simulation.add('boston', 'secondary').delegate('app', [address(HOST, '192.0.2.1')])
  await simulation.settle()
  const record = dublin.cluster.record(`a/${AUTHORITATIVE}`)!
  const clock = new FakeClock()
  const startMs = clock.monotonic()
  const states = new PeerStateStore()
  for (const { atMs, heardMs, isSilent, dueMs } of [
    { atMs: 0, heardMs: NEVER, isSilent: false, dueMs: 8000 },
    { atMs: 8000, heardMs: NEVER, isSilent: true, dueMs: Infinity },
    { atMs: 9000, heardMs: 9000, isSilent: false, dueMs: Infinity },
    { atMs: 16_999, heardMs: 9000, isSilent: false, dueMs: Infinity },
    { atMs: 17_000, heardMs: 9000, isSilent: true, dueMs: Infinity },
  ]) {
    clock.pass(startMs + atMs - clock.monotonic())
    const heardMsOf = () => startMs + heardMs
    const { heard, nextMs } = noteHeard(record, { clusters: { heardMsOf }, states, startMs, clock })
    t.equal(printSilent(heard) !== undefined, isSilent, `${atMs} ms`)
    t.equal(nextMs, startMs + dueMs, `${atMs} ms: the next change`)
    const seenMs = startMs + Math.max(heardMs, 0)
    t.equal(heard.get('boston')?.state?.seenMs, seenMs)
  }
})
