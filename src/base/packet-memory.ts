/*
 * One memory for the packets of a thread, in a place that is known when code is compiled: what V8 must not look up
 * and check at each use costs a third. Whoever reads or writes packets here binds these in its own module, since
 * V8 folds only constants that a module declares itself.
 */

/** Regions, one of a socket each; memory is taken when it is first touched. */
const REGIONS = 16
/** A multiple of 64. */
export const REGION_OCTETS = 352 * 1024

const buffer = new ArrayBuffer(REGIONS * REGION_OCTETS)
export const packetOctets = new Uint8Array(buffer)
export const packetWords = new Uint32Array(buffer)
export const packetView = new DataView(buffer)

const isTaken = new Uint8Array(REGIONS)

/** Where a region begins, until `giveRegion`; -1 = all are taken. */
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
