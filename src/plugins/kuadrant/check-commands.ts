import { InputError } from '../../base/errors.ts'
import type { RecordPlaces } from '../../publish/build/locate.ts'
import type { HealthOptions } from '../../publish/health-options.ts'
import { isChecked, unpackRecord } from '../../records/pack.ts'
import type { StoredRecord } from '../../records/record-source.ts'

/** Finds health checks of records that name a command which a block with `probe` does not define. */
export function* findLostCommands(
  records: readonly StoredRecord[],
  { probe, commands }: HealthOptions,
  places: Pick<RecordPlaces, 'record'>,
): Iterable<InputError> {
  if (probe === undefined) return
  for (const { key, packed } of records) {
    if (!isChecked(packed)) continue
    const check = unpackRecord(packed).healthCheck!
    if (check.protocol !== 'EXEC' || commands?.has(check.command)) continue
    const what = `DNSRecord ${key}: no probe-exec defines command ${check.command}`
    yield new InputError(places.record(key), `${what}; the addresses are not probed`)
  }
}
