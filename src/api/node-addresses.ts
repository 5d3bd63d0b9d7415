import { readFileSync } from 'node:fs'
import { endianness, networkInterfaces } from 'node:os'
import { printAddress } from '../dns/text/address.ts'

/** Addresses of the node, separated by commas: in a cluster `status.hostIP` of the pod. */
const NODE_ADDRESSES = 'SEXTANT_NODE_ADDRESSES'
const IPV4_ROUTES = '/proc/net/route'
const IPV6_ROUTES = '/proc/net/ipv6_route'
const ANY = /^0+$/

/**
 * The addresses that a kubelet's probes of this process can come from: those of this host or pod, its default gateways,
 * which for many pod networks is the node, and those of SEXTANT_NODE_ADDRESSES.
 */
export function nodeAddresses(): ReadonlySet<string> {
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  const named = (process.env[NODE_ADDRESSES] ?? '').split(',').map((text) => text.trim())
  const all = [
    ...own.map(({ address }) => address),
    ...gatewaysOf(readText(IPV4_ROUTES), readText(IPV6_ROUTES)),
    ...named,
  ]
  return new Set(all.map(exactAddress).filter((address) => address !== ''))
}

/** Default gateways, from the texts of the kernel's two tables of routes. */
export function gatewaysOf(ipv4Routes: string, ipv6Routes: string): readonly string[] {
  const ipv4 = ipv4Routes.split('\n').flatMap((line) => {
    const [, destination = '', gateway = '', , , , , mask = ''] = line.trim().split(/\s+/)
    return ANY.test(destination) && ANY.test(mask) ? printHex(gateway, 1) : []
  })
  const ipv6 = ipv6Routes.split('\n').flatMap((line) => {
    const [destination = '', bits = '', , , gateway = ''] = line.trim().split(/\s+/)
    return ANY.test(destination) && bits === '00' ? printHex(gateway, 2) : []
  })
  return [...ipv4, ...ipv6]
}

/** Returns the address without a zone, and an IPv4-mapped address as IPv4. */
export function exactAddress(text: string): string {
  const plain = text.split('%', 1)[0]!.toLowerCase()
  return plain.startsWith('::ffff:') && plain.includes('.') ? plain.slice(7) : plain
}

/** Returns no address for the zero address (no gateway), or for an invalid form. */
function printHex(hex: string, family: 1 | 2): readonly string[] {
  const octets = Buffer.from(hex, 'hex')
  if (octets.length !== (family === 1 ? 4 : 16) || ANY.test(hex)) return []
  // The kernel prints IPv4 as a number in the processor's byte order.
  if (family === 1 && endianness() === 'LE') octets.reverse()
  return [printAddress(octets, family)]
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // Another system, or no permission: the gateway is unknown.
    return ''
  }
}
