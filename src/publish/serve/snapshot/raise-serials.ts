import { RRType } from '../../../dns/iana/types.ts'
import { nameKey, printName } from '../../../dns/name/name.ts'
import type { PublishOptions } from '../../options.ts'
import type { SerialFile } from '../../zone/serials/serial-file.ts'
import type { SerialIndex } from '../../zone/serials/serial-index.ts'
import { RESERVED_COMMITS, UNKNOWN_DIGEST } from '../../zone/serials/serial-text.ts'
import { addToSerial, composeSoa, isSerialAfter, SOA_TTL_SECONDS } from '../../zone/soa.ts'
import { mailboxOf, primaryOf } from '../../zone/zone-content.ts'
import type { LoadedSnapshot } from './load.ts'

interface RaiseSerialsParts {
  readonly serials: SerialIndex
  readonly serialFile: SerialFile | undefined
  /** See `PublishedZonesParts`. */
  readonly place: string
  readonly nowMs: number
}

/**
 * Raises the serials of a snapshot's zones, so that they are not behind any serial that was served.
 * The serials file contains those. Without it, there may have been changes after the snapshot.
 */
export function raiseSerials(
  { image, facts }: LoadedSnapshot,
  options: PublishOptions,
  { serials, serialFile, place, nowMs }: RaiseSerialsParts,
): void {
  const changed: string[] = []
  for (const apex of options.zones) {
    const zone = printName(apex)
    const known = facts.zones.find((other) => other.zone === zone)
    const id = image.findZone(apex)
    if (known === undefined || id === undefined) continue
    if (serialFile?.knows(zone) !== true) {
      const serial = serialAfterCrash(known.serial, nowMs)
      serials.restore([{ zone, place, digest: UNKNOWN_DIGEST, serial }])
    }
    const serial = serials.serialFor({ zone, place, digest: known.digest }, nowMs)
    // The old SOA has a signature. It is replaced when the zone is signed again.
    if (options.signed?.has(nameKey(apex))) continue
    const soa = composeSoa(
      primaryOf(apex, options),
      mailboxOf(apex, options, () => {}),
      serial,
    )
    const set = { type: RRType.SOA, ttlSeconds: SOA_TTL_SECONDS, rdata: [soa] }
    if (image.putRRset(id, apex, set)) changed.push(zone)
  }
  if (changed.length > 0) serialFile?.save(changed)
  image.publish()
}

/**
 * Returns the current time as a serial, as a start without state does, but not behind what may have
 * been served.
 */
function serialAfterCrash(serial: number, nowMs: number): number {
  const least = addToSerial(serial, RESERVED_COMMITS)
  const now = addToSerial(Math.floor(nowMs / 1000), 0)
  return isSerialAfter(now, least) ? now : least
}
