import { type Address, type Cidr, isInNetwork } from '../../dns/text/address.ts'
import type { NetworkPeer } from './rule.ts'

interface Entry<T> {
  readonly except: readonly Cidr[]
  readonly value: T
}

/**
 * Finds the networks that contain an address: one look into a map for each prefix length in use. So
 * the time does not depend on the number of networks.
 */
export class NetworkIndex<T> {
  /** By family and prefix length. */
  readonly #lengths = new Map<string, { readonly bits: number; readonly family: number }>()
  readonly #entries = new Map<string, Entry<T>[]>()

  add({ network, except }: NetworkPeer, value: T): void {
    const { family, bits, bytes } = network
    this.#lengths.set(`${family}/${bits}`, { family, bits })
    const key = keyOf(bytes, family, bits)
    const entries = this.#entries.get(key)
    const entry = { except: except.filter((part) => part.family === family), value }
    if (entries === undefined) this.#entries.set(key, [entry])
    else entries.push(entry)
  }

  /** Calls `found` with the value of each network that contains the address and does not except it. */
  find({ bytes, family }: Address, found: (value: T) => void): void {
    for (const length of this.#lengths.values()) {
      if (length.family !== family) continue
      for (const { except, value } of this.#entries.get(keyOf(bytes, family, length.bits)) ?? []) {
        if (!except.some((part) => isInNetwork(bytes, part))) found(value)
      }
    }
  }
}

/** Family, prefix length, and the octets of the prefix. */
function keyOf(bytes: Uint8Array, family: number, bits: number): string {
  let key = String.fromCharCode(family, bits)
  const octets = bits >> 3
  for (let i = 0; i < octets; i++) key += String.fromCharCode(bytes[i]!)
  if ((bits & 7) !== 0) key += String.fromCharCode(bytes[octets]! & (0xff00 >> (bits & 7)) & 0xff)
  return key
}
