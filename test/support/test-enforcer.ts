import type { Clock } from '../../src/base/clock.ts'
import type { Timers } from '../../src/base/timers.ts'
import type { Client } from '../../src/egress/agent/client.ts'
import type { AddressPair, Allowance, Enforcer } from '../../src/egress/sinks/enforcer.ts'

interface Element {
  /** By its ports as text, until when. Before the acknowledgement. */
  wanted: ReadonlyMap<string, number>
  inForce: ReadonlyMap<string, number>
}

/** A enforcer in memory that the test makes slow, or lets fail. */
export class TestEnforcer implements Enforcer {
  /** Time from a call to its acknowledgement; 0 = at once. */
  delayMs = 0
  /** Why calls fail; '' = they succeed. */
  fault = ''
  clients: readonly Client[] = []
  /** Calls of `allow`. */
  calls = 0
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #elements = new Map<string, Element>()

  constructor(clock: Clock, timers: Timers) {
    this.#clock = clock
    this.#timers = timers
  }

  /** Pairs with ports in force: `CLIENT ADDRESS PORTS`, sorted. */
  inForce(): readonly string[] {
    const nowMs = this.#clock.monotonic()
    const found: string[] = []
    for (const [key, { inForce }] of this.#elements) {
      for (const [ports, endMs] of inForce) if (endMs >= nowMs) found.push(`${key} ${ports}`)
    }
    return found.sort()
  }

  /** Pairs, also those that have ended. */
  get size(): number {
    return this.#elements.size
  }

  isAllowed(client: string, address: string, ports = 'any'): boolean {
    const endMs = this.#elements.get(`${client} ${address}`)?.inForce.get(ports)
    return endMs !== undefined && endMs >= this.#clock.monotonic()
  }

  async setClients(clients: readonly Client[], isComplete = true): Promise<string> {
    const ids = new Map(this.clients.flatMap(({ id, addresses }) => addresses.map((a) => [a, id])))
    const next = new Map(clients.flatMap(({ id, addresses }) => addresses.map((a) => [a, id])))
    for (const key of [...this.#elements.keys()]) {
      const [client = ''] = key.split(' ')
      const isLeft = !isComplete && next.get(client) === undefined
      if (!isLeft && ids.get(client) !== next.get(client)) this.#elements.delete(key)
    }
    const left = this.clients.filter(({ addresses }) => !addresses.some((a) => next.has(a)))
    this.clients = isComplete ? clients : [...clients, ...left]
    return this.fault
  }

  allow(
    { client, address }: AddressPair,
    allowances: readonly Allowance[],
  ): Promise<string> | undefined {
    this.calls++
    const nowMs = this.#clock.monotonic()
    const key = `${client} ${address}`
    const element = this.#elements.get(key) ?? { wanted: new Map(), inForce: new Map() }
    this.#elements.set(key, element)
    element.wanted = new Map(allowances.map(({ ports, endMs }) => [printPorts(ports), endMs]))
    const { wanted, inForce } = element
    const isThere = [...wanted].every(([ports]) => (inForce.get(ports) ?? 0) >= nowMs)
    if (this.fault !== '') return isThere ? undefined : Promise.resolve(this.fault)
    const apply = (): void => {
      // Later calls may have changed what is wanted.
      const old = element.inForce
      const inForce = [...element.wanted].filter(([ports]) => wanted.has(ports) || old.has(ports))
      element.inForce = new Map(inForce)
      const isGone = element.wanted.size === 0 && this.#elements.get(key) === element
      if (isGone) this.#elements.delete(key)
    }
    if (this.delayMs === 0) {
      apply()
      return undefined
    }
    const applied = new Promise<string>((resolve) => {
      this.#timers.after(this.delayMs, () => {
        apply()
        resolve('')
      })
    })
    return isThere ? undefined : applied
  }

  async adopt(): Promise<string> {
    return this.fault
  }

  async close(): Promise<void> {}
}

function printPorts(ports: Allowance['ports']): string {
  return ports === undefined ? 'any' : `${ports.protocol} ${ports.first}-${ports.last}`
}
