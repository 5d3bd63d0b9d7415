import { type Cidr, printAddress, scanCidr } from '../../dns/text/address.ts'
import type { PortProtocol, PortRange } from '../rules/port-range.ts'
import type { ClientRules, DnsRule, EgressRule, NetworkPeer, RuleTier } from '../rules/rule.ts'
import { EVERY_NAME } from '../selectors/every-name.ts'
import { type Dialect, scanSelector } from '../selectors/scan-selector.ts'
import type { Selector } from '../selectors/selector.ts'

const PROTOCOLS: readonly PortProtocol[] = ['tcp', 'udp', 'sctp']
const PORT_MAX = 65_535

/** How the key of a selector begins, and the dialect that reads the rest of it. */
const KEY_FORMS: readonly (readonly [string, Dialect])[] = [
  ['one ', 'openshift'],
  ['many ', 'npep'],
  ['pattern ', 'cilium-1.19'],
]

/** Returns the rules in one line of JSON. Equal rules have equal texts. */
export function printRules({ lists, dns }: ClientRules): string {
  const printed = lists.map((tiers) =>
    tiers.map(({ rules, otherwise }) => [otherwise, rules.map(ruleValue)]),
  )
  const dnsRules = dns?.map(({ ports, names }) => [portValues(ports), names.map(keyOf)])
  return JSON.stringify([printed, dnsRules ?? null])
}

/** Reads the output of `printRules`; undefined = it has another form. */
export function scanRules(text: string): ClientRules | undefined {
  try {
    const [lists, dns] = arrayOf(JSON.parse(text))
    return {
      lists: arrayOf(lists).map((tiers) => arrayOf(tiers).map(readTier)),
      dns: dns === null ? undefined : arrayOf(dns).map(readDnsRule),
    }
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function ruleValue({ action, networks, names, ports, lasts, origin }: EgressRule): unknown {
  const peers = networks.map(({ network, except }) => [printCidr(network), except.map(printCidr)])
  return [action, peers, names.map(keyOf), portValues(ports), lasts, origin]
}

function portValues(ports: readonly PortRange[] | undefined): unknown {
  return ports?.map(({ protocol, first, last }) => [protocol, first, last]) ?? null
}

function printCidr({ bytes, family, bits }: Cidr): string {
  return `${printAddress(bytes, family)}/${bits}`
}

function keyOf({ key }: Selector): string {
  return key
}

function readTier(value: unknown): RuleTier {
  const [otherwise, rules] = arrayOf(value)
  return { rules: arrayOf(rules).map(readRule), otherwise: oneOf(otherwise, ['deny', 'pass']) }
}

function readRule(value: unknown): EgressRule {
  const [action, networks, names, ports, lasts, origin] = arrayOf(value)
  return {
    action: oneOf(action, ['accept', 'deny', 'pass']),
    networks: arrayOf(networks).map(readPeer),
    names: arrayOf(names).map(readSelector),
    ports: readPorts(ports),
    lasts: oneOf(lasts, ['ttl', 'connections']),
    origin: stringOf(origin),
  }
}

function readDnsRule(value: unknown): DnsRule {
  const [ports, names] = arrayOf(value)
  return { ports: readPorts(ports), names: arrayOf(names).map(readSelector) }
}

function readPeer(value: unknown): NetworkPeer {
  const [network, except] = arrayOf(value)
  return { network: readCidr(network), except: arrayOf(except).map(readCidr) }
}

function readCidr(value: unknown): Cidr {
  return scanCidr(stringOf(value)) ?? fail('not a network')
}

/** The text of a selector is lost: it is as the dialect with the same meaning writes it. */
function readSelector(value: unknown): Selector {
  const key = stringOf(value)
  // No text of a policy has these keys.
  const every = EVERY_NAME.find((one) => one.key === key)
  if (every !== undefined) return every
  const [prefix, dialect] = KEY_FORMS.find(([start]) => key.startsWith(start)) ?? ['', 'name']
  const selector =
    key === 'all'
      ? scanSelector('*', 'cilium-1.19')
      : scanSelector(key.slice(prefix.length), dialect)
  return typeof selector === 'string' ? fail(selector) : selector
}

function readPorts(value: unknown): readonly PortRange[] | undefined {
  if (value === null) return undefined
  return arrayOf(value).map((range) => {
    const [protocol, first, last] = arrayOf(range)
    return { protocol: oneOf(protocol, PROTOCOLS), first: portOf(first), last: portOf(last) }
  })
}

function portOf(value: unknown): number {
  const isPort = typeof value === 'number' && Number.isInteger(value)
  return isPort && value >= 0 && value <= PORT_MAX ? value : fail('not a port')
}

function oneOf<T extends string>(value: unknown, values: readonly T[]): T {
  return values.find((one) => one === value) ?? fail(`not one of ${values.join()}`)
}

function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : fail('not a string')
}

function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : fail('not an array')
}

function fail(reason: string): never {
  throw new SyntaxError(reason)
}
