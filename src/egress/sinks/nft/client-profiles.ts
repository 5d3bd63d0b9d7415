import type { Client } from '../../agent/client.ts'
import { type ClientRules, isOpen } from '../../rules/rule.ts'
import { canonicalAddress } from './allowed-element.ts'
import { type Chain, fillChains, removeChains } from './chain.ts'
import { digestOf, PROFILE_PREFIX, type Profile, profileOf, rulesDigest } from './profile.ts'
import type { TableListing } from './table-listing.ts'

/** What the map in the kernel has for an address. */
export interface MapEntry {
  readonly profile: string
  /** Identifies the client and its rules. '' = unknown. */
  readonly comment: string
}

interface Known {
  readonly profile: Profile
  readonly comment: string
}

/** What the rules of a client are in the kernel. */
interface Compiled {
  readonly profile: Profile
  readonly digest: string
}

/** For clients whose rules are not known yet, if their chains are lost: only what sets have is allowed. */
const CLOSED = profileOf([[{ rules: [], otherwise: 'deny' }]])

/** For clients that no policy restricts: they are only known, and their DNS queries are not redirected. */
const OPEN: Profile = openProfile()

function openProfile(): Profile {
  const name = `${PROFILE_PREFIX}open`
  return { name, chains: [{ name, base: '', rules: ['accept'] }] }
}

/** What writes the clients, and what the kernel has then. */
interface WrittenClients {
  readonly statements: readonly string[]
  readonly chains: ReadonlySet<string>
  readonly version: number
}

/** How the rules of a client have changed. */
type ClientChange =
  /** It has another address, or the address is of another client now. */
  'client' | 'rules'

/**
 * The clients by address, their profiles, and which chains of profiles the kernel has. Each change
 * writes the whole map: two processes with the same clients may do it.
 */
export class ClientProfiles {
  readonly #table: string
  readonly #compiled = new WeakMap<ClientRules, Compiled>()
  #clients: ReadonlyMap<string, Known> = new Map()
  /** Entries of the kernel for addresses of no client, which stay until the list of clients is complete. */
  #unlisted = new Map<string, MapEntry>()
  /** Names of chains of profiles in the kernel. */
  #chains: ReadonlySet<string> = new Set()
  #isComplete = false
  #version = 0
  #versionInForce = 0
  #writes = 0

  constructor(table: string) {
    this.#table = table
  }

  /** Rises with each change of the clients, and when the kernel may have lost them; 0 = they are not set yet. */
  get version(): number {
    return this.#version
  }

  get versionInForce(): number {
    return this.#versionInForce
  }

  /** True if the kernel is expected to have the clients that are wanted. */
  get isInForce(): boolean {
    return this.#version === this.#versionInForce
  }

  get areKnown(): boolean {
    return this.#version > 0
  }

  /** Number of calls of `write`. */
  get writes(): number {
    return this.#writes
  }

  /** The kernel may not have what was written. */
  distrust(): void {
    this.#version++
  }

  has(address: string): boolean {
    return this.#clients.has(address)
  }

  /** True if elements of the kernel for an address may stay: its client and the rules are the same. */
  mayKeep(address: string, inKernel: MapEntry | undefined): boolean {
    const known = this.#clients.get(address)
    if (known === undefined) return !this.#isComplete && inKernel !== undefined
    return known.comment === inKernel?.comment
  }

  /** True if one of these entries is of another client than its address has now, or of other rules. */
  differFrom(entries: ReadonlyMap<string, MapEntry>): boolean {
    for (const [address, { comment }] of this.#clients) {
      const before = entries.get(address)
      if (before !== undefined && before.comment !== comment) return true
    }
    return false
  }

