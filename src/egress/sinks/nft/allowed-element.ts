import { type AddressFamily, printAddress, scanIPv6 } from '../../../dns/text/address.ts'
import type { PortProtocol, PortRange } from '../../rules/port-range.ts'
import type { AddressPair } from '../enforcer.ts'

/**
 * The sets of one family:
 *
 *     any4    client . address                       all ports
 *     port4   client . address . protocol . port     one port
 *     range4  client . address . protocol . ports    a range
 *
 * Only the last one needs a set of intervals, whose updates take longer the more elements it has.
 */
export type AllowSetName = `${'any' | 'port' | 'range'}${4 | 6}`

export const ALLOW_SETS: readonly AllowSetName[] = [
  'any4',
  'port4',
  'range4',
  'any6',
  'port6',
  'range6',
]

/** Numbers, because a container may lack the file that has the names. */
const PROTOCOL_NUMBERS: Readonly<Record<PortProtocol, number>> = { tcp: 6, udp: 17, sctp: 132 }

export function setOf(family: AddressFamily, ports: PortRange | undefined): AllowSetName {
  const version = family === 1 ? 4 : 6
  if (ports === undefined) return `any${version}`
  return ports.first === ports.last ? `port${version}` : `range${version}`
}

/** The element in nft's language, without its timeout. */
export function printElement(
  { client, address }: AddressPair,
  ports: PortRange | undefined,
): string {
  const pair = `${client} . ${address}`
  if (ports === undefined) return pair
  const { protocol, first, last } = ports
  const range = first === last ? first : `${first}-${last}`
  return `${pair} . ${PROTOCOL_NUMBERS[protocol]} . ${range}`
}

/** An element that a set in the kernel has. */
export interface ListedElement {
  readonly pair: AddressPair
  /** As `printElement` writes it. */
  readonly text: string
  /** Infinity = it stays. */
  readonly expiresMs: number
}

/** Parses an element of a set as nft lists it; undefined = it has another form. */
export function scanElement(listed: string): ListedElement | undefined {
  const at = listed.indexOf(' timeout ')
  const parts = (at < 0 ? listed : listed.slice(0, at)).trim().split(' . ')
  if (parts.length !== 2 && parts.length !== 4) return undefined
  const pair = { client: canonicalAddress(parts[0]!), address: canonicalAddress(parts[1]!) }
  let text = `${pair.client} . ${pair.address}`
  if (parts.length === 4) {
    const name = parts[2]!
    const number = name in PROTOCOL_NUMBERS ? PROTOCOL_NUMBERS[name as PortProtocol] : name
    text += ` . ${number} . ${parts[3]}`
  }
  const expires = / expires (\S+)/.exec(listed)?.[1]
  // nft does not print the last millisecond.
  const restMs = at < 0 ? Infinity : 0
  return { pair, text, expiresMs: expires === undefined ? restMs : scanTime(expires) }
}

/** Returns an address that nft printed. It prints some otherwise than RFC 5952, such as `::192.0.2.1`. */
export function canonicalAddress(address: string): string {
  if (!address.includes(':') || !address.includes('.')) return address
  const parsed = scanIPv6(address)
  return parsed === undefined ? address : printAddress(parsed.bytes, parsed.family)
}

const UNIT_MS: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

/** Parses `1d2h3m4s5ms`. Returns milliseconds. */
function scanTime(text: string): number {
  let sum = 0
  for (const [, count, unit] of text.matchAll(/(\d+)(ms|[smhdw])/g)) {
    sum += Number(count) * UNIT_MS[unit!]!
  }
  return sum
}
