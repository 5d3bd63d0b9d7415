import type { Clock } from '../../base/clock.ts'
import { runInSlices } from '../../base/slices.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { ClientGrants } from './client-grants.ts'
import type { ClientSet } from './client-set.ts'
import type { Connections } from './connections.ts'
import type { AgentCounts } from './decision.ts'

interface ClientCollectorParts {
  readonly clients: ClientSet
  /** Undefined = it is unknown which connections are open. */
  readonly connections: Connections | undefined
  readonly counts: AgentCounts
  /** Called after each client that something may have been removed from. */
  readonly onRemoval: (grants: ClientGrants) => void
  readonly clock: Clock
  readonly log: Logger
}

/** Removes what clients learned once it has ended and has no open connections. */
export class ClientCollector {
  readonly #parts: ClientCollectorParts
  #isCollecting = false
  /** Why the last dump of the connections was incomplete; '' = it was complete. */
  #dumpFault = ''
  /** Addresses removed at limits when this was logged last. */
  #loggedEvictions = 0

  constructor(parts: ClientCollectorParts) {
    this.#parts = parts
  }

  get isCollecting(): boolean {
    return this.#isCollecting
  }

  async collect(): Promise<void> {
    this.#isCollecting = true
    try {
      const { clock } = this.#parts
      await runInSlices(this.#retireAll(), clock)
      // It must show which of the new zombies are connected, before some of them are removed at a limit.
      await this.#dumpConnections()
      await runInSlices(this.#collectZombies(), clock)
    } finally {
      this.#isCollecting = false
    }
  }

  *#retireAll(): Generator<void, void> {
    const { clients, clock, counts, onRemoval } = this.#parts
    clients.collectFormer(clock.monotonic())
    for (const grants of clients.values()) {
      counts.removals += yield* grants.retire(clock.monotonic())
      onRemoval(grants)
      yield
    }
  }

  *#collectZombies(): Generator<void, void> {
    const { clients, clock, counts, onRemoval, log } = this.#parts
    for (const grants of clients.values()) {
      counts.zombieEvictions += yield* grants.collectZombies(clock.monotonic())
      onRemoval(grants)
      yield
    }
    const evictions = counts.evictions + counts.zombieEvictions
    const added = evictions - this.#loggedEvictions
    this.#loggedEvictions = evictions
    if (added > 0)
      log.warning(`addresses removed at a limit: ${added} in a minute`, 'egress-addresses-removed')
  }

  /** Only a complete dump shows that connections are closed. */
  async #dumpConnections(): Promise<void> {
    const { clients, connections, counts, clock, log } = this.#parts
    const hasZombies = clients.values().some(({ cache }) => cache.zombieCount > 0)
    if (connections === undefined || !hasZombies) return
    const startMs = clock.monotonic()
    const fault = await connections.dump(({ source, destination, isOpen }) => {
      if (isOpen) clients.findByAddress(source)?.cache.markAlive(destination, startMs)
    })
    if (fault !== '' && this.#dumpFault === '')
      log.warning(`connections cannot be read: ${fault}`, 'connections-unreadable')
    if (fault === '' && this.#dumpFault !== '')
      log.info('connections can be read again', 'connections-readable')
    this.#dumpFault = fault
    if (fault !== '') {
      counts.failedDumps++
      return
    }
    counts.dumps++
    for (const { cache } of clients.values()) cache.noteDump(startMs)
  }
}
