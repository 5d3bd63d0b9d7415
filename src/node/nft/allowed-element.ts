import type { AddressFamily } from '../../dns/text/address.ts'
import type { PortRange } from '../../egress/rules/port-range.ts'

/** A client may connect to an address. */
export interface AllowedElement {
  readonly family: AddressFamily
  /** Both in canonical form. */
  readonly client: string
  readonly address: string
  /** Undefined = all ports of all protocols. */
  readonly ports: PortRange | undefined
}

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

export function setOf({ family, ports }: AllowedElement): AllowSetName {
  const version = family === 1 ? 4 : 6
  if (ports === undefined) return `any${version}`
  return ports.first === ports.last ? `port${version}` : `range${version}`
}

/** The element in nft's language, without its timeout. */
export function printElement({ client, address, ports }: AllowedElement): string {
  const pair = `${client} . ${address}`
  if (ports === undefined) return pair
  const { protocol, first, last } = ports
  return `${pair} . ${protocol} . ${first === last ? first : `${first}-${last}`}`
}
