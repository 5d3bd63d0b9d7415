import t from 'tap'
import { noteHeard, printSilent } from '../../../src/operator/delegation/heard-clusters.ts'
import { PeerStateStore } from '../../../src/operator/peers/peer-state-store.ts'
import { AUTHORITATIVE, address, HOST } from '../../support/delegation-fixture.ts'
import { FakeClock } from '../../support/setup.ts'
import { DelegationSimulation } from '../delegation-simulation.ts'

const NEVER = Number.NEGATIVE_INFINITY

t.test('a cluster is reported as silent as late as a nameserver', async (t) => {
  const simulation = new DelegationSimulation()
  const dublin = simulation.add('dublin')
  simulation.add('boston', 'secondary').delegate('app', [address(HOST, '192.0.2.1')])
  await simulation.settle()
  const record = dublin.cluster.record(`a/${AUTHORITATIVE}`)!
  const clock = new FakeClock()
  const startMs = clock.monotonic()
  const states = new PeerStateStore()
  for (const { atMs, heardMs, silentMs = 86_400_000, isSilent, dueMs } of [
    { atMs: 0, heardMs: NEVER, isSilent: false, dueMs: 30_000 },
    { atMs: 30_000, heardMs: NEVER, isSilent: true, dueMs: Infinity },
    { atMs: 31_000, heardMs: 31_000, isSilent: false, dueMs: Infinity },
    // Silence of 8 s causes an event.
    { atMs: 38_999, heardMs: 31_000, isSilent: false, dueMs: Infinity },
    { atMs: 39_000, heardMs: 31_000, isSilent: false, dueMs: 61_000 },
    { atMs: 39_001, heardMs: 31_000, silentMs: 40_000, isSilent: false, dueMs: 51_000 },
    { atMs: 39_002, heardMs: 31_000, silentMs: 10_000, isSilent: true, dueMs: Infinity },
    { atMs: 60_999, heardMs: 31_000, isSilent: false, dueMs: 61_000 },
    { atMs: 61_000, heardMs: 31_000, isSilent: true, dueMs: Infinity },
  ]) {
    clock.pass(startMs + atMs - clock.monotonic())
    const clusters = { heardMsOf: () => startMs + heardMs }
    const scene = { clusters, states, silentMs, startMs, clock }
    const { heard, nextMs } = noteHeard(record, scene)
    t.equal(printSilent(heard) !== undefined, isSilent, `${atMs} ms`)
    t.equal(nextMs, startMs + dueMs, `${atMs} ms: the next change`)
    const seenMs = startMs + Math.max(heardMs, 0)
    t.equal(heard.get('boston')?.state?.seenMs, seenMs)
  }
})
