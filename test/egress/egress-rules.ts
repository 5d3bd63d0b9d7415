import { type HashedName, NameBuffer } from '../../src/dns/name/hashed-name.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { scanCidr } from '../../src/dns/text/address.ts'
import type { CompiledRules } from '../../src/egress/rules/compiled-rules.ts'
import type { MatchedName } from '../../src/egress/rules/connection.ts'
import type { PortProtocol, PortRange } from '../../src/egress/rules/port-range.ts'
import type { EgressRule, NetworkPeer } from '../../src/egress/rules/rule.ts'
import { scanSelector } from '../../src/egress/selectors/scan-selector.ts'
import type { Selector } from '../../src/egress/selectors/selector.ts'
import type { AddressName } from './decide-connection.ts'

export function nameOf(text: string): HashedName {
  const wire = scanName(text)!
  const name = new NameBuffer()
  name.set(wire, 0, wire.length)
  return name
}

export function selectorOf(text: string): Selector {
  const selector = scanSelector(text, text.includes('*') ? 'npep' : 'name')
  if (typeof selector === 'string') throw new Error(selector)
  return selector
}

/** `10.0.0.0/8` or `10.0.0.0/8 except 10.1.0.0/16`. */
export function peerOf(text: string): NetworkPeer {
  const [network = '', ...except] = text.split(/ except | /)
  return { network: scanCidr(network)!, except: except.map((one) => scanCidr(one)!) }
}

/** `tcp 80` or `tcp 80-90`. */
export function portsOf(text: string): PortRange {
  const [protocol, first, last] = text.split(/[ -]/)
  return {
    protocol: protocol as PortProtocol,
    first: Number(first),
    last: Number(last ?? first),
  }
}

export interface RuleTexts {
  readonly networks?: readonly string[]
  readonly names?: readonly string[]
  readonly ports?: readonly string[]
  readonly lasts?: EgressRule['lasts']
}

/** A rule of the texts. */
export function rule(
  action: EgressRule['action'],
  { networks = [], names = [], ports, lasts = 'ttl' }: RuleTexts,
): EgressRule {
  return {
    action,
    networks: networks.map(peerOf),
    names: names.map(selectorOf),
    ports: ports?.map(portsOf),
    lasts,
    origin: 'test',
  }
}

/** The names as `CompiledRules` reads them. */
export function matched(
  compiled: CompiledRules,
  names: readonly AddressName[],
): readonly MatchedName[] {
  return names.map(({ name, ...rest }) => ({ ...rest, rules: compiled.rulesOf(name) }))
}
