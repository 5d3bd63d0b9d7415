import { NameBuffer } from '../../dns/name/hashed-name.ts'
import { ARENA_OCTETS_MAX, type Arena } from './arena.ts'
import { compactArena, type WrittenArena } from './compact.ts'
import * as L from './layout.ts'
import { ZoneReader } from './reader.ts'
import type { CapturedImage } from './writer.ts'

/** Version of the content of every copy. */
export const COPY_VERSION = 1

/**
 * Copies a captured version without garbage, as input of `restoreArena`. Safe while the writer of
 * the image continues in another thread.
 */
export function copyCaptured(image: CapturedImage): Arena {
  const reader = new ZoneReader({ buffer: image.buffer })
  reader.refreshTo(image.version)
  const copy = compactArena(reader, image.zones, COPY_VERSION, ARENA_OCTETS_MAX)
  countChildren(copy)
  return copy.arena
}

/** Recomputes the number of children of every node. All nodes of the arena have a body. */
function countChildren({ arena, nodes, zones }: WrittenArena): void {
  const { words, bytes } = arena
  const name = new NameBuffer()
  const octetsOfName = new Uint8Array(256)
  for (const zone of zones) {
    const newest = words[zone.offset + L.ZONE_NEWEST_NODE]!
    for (let node = newest; node !== 0; node = words[node + L.NODE_NEXT]!) {
      words[node + L.NODE_CHILDREN] = 0
    }
    const apexAt = (zone.offset + L.ZONE_APEX) * 4
    const apexOctets = words[zone.offset + L.ZONE_APEX_SIZE]! & 0xffff
    for (let node = newest; node !== 0; node = words[node + L.NODE_NEXT]!) {
      const octets = words[node + L.NODE_KEY]! & 0xffff
      if (octets === 0) continue
      const at = (node + L.NODE_NAME) * 4
      for (let i = 0; i < octets; i++) octetsOfName[i] = bytes[at + i]!
      for (let i = 0; i < apexOctets; i++) octetsOfName[octets + i] = bytes[apexAt + i]!
      name.set(octetsOfName, 0, octets + apexOctets)
      words[nodes.find(zone, name, 1) + L.NODE_CHILDREN]!++
    }
  }
}
