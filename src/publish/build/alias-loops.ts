import { InputError } from '../../base/errors.ts'
import { RRType } from '../../dns/iana/types.ts'
import { nameKey, printName } from '../../dns/name/name.ts'
import { unpackRecord } from '../../records/pack.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import { isWildcard } from '../../records/validate/names.ts'
import type { RecordPlaces } from './locate.ts'

/** A CNAME of an endpoint. */
interface Alias {
  readonly key: string
  readonly owner: Uint8Array
  readonly setIdentifier: string
  readonly target: Uint8Array
}

/** Longest loop that a message prints. */
const PRINTED_MAX = 8

/** Finds CNAMEs that lead back to themselves. Each loop is reported once, at one of its endpoints. */
export function findAliasLoops(
  records: readonly StoredRecord[],
  places: Pick<RecordPlaces, 'endpoint'>,
): InputError[] {
  const { aliases, names } = readAliases(records)
  const found: InputError[] = []
  const finished = new Set<string>()
  for (const start of aliases.keys()) {
    if (finished.has(start)) continue
    for (const loop of loopsFrom(start, aliases, names, finished))
      found.push(describe(loop, places))
  }
  return found
}

/** `names`: all names that have records, by `nameKey`. */
function readAliases(records: readonly StoredRecord[]) {
  const aliases = new Map<string, Alias[]>()
  const names = new Set<string>()
  for (const { key, packed } of records) {
    for (const { owner, type, setIdentifier, rdata } of unpackRecord(packed).endpoints) {
      const name = nameKey(owner)
      names.add(name)
      if (type !== RRType.CNAME) continue
      const known = aliases.get(name)
      const own = rdata.map((target) => ({ key, owner, setIdentifier, target }))
      if (known === undefined) aliases.set(name, own)
      else known.push(...own)
    }
  }
  return { aliases, names }
}

/** Follows every CNAME from `start`, without recursion, because a chain may be long. */
function* loopsFrom(
  start: string,
  aliases: ReadonlyMap<string, readonly Alias[]>,
  names: ReadonlySet<string>,
  finished: Set<string>,
): Generator<readonly Alias[]> {
  const path: { readonly name: string; readonly alias?: Alias; next: number }[] = []
  const depths = new Map<string, number>()
  const enter = (name: string, alias?: Alias): void => {
    depths.set(name, path.length)
    path.push(alias === undefined ? { name, next: 0 } : { name, alias, next: 0 })
  }
  enter(start)
  for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
    const alias = aliases.get(last.name)?.[last.next++]
    if (alias === undefined) {
      finished.add(last.name)
      depths.delete(last.name)
      path.pop()
      continue
    }
    const name = sourceOf(alias.target, names)
    const depth = depths.get(name)
    if (depth !== undefined) {
      yield [...path.slice(depth + 1).map((step) => step.alias!), alias]
    } else if (aliases.has(name) && !finished.has(name)) enter(name, alias)
  }
}

/** Returns the name whose records answer for `target`: itself, or a wildcard (RFC 4592 section 3.3). */
export function sourceOf(target: Uint8Array, names: Pick<ReadonlySet<string>, 'has'>): string {
  const own = nameKey(target)
  if (names.has(own) || isWildcard(target)) return own
  for (let at = 1 + target[0]!; at < target.length; at += 1 + target[at]!) {
    const parent = target.subarray(at)
    const wildcard = nameKey(Uint8Array.of(1, 0x2a, ...parent))
    if (names.has(wildcard)) return wildcard
    if (names.has(nameKey(parent))) break
  }
  return own
}

function describe(loop: readonly Alias[], places: Pick<RecordPlaces, 'endpoint'>): InputError {
  const [first] = loop as readonly [Alias, ...Alias[]]
  const { key, owner, setIdentifier } = first
  const printed = loop.slice(0, PRINTED_MAX).map((alias) => printName(alias.target))
  const more = loop.length > PRINTED_MAX ? ['…'] : []
  const way = [printName(owner), ...printed, ...more].join(' to ')
  const message = `DNSRecord ${key}: the CNAMEs lead in a circle, from ${way}: clients get no address; change one of them`
  return new InputError(places.endpoint({ key, owner, type: RRType.CNAME, setIdentifier }), message)
}
