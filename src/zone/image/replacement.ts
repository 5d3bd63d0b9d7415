import type { Arena } from './arena.ts'
import * as L from './layout.ts'
import type { ZoneEntry } from './node-store.ts'
import type { ZoneId } from './types.ts'

/** In place of a type: the name itself, which exists because it was declared. */
export const DECLARED_NAME = 0

/** An RRset, or a declared name, that the caller did not put again. */
export interface Leftover {
  readonly zone: ZoneId
  /** Lower-case wire form. */
  readonly owner: Uint8Array
  /** DECLARED_NAME, or the type of an RRset. */
  readonly type: number
}

/** Tracks which of the existing RRsets the caller puts again during a replacement. */
export class Replacement {
  readonly #tail: number
  /** One bit per word of the arena: the RRset that begins there was put again. */
  readonly #kept: Uint8Array
  /** Nodes that the caller declared again. */
  readonly #declared = new Set<number>()

  /** `tail`: end of the arena before the replacement; all blocks behind it are new. */
  constructor(tail: number) {
    this.#tail = tail
    this.#kept = new Uint8Array((tail >> 3) + 1)
  }

  keep(rrset: number): void {
    if (rrset < this.#tail) this.#kept[rrset >> 3]! |= 1 << (rrset & 7)
  }

  keepDeclared(node: number): void {
    this.#declared.add(node)
  }

  /**
   * Returns the old RRsets and declarations in the newest bodies of all names that the caller did
   * not put again.
   */
  leftovers({ words, bytes }: Arena, zones: readonly ZoneEntry[]): Leftover[] {
    const leftovers: Leftover[] = []
    for (const { id, offset } of zones) {
      let node = words[offset + L.ZONE_NEWEST_NODE]!
      for (; node !== 0; node = words[node + L.NODE_NEXT]!) {
        const body = words[node + L.NODE_BODY]!
        const count = body === 0 ? 0 : words[body + L.BODY_STATE]! >>> L.BODY_COUNT_SHIFT
        for (let i = 0; i < count; i++) {
          const rrset = words[body + L.BODY_RRSETS + i]!
          if (rrset >= this.#tail || this.#isKept(rrset)) continue
          const type = words[rrset + L.RRSET_HEAD]! >>> 16
          leftovers.push({ zone: id, owner: ownerOf(words, bytes, node, offset), type })
        }
        const isDeclared = body !== 0 && (words[body + L.BODY_STATE]! & L.FLAG_DECLARED) !== 0
        if (!isDeclared || this.#declared.has(node)) continue
        const owner = ownerOf(words, bytes, node, offset)
        leftovers.push({ zone: id, owner, type: DECLARED_NAME })
      }
    }
    return leftovers
  }

  #isKept(rrset: number): boolean {
    return (this.#kept[rrset >> 3]! & (1 << (rrset & 7))) !== 0
  }
}

function ownerOf(words: Uint32Array, bytes: Uint8Array, node: number, zone: number): Uint8Array {
  const octets = words[node + L.NODE_KEY]! & 0xffff
  const apexOctets = words[zone + L.ZONE_APEX_SIZE]! & 0xffff
  const at = (node + L.NODE_NAME) * 4
  const apexAt = (zone + L.ZONE_APEX) * 4
  const owner = new Uint8Array(octets + apexOctets)
  owner.set(bytes.subarray(at, at + octets))
  owner.set(bytes.subarray(apexAt, apexAt + apexOctets), octets)
  return owner
}
