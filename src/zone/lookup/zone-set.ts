import { equalOctets } from '../../base/octets.ts'
import { mixHash } from '../../dns/name/hash.ts'
import { type HashedName, NameBuffer } from '../../dns/name/hashed-name.ts'
import type { ZoneDirectory } from '../../dns/name/zone-directory.ts'

/** For names of zones. */
const scratch = new NameBuffer()

/**
 * A fixed set of zones, matched against a query by longest suffix without allocating. Names are
 * lower-case wire form.
 */
export class ZoneSet implements ZoneDirectory {
  /** In the order in which they were given. */
  readonly zones: readonly Uint8Array[]
  readonly #slots: Int32Array
  readonly #hashes: Int32Array
  readonly #mask: number
  /** Labels of the longest zone. */
  readonly deepest: number
  /** By zone: labels of the longest zone at or below it. */
  readonly #below: Uint8Array

  constructor(zones: readonly Uint8Array[]) {
    this.zones = zones
    let size = 4
    while (size < zones.length * 2) size *= 2
    this.#mask = size - 1
    this.#slots = new Int32Array(size).fill(-1)
    this.#hashes = new Int32Array(size)
    zones.forEach((zone, index) => {
      scratch.set(zone, 0, zone.length)
      const hash = scratch.suffixHash[0]!
      let slot = mixHash(hash) & this.#mask
      while (this.#slots[slot] !== -1) slot = (slot + 1) & this.#mask
      this.#slots[slot] = index
      this.#hashes[slot] = hash
    })
    this.#below = new Uint8Array(zones.length)
    this.deepest = this.#countBelow()
  }

  /** Returns the index of exactly this zone, or -1. */
  indexOf(zone: Uint8Array): number {
    scratch.set(zone, 0, zone.length)
    return this.#find(scratch, 0)
  }

  /**
   * Index of the longest zone that is a suffix of the qname, or -1. `fromLabel`: skip that many
   * labels.
   */
  match(name: HashedName, fromLabel = 0): number {
    const longest = name.labelCount - this.deepest
    for (let label = Math.max(longest, fromLabel); label <= name.labelCount; label++) {
      const found = this.#find(name, label)
      if (found !== -1) return found
    }
    return -1
  }

  /**
   * Labels of the longest zone at or below the one that the name is in; without such a zone, of the
   * longest of all.
   */
  deepestAround(name: HashedName): number {
    const index = this.match(name)
    return index === -1 ? this.deepest : this.#below[index]!
  }

  /** See `ZoneDirectory`. @hot */
  apexOctets(name: HashedName, fromLabel: number): number {
    const index = this.match(name, fromLabel)
    return index === -1 ? 0 : this.zones[index]!.length
  }

  /** Fills `#below`; returns the labels of the longest zone. */
  #countBelow(): number {
    let deepest = 0
    for (const zone of this.zones) {
      scratch.set(zone, 0, zone.length)
      const labels = scratch.labelCount
      deepest = Math.max(deepest, labels)
      for (let label = 0; label <= labels; label++) {
        const index = this.#find(scratch, label)
        if (index !== -1 && this.#below[index]! < labels) this.#below[index] = labels
      }
    }
    return deepest
  }

  #find(name: HashedName, label: number): number {
    const hash = name.suffixHash[label]!
    let slot = mixHash(hash) & this.#mask
    for (;;) {
      const index = this.#slots[slot]!
      if (index === -1) return -1
      if (this.#hashes[slot] === hash && equalsSuffix(name, label, this.zones[index]!)) return index
      slot = (slot + 1) & this.#mask
    }
  }
}

function equalsSuffix(name: HashedName, label: number, zone: Uint8Array): boolean {
  const start = name.labelOffset[label]!
  if (name.qnameOctets - start !== zone.length) return false
  return equalOctets(name.qname, start, zone, 0, zone.length)
}

/** Labels of a name in wire form, without the root. */
export function countLabels(name: Uint8Array): number {
  let labels = 0
  for (let at = 0; name[at] !== 0; at += name[at]! + 1) labels++
  return labels
}
