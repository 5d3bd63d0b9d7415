import { type Cidr, isInNetwork, scanAddress, scanCidr, scanIPv6 } from '../../dns/text/address.ts'
import type { PortProtocol, PortRange } from '../rules/port-range.ts'
import type { EgressRule, NetworkPeer } from '../rules/rule.ts'
import { type Dialect, scanSelector } from '../selectors/scan-selector.ts'
import type { Selector } from '../selectors/selector.ts'
import { type PolicyField, quoteValue } from './policy-field.ts'

const PORT_MAX = 65535
const NO_EXCEPTIONS: readonly Cidr[] = []
const MAPPED: Cidr = { ...scanIPv6('::ffff:0:0')!, bits: 96 }

export const ALL_IPV4: NetworkPeer = everyAddress(1)
export const ALL_IPV6: NetworkPeer = everyAddress(2)

/** What a rule of a policy is for. */
export interface Peers {
  readonly networks: readonly NetworkPeer[]
  readonly names: readonly Selector[]
  /** True if it has names, also if all of them are invalid. */
  readonly isNamed: boolean
  /** True if it may be for other destinations too, which are not known here. */
  readonly isUnknown: boolean
}

export const NO_PEERS: Peers = { networks: [], names: [], isNamed: false, isUnknown: false }
export const ALL_PEERS: Peers = { ...NO_PEERS, networks: [ALL_IPV4, ALL_IPV6] }
export const UNKNOWN_PEERS: Peers = { ...NO_PEERS, isUnknown: true }

/** The ports of a rule. */
export interface Ports {
  /** Undefined = all ports of all protocols. */
  readonly ranges: readonly PortRange[] | undefined
  /** True if it may be for other ports too, which are not known here. */
  readonly isUnknown: boolean
}

export const ALL_PORTS: Ports = { ranges: undefined, isUnknown: false }
export const UNKNOWN_PORTS: Ports = { ranges: [], isUnknown: true }

/** True for peers in networks of the cluster, which no rule is for. */
export function isEmpty({ networks, isNamed, isUnknown }: Peers): boolean {
  return networks.length === 0 && !isNamed && !isUnknown
}

export function joinPeers(all: readonly Peers[]): Peers {
  return {
    networks: all.flatMap(({ networks }) => networks),
    names: all.flatMap(({ names }) => names),
    isNamed: all.some(({ isNamed }) => isNamed),
    isUnknown: all.some(({ isUnknown }) => isUnknown),
  }
}

export function joinPorts(all: readonly Ports[]): Ports {
  const isAll = all.some(({ ranges }) => ranges === undefined)
  return {
    ranges: isAll ? undefined : all.flatMap(({ ranges }) => ranges ?? []),
    isUnknown: all.some(({ isUnknown }) => isUnknown),
  }
}

/**
 * Returns the rule; undefined = it matches nothing. What is unknown fails closed (NPEP-133, and the
 * API definitions of AdminNetworkPolicy):
 *
 *                        accept                    deny, pass
 *     unknown peer       the rule matches nothing  denies all addresses
 *     unknown port       the port is not allowed   denies all ports
 *     name                                         an unknown peer: its addresses are not known
 */
export function composeRule(
  { networks, names, isNamed, isUnknown }: Peers,
  ports: Ports,
  { action, lasts, origin }: Pick<EgressRule, 'action' | 'lasts' | 'origin'>,
): EgressRule | undefined {
  if (action === 'accept') {
    const isEmpty = networks.length + names.length === 0 || ports.ranges?.length === 0
    if (isUnknown || isEmpty) return undefined
    return { action, networks, names, ports: ports.ranges, lasts, origin }
  }
  const isOpen = isUnknown || isNamed
  const denied = isOpen ? ALL_PEERS.networks : networks
  const ranges = ports.isUnknown ? undefined : ports.ranges
  if (denied.length === 0 || ranges?.length === 0) return undefined
  const closed = isOpen || ports.isUnknown ? 'deny' : action
  return { action: closed, networks: denied, names: [], ports: ranges, lasts, origin }
}

