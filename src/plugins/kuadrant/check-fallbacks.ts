import { InputError } from '../../base/errors.ts'
import { didYouMean } from '../../base/nearest.ts'
import type { RecordPlaces } from '../../publish/build/locate.ts'
import { unpackPlace, unpackRecord, unpackSettings } from '../../records/pack.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import { CLOSED, OPEN } from '../../steering/rules.ts'

/** Finds records whose `all-down` names a fallback endpoint that no record of their host has. */
export function* findLostFallbacks(
  records: readonly StoredRecord[],
  places: Pick<RecordPlaces, 'record'>,
): Iterable<InputError> {
  const naming = records.flatMap(({ key, packed }) => {
    const id = unpackSettings(packed)?.allDown
    const isFallback = id !== undefined && id !== OPEN && id !== CLOSED
    return isFallback ? [{ key, id, host: unpackPlace(packed).rootHostKey }] : []
  })
  const known = new Map(naming.map(({ host }) => [host, new Set<string>()]))
  for (const { packed } of naming.length === 0 ? [] : records) {
    const identifiers = known.get(unpackPlace(packed).rootHostKey)
    if (identifiers === undefined) continue
    for (const { setIdentifier } of unpackRecord(packed).endpoints) identifiers.add(setIdentifier)
  }
  for (const { key, id, host } of naming) {
    if (known.get(host)!.has(id)) continue
    const what = `DNSRecord ${key}: sextant.io/all-down names ${JSON.stringify(id)}`
    const hint = didYouMean(id, [OPEN, CLOSED, ...known.get(host)!])
    const message = `${what}, but no endpoint of the host has that setIdentifier; open applies${hint}`
    yield new InputError(places.record(key), message)
  }
}
