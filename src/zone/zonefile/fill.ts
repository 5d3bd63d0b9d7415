import { ARENA_OCTETS_MAX, Arena } from '../image/arena.ts'
import { RecordRun } from '../image/record-run.ts'
import { type CapturedImage, ZoneImage } from '../image/writer.ts'
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
): Generator<void, CapturedImage> {
  if (records.octetCount > SPARE_ZONE_OCTETS) return finished(yield* fillImage(records, apex))
  const arena = spare ?? new Arena(0, reservedOctets(SPARE_ZONE_OCTETS))
  // A load of another zone may begin before this one is finished.
  spare = undefined
  const image = finished(yield* fillImage(records, apex, arena))
  if (image.buffer !== arena.buffer) {
    arena.clear()
    spare = arena
  }
  return image
}

/** Ends the writing of an image. */
export function finished(image: ZoneImage): CapturedImage {
  const buffer = image.finish()
  return { ...image.capture(), buffer }
}

/** Copies checked records into a new zone image and publishes it; pauses now and then. `arena`: see `ZoneImage`. */
export function* fillImage(
  records: ZoneRecords,
  apex: Uint8Array,
  arena?: Arena,
): Generator<void, ZoneImage> {
  const image = newImage(records.nodeCount, records.octetCount, arena)
  const zone = image.addZone(apex)
  const node = new NodeRecords(records)
  const run = new RecordRun()
  run.octets = records.octets
  const { type, ttlSeconds, rdataOffset, rdataOctets } = records
  for (let i = 0; i < records.nodeCount; i++) {
    node.read(i)
    run.count = 0
    for (const record of node.index)
      run.add(type[record]!, ttlSeconds[record]!, rdataOffset[record]!, rdataOctets[record]!)
    if (run.count > 0) image.putName(zone, records.owner(i), records.ownerOctets[i]!, run)
    if (i % SLICE_NODES === SLICE_NODES - 1) yield
  }
  yield* image.updateChain(zone)
  image.publish()
  return image
}

/** Returns an image for one zone. `octets`: of its names and rdata, or of its text. */
export function newImage(names: number, octets: number, arena?: Arena): ZoneImage {
  return new ZoneImage({ names, maxOctets: reservedOctets(octets), arena })
}

/**
 * Returns the address space for the image: thousands of zones can't each reserve the maximum. A
 * name can need some hundred times its octets if each of its labels is an empty non-terminal.
 */
function reservedOctets(octets: number): number {
  return Math.min(RESERVE_MIN + octets * RESERVE_PER_OCTET, ARENA_OCTETS_MAX)
}
