import { type Peer, peerOf } from '../base/places.ts'

const IPV4 = 1
const IPV6 = 2

/** Offset of the IPv4 address in an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2). */
const MAPPED_OFFSET = 12

/**
 * Writes the address that node:net or node:dgram printed as `text` into `out` (16 octets) and
 * returns its family: 1 (IPv4, octets 0..3) or 2 (IPv6). Treats an IPv4-mapped address of a
 * dual-stack socket (`::ffff:192.0.2.1`) as IPv4. Skips a zone (`%eth0`). Allocates nothing; `text`
 * must be an address.
 */
export function parsePeerAddress(text: string, out: Uint8Array): 1 | 2 {
  for (let i = 0; i < 16; i++) out[i] = 0
  if (text.indexOf(':') === -1) {
    readDotted(text, 0, out, 0)
    return IPV4
  }
  readGroups(text, out)
  if (!isMapped(out)) return IPV6
  for (let i = 0; i < 4; i++) out[i] = out[MAPPED_OFFSET + i]!
  for (let i = 4; i < 16; i++) out[i] = 0
  return IPV4
}

const scratch = new Uint8Array(16)
/** `text`: as for `parsePeerAddress`. */
export function peerOfText(text: string): Peer {
  return peerOf(scratch, parsePeerAddress(text, scratch) === IPV4)
}

function readDotted(text: string, start: number, out: Uint8Array, at: number): void {
  let value = 0
  let octet = at
  for (let i = start; i < text.length && octet < at + 4; i++) {
    const c = text.charCodeAt(i)
    if (c === 0x2e) {
      out[octet++] = value
      value = 0
    } else if (c >= 0x30 && c <= 0x39) {
      value = value * 10 + c - 0x30
    } else {
      break
    }
  }
  if (octet < at + 4) out[octet] = value
}

/** Reads hexadecimal groups. Moves those after `::` to the end afterwards. */
function readGroups(text: string, out: Uint8Array): void {
  let at = 0
  let gap = -1
  let i = 0
  while (i < text.length && at < 16) {
    const c = text.charCodeAt(i)
    if (c === 0x25) break
    if (c === 0x3a) {
      if (text.charCodeAt(i + 1) === 0x3a) gap = at
      i++
      continue
    }
    let value = 0
    let end = i
    for (let digit = hexDigit(text, end); digit !== -1; digit = hexDigit(text, end)) {
      value = (value << 4) | digit
      end++
    }
    if (end < text.length && text.charCodeAt(end) === 0x2e) {
      readDotted(text, i, out, at)
      at += 4
      break
    }
    if (end === i) break
    out[at++] = value >> 8
    out[at++] = value & 0xff
    i = end
  }
  if (gap === -1) return
  const tail = at - gap
  for (let k = 1; k <= tail; k++) {
    const octet = out[at - k]!
    out[at - k] = 0
    out[16 - k] = octet
  }
}

function hexDigit(text: string, i: number): number {
  if (i >= text.length) return -1
  const c = text.charCodeAt(i)
  if (c >= 0x30 && c <= 0x39) return c - 0x30
  const letter = c | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}

function isMapped(out: Uint8Array): boolean {
  for (let i = 0; i < 10; i++) if (out[i] !== 0) return false
  return out[10] === 0xff && out[11] === 0xff
}
