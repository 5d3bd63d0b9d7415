import { assert } from '../../base/assert.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import { unpackSettings } from '../../records/pack.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import type { DrainSetting } from '../../records/settings.ts'
import type { EndpointDrain, RecordDrains } from './drain.ts'
import { DRAINED_TYPES, scanDrainSelector } from './selector.ts'

/** The author of an annotation is not known. */
const ACTOR = 'annotation'

/**
 * Returns the drain that the annotations of a record ask for, also one that has ended; undefined =
 * none. `ownSite`: our own; '' = none. The key of a record of another site or part names its site.
 */
export function drainOfRecord(
  { key, packed, origin }: StoredRecord,
  ownSite: string,
): EndpointDrain | undefined {
  const drain = unpackSettings(packed)?.drain
  return drain && drainBySetting(key, drain, origin === undefined ? ownSite : '')
}

/** Returns the drain that a setting of the record with that key asks for. */
export function drainBySetting(
  key: string,
  { reason, untilMs }: DrainSetting,
  site: string,
): EndpointDrain {
  const terms = site === '' ? [`record:${key}`] : [`record:${key}`, `site:${site}`]
  const selector = scanDrainSelector(terms)
  assert(typeof selector !== 'string', 'a key and a site are valid terms')
  return { selector, reason, actor: ACTOR, createdMs: undefined, untilMs }
}

export function drainAll(endpoints: readonly Endpoint[], drain: EndpointDrain): RecordDrains {
  const marks = endpoints.map(({ type, rdata }) => {
    return new Map(DRAINED_TYPES.has(type) ? rdata.map((_, index) => [index, drain]) : [])
  })
  return { endpoints: marks }
}
