import { scanHost } from '../../records/validate/names.ts'
import { RECORD_TYPES } from '../../records/validate/target.ts'

/** Allows a peer to report more than other peers may. */
export interface PeerRule {
  /** `subdomain`: the name and all names below it. */
  readonly kind: 'name' | 'subdomain'
  /** Mnemonics; undefined = all types except those that delegate. */
  readonly name: string
  /** Mnemonics; undefined = all but those that delegate. */
  readonly types: ReadonlySet<string> | undefined
}

/** Types that delegate names or sign the zone. A peer may report them only if a rule names them. */
const STRUCTURAL: ReadonlySet<string> = new Set([
  'NS',
  'SOA',
  'DS',
  'DNAME',
  'DNSKEY',
  'CDS',
  'CDNSKEY',
  'RRSIG',
  'NSEC',
  'NSEC3',
  'NSEC3PARAM',
])
const RULES_MAX = 100

export function isStructural(type: string): boolean {
  return STRUCTURAL.has(type)
}

/**
 * Reads `name|subdomain NAME [TYPE...]`, as in BIND's `update-policy`. Returns a string that says
 * what is wrong if it is invalid.
 */
export function scanPeerRule(words: readonly string[]): PeerRule | string {
  const [kind = '', text = '', ...typeTexts] = words
  if (kind !== 'name' && kind !== 'subdomain') {
    return `allow takes name or subdomain, a domain name and record types, not ${JSON.stringify(kind)}`
  }
  const name = text.toLowerCase().replace(/\.$/, '')
  if (scanHost(name) === undefined) return `allow: ${JSON.stringify(text)} is not a domain name`
  const types = typeTexts.map((type) => type.toUpperCase())
  const unknown = types.find((type) => !RECORD_TYPES.has(type))
  if (unknown !== undefined) {
    return `allow: unknown record type ${unknown}; use one of ${[...RECORD_TYPES.keys()].join(' ')}`
  }
  return { kind, name, types: types.length === 0 ? undefined : new Set(types) }
}

/**
 * Reads rules that are separated by `;` or line ends. Returns a string that says what is wrong if
 * one is invalid.
 */
export function scanPeerRules(text: string): readonly PeerRule[] | string {
  const rules: PeerRule[] = []
  for (const line of text.split(/[;\n]/)) {
    const words = line.split(/\s+/).filter((word) => word !== '')
    if (words.length === 0) continue
    const rule = scanPeerRule(words)
    if (typeof rule === 'string') return rule
    rules.push(rule)
  }
  return rules.length <= RULES_MAX ? rules : `there may be up to ${RULES_MAX} rules`
}

/** True if a rule allows that type at that name. */
export function isAllowedBy(rules: readonly PeerRule[], name: string, type: string): boolean {
  return rules.some((rule) => {
    const fits = rule.types === undefined ? !isStructural(type) : rule.types.has(type)
    if (!fits) return false
    return name === rule.name || (rule.kind === 'subdomain' && name.endsWith(`.${rule.name}`))
  })
}
