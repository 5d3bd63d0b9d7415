import { assert } from '../../base/assert.ts'
import type { Clock } from '../../base/clock.ts'
import { runWhole } from '../../base/slices.ts'
import { type HashedName, NameBuffer } from '../../dns/name/hashed-name.ts'
import type { Learned } from '../learned/learned-table.ts'
import type { ClientRules } from '../rules/rule.ts'
import type { Client } from './client.ts'
import { ClientGrants, type ClientGrantsParts } from './client-grants.ts'
import { ClientTable } from './client-table.ts'
import { FormerClients } from './former-clients.ts'
import { type RuleProfile, RuleProfiles } from './rule-profiles.ts'

interface ClientSetParts extends Omit<ClientGrantsParts, 'name'> {
  readonly clock: Clock
}

/**
 * The clients of this node with what each of them learned, by id and by address. Clients with equal rules share a
 * profile. A client that returns has what it learned before.
 */
export class ClientSet {
  readonly #parts: ClientSetParts
  readonly #profiles = new RuleProfiles()
  readonly #name = new NameBuffer()
  readonly #former = new FormerClients()
  #byId = new Map<string, ClientGrants>()
  #byAddress = new Map<string, ClientGrants>()
  #table = new ClientTable([])
  #addressCount = 0

  constructor(parts: ClientSetParts) {
    this.#parts = parts
  }

  get size(): number {
    return this.#byId.size
  }

  /** Sets of rules that differ. */
  get profileCount(): number {
    return this.#profiles.size
  }

  /** Addresses of all names of all clients. */
  get addressCount(): number {
    return this.#addressCount
  }

  /** A copy: the set may be replaced while the caller reads it. */
  values(): readonly ClientGrants[] {
    return [...this.#byId.values()]
  }

  find(id: string): ClientGrants | undefined {
    return this.#byId.get(id)
  }

  findByAddress(address: string): ClientGrants | undefined {
    return this.#byAddress.get(address)
  }

  /** As of `ClientTable`. @hot */
  at(bytes: Uint8Array, offset: number, family: number): Client | undefined {
    return this.#table.at(bytes, offset, family)
  }

  /** True if the client exists and may ask for the name. @hot */
  mayAsk(id: string, protocol: 'udp' | 'tcp', name: HashedName): boolean {
    const grants = this.#byId.get(id)
    return grants !== undefined && this.#profiles.mayAsk(grants.profile, protocol, name)
  }

  /**
   * Makes these the clients. No two have one address. Returns the clients that are new, and those that have other
   * rules or addresses.
   */
  replace(clients: readonly Client[]): {
    readonly added: readonly ClientGrants[]
    readonly changed: readonly ClientGrants[]
  } {
    const before = this.#byId
    const next = new Map<string, ClientGrants>()
    const changed: ClientGrants[] = []
    const added: ClientGrants[] = []
    for (const client of clients) {
      const profile = this.#profiles.of(client.rules)
      const known = before.get(client.id)
      const grants = known ?? this.#recreate(client, profile)
      next.set(client.id, grants)
      if (known === undefined) added.push(grants)
      else if (known.update(client, profile)) changed.push(known)
    }
    for (const [id, grants] of before) {
      if (next.has(id)) continue
      this.#addressCount -= grants.counted
      this.#former.note(id, [...grants.learned()])
      grants.close()
    }
    this.#byId = next
    this.#byAddress = new Map()
    for (const grants of next.values()) {
      for (const address of grants.client.addresses) this.#byAddress.set(address, grants)
    }
    this.#table = new ClientTable(clients)
    for (const grants of added) this.count(grants)
    this.#profiles.keep(new Set([...next.values()].map(({ profile }) => profile)))
    return { added, changed }
  }

  /** Counts what a client has learned since it was counted last. Returns false if it is not in the set any more. */
  count(grants: ClientGrants): boolean {
    if (this.#byId.get(grants.client.id) !== grants) return false
    this.#addressCount += grants.size - grants.counted
    grants.counted = grants.size
    return true
  }

  /** The client with the most addresses: it is the one to lose some at the limit of all. */
  largest(): ClientGrants {
    let largest: ClientGrants | undefined
    for (const grants of this.#byId.values()) {
      if (largest === undefined || grants.size > largest.size) largest = grants
    }
    assert(largest !== undefined, 'a client has the addresses')
    return largest
  }

  /** The clients whose rules differ from these, which are given by the id of the client, or are not among them. */
  changedSince(rules: ReadonlyMap<string, ClientRules>): readonly ClientGrants[] {
    return this.values().filter(({ client, profile }) => {
      const before = rules.get(client.id)
      return before === undefined || this.#profiles.textOf(before) !== profile.text
    })
  }

  /** Keeps what a client learned that is not in the set, for its return. */
  noteFormer(id: string, learned: Iterable<Learned>): void {
    this.#former.note(id, [...learned])
  }

  /** As of `FormerClients`. */
  collectFormer(nowMs: number): void {
    this.#former.collect(nowMs)
  }

  #recreate(client: Client, profile: RuleProfile): ClientGrants {
    const grants = new ClientGrants(client, profile, { ...this.#parts, name: this.#name })
    const learned = this.#former.take(client.id)
    if (learned === undefined) return grants
    runWhole(grants.restore(learned, this.#parts.clock.monotonic()))
    return grants
  }
}
