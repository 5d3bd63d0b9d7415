import { Arena } from './arena.ts'
import type { WrittenArena } from './compact.ts'
import * as L from './layout.ts'
import { NodeStore } from './node-store.ts'
import { tableWords } from './table.ts'
import type { CapturedImage } from './writer.ts'
import { ZoneTable } from './zone-table.ts'

/**
 * Returns the arena of an image that was filled once, for a writer that continues it, maybe in another thread. The
 * writer that filled it must write no more.
 */
export function adoptArena({ buffer, zones }: CapturedImage): WrittenArena {
  const arena = Arena.adopt(buffer)
  const { words } = arena
  const nodes = new NodeStore(arena, sum(zones, 'names'))
  const tables = [nodes.index, words[L.HEADER_ZONES]!].map((at) => tableWords(words[at]! + 1))
  const used = L.HEADER_WORDS + tables[0]! + tables[1]! + sum(zones, 'liveWords')
  nodes.garbageWords = arena.tail - used
  return { arena, nodes, zoneTable: new ZoneTable(arena, zones.length), zones: [...zones] }
}

function sum(zones: CapturedImage['zones'], field: 'names' | 'liveWords'): number {
  return zones.reduce((total, zone) => total + zone[field], 0)
}
