/** Below this many octets a loop copies faster than a subarray can be made. */
const LOOP_COPY_MAX = 256

/** Of an address of a packet: writes it to 16 octets of `out`, zeros behind; returns its family. @hot */
export function copyIPv4(octets: Uint8Array, at: number, out: Uint8Array): number {
  for (let i = 0; i < 4; i++) out[i] = octets[at + i]!
  for (let i = 4; i < 16; i++) out[i] = 0
  return 1
}

/** As `copyIPv4`; an IPv4-mapped address (RFC 4291 section 2.5.5.2) becomes what it stands for. */
export function copyIPv6(octets: Uint8Array, at: number, out: Uint8Array): number {
  let isMapped = octets[at + 10] === 0xff && octets[at + 11] === 0xff
  for (let i = 0; i < 10; i++) if (octets[at + i] !== 0) isMapped = false
  if (isMapped) return copyIPv4(octets, at + 12, out)
  for (let i = 0; i < 16; i++) out[i] = octets[at + i]!
  return 2
}

/** @hot */
export function copyOctets(from: Uint8Array, to: Uint8Array, octets: number): void {
  if (octets > LOOP_COPY_MAX) {
    to.set(from.subarray(0, octets))
    return
  }
  for (let i = 0; i < octets; i++) to[i] = from[i]!
}
