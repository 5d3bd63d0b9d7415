/*
 * One memory for the packets of a thread, at a place that is known when code is compiled: lookups
 * and checks of V8 at each use would cost a third. A module that reads or writes packets here binds
 * these constants itself, because V8 folds only constants that a module declares itself.
 */

/** Number of regions that are lent, one per UDP socket. The system allocates their memory on first use. */
const REGIONS = 16
/** A multiple of 64. */
export const REGION_OCTETS = 352 * 1024

/** The longest packet, and room because packets are read by four octets. */
export const SCRATCH_OCTETS = 65_535
const SCRATCH_ROOM_OCTETS = SCRATCH_OCTETS + 61
/** Offset of the region for packets that bypass the UDP sockets. It is used for one packet at a time. */
export const BYPASS_REGION = REGIONS * REGION_OCTETS
/** Offset of the place for a packet from elsewhere, such as TCP. It is used for one call at a time. */
export const SCRATCH = BYPASS_REGION + REGION_OCTETS

const buffer = new ArrayBuffer(SCRATCH + SCRATCH_ROOM_OCTETS)
export const packetOctets = new Uint8Array(buffer)
export const packetView = new DataView(buffer)
/** The same octets by four. */
export const packetWords = new Int32Array(buffer)

const isTaken = new Uint8Array(REGIONS)

/** Returns the offset of a free region, which is in use until `giveRegion`; -1 = all are in use. */
export function takeRegion(): number {
  const region = isTaken.indexOf(0)
  if (region === -1) return -1
  isTaken[region] = 1
  packetOctets.fill(0, region * REGION_OCTETS, (region + 1) * REGION_OCTETS)
  return region * REGION_OCTETS
}

export function giveRegion(start: number): void {
  isTaken[start / REGION_OCTETS] = 0
}

/** Copies octets into the packet memory. @hot */
export function putOctets(from: Uint8Array, offset: number, octets: number, start: number): void {
  const end = start + octets
  let at = start
  let i = offset
  for (; at + 4 <= end; at += 4, i += 4) {
    const low = from[i]! | (from[i + 1]! << 8)
    packetView.setInt32(at, low | (from[i + 2]! << 16) | (from[i + 3]! << 24), true)
  }
  for (; at < end; at++, i++) packetOctets[at] = from[i]!
}
