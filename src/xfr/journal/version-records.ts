import { ZoneRecords } from '../../zone/zonefile/records.ts'
import { ScannedRecord } from '../../zone/zonefile/sink.ts'
import type { VersionView } from './version-view.ts'

/** Names between two pauses. */
const SLICE_NODES = 256

/** Copies the records of a version, for checks of the whole zone; their file is ''. Pauses at intervals. */
export function* versionRecords(view: VersionView): Generator<void, ZoneRecords> {
  const records = new ZoneRecords()
  const scanned = new ScannedRecord()
  let seen = 0
  for (const node of view.nodes()) {
    const owner = view.owner(node)
    scanned.owner.set(owner)
    scanned.ownerOctets = owner.length
    for (const set of view.sets(node)) {
      for (const { type, ttlSeconds, rdata, rdataOffset, rdataOctets } of view.records(
        owner,
        set,
      )) {
        scanned.type = type
        scanned.ttlSeconds = ttlSeconds
        scanned.rdata = rdata.subarray(rdataOffset, rdataOffset + rdataOctets)
        scanned.rdataOctets = rdataOctets
        records.add(scanned)
      }
    }
    if (++seen % SLICE_NODES === 0) yield
  }
  return records
}
