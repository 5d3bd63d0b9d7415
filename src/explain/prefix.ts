import { type Cidr, maskAddress, printAddress } from '../dns/text/address.ts'

/** Prints a network, without the bits of `bytes` after its prefix: `192.0.2.0/24`. */
export function printPrefix({ family, bytes, bits }: Cidr): string {
  return `${printAddress(maskAddress(bytes.slice(0, family === 1 ? 4 : 16), bits), family)}/${bits}`
}
