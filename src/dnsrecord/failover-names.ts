import { nameKey } from '../dns/name/name.ts'
import { scanGeoCode } from '../geo/code.ts'
import type { FailoverLine } from '../steering/rules.ts'
import type { DnsRecord, Endpoint, FieldProblem } from './dns-record.ts'

/** Code of the default endpoints, and of the line for all codes without their own. */
export const DEFAULT = '*'

/** What the entries of a list can name. */
export interface Names {
  /** Geo codes, and DEFAULT if there is an endpoint for clients that no code matches. */
  readonly codes: ReadonlySet<string>
  readonly identifiers: ReadonlySet<string>
  readonly hasDefault: boolean
}

export function namesOf(endpoints: readonly Endpoint[]): Names {
  const codes = new Set(endpoints.flatMap((endpoint) => endpoint.codes.map(({ text }) => text)))
  const hasDefault = codes.has(DEFAULT) || endpoints.some(({ isDefault }) => isDefault)
  if (hasDefault || endpoints.some((endpoint) => endpoint.codes.length === 0)) codes.add(DEFAULT)
  const identifiers = new Set(endpoints.map(({ setIdentifier }) => setIdentifier))
  return { codes, identifiers, hasDefault }
}

export function hasEffect({ code, entries }: FailoverLine, names: Names): boolean {
  const isOfEndpoint = code !== DEFAULT && names.codes.has(code)
  return isOfEndpoint || entries.some((name) => isKnown(name, names))
}

export function isKnown(name: string, names: Names): boolean {
  return codeIn(name, names) !== undefined || names.identifiers.has(name)
}

/** Returns the code that an entry means; undefined = the entry is a set identifier. */
export function codeIn(name: string, { codes }: Names): string | undefined {
  const code = scanGeoCode(name)?.text
  return code !== undefined && codes.has(code) ? code : undefined
}

/**
 * Finds failover lists without an effect on any name of the record itself. Other records of the host may have endpoints
 * for them.
 */
export function findIdleLists({ endpoints, settings }: DnsRecord): FieldProblem[] {
  const lines = settings?.failover
  if (lines === undefined) return []
  const byOwner = new Map<string, Endpoint[]>()
  for (const endpoint of endpoints) {
    const key = nameKey(endpoint.owner)
    const known = byOwner.get(key)
    if (known === undefined) byOwner.set(key, [endpoint])
    else known.push(endpoint)
  }
  const names = [...byOwner.values()].map(namesOf)
  const idle = lines.filter((line) => !names.some((one) => hasEffect(line, one)))
  if (idle.length === 0) return []
  const codes = idle.map(({ code }) => code).join(', ')
  const message = `sextant.io/failover has no effect for ${codes}: no endpoint of the record has this geo code, or is in the list; correct the list, or delete it`
  return [{ path: ['metadata', 'annotations', 'sextant.io/failover'], message }]
}
