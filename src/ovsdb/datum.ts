/** An atom in the form of JSON; a UUID is its text. */
type OvsdbAtom = string | number | boolean

/** The value of a column: RFC 7047 section 5.1. */
type OvsdbDatum = OvsdbAtom | ReadonlySet<OvsdbAtom> | ReadonlyMap<OvsdbAtom, OvsdbAtom>

/** The type of a column: exactly one atom, a set of any number, or a map. */
type ColumnKind = 'atom' | 'set' | 'map'

/** By column. */
export type OvsdbRow = Readonly<Record<string, OvsdbDatum>>

/** By column. */
export type ColumnKinds = Readonly<Record<string, ColumnKind>>

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The JSON of a set. */
export function printSet(atoms: Iterable<string>): unknown {
  return ['set', [...atoms]]
}

/** The JSON of a map. */
export function printMap(entries: Readonly<Record<string, string>>): unknown {
  return ['map', Object.entries(entries)]
}

/** Parses the columns of a row that have a kind. Undefined = a column has another type. */
export function readColumns(json: unknown, kinds: ColumnKinds): OvsdbRow | undefined {
  if (!isRecord(json)) return undefined
  const row: Record<string, OvsdbDatum> = {}
  for (const [column, kind] of Object.entries(kinds)) {
    if (!Object.hasOwn(json, column)) continue
    const datum = readDatum(json[column], kind)
    if (datum === undefined) return undefined
    row[column] = datum
  }
  return row
}

/** As `readColumns`, for a whole row: servers omit sets and maps that are empty, and default atoms. */
export function readRow(json: unknown, kinds: ColumnKinds): OvsdbRow | undefined {
  const columns = readColumns(json, kinds)
  if (columns === undefined) return undefined
  const row: Record<string, OvsdbDatum> = { ...columns }
  for (const [column, kind] of Object.entries(kinds)) {
    if (kind === 'set') row[column] ??= new Set()
    if (kind === 'map') row[column] ??= new Map()
  }
  return row
}

/**
 * Returns a row after the change in a `modify` of an `update2` (ovsdb-server(7), "Update2"): an atom
 * replaces the old one; a set has the members that were added or removed; a map has the keys that
 * were added, removed (with their old value) or got another value.
 */
export function changeRow(before: OvsdbRow, change: OvsdbRow): OvsdbRow {
  const row: Record<string, OvsdbDatum> = { ...before }
  for (const [column, datum] of Object.entries(change)) {
    const old = before[column]
    if (datum instanceof Set && old instanceof Set) row[column] = changeSet(old, datum)
    else if (datum instanceof Map && old instanceof Map) row[column] = changeMap(old, datum)
    else row[column] = datum
  }
  return row
}

function changeSet(
  before: ReadonlySet<OvsdbAtom>,
  change: ReadonlySet<OvsdbAtom>,
): ReadonlySet<OvsdbAtom> {
  const set = new Set(before)
  for (const atom of change) if (!set.delete(atom)) set.add(atom)
  return set
}

function changeMap(
  before: ReadonlyMap<OvsdbAtom, OvsdbAtom>,
  change: ReadonlyMap<OvsdbAtom, OvsdbAtom>,
): ReadonlyMap<OvsdbAtom, OvsdbAtom> {
  const map = new Map(before)
  for (const [key, value] of change) {
    if (map.get(key) === value) map.delete(key)
    else map.set(key, value)
  }
  return map
}

function readDatum(json: unknown, kind: ColumnKind): OvsdbDatum | undefined {
  if (kind === 'map') return readMap(json)
  if (kind === 'atom') return readAtom(json)
  const isSet = Array.isArray(json) && json[0] === 'set'
  // A set of one atom may be written as the atom.
  const members: unknown = isSet ? json[1] : [json]
  if (!Array.isArray(members)) return undefined
  const atoms = members.map(readAtom).filter((atom) => atom !== undefined)
  return atoms.length === members.length ? new Set(atoms) : undefined
}

function readMap(json: unknown): ReadonlyMap<OvsdbAtom, OvsdbAtom> | undefined {
  if (!Array.isArray(json) || json[0] !== 'map' || !Array.isArray(json[1])) return undefined
  const map = new Map<OvsdbAtom, OvsdbAtom>()
  for (const pair of json[1]) {
    if (!Array.isArray(pair)) return undefined
    const [key, value] = pair.map(readAtom)
    if (key === undefined || value === undefined) return undefined
    map.set(key, value)
  }
  return map
}

function readAtom(json: unknown): OvsdbAtom | undefined {
  if (Array.isArray(json)) {
    return json[0] === 'uuid' && typeof json[1] === 'string' ? json[1] : undefined
  }
  const isAtom = typeof json === 'string' || typeof json === 'number' || typeof json === 'boolean'
  return isAtom ? json : undefined
}
