import { hashLabel } from '../../dns/name/hash.ts'
import { NameBuffer } from '../../dns/name/hashed-name.ts'
import { Arena } from './arena.ts'
import { ChainStore } from './chain-store.ts'
import * as L from './layout.ts'
import { NodeStore, type ZoneEntry } from './node-store.ts'
import type { ZoneReader } from './reader.ts'
import { slotsFor } from './table.ts'
import { ZoneTable } from './zone-table.ts'

/** An arena with the data that its writer has about it. */
export interface WrittenArena {
  readonly arena: Arena
  readonly nodes: NodeStore
  readonly zoneTable: ZoneTable
  readonly zones: ZoneEntry[]
}

/**
 * Copies `zones`, as `from` sees them, into a new arena, with the version `version`. Zones keep
 * their ids. The writer of the old arena may continue in the meantime; `NODE_CHILDREN` is then not
 * reliable.
 */
export function compactArena(
  from: ZoneReader,
  zones: readonly ZoneEntry[],
  version: number,
  maxOctets: number,
): WrittenArena {
  const names = zones.reduce((sum, zone) => sum + zone.names, 0)
  const live = zones.reduce((sum, zone) => sum + zone.liveWords, 0)
  const nodeSlots = slotsFor(names)
  const zoneSlots = slotsFor(zones.length)
  const octets = (live + (nodeSlots + zoneSlots) * L.SLOT_WORDS) * 4
  const arena = new Arena(Math.ceil(octets * 1.125), maxOctets)
  const nodes = NodeStore.create(arena, nodeSlots)
  const zoneTable = ZoneTable.create(arena, zoneSlots)
  const moved = zones.map((zone) => copyZone(from, zone, nodes, zoneTable, version))
  arena.words[L.HEADER_TAIL] = arena.tail
  Atomics.store(arena.words, L.HEADER_VERSION, version)
  return { arena, nodes, zoneTable, zones: moved }
}

function copyZone(
  from: ZoneReader,
  zone: ZoneEntry,
  nodes: NodeStore,
  zoneTable: ZoneTable,
  version: number,
): ZoneEntry {
  const apex = new NameBuffer()
  const at = (zone.offset + L.ZONE_APEX) * 4
  apex.set(from.bytes, at, at + 255)
  const offset = zoneTable.add(zone.id, apex, version)
  const blockWords = nodes.arena.tail - offset
  const moved = { id: zone.id, offset, labels: zone.labels, names: 0, liveWords: blockWords }
  const apexHash = apex.suffixHash[0]!
  let node = from.newestNode(zone.offset)
  for (; node !== 0; node = from.words[node + L.NODE_NEXT]!) {
    const body = from.visibleBody(node)
    if (body === 0) continue
    const copy = copyNode(from, node, body, nodes, moved, version)
    nodes.enter(copy, L.nodeHash(hashRelative(from, node, apexHash), zone.id))
    if (node === from.words[zone.offset + L.ZONE_APEX_NODE]) {
      nodes.arena.words[offset + L.ZONE_APEX_NODE] = copy
    }
  }
  const chain = from.findChain(zone.offset)
  if (chain !== 0) new ChainStore(nodes).copy(moved, apex, from, chain, version)
  return moved
}

/** Copies a node, its RRsets and its body to adjacent words: a lookup reads few cache lines. */
function copyNode(
  from: ZoneReader,
  node: number,
  body: number,
  nodes: NodeStore,
  moved: ZoneEntry,
  version: number,
): number {
  const octets = from.words[node + L.NODE_KEY]! & 0xffff
  const copy = nodes.append(moved, octets)
  const source = (node + L.NODE_NAME) * 4
  const target = (copy + L.NODE_NAME) * 4
  for (let i = 0; i < octets; i++) nodes.arena.bytes[target + i] = from.bytes[source + i]!
  nodes.arena.words[copy + L.NODE_CHILDREN] = from.words[node + L.NODE_CHILDREN]!
  const state = from.words[body + L.BODY_STATE]!
  const count = state >>> L.BODY_COUNT_SHIFT
  const rrsets: number[] = []
  for (let i = 0; i < count; i++) {
    rrsets.push(copyRRset(from, from.words[body + L.BODY_RRSETS + i]!, nodes, moved))
  }
  const kept = state & L.LASTING_FLAGS
  nodes.appendBody(moved, copy, version, kept, rrsets)
  return copy
}

function copyRRset(from: ZoneReader, rrset: number, nodes: NodeStore, moved: ZoneEntry): number {
  const size = from.words[rrset + L.RRSET_WORDS]!
  const copy = nodes.arena.allocate(size)
  const words = nodes.arena.words
  for (let i = 0; i < size; i++) words[copy + i] = from.words[rrset + i]!
  moved.liveWords += size
  return copy
}

const labelStarts = new Uint8Array(128)

/**
 * Returns the unfinished hash of a node's whole name: the apex's hash, continued with the labels
 * from right to left.
 */
function hashRelative(from: ZoneReader, node: number, apexHash: number): number {
  const start = (node + L.NODE_NAME) * 4
  const octets = from.words[node + L.NODE_KEY]! & 0xffff
  let labels = 0
  for (let at = 0; at < octets; at += from.bytes[start + at]! + 1) labelStarts[labels++] = at
  let hash = apexHash
  while (labels > 0) hash = hashLabel(hash, from.bytes, start + labelStarts[--labels]!)
  return hash
}
