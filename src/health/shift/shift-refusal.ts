import { unpackRecord, unpackSettings } from '../../records/pack.ts'
import type { StoredRecord } from '../../records/record-source.ts'

/**
 * Returns why a shift of a host cannot be ordered; '' = it can. `records`: those of the host. `host`: for messages.
 * `to`: the set identifier that traffic moves to.
 */
export function shiftRefusal(host: string, to: string, records: readonly StoredRecord[]): string {
  if (records.length === 0) return `no DNSRecord has the root host ${JSON.stringify(host)}`
  const annotated = records.find(({ packed }) => unpackSettings(packed)?.shift !== undefined)
  if (annotated !== undefined) {
    return `${annotated.key} has the annotation sextant.io/shift: edit or remove it`
  }
  const hasTarget = records.some(({ packed }) => {
    return unpackRecord(packed).endpoints.some(({ setIdentifier }) => setIdentifier === to)
  })
  return hasTarget ? '' : `no endpoint of the host has the set identifier ${JSON.stringify(to)}`
}
