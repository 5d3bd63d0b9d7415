import { type AddressFamily, type Cidr, maskAddress, printAddress } from '../text/address.ts'

/** The data of an EDNS Client Subnet option (RFC 7871 section 6). */
interface ClientSubnet {
  readonly family: AddressFamily
  /** 4 or 16 octets; bits behind the source prefix are zero. */
  readonly bytes: Uint8Array
  readonly sourceBits: number
  readonly scopeBits: number
}

/** Returns the option data of a query: the prefix with scope 0, in as few octets as the prefix needs. */
export function composeClientSubnet(subnet: Cidr): Uint8Array {
  const octets = maskAddress(subnet.bytes, subnet.bits).subarray(0, Math.ceil(subnet.bits / 8))
  return new Uint8Array([0, subnet.family, subnet.bits, 0, ...octets])
}

/** Parses option data; returns undefined if family, lengths or padding violate RFC 7871. */
export function parseClientSubnet(data: Uint8Array): ClientSubnet | undefined {
  const [high = 1, family = 0, sourceBits = 0, scopeBits = 0] = data
  if (data.length < 4 || high !== 0 || (family !== 1 && family !== 2)) return undefined
  const bytes = new Uint8Array(family === 1 ? 4 : 16)
  const bitsMax = bytes.length * 8
  if (sourceBits > bitsMax || scopeBits > bitsMax) return undefined
  if (data.length !== 4 + Math.ceil(sourceBits / 8)) return undefined
  bytes.set(data.subarray(4))
  const isPadded = Buffer.compare(maskAddress(bytes, sourceBits), bytes) === 0
  return isPadded ? { family, bytes, sourceBits, scopeBits } : undefined
}

/** Returns `ADDRESS/SOURCE/SCOPE`, as dig prints it. */
export function printClientSubnet(subnet: ClientSubnet): string {
  const address = printAddress(subnet.bytes, subnet.family)
  return `${address}/${subnet.sourceBits}/${subnet.scopeBits}`
}
