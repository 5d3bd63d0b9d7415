import { NameBuffer } from '../../src/dns/name/hashed-name.ts'
import { nodesOf } from '../../src/zone/image/chain-builder.ts'
import { ChainCursor } from '../../src/zone/image/chain-cursor.ts'
import * as L from '../../src/zone/image/layout.ts'
import type { ZoneReader } from '../../src/zone/image/reader.ts'
import { text } from './zone-names.ts'

/** A cursor before all nodes of the chain of a zone; undefined = the image has no such zone. */
function enterChain(reader: ZoneReader, apex: Uint8Array): ChainCursor | undefined {
  const name = new NameBuffer()
  name.set(apex, 0, apex.length)
  const zone = reader.matchZone(name, 0)
  if (zone === 0 || reader.zoneLabel !== 0) return undefined
  const chain = reader.findChain(zone)
  const cursor = new ChainCursor()
  cursor.enter(reader.words, chain)
  return cursor
}

/** Returns the nodes of the chain of a zone in the reader's version, in its order. */
export function chainNodes(reader: ZoneReader, apex: Uint8Array): number[] {
  const cursor = enterChain(reader, apex)
  const nodes: number[] = []
  if (cursor === undefined) return nodes
  const { words } = reader
  for (let node = cursor.next(words); node !== 0; node = cursor.next(words)) nodes.push(node)
  return nodes
}

/** Returns the owners of the chain, relative to the apex; '.' = the apex. */
export function chainOwners(reader: ZoneReader, apex: Uint8Array): string[] {
  return chainNodes(reader, apex).map((node) => {
    const at = (node + L.NODE_NAME) * 4
    const octets = reader.words[node + L.NODE_KEY]! & 0xffff
    return text(Uint8Array.of(...reader.bytes.subarray(at, at + octets), 0))
  })
}

/** Returns the sizes of the blocks of a chain. */
export function chainBlockSizes(reader: ZoneReader, apex: Uint8Array): number[] {
  const { words } = reader
  const cursor = enterChain(reader, apex)
  return Array.from({ length: cursor?.blocks ?? 0 }, (_, i) => {
    return nodesOf(words, cursor!.blockAt(words, i)).length
  })
}
