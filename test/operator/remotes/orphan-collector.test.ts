import t from 'tap'
import { ApiError, type ApiObject } from '../../../src/kube/api.ts'
import type { InformerListener } from '../../../src/kube/informer.ts'
import { keyOf } from '../../../src/kube/object-key.ts'
import { KeyedMutex } from '../../../src/operator/delegation/keyed-mutex.ts'
import { OrphanCollector } from '../../../src/operator/remotes/orphan-collector.ts'
import { turns as settle } from '../../support/api-double.ts'
import { AUTHORITATIVE, address, HOST } from '../../support/delegating.ts'
import { DelegationWorld, type ToySite } from '../../support/delegation-world.ts'
import { FakeTimers } from '../../support/setup.ts'

const LEAVE_MS = 10_000

/** A primary with a record of its own, and one of a cluster that it may know or not. */
class World {
  readonly timers = new FakeTimers()
  readonly lines: string[] = []
  known: ReadonlySet<string> | undefined = new Set()
  readonly #world = new DelegationWorld()
  readonly dublin: ToySite
  strangers: OrphanCollector | undefined

  private constructor() {
    this.dublin = this.#world.add('dublin')
    this.#world.add('boston', 'secondary').delegate('app', [address(HOST, '192.0.2.2')])
    this.dublin.delegate('app', [address(HOST, '192.0.2.1')])
  }

  static async start(): Promise<World> {
    const world = new World()
    await world.#world.settle()
    const { cluster } = world.dublin
    const note = (line: string): void => {
      world.lines.push(line)
    }
    world.strangers = new OrphanCollector({
      view: cluster,
      records: { subscribe: (listener: InformerListener) => tellAll(cluster.records, listener) },
      writer: cluster,
      mutex: new KeyedMutex(),
      clock: world.#world.clock,
      timers: world.timers,
      log: { debug: note, info: note, warning: note, error: note },
      leaveMs: LEAVE_MS,
      known: () => world.known,
    })
    world.strangers.start()
    return world
  }

  /** Lets time pass, look by look. */
  async pass(ms: number): Promise<void> {
    for (let gone = 0; gone < ms; gone += LEAVE_MS / 4) {
      this.#world.clock.monotonicMs += LEAVE_MS / 4
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

t.test('what is of a cluster without a Secret goes after a while, and nothing else', async (t) => {
  const world = await World.start()
  await world.pass(LEAVE_MS)
  t.strictSame(world.dublin.served(), BOTH)
  await world.pass(LEAVE_MS / 4)
  t.strictSame(world.dublin.served(), OWN)
  t.match(world.lines, [
    `dnsrecords a/${AUTHORITATIVE}: there is no Secret of cluster boston: its endpoints go`,
  ])
  world.dublin.cluster.takeWrites()
  await world.pass(LEAVE_MS * 2)
  t.strictSame(world.dublin.cluster.takeWrites(), [])
  await world.strangers?.close()
})

t.test('the while begins anew when the cluster is known again, or may be', async (t) => {
  for (const known of [new Set(['boston']), undefined]) {
    const world = await World.start()
    await world.pass(LEAVE_MS)
    world.known = known
    await world.pass(LEAVE_MS * 3)
    world.known = new Set(['other'])
    await world.pass(LEAVE_MS)
    t.strictSame(world.dublin.served(), BOTH)
    await world.pass(LEAVE_MS / 4)
    t.strictSame(world.dublin.served(), OWN)
    await world.strangers?.close()
  }
})

t.test('what could not be written is written at the next look', async (t) => {
  const world = await World.start()
  world.dublin.cluster.refuse = () => new ApiError(409, '409 conflict', 0, 'Conflict')
  await world.pass(LEAVE_MS * 2)
  t.strictSame(world.dublin.served(), BOTH)
  world.dublin.cluster.refuse = () => undefined
  await world.pass(LEAVE_MS / 4)
  t.strictSame(world.dublin.served(), OWN)
  await world.strangers?.close()
})
