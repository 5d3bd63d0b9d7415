import { scanGeoCode } from '../geo/code.ts'
import type { FailoverLine } from '../steering/rules.ts'
import type { DnsRecord, Endpoint } from './dns-record.ts'

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
 * Returns the failover lists of a record that have no effect on any of its own names, if it has no geo codes. A record
 * with geo codes may have lists for some of its names only. Other records of a name may have endpoints for a list.
 */
export function idleLines({
  endpoints,
  settings,
}: Pick<DnsRecord, 'endpoints' | 'settings'>): readonly FailoverLine[] {
  const lines = settings?.failover
  if (lines === undefined || endpoints.some(isLocated)) return []
  // A line has an effect on one of the names exactly if it has one on all endpoints together.
  const names = namesOf(endpoints)
  return lines.filter((line) => !hasEffect(line, names))
}

function isLocated({ codes }: Endpoint): boolean {
  return codes.some(({ text }) => text !== DEFAULT)
}
