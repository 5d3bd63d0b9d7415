import { InputError } from '../../base/errors.ts'
import { nameKey } from '../../dns/name/name.ts'
import type { RecordPlaces } from '../../publish/build/locate.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import { unpackRecord, unpackSettings } from '../../records/pack.ts'
import type { StoredRecord } from '../../records/record-source.ts'

/**
 * Finds shifts of traffic that change no answer: no tier of any name has both an endpoint that traffic is shifted to
 * and another one.
 */
export function* findIdleShifts(
  records: readonly StoredRecord[],
  places: Pick<RecordPlaces, 'record'>,
): Iterable<InputError> {
  const shifting = records.flatMap(({ key, packed }) => {
    const { shift, failover } = unpackSettings(packed) ?? {}
    // A failover list brings endpoints of several tiers together.
    return shift === undefined || failover !== undefined ? [] : [{ key, packed, to: shift.to }]
  })
  if (shifting.length === 0) return
  const sets = new Map<string, Endpoint[]>()
  for (const { packed } of records) {
    for (const endpoint of unpackRecord(packed).endpoints) {
      const key = setKey(endpoint)
      sets.set(key, [...(sets.get(key) ?? []), endpoint])
    }
  }
  for (const { key, packed, to } of shifting) {
    const own = new Set(unpackRecord(packed).endpoints.map(setKey))
    if ([...own].some((set) => isShifted(sets.get(set)!, to))) continue
    const text = `DNSRecord ${key}: sextant.io/shift has no effect: no client has a choice between an endpoint with the set identifier ${JSON.stringify(to)} and another one; give them the same geo code`
    yield new InputError(places.record(key), text)
  }
}

function setKey({ owner, type }: Endpoint): string {
  return `${type} ${nameKey(owner)}`
}

/** True if clients of some tier have a choice. `endpoints`: of one name and type. */
function isShifted(endpoints: readonly Endpoint[], to: string): boolean {
  const targets = endpoints.filter(({ setIdentifier }) => setIdentifier === to)
  const others = endpoints.filter(({ setIdentifier }) => setIdentifier !== to)
  if (targets.length === 0 || others.length === 0) return false
  const hasDefault = endpoints.some(({ isDefault }) => isDefault)
  // Without a default, all compete for clients that no code matches. The nearest endpoint depends on the client.
  if (!hasDefault || endpoints.some(({ point }) => point !== undefined)) return true
  return targets.some((one) => {
    const tiers = tiersOf(one)
    return others.some((other) => tiersOf(other).some((tier) => tiers.includes(tier)))
  })
}

function tiersOf({ codes, isDefault }: Endpoint): readonly string[] {
  return [...codes.map(({ text }) => text), ...(isDefault ? ['*'] : [])]
}