  /** Replaces the clients. Returns how each address changed. */
  set(clients: readonly Client[], isComplete: boolean): ReadonlyMap<string, ClientChange> {
    const next = new Map<string, Known>()
    for (const { id, addresses, rules } of clients) {
      const { profile, digest } = this.#compile(rules)
      const known = { profile, comment: `${digestOf(id)} ${digest}` }
      for (const address of addresses) next.set(address, known)
    }
    const changes = new Map<string, ClientChange>()
    for (const address of new Set([...this.#entries().keys(), ...next.keys()])) {
      const before = this.#clients.get(address) ?? this.#unlisted.get(address)
      const after = next.get(address)
      if (after === undefined && !isComplete && this.#unlisted.has(address)) continue
      if (before?.comment === after?.comment) continue
      const isSame = before?.comment.split(' ')[0] === after?.comment.split(' ')[0]
      changes.set(address, isSame ? 'rules' : 'client')
    }
    this.#clients = next
    this.#isComplete = isComplete
    for (const address of [...this.#unlisted.keys()]) {
      if (isComplete || next.has(address)) this.#unlisted.delete(address)
    }
    if (changes.size > 0 || this.#version === 0) this.#version++
    return changes
  }

  /** Notes what the kernel has. Returns the entries of its map. */
  read(listing: TableListing | undefined): ReadonlyMap<string, MapEntry> {
    const entries = this.entriesOf(listing)
    const names = [...(listing?.chains.keys() ?? [])]
    this.#chains = new Set(names.filter((name) => name.startsWith(PROFILE_PREFIX)))
    if (this.#isComplete) return entries
    for (const [address, entry] of entries) {
      if (!this.#clients.has(address)) this.#unlisted.set(address, entry)
    }
    return entries
  }

  /** The chains that the kernel is to have, except those of clients that are not listed. */
  chains(): readonly Chain[] {
    const profiles = new Map<string, Profile>()
    for (const { profile } of this.#clients.values()) profiles.set(profile.name, profile)
    for (const { profile } of this.#unlisted.values())
      if (profile === CLOSED.name) profiles.set(profile, CLOSED)
    return [...profiles.values()].flatMap(({ chains }) => chains)
  }

  /** The entries of the maps of both families. */
  entriesOf(listing: TableListing | undefined): ReadonlyMap<string, MapEntry> {
    const entries = new Map<string, MapEntry>()
    for (const name of ['profiles4', 'profiles6']) {
      for (const text of listing?.elements.get(name) ?? []) {
        const [, address, comment = '', profile] =
          /^(\S+) (?:comment "(.*)" )?: goto (\S+)$/.exec(text) ?? []
        if (address !== undefined)
          entries.set(canonicalAddress(address), { profile: profile!, comment })
      }
    }
    return entries
  }

  /** True if the maps and sets of clients in the kernel have what `write` writes. */
  isEqual(listing: TableListing): boolean {
    const inKernel = this.entriesOf(listing)
    const wanted = this.#entries()
    const { elements } = listing
    const selected = [elements.get('clients4') ?? [], elements.get('clients6') ?? []].flat()
    const restricted = [...wanted.values()].filter(({ profile }) => profile !== OPEN.name)
    if (wanted.size !== inKernel.size || restricted.length !== selected.length) return false
    return [...wanted].every(([address, { profile }]) => inKernel.get(address)?.profile === profile)
  }

  /**
   * The statements that write the map, and the chains that the kernel does not have; with `isEmpty`, all
   * chains. Call `noteWritten` once they are in force.
   */
  write(isEmpty: boolean): WrittenClients {
    const table = this.#table
    this.#writes++
    if (isEmpty) {
      for (const [address, { comment }] of this.#unlisted)
        this.#unlisted.set(address, { profile: CLOSED.name, comment })
    }
    const entries = this.#entries()
    const isKept = new Set([...this.#unlisted.values()].map(({ profile }) => profile))
    const wanted = this.chains()
    const added = wanted.filter(({ name }) => isEmpty || !this.#chains.has(name))
    const statements = [...fillChains(table, added)]
    for (const version of [4, 6]) {
      statements.push(
        `flush set inet ${table} clients${version}`,
        `flush map inet ${table} profiles${version}`,
      )
      const own = [...entries].filter(([address]) => address.includes(':') === (version === 6))
      if (own.length === 0) continue
      const restricted = own.filter(([, { profile }]) => profile !== OPEN.name)
      const addresses = restricted.map(([address]) => address)
      const jumps = own.map(([address, { profile, comment }]) => {
        const note = comment === '' ? '' : ` comment "${comment}"`
        return `${address}${note} : goto ${profile}`
      })
      statements.push(`add element inet ${table} profiles${version} { ${jumps.join(', ')} }`)
      if (addresses.length === 0) continue
      statements.push(`add element inet ${table} clients${version} { ${addresses.join(', ')} }`)
    }
    const chains = new Set(wanted.map(({ name }) => name))
    const removed: string[] = []
    for (const name of isEmpty ? [] : this.#chains) {
      if (chains.has(name)) continue
      // The chains of one profile have the same start of their names.
      if ([...isKept].some((profile) => name.startsWith(profile))) chains.add(name)
      else removed.push(name)
    }
    statements.push(...removeChains(table, removed))
    return { statements, chains, version: this.#version }
  }

  noteWritten({ chains, version }: WrittenClients): void {
    this.#chains = chains
    this.#versionInForce = version
  }

  #entries(): ReadonlyMap<string, MapEntry> {
    const entries = new Map<string, MapEntry>(this.#unlisted)
    for (const [address, { profile, comment }] of this.#clients) {
      entries.set(address, { profile: profile.name, comment })
    }
    return entries
  }

  #compile(rules: ClientRules): Compiled {
    const known = this.#compiled.get(rules)
    if (known !== undefined) return known
    const profile = isOpen(rules) ? OPEN : profileOf(rules.lists)
    const compiled = { profile, digest: rulesDigest(rules.lists) }
    this.#compiled.set(rules, compiled)
    return compiled
  }
}
