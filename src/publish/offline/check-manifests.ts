import { systemClock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import { plural } from '../../base/plural.ts'
import { printTime } from '../../base/rfc3339.ts'
import { SILENT_LOG } from '../../base/telemetry/log.ts'
import { systemTimers } from '../../base/timers.ts'
import { RRType } from '../../dns/iana/types.ts'
import { ROOT_NAME } from '../../dns/name/name.ts'
import { findDownTargets } from '../../health/down-targets.ts'
import { type Endpoint, type HealthProbe, recordKey } from '../../records/dns-record.ts'
import { unpackRecord, unpackSettings } from '../../records/pack.ts'
import type { RecordChange, StoredRecord } from '../../records/record-source.ts'
import { ManifestSource } from '../../sources/manifests/manifest-source.ts'
import { probePlaceKey } from '../../sources/manifests/manifest-store.ts'
import { noManifests } from '../../yaml/directory.ts'
import { findCnameLoops } from '../build/cname-loops.ts'
import { RecordPlaces } from '../build/locate.ts'
import { RecordZone } from '../build/record-zone.ts'
import type { RRsetSink } from '../build/record-zone-options.ts'
import { NOTHING_KNOWN } from '../build/served-health.ts'
import { findCnamedHosts } from './unusable-names.ts'

/** Receives the warnings of `sextant check`: data that may be served in an unintended way. */
export type Warn = (warning: InputError) => void

/** The current manifests of a directory. */
export interface CheckedManifests {
  readonly records: readonly StoredRecord[]
  readonly probes: readonly HealthProbe[]
  /** All faults, by file and line. */
  readonly faults: readonly InputError[]
  /** Ignored properties, objects that may be of our kinds, and files that are not read. */
  readonly warnings: readonly InputError[]
  readonly places: RecordPlaces
  /** Summary of the data read: `3 DNSRecords in 2 files`. */
  readonly summary: string
}

/** Sink of a zone that is built only to find conflicts. */
export const NO_SINK: RRsetSink = { put() {}, remove() {}, declare() {} }

/** Reads a directory once, without a watch. Throws InputError if it cannot be listed. */
export async function readManifests(directory: string): Promise<CheckedManifests> {
  const warnings: InputError[] = []
  const unknown: InputError[] = []
  const warning = (text: string): void => {
    warnings.push(new InputError(undefined, text))
  }
  const source = new ManifestSource({
    directory,
    log: { ...SILENT_LOG, warning },
    clock: systemClock,
    timers: systemTimers,
    onIgnored: (ignored, { isUnknown }) => (isUnknown ? unknown : warnings).push(ignored),
  })
  await source.load()
  source.close()
  const places = new RecordPlaces(source.places())
  const problems = source.problems()
  if (source.fileCount === 0) warning(noManifests(directory))
  // A probe may name a record that is refused. The record's own fault is enough then.
  if (problems.length === 0) warnings.push(...findLostProbes(source, places))
  warnings.push(...findEndedDrains(source, places))
  return {
    records: [...source.records()],
    probes: [...source.probes()],
    faults: [...problems, ...unknown],
    warnings,
    places,
    summary: summarize(source),
  }
}

function summarize({ recordCount, fileCount, others }: ManifestSource): string {
  const read = `${plural(recordCount, 'DNSRecord')} in ${plural(fileCount, 'file')}`
  return others.count === 0 ? read : `${read}; ${others.print()}`
}

/** Finds probes without effect, because they name no record, or no target of their record. */
function findLostProbes(source: ManifestSource, places: RecordPlaces): InputError[] {
  const lost: InputError[] = []
  for (const probe of source.probes()) {
    const { namespace, name, recordName, address } = probe
    const key = recordKey(namespace, recordName)
    const owner = source.find(key)
    const what = `DNSHealthCheckProbe ${recordKey(namespace, name)}`
    const at = places.record(probePlaceKey(probe))
    if (owner === undefined) {
      const message = `${what}: its owner, DNSRecord ${key}, is missing; the probe is ignored`
      lost.push(new InputError(at, message))
    } else if (isForeign(owner, address)) {
      const message = `${what}: DNSRecord ${key} has no target ${address}: the probe is ignored`
      lost.push(new InputError(at, message))
    }
  }
  return lost
}

/** Finds drains of annotations that have ended. */
function findEndedDrains(source: ManifestSource, places: RecordPlaces): InputError[] {
  const nowMs = systemClock.now()
  const ended: InputError[] = []
  for (const { key, packed } of source.records()) {
    const untilMs = unpackSettings(packed)?.drain?.untilMs
    if (untilMs === undefined || nowMs < untilMs) continue
    const message = `DNSRecord ${key}: sextant.io/drain has no effect: it ended at ${printTime(untilMs)}; remove it and sextant.io/drain-until, or give a later time`
    ended.push(new InputError(places.annotation(key, 'sextant.io/drain-until'), message))
  }
  return ended
}

function isForeign({ packed }: StoredRecord, address: string): boolean {
  return findDownTargets(unpackRecord(packed).endpoints, [address]).every(({ size }) => size === 0)
}

/**
 * Returns all faults of the manifests in a directory, for all zones. `warn` receives conflicts
 * between records. Throws InputError if the directory cannot be listed.
 */
export async function checkManifests(
  directory: string,
  warn: Warn,
  onRead: (what: string) => void,
): Promise<readonly InputError[]> {
  const read = await readManifests(directory)
  onRead(`${directory}: ${read.summary}`)
  for (const warning of read.warnings) warn(warning)
  const zone = new RecordZone({
    apex: ROOT_NAME,
    isLocalForm: false,
    fixed: [],
    defaultNs: ROOT_NS,
    sink: NO_SINK,
    health: NOTHING_KNOWN,
    onConflict: () => {},
    onOut: () => {},
  })
  const loops = findCnameLoops(read.records, read.places)
  for (const warning of findCnamedHosts(read.records, read.places)) warn(warning)
  const conflicts = findConflicts(zone, read.records, read.places, warn, ', unless a peer has it')
  return [...read.faults, ...conflicts, ...loops]
}

/**
 * Puts `records` into an empty `zone`. Returns the conflicts between them that keep endpoints from being served, with
 * their places; `warn` receives the others. `proviso`: follows those that endpoints which are not known here may end.
 */
export function findConflicts(
  zone: RecordZone,
  records: readonly StoredRecord[],
  places: RecordPlaces,
  warn: Warn,
  proviso = '',
): InputError[] {
  const faults: InputError[] = []
  zone.apply(records.map((after): RecordChange => ({ before: undefined, after })))
  for (const conflict of zone.conflicts.all()) {
    const { text, isProvisional } = conflict
    const message = isProvisional === true ? `${text}${proviso}` : text
    const found = new InputError(places.endpoint(conflict), message)
    if (conflict.isFault === true) faults.push(found)
    else warn(found)
  }
  return faults
}

const ROOT_NS: Endpoint = {
  owner: ROOT_NAME,
  type: RRType.NS,
  ttlSeconds: 0,
  setIdentifier: '',
  weight: undefined,
  codes: [],
  isDefault: false,
  rdata: [ROOT_NAME],
}
