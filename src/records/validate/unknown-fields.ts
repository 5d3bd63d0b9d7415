import { didYouMean, nearestName } from '../../base/nearest.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import type { FieldProblem } from './fields.ts'
import { isMapping, quote } from './fields.ts'
import {
  type KnownFields,
  METADATA_FIELDS,
  PROBE_STATUS_FIELDS,
  RESOURCE_FIELDS,
  SPEC_FIELDS,
} from './known-fields.ts'

type Mapping = { readonly [key: string]: YamlValue }
/** The steps to the current mapping. It is one list for all, because nearly no path is ever printed. */
type Path = (string | number)[]

/** What messages call the items of lists. */
const ITEMS: ReadonlyMap<string, string> = new Map([
  ['endpoints', 'an endpoint'],
  ['providerSpecific', 'a property'],
])

/**
 * Finds the fields of a resource that its kind does not have. Programs write most fields of `metadata` and `status`,
 * and newer versions have more of them: there, only a name that resembles a known one counts.
 */
export function findUnknownFields(
  resource: Mapping,
  kind: keyof typeof SPEC_FIELDS,
): FieldProblem[] {
  const found: FieldProblem[] = []
  const { metadata, spec, status } = resource
  for (const name in resource) {
    if (RESOURCE_FIELDS.includes(name)) continue
    const inParts = Object.keys(SPEC_FIELDS[kind]).map((field) => `spec.${field}`)
    found.push(unknownField([name], kind, [...RESOURCE_FIELDS, ...inParts]))
  }
  if (isMapping(metadata)) findMisspelt(metadata, 'metadata', METADATA_FIELDS, found)
  if (isMapping(spec)) findIn(spec, ['spec'], 'spec', SPEC_FIELDS[kind], found)
  if (kind === 'DNSHealthCheckProbe' && isMapping(status)) {
    findMisspelt(status, 'status', PROBE_STATUS_FIELDS, found)
  }
  return found
}

function findMisspelt(
  mapping: Mapping,
  part: string,
  known: readonly string[],
  found: FieldProblem[],
): void {
  for (const name in mapping) {
    if (known.includes(name) || nearestName(name, known) === undefined) continue
    found.push(unknownField([part, name], part, known))
  }
}

/** `what`: what messages call the mapping. */
function findIn(
  mapping: Mapping,
  path: Path,
  what: string,
  known: KnownFields,
  found: FieldProblem[],
): void {
  for (const name in mapping) {
    if (!Object.hasOwn(known, name)) {
      found.push(unknownField([...path, name], what, Object.keys(known)))
      continue
    }
    const below = known[name]
    if (below === undefined) continue
    path.push(name)
    findBelow(mapping[name], path, below, found)
    path.pop()
  }
}

function findBelow(
  value: YamlValue | undefined,
  path: Path,
  known: KnownFields,
  found: FieldProblem[],
): void {
  if (isMapping(value)) findIn(value, path, path.join('.'), known, found)
  else if (Array.isArray(value)) {
    const what = ITEMS.get(String(path.at(-1))) ?? 'an item'
    for (let index = 0; index < value.length; index++) {
      const item = value[index]
      if (!isMapping(item)) continue
      path.push(index)
      findIn(item, path, what, known, found)
      path.pop()
    }
  }
}

function unknownField(path: Readonly<Path>, what: string, known: readonly string[]): FieldProblem {
  const name = String(path.at(-1))
  const message = `${quote(name)} is not a field of ${what} and is ignored`
  return { path, message: message + didYouMean(name, known) }
}
