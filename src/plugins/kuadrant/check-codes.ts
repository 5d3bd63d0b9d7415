import { AbsentDirectiveWarning, InputError } from '../../base/errors.ts'
import { unpackRecord } from '../../dnsrecord/pack.ts'
import type { StoredRecord } from '../../dnsrecord/record-source.ts'
import type { GeoCode } from '../../geo/code.ts'
import type { BlockConfig } from '../../plugin/directive.ts'
import type { RecordPlaces } from '../../publish/locate.ts'

const WHY: Readonly<Record<GeoCode['rung'], string>> = {
  net: 'no `net` line of geoip defines it',
  asn: 'no database and no `net` line of geoip has it',
  subdivision: 'no database of geoip has that subdivision; the bundled one has only countries',
  country: 'no database and no `net` line of geoip has it',
  continent: 'no database and no `net` line of geoip has it',
  default: '',
}

/** Finds the geo codes of `records` that no client can match. Their endpoints serve only as a last resort. */
export function findDeadCodes(
  records: readonly StoredRecord[],
  geoCodes: BlockConfig['geoCodes'],
  places: RecordPlaces,
): InputError[] {
  const uses = new Map<string, Map<string, GeoCode>>()
  for (const { key, packed } of records) {
    for (const { codes } of unpackRecord(packed).endpoints) {
      const inRecord = uses.get(key) ?? new Map()
      uses.set(key, inRecord)
      for (const code of codes) if (code.rung !== 'default') inRecord.set(code.text, code)
    }
  }
  if ([...uses.values()].every(({ size }) => size === 0)) return []
  const known = knownCodes(geoCodes)
  if (known === undefined) return []
  return [...uses].flatMap(([key, inRecord]) => {
    return [...inRecord.values()]
      .filter(({ text }) => !known.has(text))
      .map(({ text, rung }) => {
        const at = places.geoCode(key, text)
        const fault = `${key}: geo code ${text} matches no client`
        return geoCodes === undefined
          ? new AbsentDirectiveWarning(at, `${fault}: the server block has no geoip`)
          : new InputError(at, `${fault}: ${WHY[rung]}`)
      })
  })
}

/** Returns undefined if a database can't be used; `geoip` reports that fault. */
function knownCodes(geoCodes: BlockConfig['geoCodes']): ReadonlySet<string> | undefined {
  try {
    return geoCodes?.() ?? new Set()
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return undefined
  }
}
