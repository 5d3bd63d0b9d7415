import type { PortProtocol, PortRange } from '../../rules/port-range.ts'
import type { DnsRule } from '../../rules/rule.ts'
import { EVERY_NAME } from '../../selectors/every-name.ts'
import type { Selector } from '../../selectors/selector.ts'
import { ALL_PORTS, allPortsOf, joinPorts, type Ports, UNKNOWN_PORTS } from '../peers.ts'
import type { CiliumDialect } from '../policy.ts'
import { type PolicyField, quoteValue } from '../policy-field.ts'
import { DNS_PROTOCOLS } from '../query-rules.ts'
import { type DnsScope, scanFqdnSelector } from './cilium-destination.ts'

const DNS_PORT = 53
const PORT_MAX = 65535
const ALL_PROTOCOLS: readonly PortProtocol[] = ['tcp', 'udp', 'sctp']
const PROTOCOLS: ReadonlyMap<string, readonly PortProtocol[]> = new Map([
  ['', ALL_PROTOCOLS],
  ['ANY', ALL_PROTOCOLS],
  ['TCP', ['tcp']],
  ['UDP', ['udp']],
  ['SCTP', ['sctp']],
])

/** One item of `toPorts`. */
interface CiliumPorts {
  readonly ports: Ports
  /** Names that may be asked for; undefined = no rule restricts them. */
  readonly names: readonly Selector[] | undefined
}

/** Reads `toPorts`. A missing or empty list is all ports. */
export function scanToPorts(field: PolicyField, dialect: CiliumDialect): readonly CiliumPorts[] {
  const items = field.items().map((item) => scanPortRule(item, dialect))
  if (items.length > 0) return items
  const isList = !field.isPresent || Array.isArray(field.value)
  return [{ ports: isList ? ALL_PORTS : UNKNOWN_PORTS, names: undefined }]
}

/** True if an item restricts the names that may be asked for. */
export function hasDnsRules(field: PolicyField): boolean {
  if (!Array.isArray(field.value)) return false
  return field.items().some((item) => item.at('rules').at('dns').isPresent)
}

/**
 * The ports on which connections are allowed. Queries are restricted on port 53 only, so a rule that
 * restricts them on another port does not allow it.
 */
export function connectionPorts(all: readonly CiliumPorts[]): Ports {
  return joinPorts(
    all.map(({ ports, names }) => {
      if (names === undefined || ports.ranges === undefined) return ports
      return { ...ports, ranges: ports.ranges.filter(isDnsPort) }
    }),
  )
}

/** The queries that a rule allows to destinations of that scope. */
export function dnsRulesOf(all: readonly CiliumPorts[], scope: DnsScope): readonly DnsRule[] {
  return all.flatMap(({ ports: { ranges }, names = EVERY_NAME }): DnsRule[] => {
    if (ranges === undefined) return scope === 'any' ? [{ ports: undefined, names }] : []
    const ports = ranges.filter((range) => isInScope(range, scope, names !== EVERY_NAME))
    return ports.length === 0 ? [] : [{ ports, names }]
  })
}

/** Protocols on whose port 53 the ports deny all queries. */
export function deniedProtocols({ ranges, isUnknown }: Ports): readonly PortProtocol[] {
  return DNS_PROTOCOLS.filter((protocol) => {
    if (isUnknown || ranges === undefined) return true
    return ranges.some((range) => range.protocol === protocol && hasDnsPort(range))
  })
}

/** Removes port 53 of some protocols from the rules. `rules`: undefined = every name is allowed. */
export function withoutDenied(
  rules: readonly DnsRule[] | undefined,
  denied: ReadonlySet<PortProtocol>,
): readonly DnsRule[] | undefined {
  if (denied.size === 0) return rules
  const all = rules ?? [{ ports: undefined, names: EVERY_NAME }]
  return all.flatMap(({ ports = DNS_PROTOCOLS.map(allPortsOf), names }) => {
    const left = ports.filter((range) => !(denied.has(range.protocol) && hasDnsPort(range)))
    return left.length === 0 ? [] : [{ ports: left, names }]
  })
}

/** `isFiltered`: the rule restricts the names. */
function isInScope(range: PortRange, scope: DnsScope, isFiltered: boolean): boolean {
  switch (scope) {
    case 'any':
    case 'ports':
      return isFiltered || hasDnsPort(range)
    case 'exact':
      return isFiltered || isDnsPort(range)
    case 'never':
      return false
  }
}

function isDnsPort({ first, last }: PortRange): boolean {
  return first === DNS_PORT && last === DNS_PORT
}

function hasDnsPort({ first, last }: PortRange): boolean {
  return first <= DNS_PORT && DNS_PORT <= last
}

/** Fields of a PortRule that are not supported. */
const OTHER_FIELDS = ['listener', 'originatingTLS', 'serverNames', 'terminatingTLS']

function scanPortRule(field: PolicyField, dialect: CiliumDialect): CiliumPorts {
  const rules = field.at('rules')
  const isKnown = field.hasOnly(['ports', 'rules'], OTHER_FIELDS)
  const isDns = !rules.isPresent || rules.hasOnly(['dns'], ['http', 'kafka', 'l7', 'l7proto'])
  if (!isKnown || !isDns) return { ports: UNKNOWN_PORTS, names: [] }
  const names = scanDnsRules(rules.at('dns'), dialect)
  const items = field.at('ports').items()
  if (items.length === 0) field.at('ports').report('must have at least one item')
  const ports = items.length === 0 ? UNKNOWN_PORTS : joinPorts(items.map(scanPort))
  return { ports, names }
}

/** An empty list restricts nothing. */
function scanDnsRules(field: PolicyField, dialect: CiliumDialect): readonly Selector[] | undefined {
  const items = field.items()
  const isList = !field.isPresent || Array.isArray(field.value)
  if (items.length === 0) return isList ? undefined : []
  return items.flatMap((item) => scanFqdnSelector(item, dialect).names)
}

function scanPort(field: PolicyField): Ports {
  if (!field.hasOnly(['port', 'endPort', 'protocol'])) return UNKNOWN_PORTS
  const protocols = PROTOCOLS.get(field.at('protocol').text().toUpperCase())
  if (protocols === undefined) {
    const found = quoteValue(field.at('protocol').value)
    field.at('protocol').report(`must be TCP, UDP, SCTP or ANY, not ${found}`)
    return UNKNOWN_PORTS
  }
  const port = field.at('port')
  const first = scanNumber(port)
  if (first === undefined) return UNKNOWN_PORTS
  // Port 0 is all ports.
  if (first === 0) return { ranges: protocols.map(allPortsOf), isUnknown: false }
  const end = field.at('endPort')
  // In Cilium's API, 0 is a missing one.
  const last = end.isPresent && end.value !== 0 ? end.integer(first, PORT_MAX) : first
  if (last === undefined) return UNKNOWN_PORTS
  return { ranges: protocols.map((protocol) => ({ protocol, first, last })), isUnknown: false }
}

/** The API has numbers as text. */
function scanNumber(field: PolicyField): number | undefined {
  const { value } = field
  const text = typeof value === 'number' ? String(value) : typeof value === 'string' ? value : ''
  if (/^\d{1,5}$/.test(text) && Number(text) <= PORT_MAX) return Number(text)
  const isName = /[a-z]/i.test(text)
  const fault = isName ? `named port ${quoteValue(value)} is not supported` : 'invalid port'
  field.report(`${fault}: write its number`)
  return undefined
}
