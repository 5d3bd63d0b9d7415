import { InputError } from '../../base/errors.ts'
import { RRType } from '../../dns/iana/types.ts'
import { nameKey, printName } from '../../dns/name/name.ts'
import { unpackRecord } from '../../records/pack.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import { isWildcard } from '../../records/validate/names.ts'
import type { RecordPlaces } from './locate.ts'

/** A CNAME of an endpoint. */
interface Cname {
  readonly key: string
  readonly owner: Uint8Array
  readonly setIdentifier: string
  readonly target: Uint8Array
}

/** Longest loop that a message prints. */
const PRINTED_MAX = 8

/** Finds CNAMEs that lead back to themselves. Each loop is reported once, at one of its endpoints. */
export function findCnameLoops(
  records: readonly StoredRecord[],
  places: Pick<RecordPlaces, 'endpoint'>,
): InputError[] {
  const { cnames, names } = readCnames(records)
  const found: InputError[] = []
  const finished = new Set<string>()
  for (const start of cnames.keys()) {
    if (finished.has(start)) continue
    for (const loop of loopsFrom(start, cnames, names, finished)) found.push(describe(loop, places))
  }
  return found
}

/** `names`: all names that have records, by `nameKey`. */
function readCnames(records: readonly StoredRecord[]) {
  const cnames = new Map<string, Cname[]>()
  const names = new Set<string>()
  for (const { key, packed } of records) {
    for (const { owner, type, setIdentifier, rdata } of unpackRecord(packed).endpoints) {
      const name = nameKey(owner)
      names.add(name)
      if (type !== RRType.CNAME) continue
      const known = cnames.get(name)
      const own = rdata.map((target) => ({ key, owner, setIdentifier, target }))
      if (known === undefined) cnames.set(name, own)
      else known.push(...own)
    }
  }
  return { cnames, names }
}

/** Follows every CNAME from `start`, without recursion, because a chain may be long. */
function* loopsFrom(
  start: string,
  cnames: ReadonlyMap<string, readonly Cname[]>,
  names: ReadonlySet<string>,
  finished: Set<string>,
): Generator<readonly Cname[]> {
  const path: { readonly name: string; readonly cname?: Cname; next: number }[] = []
  const depths = new Map<string, number>()
  const enter = (name: string, cname?: Cname): void => {
    depths.set(name, path.length)
    path.push(cname === undefined ? { name, next: 0 } : { name, cname, next: 0 })
  }
  enter(start)
  for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
    const cname = cnames.get(last.name)?.[last.next++]
    if (cname === undefined) {
      finished.add(last.name)
      depths.delete(last.name)
      path.pop()
      continue
    }
    const name = sourceOf(cname.target, names)
    const depth = depths.get(name)
    if (depth !== undefined) {
      yield [...path.slice(depth + 1).map((step) => step.cname!), cname]
    } else if (cnames.has(name) && !finished.has(name)) enter(name, cname)
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

function describe(loop: readonly Cname[], places: Pick<RecordPlaces, 'endpoint'>): InputError {
  const [first] = loop as readonly [Cname, ...Cname[]]
  const { key, owner, setIdentifier } = first
  const printed = loop.slice(0, PRINTED_MAX).map((cname) => printName(cname.target))
  const more = loop.length > PRINTED_MAX ? ['…'] : []
  const way = [printName(owner), ...printed, ...more].join(' to ')
  const message = `DNSRecord ${key}: the CNAMEs lead in a circle, from ${way}: clients get no address; change one of them`
  return new InputError(places.endpoint({ key, owner, type: RRType.CNAME, setIdentifier }), message)
}
