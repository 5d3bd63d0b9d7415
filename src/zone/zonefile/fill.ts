import { ARENA_OCTETS_MAX } from '../image/arena.ts'
import { ZoneImage } from '../image/writer.ts'
import { NodeRecords } from './node-records.ts'
import type { ZoneRecords } from './records.ts'

const RESERVE_MIN = 4 * 1024 * 1024
const RESERVE_PER_OCTET = 256
/** Owners between two pauses. */
const SLICE_NODES = 256

/** Copies checked records into a new zone image and publishes it; pauses now and then. */
export function* fillImage(records: ZoneRecords, apex: Uint8Array): Generator<void, ZoneImage> {
  const image = new ZoneImage({ names: records.nodeCount, maxOctets: reservedOctets(records) })
  const zone = image.addZone(apex)
  const node = new NodeRecords(records)
  for (let i = 0; i < records.nodeCount; i++) {
    node.read(i)
    const owner = records.owner(i)
    for (let from = 0; from < node.index.length; ) {
      const end = node.setEnd(from)
      const first = node.index[from]!
      const rdata: Uint8Array[] = []
      for (let j = from; j < end; j++) rdata.push(records.rdata(node.index[j]!))
      const type = records.type[first]!
      image.putRRset(zone, owner, { type, ttlSeconds: records.ttlSeconds[first]!, rdata })
      from = end
    }
    if (i % SLICE_NODES === SLICE_NODES - 1) yield
  }
  yield* image.updateChain(zone)
  image.publish()
  return image
}

/**
 * Returns the address space for the image: thousands of zones can't each reserve the maximum. A
 * name can need some hundred times its octets if each of its labels is an empty non-terminal.
 */
function reservedOctets(records: ZoneRecords): number {
  const wanted = RESERVE_MIN + records.octetCount * RESERVE_PER_OCTET
  return Math.min(wanted, ARENA_OCTETS_MAX)
}
