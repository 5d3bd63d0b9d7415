import { ARENA_OCTETS_MAX, Arena } from '../image/arena.ts'
import { ZoneImage } from '../image/writer.ts'
import { NodeRecords } from './node-records.ts'
import type { ZoneRecords } from './records.ts'

const RESERVE_MIN = 4 * 1024 * 1024
const RESERVE_PER_OCTET = 256
/** Octets of names and rdata of a zone that is filled into the spare arena. */
const SPARE_ZONE_OCTETS = 16 * 1024
/** Owners between two pauses. */
const SLICE_NODES = 256

/** The arena of the last small zone. To reserve address space takes longer than to fill a small zone. */
let spare: Arena | undefined

/** Copies checked records into an image and finishes it; pauses now and then. */
export function* finishImage(
  records: ZoneRecords,
  apex: Uint8Array,
): Generator<void, SharedArrayBuffer> {
  if (records.octetCount > SPARE_ZONE_OCTETS) return (yield* fillImage(records, apex)).finish()
  const arena = spare ?? new Arena(0, reservedOctets(SPARE_ZONE_OCTETS))
  // A load of another zone may begin before this one is finished.
  spare = undefined
  const buffer = (yield* fillImage(records, apex, arena)).finish()
  if (buffer !== arena.buffer) {
    arena.clear()
    spare = arena
  }
  return buffer
}

/** Copies checked records into a new zone image and publishes it; pauses now and then. `arena`: see `ZoneImage`. */
export function* fillImage(
  records: ZoneRecords,
  apex: Uint8Array,
  arena?: Arena,
): Generator<void, ZoneImage> {
  const maxOctets = reservedOctets(records.octetCount)
  const image = new ZoneImage({ names: records.nodeCount, maxOctets, arena })
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
function reservedOctets(octetCount: number): number {
  const wanted = RESERVE_MIN + octetCount * RESERVE_PER_OCTET
  return Math.min(wanted, ARENA_OCTETS_MAX)
}
