/** Address families as in EDNS Client Subnet (IANA "Address Family Numbers"): 1 IPv4, 2 IPv6. */
export type AddressFamily = 1 | 2

export interface Address {
  readonly family: AddressFamily
  /** Network order: 4 or 16 octets. */
  readonly bytes: Uint8Array
}

export interface Cidr extends Address {
  /** Prefix length: 0..32 or 0..128. Bits of `bytes` behind the prefix are zero. */
  readonly bits: number
}

/** Parses a dotted quad, decimal, without leading zeros. */
export function scanIPv4(text: string): Address | undefined {
  const bytes = new Uint8Array(4)
  let count = 0
  let value = -1
  for (let i = 0; i <= text.length; i++) {
    const digit = text.charCodeAt(i) - 0x30
    if (digit >= 0 && digit <= 9) {
      if (value === 0) return undefined
      value = value < 0 ? digit : value * 10 + digit
      if (value > 255) return undefined
      continue
    }
    const isLast = i === text.length
    if (value < 0 || count === 4 || (!isLast && text[i] !== '.')) return undefined
    bytes[count++] = value
    value = -1
  }
  return count === 4 ? { family: 1, bytes } : undefined
}

/** Parses every form of RFC 4291 section 2.2, without a zone identifier. */
export function scanIPv6(text: string): Address | undefined {
  if (text.length > 45) return undefined
  const halves = text.split('::', 3)
  if (halves.length > 2) return undefined
  const head = scanGroups(halves[0]!, halves.length === 1)
  const tail = scanGroups(halves[1] ?? '', true)
  if (head === undefined || tail === undefined) return undefined
  const octets = head.length + tail.length
  // `::` represents at least one group of zeros; without it, all eight groups must be present.
  if (halves.length === 1 ? octets !== 16 : octets > 14) return undefined
  const bytes = new Uint8Array(16)
  bytes.set(head)
  bytes.set(tail, 16 - tail.length)
  return { family: 2, bytes }
}

/** Returns the octets of colon-separated groups; the last may be a dotted quad if `mayEndInQuad`. */
function scanGroups(text: string, mayEndInQuad: boolean): number[] | undefined {
  if (text === '') return []
  const octets: number[] = []
  const groups = text.split(':', 9)
  for (const [i, group] of groups.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(group)) {
      const value = Number.parseInt(group, 16)
      octets.push(value >> 8, value & 0xff)
      continue
    }
    const quad = mayEndInQuad && i === groups.length - 1 ? scanIPv4(group) : undefined
    if (quad === undefined) return undefined
    octets.push(...quad.bytes)
  }
  return octets.length <= 16 ? octets : undefined
}

export function scanAddress(text: string): Address | undefined {
  return text.includes(':') ? scanIPv6(text) : scanIPv4(text)
}

/**
 * Parses `ADDRESS/BITS`. Clears bits behind the prefix. Returns undefined without a slash: the
 * caller decides what an address without a prefix length means.
 */
export function scanCidr(text: string): Cidr | undefined {
  const slash = text.indexOf('/')
  if (slash < 0) return undefined
  const address = scanAddress(text.slice(0, slash))
  const bitsText = text.slice(slash + 1)
  if (address === undefined || !/^(?:0|[1-9]\d{0,2})$/.test(bitsText)) return undefined
  const bits = Number(bitsText)
  if (bits > address.bytes.length * 8) return undefined
  return { family: address.family, bytes: maskAddress(address.bytes, bits), bits }
}

/** Returns a copy of `bytes` with every bit after the first `bits` cleared. */
export function maskAddress(bytes: Uint8Array, bits: number): Uint8Array {
  return bytes.map((octet, i) => {
    const kept = Math.min(8, Math.max(0, bits - i * 8))
    return octet & (0xff00 >> kept)
  })
}

/**
 * True if the network contains the address. Both must be of one family; `bytes` may be longer than
 * the family needs.
 */
export function isInNetwork(bytes: Uint8Array, { bytes: network, bits }: Cidr): boolean {
  for (let i = 0; i * 8 < bits; i++) {
    const mask = 0xff00 >> Math.min(8, bits - i * 8)
    if (((bytes[i]! ^ network[i]!) & mask & 0xff) !== 0) return false
  }
  return true
}

/**
 * Returns a dotted quad, or the canonical form of RFC 5952: lower case, the longest run of zero
 * groups (the first of equals, never a single group) as `::`, IPv4-mapped addresses with a dotted
 * quad. `bytes` may be longer than the family needs.
 */
export function printAddress(bytes: Uint8Array, family: AddressFamily): string {
  if (family === 1) return `${bytes[0]}.${bytes[1]}.${bytes[2]}.${bytes[3]}`
  const groups: number[] = []
  for (let i = 0; i < 16; i += 2) groups.push((bytes[i]! << 8) | bytes[i + 1]!)
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    return `::ffff:${bytes.subarray(12, 16).join('.')}`
  }
  const [start, count] = longestZeroRun(groups)
  const print = (part: readonly number[]) => part.map((group) => group.toString(16)).join(':')
  if (count < 2) return print(groups)
  return `${print(groups.slice(0, start))}::${print(groups.slice(start + count))}`
}

function longestZeroRun(groups: readonly number[]): [start: number, count: number] {
  let best: [number, number] = [0, 0]
  let count = 0
  for (const [i, group] of groups.entries()) {
    count = group === 0 ? count + 1 : 0
    if (count > best[1]) best = [i - count + 1, count]
  }
  return best
}

/** True if `address` is in `cidr`. `family` 1 or 2. */
export function isWithin(cidr: Cidr, address: Uint8Array, family: number): boolean {
  if (cidr.family !== family) return false
  const whole = cidr.bits >> 3
  for (let i = 0; i < whole; i++) if (cidr.bytes[i] !== address[i]) return false
  const rest = cidr.bits & 7
  return rest === 0 || ((cidr.bytes[whole]! ^ address[whole]!) & (0xff00 >> rest) & 0xff) === 0
}
