import { assert } from '../../base/assert.ts'
import { mixHash } from '../../dns/name/hash.ts'
import { scanAddress } from '../../dns/text/address.ts'
import type { Client } from './client.ts'

/** Slots per address: short ways at 25 % to 50 % of the slots in use. */
const ROOM = 2

/** The clients by their addresses. A lookup allocates nothing. */
export class ClientTable {
  readonly #ipv4: AddressTable
  readonly #ipv6: AddressTable

  /** No two clients have one address. */
  constructor(clients: readonly Client[]) {
    const found = clients.flatMap((client) =>
      client.addresses.map((text) => {
        const address = scanAddress(text)
        assert(address !== undefined, `${text} is an address`)
        return { client, address }
      }),
    )
    const ipv4 = found.filter(({ address }) => address.family === 1)
    const ipv6 = found.filter(({ address }) => address.family === 2)
    this.#ipv4 = new AddressTable(1, ipv4.length)
    this.#ipv6 = new AddressTable(4, ipv6.length)
    for (const { client, address } of ipv4) this.#ipv4.add(address.bytes, client)
    for (const { client, address } of ipv6) this.#ipv6.add(address.bytes, client)
  }

  /** `bytes[offset]` starts an address of 4 (family 1) or 16 octets (family 2). @hot */
  at(bytes: Uint8Array, offset: number, family: number): Client | undefined {
    return family === 1 ? this.#ipv4.at(bytes, offset) : this.#ipv6.at(bytes, offset)
  }
}

/** An address that two clients claim belongs to the later one: an address of a Pod that is gone is used again. */
export function withoutSharedAddresses(clients: readonly Client[]): readonly Client[] {
  const owners = new Map<string, Client>()
  for (const client of clients) for (const address of client.addresses) owners.set(address, client)
  return clients.map((client) => {
    const addresses = client.addresses.filter((address) => owners.get(address) === client)
    return addresses.length === client.addresses.length ? client : { ...client, addresses }
  })
}

/** A hash table with linear probing. It always has a free slot. */
class AddressTable {
  /** Of an address, in words of 4 octets. */
  readonly #words: number
  readonly #mask: number
  readonly #keys: Int32Array
  readonly #clients: (Client | undefined)[]

  constructor(words: number, count: number) {
    let slots = 2
    while (slots < count * ROOM) slots *= 2
    this.#words = words
    this.#mask = slots - 1
    this.#keys = new Int32Array(slots * words)
    this.#clients = Array.from({ length: slots }, () => undefined)
  }

  add(bytes: Uint8Array, client: Client): void {
    const slot = this.#slotOf(bytes, 0)
    this.#clients[slot] = client
    for (let i = 0; i < this.#words; i++) this.#keys[slot * this.#words + i] = wordAt(bytes, i * 4)
  }

  at(bytes: Uint8Array, offset: number): Client | undefined {
    return this.#clients[this.#slotOf(bytes, offset)]
  }

  /** The slot of the address, or the free one where it would be. */
  #slotOf(bytes: Uint8Array, offset: number): number {
    let hash = 0
    for (let i = 0; i < this.#words; i++) hash = mixHash(hash ^ wordAt(bytes, offset + i * 4))
    let slot = hash & this.#mask
    while (this.#clients[slot] !== undefined && !this.#hasKey(slot, bytes, offset)) {
      slot = (slot + 1) & this.#mask
    }
    return slot
  }

  #hasKey(slot: number, bytes: Uint8Array, offset: number): boolean {
    for (let i = 0; i < this.#words; i++) {
      if (this.#keys[slot * this.#words + i] !== wordAt(bytes, offset + i * 4)) return false
    }
    return true
  }
}

function wordAt(bytes: Uint8Array, offset: number): number {
  const high = (bytes[offset]! << 24) | (bytes[offset + 1]! << 16)
  return high | (bytes[offset + 2]! << 8) | bytes[offset + 3]!
}
