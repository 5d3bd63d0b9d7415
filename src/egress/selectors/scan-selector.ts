import { LABEL_OCTETS_MAX, NAME_OCTETS_MAX, ROOT_NAME } from '../../dns/name/name.ts'
import { Glob, isNameCharacter, isPossible } from './glob.ts'
import type { Selector } from './selector.ts'

/**
 * How a policy language reads `*`:
 *
 *     name         no wildcards: FQDNNetworkPolicy, Cilium's matchName
 *     openshift    `*.` in front is exactly one label: EgressFirewall, DNSNameResolver
 *     npep         `*.` in front is one or more labels: domainNames of NPEP-133
 *     cilium-1.16  matchPattern: `*` anywhere, within one label; `*` alone is every name
 *     cilium-1.19  the same, but `**.` in front is one or more labels; stars alone are every name
 */
export type Dialect = 'name' | 'openshift' | 'npep' | 'cilium-1.16' | 'cilium-1.19'

const STAR = 0x2a
/** Longest text that Cilium and NPEP-133 accept. */
const TEXT_MAX = 255

/**
 * Parses a name or pattern. Letter case and the final dot do not matter. Returns what is wrong and
 * how to fix it as a string.
 */
export function scanSelector(text: string, dialect: Dialect): Selector | string {
  const quoted = (): string => JSON.stringify(text.slice(0, TEXT_MAX))
  if (text === '') return 'a name must not be empty'
  if (text.length > TEXT_MAX) return `name ${quoted()}… is longer than ${TEXT_MAX} characters`
  const isCilium = dialect === 'cilium-1.16' || dialect === 'cilium-1.19'
  const scanned = isCilium ? scanPattern(text, dialect) : scanPlain(text, dialect)
  return typeof scanned === 'string' ? `invalid name ${quoted()}: ${scanned}` : scanned
}

/** A name, perhaps behind one `*.`. */
function scanPlain(text: string, dialect: Dialect): Selector | string {
  const isWild = dialect !== 'name' && text.startsWith('*.')
  const labels = splitLabels(isWild ? text.slice(2) : text)
  if (labels.some((label) => label.includes('*'))) {
    return dialect === 'name'
      ? 'wildcards are not supported here'
      : 'a wildcard must be the whole first label, as in *.example.com'
  }
  const fault = faultOf(labels)
  if (fault !== '') return fault
  const suffix = wireOf(labels)
  const name = printLabels(labels)
  if (!isWild) return { kind: 'exact', suffix, key: name, text }
  if (suffix.length + 2 > NAME_OCTETS_MAX) return TOO_LONG
  return dialect === 'openshift'
    ? { kind: 'one-label', suffix, key: `one *.${name}`, text }
    : { kind: 'many-label', suffix, key: `many *.${name}`, text }
}

/** Cilium's matchPattern. */
function scanPattern(text: string, dialect: Dialect): Selector | string {
  const stars = dialect === 'cilium-1.19' ? starsOf(text) : 0
  // Without more labels, but perhaps with a final dot.
  if (text === '*' || (stars > 0 && text.length <= stars + 1)) {
    return { kind: 'all', suffix: ROOT_NAME, key: 'all', text }
  }
  const isDeep = stars > 1
  const labels = splitLabels(isDeep ? text.slice(stars + 1) : text)
  const fault = faultOf(labels)
  if (fault !== '') return fault
  const wild = labels.findLastIndex((label) => label.includes('*')) + 1
  const suffix = wireOf(labels.slice(wild))
  const name = printLabels(labels)
  if (wild === 0 && !isDeep) return { kind: 'exact', suffix, key: name, text }
  const patterns = labels.slice(0, wild)
  // Each label has at least one octet after its length.
  if (suffix.length + 2 * (wild + (isDeep ? 1 : 0)) > NAME_OCTETS_MAX) return TOO_LONG
  const globs = patterns.map((pattern) => new Glob(pattern))
  const key = `pattern ${isDeep ? '**.' : ''}${name}`
  return { kind: 'pattern', suffix, globs, isDeep, key, text }
}

/** Number of stars that are the first label; 0 = it has other characters. */
function starsOf(text: string): number {
  const head = text.split('.', 1)[0]!
  return head.replaceAll('*', '') === '' ? head.length : 0
}

const TOO_LONG = `it is longer than ${NAME_OCTETS_MAX} octets`

/** Labels in lower case, without the root. Adjacent stars are one. */
function splitLabels(text: string): string[] {
  const labels = text.split('.')
  if (labels.length > 1 && labels.at(-1) === '') labels.pop()
  return labels.map((label) => joinStars(lowerAscii(label)))
}

/** `toLowerCase` would turn some other characters into ASCII letters. */
function lowerAscii(text: string): string {
  if (Buffer.byteLength(text) === text.length) return text.toLowerCase()
  let lower = ''
  for (const character of text) lower += character < '\x80' ? character.toLowerCase() : character
  return lower
}

function joinStars(label: string): string {
  let joined = label
  while (joined.includes('**')) joined = joined.replaceAll('**', '*')
  return joined
}

/** Returns what is wrong; '' = nothing. */
function faultOf(labels: readonly string[]): string {
  let octets = 1
  for (const label of labels) {
    if (label === '') return 'it has an empty label: write one dot between two labels'
    for (let i = 0; i < label.length; i++) {
      const octet = label.charCodeAt(i)
      if (octet !== STAR && !isNameCharacter(octet)) {
        return 'use letters, digits, - and _ in labels; write other names in their ASCII form (xn--…)'
      }
    }
    if (!isPossible(label)) return `a label is longer than ${LABEL_OCTETS_MAX} octets`
    octets += 1 + Math.max(1, label.replaceAll('*', '').length)
  }
  return octets > NAME_OCTETS_MAX ? TOO_LONG : ''
}

function printLabels(labels: readonly string[]): string {
  return `${labels.join('.')}.`
}

function wireOf(labels: readonly string[]): Uint8Array {
  let octets = 1
  for (const { length } of labels) octets += 1 + length
  const wire = new Uint8Array(octets)
  let at = 0
  for (const label of labels) {
    wire[at++] = label.length
    for (let i = 0; i < label.length; i++) wire[at++] = label.charCodeAt(i)
  }
  return wire
}
