import { LOWER } from '../../dns/name/lower.ts'
import { LABEL_OCTETS_MAX, NAME_OCTETS_MAX, scanEscape } from '../../dns/name/name.ts'

const AT = 0x40
const DOT = 0x2e
const BACKSLASH = 0x5c

/**
 * Parses the name in `input[start..end)` into `out`, which holds NAME_OCTETS_MAX octets. Does the
 * same as `dns/name` without a string, because most of a zone file is names. Completes relative
 * names with `origin`. Returns the octets written, or -1 if the name is invalid.
 */
export function scanNameOctets(
  input: Uint8Array,
  start: number,
  end: number,
  origin: Uint8Array,
  out: Uint8Array,
): number {
  if (end - start === 1 && input[start] === AT) return append(origin, out, 0)
  if (end - start === 1 && input[start] === DOT) {
    out[0] = 0
    return 1
  }
  if (start >= end) return -1
  let labelStart = 0
  let at = 1
  for (let i = start; i < end; ) {
    let octet = input[i]!
    i++
    if (octet === DOT) {
      const octets = at - labelStart - 1
      if (octets === 0 || octets > LABEL_OCTETS_MAX) return -1
      out[labelStart] = octets
      labelStart = at
      at++
      continue
    }
    if (octet === BACKSLASH) {
      octet = i < end ? scanEscape(input, i) : -1
      if (octet < 0) return -1
      i += isDigit(input[i]!) ? 3 : 1
      if (i > end) return -1
    }
    if (at >= NAME_OCTETS_MAX) return -1
    out[at] = octet
    at++
  }
  const octets = at - labelStart - 1
  if (octets > LABEL_OCTETS_MAX || at > NAME_OCTETS_MAX) return -1
  out[labelStart] = octets
  // A final dot leaves an empty last label, the root: the name is absolute.
  return octets === 0 ? at : append(origin, out, at)
}

/** Lower-cases a wire name in place. */
export function lowerOctets(name: Uint8Array, octets: number): void {
  for (let i = 0; i < octets; i++) name[i] = LOWER[name[i]!]!
}

/** True if the lower-case wire name is `zone` or below it. `zone`: lower case. */
export function endsWithZone(name: Uint8Array, octets: number, zone: Uint8Array): boolean {
  const target = octets - zone.length
  let at = 0
  while (at < target) at += name[at]! + 1
  if (at !== target) return false
  for (let i = 0; i < zone.length; i++) if (name[target + i] !== zone[i]) return false
  return true
}

function append(origin: Uint8Array, out: Uint8Array, at: number): number {
  if (at + origin.length > NAME_OCTETS_MAX) return -1
  for (let i = 0; i < origin.length; i++) out[at + i] = origin[i]!
  return at + origin.length
}

function isDigit(octet: number): boolean {
  return octet >= 0x30 && octet <= 0x39
}
