import type { Observation } from '../../../src/client/resolver/observation.ts'
import type { HashedName } from '../../../src/dns/name/hashed-name.ts'
import { printName } from '../../../src/dns/name/name.ts'
import { printAddress } from '../../../src/dns/text/address.ts'
import type { Client } from '../../../src/egress/agent/client.ts'
import type { EgressGate } from '../../../src/egress/agent/egress-gate.ts'
import type { GateResult } from '../../../src/egress/gate.ts'

/** An agent that keeps what it is asked to learn, and answers as the test says. */
export class FakeGate implements EgressGate {
  readonly #clients = new Map<string, Client>()
  readonly #listeners = new Set<() => void>()
  /** Names that no client may ask for. */
  readonly denied = new Set<string>()
  /** `CLIENT NAME ADDRESS/TTL…` of each answer. */
  readonly learned: string[] = []
  /** What `learn` returns. */
  wait: () => Promise<GateResult> | undefined = () => undefined
  readonly asked: string[] = []

  set(id: string, ...addresses: readonly string[]): void {
    const client: Client = { id, addresses, rules: { lists: [], dns: undefined } }
    for (const address of addresses) this.#clients.set(address, client)
    for (const listener of this.#listeners) listener()
  }

  remove(address: string): void {
    this.#clients.delete(address)
    for (const listener of this.#listeners) listener()
  }

  clientAt(bytes: Uint8Array, offset: number, family: number): Client | undefined {
    const octets = bytes.subarray(offset, offset + (family === 1 ? 4 : 16))
    return this.#clients.get(printAddress(octets, family === 1 ? 1 : 2))
  }

  clients(): readonly Client[] {
    return [...new Set(this.#clients.values())]
  }

  onClients(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  mayAsk(client: Client, protocol: 'udp' | 'tcp', name: HashedName): boolean {
    const text = printName(name.qname.subarray(0, name.qnameOctets))
    this.asked.push(`${client.id} ${protocol} ${text}`)
    return !this.denied.has(text)
  }

  learn(client: Client, observed: Observation): Promise<GateResult> | undefined {
    const facts = observed.kind === 'answer' ? observed.facts : []
    const texts = facts.map(({ address, ttlSeconds }) => `${address}/${ttlSeconds}`)
    this.learned.push([client.id, printName(observed.name), ...texts].join(' '))
    return this.wait()
  }
}
