import t from 'tap'
import { ApiError, type ApiObject } from '../../../src/kube/api.ts'
import type { InformerListener } from '../../../src/kube/informer.ts'
import { keyOf } from '../../../src/kube/object-key.ts'
import { KeyedMutex } from '../../../src/operator/delegation/keyed-mutex.ts'
import { OrphanCollector } from '../../../src/operator/remotes/orphan-collector.ts'
import { turns as settle } from '../../support/api-double.ts'
import { AUTHORITATIVE, address, HOST } from '../../support/delegation-fixture.ts'
import { FakeTimers } from '../../support/setup.ts'
import { DelegationSimulation, type SimulatedSite } from '../delegation-simulation.ts'

const LEAVE_MS = 10_000

/** A primary with a record of its own, and one of a cluster that it may know or not. */
class OperatorFixture {
  readonly timers = new FakeTimers()
  readonly lines: string[] = []
  known: ReadonlySet<string> | undefined = new Set()
  readonly #simulation = new DelegationSimulation()
  readonly dublin: SimulatedSite
  orphans: OrphanCollector | undefined

  private constructor() {
    this.dublin = this.#simulation.add('dublin')
    this.#simulation.add('boston', 'secondary').delegate('app', [address(HOST, '192.0.2.2')])
    this.dublin.delegate('app', [address(HOST, '192.0.2.1')])
  }

  static async start(): Promise<OperatorFixture> {
    const simulation = new OperatorFixture()
    await simulation.#simulation.settle()
    const { cluster } = simulation.dublin
    const note = (line: string): void => {
      simulation.lines.push(line)
    }
    simulation.orphans = new OrphanCollector({
      view: cluster,
      records: { subscribe: (listener: InformerListener) => tellAll(cluster.records, listener) },
      writer: cluster,
      mutex: new KeyedMutex(),
      clock: simulation.#simulation.clock,
      timers: simulation.timers,
      log: { debug: note, info: note, warning: note, error: note },
      leaveMs: LEAVE_MS,
      known: () => simulation.known,
    })
    simulation.orphans.start()
    return simulation
  }

  /** Lets time pass, look by look. */
  async pass(ms: number): Promise<void> {
    for (let gone = 0; gone < ms; gone += LEAVE_MS / 4) {
      this.#simulation.clock.monotonicMs += LEAVE_MS / 4
      await this.timers.advance(LEAVE_MS / 4)
      await settle()
    }
  }
}

function tellAll(records: ReadonlyMap<string, ApiObject>, listener: InformerListener): () => void {
  for (const record of records.values()) listener.onAdd?.(keyOf(record), record, true)
  return () => {}
}

const BOTH = [`${HOST} A 192.0.2.1,192.0.2.2`]
const OWN = [`${HOST} A 192.0.2.1`]

t.test(
  'endpoints of a cluster without a Secret are removed after a while, and no others',
  async (t) => {
    const simulation = await OperatorFixture.start()
    await simulation.pass(LEAVE_MS)
    t.strictSame(simulation.dublin.served(), BOTH)
    await simulation.pass(LEAVE_MS / 4)
    t.strictSame(simulation.dublin.served(), OWN)
    t.match(simulation.lines, [
      `dnsrecords a/${AUTHORITATIVE}: removing endpoints of cluster boston: it has no Secret`,
    ])
    simulation.dublin.cluster.takeWrites()
    await simulation.pass(LEAVE_MS * 2)
    t.strictSame(simulation.dublin.cluster.takeWrites(), [])
    await simulation.orphans?.close()
  },
)

t.test('the while begins anew when the cluster is known again, or may be', async (t) => {
  for (const known of [new Set(['boston']), undefined]) {
    const simulation = await OperatorFixture.start()
    await simulation.pass(LEAVE_MS)
    simulation.known = known
    await simulation.pass(LEAVE_MS * 3)
    simulation.known = new Set(['other'])
    await simulation.pass(LEAVE_MS)
    t.strictSame(simulation.dublin.served(), BOTH)
    await simulation.pass(LEAVE_MS / 4)
    t.strictSame(simulation.dublin.served(), OWN)
    await simulation.orphans?.close()
  }
})

t.test('a failed write is repeated at the next check', async (t) => {
  const simulation = await OperatorFixture.start()
  simulation.dublin.cluster.refuse = () => new ApiError(409, '409 conflict', 0, 'Conflict')
  await simulation.pass(LEAVE_MS * 2)
  t.strictSame(simulation.dublin.served(), BOTH)
  simulation.dublin.cluster.refuse = () => undefined
  await simulation.pass(LEAVE_MS / 4)
  t.strictSame(simulation.dublin.served(), OWN)
  await simulation.orphans?.close()
})
