import { AbsentDirectiveWarning, InputError } from '../../base/errors.ts'
import type { GeoCoverage } from '../../geo/classes/coverage.ts'
import type { GeoCode } from '../../geo/code.ts'
import type { RecordPlaces } from '../../publish/build/locate.ts'
import { unpackRecord } from '../../records/pack.ts'
import type { StoredRecord } from '../../records/record-source.ts'

const WHY = 'no database and no `net` line of geoip has it'
/** For the rungs whose reason is another one. */
const WHY_ON_RUNG: Partial<Readonly<Record<GeoCode['rung'], string>>> = {
  net: 'no `net` line of geoip defines it',
  subdivision: 'no database of geoip has that subdivision; the bundled one has only countries',
}
const NO_GEOIP = 'the server block has no geoip'
const NOTHING: GeoCoverage = { codes: new Set(), hasCoordinates: false }

/**
 * Finds what the clients of a block can't match: geo codes, whose endpoints serve only as a last
 * resort, and locations, without which the endpoints are chosen.
 */
export function findUnmatched(
  records: readonly StoredRecord[],
  coverage: (() => GeoCoverage) | undefined,
  places: RecordPlaces,
): InputError[] {
  const codesOf = new Map<string, Map<string, GeoCode>>()
  const located = new Set<string>()
  for (const { key, packed } of records) {
    for (const { codes, point } of unpackRecord(packed).endpoints) {
      const inRecord = codesOf.get(key) ?? new Map()
      codesOf.set(key, inRecord)
      for (const code of codes) if (code.rung !== 'default') inRecord.set(code.text, code)
      if (point !== undefined) located.add(key)
    }
  }
  if (located.size === 0 && [...codesOf.values()].every(({ size }) => size === 0)) return []
  const known = readCoverage(coverage)
  if (known === undefined) return []
  const warnAt = (at: InputError['position'], fault: string, why: string): InputError =>
    coverage === undefined
      ? new AbsentDirectiveWarning(at, `${fault}: ${NO_GEOIP}`)
      : new InputError(at, `${fault}: ${why}`)
  const dead = [...codesOf].flatMap(([key, inRecord]) => {
    return [...inRecord.values()]
      .filter(({ text }) => !known.codes.has(text))
      .map(({ text, rung }) => {
        const fault = `${key}: geo code ${text} matches no client`
        return warnAt(places.geoCode(key, text), fault, WHY_ON_RUNG[rung] ?? WHY)
      })
  })
  if (known.hasCoordinates) return dead
  const idle = [...located].map((key) => {
    const fault = `${key}: location has no effect`
    return warnAt(
      places.location(key),
      fault,
      'no database and no `net` line of geoip has coordinates',
    )
  })
  return [...dead, ...idle]
}

/** Returns undefined if a database can't be used; `geoip` reports that fault. */
function readCoverage(coverage: (() => GeoCoverage) | undefined): GeoCoverage | undefined {
  try {
    return coverage?.() ?? NOTHING
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return undefined
  }
}
