import type { Observation } from '../../src/client/resolver/observation.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { scanCidr } from '../../src/dns/text/address.ts'
import type { Client } from '../../src/egress/agent/client.ts'
import type { PortRange } from '../../src/egress/rules/port-range.ts'
import type { ClientRules, DnsRule, EgressRule } from '../../src/egress/rules/rule.ts'
import { type Dialect, scanSelector } from '../../src/egress/selectors/scan-selector.ts'
import type { Selector } from '../../src/egress/selectors/selector.ts'

/** Names or patterns that are separated by spaces. */
export function selectorsOf(texts: string, dialect: Dialect = 'npep'): readonly Selector[] {
  const words = texts === '' ? [] : texts.split(' ')
  return words.map((text) => {
    const selector = scanSelector(text, dialect)
    if (typeof selector === 'string') throw new Error(selector)
    return selector
  })
}

/** Ports as `tcp 443, udp 53-60`. */
export function portsOf(text: string): readonly PortRange[] {
  return text.split(', ').map((range) => {
    const [protocol, first, last = first] = range.split(/[ -]/)
    if (protocol !== 'tcp' && protocol !== 'udp') throw new Error(text)
    return { protocol, first: Number(first), last: Number(last) }
  })
}

export interface RuleText {
  readonly names?: string
  readonly dialect?: Dialect
  readonly networks?: string
  readonly ports?: string
  readonly lasts?: EgressRule['lasts']
}

export function acceptRule({ names = '', dialect, networks, ports, lasts }: RuleText): EgressRule {
  return {
    action: 'accept',
    networks: (networks?.split(' ') ?? []).map((text) => ({
      network: scanCidr(text)!,
      except: [],
    })),
    names: selectorsOf(names, dialect),
    ports: ports === undefined ? undefined : portsOf(ports),
    lasts: lasts ?? 'ttl',
    origin: 'Test a/b',
  }
}

/** One list with one tier that denies what none of the rules accepts. */
export function rulesOf(rules: readonly RuleText[], dns?: readonly DnsRule[]): ClientRules {
  return { lists: [[{ rules: rules.map(acceptRule), otherwise: 'deny' }]], dns }
}

export function clientOf(
  id: string,
  addresses: string,
  rules: ClientRules | readonly RuleText[],
): Client {
  return {
    id,
    addresses: addresses.split(' '),
    rules: 'lists' in rules ? rules : rulesOf(rules),
  }
}

/** An answer without CNAME records. */
export function answerTo(name: string, addresses: string, ttlSeconds = 60): Observation {
  const texts = addresses.split(' ')
  const family = texts[0]!.includes(':') ? 2 : 1
  return {
    name: scanName(name)!,
    family,
    atMs: 0,
    server: '',
    kind: 'answer',
    // Each may have a TTL of its own, as 192.0.2.1/20.
    facts: texts
      .map((text) => text.split('/'))
      .map(([address = '', own]) => ({
        family,
        address,
        lastSeenMs: 0,
        ttlSeconds: own === undefined ? ttlSeconds : Number(own),
        chain: [],
        endMs: ttlSeconds * 1000,
      })),
  }
}