/** Reads an ordered list of rules. A list that cannot be read denies everything. */
export function scanRuleList(
  field: PolicyField,
  origin: string,
  scan: (item: PolicyField, origin: string) => EgressRule | undefined,
): readonly EgressRule[] {
  const rules = field.items().map((item) => scan(item, origin))
  if (field.isPresent && !Array.isArray(field.value)) {
    rules.push(composeRule(UNKNOWN_PEERS, ALL_PORTS, { action: 'deny', lasts: 'ttl', origin }))
  }
  return rules.filter((rule) => rule !== undefined)
}

/** Reads `ADDRESS/BITS`. `mayBeAddress`: an address alone is a network too. */
export function scanNetwork(field: PolicyField, mayBeAddress = false): Peers {
  const network = scanNetworkText(field, mayBeAddress)
  if (network === undefined) return UNKNOWN_PEERS
  return { ...NO_PEERS, networks: [{ network, except: NO_EXCEPTIONS }] }
}

/** As `scanNetwork`, without the form of a peer. Undefined = it is invalid, which is reported. */
export function scanNetworkText(field: PolicyField, mayBeAddress = false): Cidr | undefined {
  const { value } = field
  const text = typeof value === 'string' ? value : ''
  const scanned = scanCidr(text) ?? (mayBeAddress ? networkOf(text) : undefined)
  const network = scanned !== undefined && isMapped(scanned) ? undefined : scanned
  if (network === undefined)
    field.report(`invalid network ${quoteValue(value)}: write 192.0.2.0/24`)
  return network
}

/** True for IPv4 addresses in IPv6 form: no packet has them, so the rule would be for nothing. */
function isMapped({ family, bytes, bits }: Cidr): boolean {
  return family === 2 && bits >= 96 && isInNetwork(bytes, MAPPED)
}

function networkOf(text: string): Cidr | undefined {
  const address = scanAddress(text)
  return address === undefined ? undefined : { ...address, bits: address.bytes.length * 8 }
}

/** Reads a name or pattern. An invalid one is reported, and selects nothing. */
export function scanNamePeer(field: PolicyField, dialect: Dialect): Peers {
  const selector = scanNameField(field, dialect)
  return { ...NO_PEERS, names: selector === undefined ? [] : [selector], isNamed: true }
}

function scanNameField(field: PolicyField, dialect: Dialect): Selector | undefined {
  const { value } = field
  if (typeof value !== 'string') {
    field.report('must be a string')
    return undefined
  }
  const selector = scanSelector(value, dialect)
  if (typeof selector !== 'string') return selector
  field.report(selector)
  return undefined
}

/** Reads TCP, UDP or SCTP. Undefined = it is another one, which is reported. */
export function scanProtocol(field: PolicyField): PortProtocol | undefined {
  switch (field.value) {
    case 'TCP':
      return 'tcp'
    case 'UDP':
      return 'udp'
    case 'SCTP':
      return 'sctp'
    default:
      field.report(`must be TCP, UDP or SCTP, not ${quoteValue(field.value)}`)
      return undefined
  }
}

/** The ports from one field to another one. `last` may be missing. */
export function scanPortNumbers(
  protocol: PortProtocol | undefined,
  firstField: PolicyField,
  lastField: PolicyField = firstField,
): Ports {
  const first = firstField.integer(1, PORT_MAX)
  const last = lastField.isPresent ? lastField.integer(1, PORT_MAX) : first
  if (protocol === undefined || first === undefined || last === undefined) return UNKNOWN_PORTS
  if (last < first) {
    lastField.report(`must not be less than ${first}`)
    return UNKNOWN_PORTS
  }
  return { ranges: [{ protocol, first, last }], isUnknown: false }
}

/** Reads a list of ports. A missing or empty list is all ports. */
export function scanPortList(field: PolicyField, scan: (item: PolicyField) => Ports): Ports {
  const ports = field.items().map(scan)
  if (ports.length > 0) return joinPorts(ports)
  return field.isPresent && !Array.isArray(field.value) ? UNKNOWN_PORTS : ALL_PORTS
}

/** All ports of a protocol. */
export function allPortsOf(protocol: PortProtocol): PortRange {
  return { protocol, first: 0, last: PORT_MAX }
}

function everyAddress(family: 1 | 2): NetworkPeer {
  const bytes = new Uint8Array(family === 1 ? 4 : 16)
  return { network: { family, bytes, bits: 0 }, except: NO_EXCEPTIONS }
}
