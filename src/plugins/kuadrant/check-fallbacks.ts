import { InputError } from '../../base/errors.ts'
import { didYouMean } from '../../base/nearest.ts'
import type { RecordPlaces } from '../../publish/build/locate.ts'
import { unpackPlace, unpackRecord, unpackSettings } from '../../records/pack.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import { CLOSED, OPEN } from '../../steering/rules.ts'
import type { KuadrantOptions } from './options.ts'

/** Finds a fallback endpoint of the block that no record has. A single record may lack it on purpose. */
export function* findLostDefault(
  records: readonly StoredRecord[],
  { settings, allDownPosition }: Pick<KuadrantOptions, 'settings' | 'allDownPosition'>,
): Iterable<InputError> {
  const id = settings?.allDown
  if (id === undefined || id === OPEN || id === CLOSED || records.length === 0) return
  const known = new Set<string>()
  for (const { packed } of records)
    for (const { setIdentifier } of unpackRecord(packed).endpoints) known.add(setIdentifier)
  if (known.has(id)) return
  const hint = didYouMean(id, [OPEN, CLOSED, ...known])
  const message = `all-down names ${JSON.stringify(id)}, but no endpoint has that setIdentifier; open applies${hint}`
  yield new InputError(allDownPosition, message)
}

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
