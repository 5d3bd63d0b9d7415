import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { isFirst } from '../../authority/whole-zone.ts'
import { systemClock } from '../../base/clock.ts'
import { InputError, type Position } from '../../base/errors.ts'
import { checkStateFile, type StateKind } from '../../base/persist/state-file.ts'
import { isSubdomain, nameKey, printName } from '../../dns/name/name.ts'
import { GEO_COVERAGE } from '../../geo/locator.ts'
import { PROBE_STATES } from '../../health/probes/state-text.ts'
import { SHIFT_STATE } from '../../health/shift/shift-text.ts'
import { SLOW_START_STATE } from '../../health/slow-start-text.ts'
import { cachedPeers } from '../../peering/cache/peer-cache-text.ts'
import type { CheckReport } from '../../plugin/description.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import { findCnameLoops } from '../../publish/build/cname-loops.ts'
import { findLameServers, NO_REPORT } from '../../publish/build/default-server.ts'
import { RecordPlaces } from '../../publish/build/locate.ts'
import { NOTHING_KNOWN } from '../../publish/build/served-health.ts'
import { NO_HEALTH } from '../../publish/health-options.ts'
import { AppliedRights } from '../../publish/offline/applied-rights.ts'
import {
  type CheckedManifests,
  findConflicts,
  NO_SINK,
  readManifests,
  type Warn,
} from '../../publish/offline/check-manifests.ts'
import { OfflineAliases } from '../../publish/offline/offline-aliases.ts'
import { findUnusableNames } from '../../publish/offline/unusable-names.ts'
import { checkKey, findUnsigned } from '../../publish/peers/peer-key.ts'
import { aliasOf, ofSource, sharesOf, siteOf, zonesOf } from '../../publish/same-source.ts'
import { loadSnapshot } from '../../publish/serve/snapshot/load.ts'
import { digestOfShape } from '../../publish/shape.ts'
import { SERIALS } from '../../publish/zone/serials/serial-text.ts'
import {
  belongs,
  createRecordZone,
  findLostAddresses,
  mailboxOf,
} from '../../publish/zone/zone-content.ts'
import { ALIAS_TYPE } from '../../records/dns-record.ts'
import { isLocalZone } from '../../records/local-zone.ts'
import { warningOf } from '../../sources/open-source.ts'
import { printRefused } from '../../sources/record-rights.ts'
import { abilitiesOf } from '../../sources/source-place.ts'
import { ZoneOwnership } from '../../sources/zone-ownership.ts'
import { findLostCommands } from './check-commands.ts'
import { findUnmatched } from './check-coverage.ts'
import { foreseeDeaths } from './check-deaths.ts'
import { checkDrains } from './check-drains.ts'
import { findLostDefault, findLostFallbacks } from './check-fallbacks.ts'
import { findIdleChecks, findRefusedProbes } from './check-probes.ts'
import { findIdleShifts } from './check-shifts.ts'
import { findUnusedRights } from './namespace-rights.ts'
import type { KuadrantOptions } from './options.ts'

/**
 * Returns everything that is wrong with the source of a block: its manifests, or the configuration
 * of its cluster; and with its key and its drain file. `warn` gets what a start would log: records
 * that conflict in one of its zones, records that no zone accepts, geo codes that match no client,
 * an invalid mailbox, serials file or snapshot; and drains that select nothing. `all`: the blocks
 * of the Corefile, including this one. Throws InputError if the directory cannot be listed.
 */
export async function checkBlock(
  options: KuadrantOptions,
  all: readonly KuadrantOptions[],
  { warn, read, foresee, isOffline }: CheckReport,
  c: Pick<SetupContext, 'block' | 'blockZones'>,
): Promise<readonly InputError[]> {
  const { zones } = options
  const ownership = new ZoneOwnership()
  for (const { zones } of ofSource(options.source, all)) ownership.claim(zones)
  const found = await readSource(options, isOffline)
  read(`${zones.map((zone) => printName(zone)).join(' ')}: ${found.summary}`)
  for (const warning of found.warnings) warn(warning)
  warnOfStateFiles(options, warn)
  warnOfSnapshot(options, all, warn)
  for (const warning of findLostAddresses(options)) warn(warning)
  if (abilitiesOf(options.source).directory !== undefined)
    for (const warning of findUnusedRights(options.rights, found.records)) warn(warning)
  const site = siteOf(options, all)
  const rules = { ...options, ownership, shares: sharesOf(options.source, all) }
  const { records, refused } = new AppliedRights(found.records, rules)
  const permitted = { ...found, records }
  const conflicts = [
    ...refused.map((one) => new InputError(found.places.record(one.key), printRefused(one))),
    ...checkRecords({ ...options, site }, ownership, permitted, { all, c, warn }),
  ]
  const unsigned = findUnsigned(options.peering)
  if (unsigned !== undefined) warn(unsigned)
  const { key } = options.peering
  const keyFaults = key === undefined ? [] : checkKey(key, warn)
  for (const warning of findIdleChecks(options, all, permitted)) warn(warning)
  const drainFaults = await checkDrains(options, all, permitted, warn)
  const served = records.filter((record) => {
    return zones.some((apex) => belongs(record, { apex, key: nameKey(apex) }, options, ownership))
  })
  await foreseeDeaths(options, all, { ...found, records: served }, { warn, foresee })
  return [...found.faults, ...conflicts, ...keyFaults, ...drainFaults]
}

function warnOfStateFiles(options: KuadrantOptions, warn: Warn): void {
  const warnOf = <T>(path: string | undefined, kind: StateKind<T>, position?: Position): void => {
    const fault = path === undefined || path === '' ? '' : checkStateFile(path, kind)
    if (fault !== '') warn(new InputError(position, fault))
  }
  const { serials, serialsPosition, site } = options
  const { probe, slowStartFile, shiftFile } = options.health ?? NO_HEALTH
  const { peerCache } = options.peering
  warnOf(serials, SERIALS, serialsPosition)
  warnOf(slowStartFile?.path, SLOW_START_STATE, slowStartFile?.position)
  warnOf(shiftFile?.path, SHIFT_STATE, shiftFile?.position)
  if (probe !== 'off') warnOf(probe?.file, PROBE_STATES, probe?.position)
  warnOf(peerCache?.path, cachedPeers(site, systemClock), peerCache?.position)
}

/** Where the records of a block are served. */
interface Surroundings {
  /** The `kuadrant` directives of the Corefile. */
  readonly all: readonly KuadrantOptions[]
  readonly c: Pick<SetupContext, 'block' | 'blockZones'>
  readonly warn: Warn
}

/**
 * Returns the conflicts that are faults, and CNAMEs that lead in a circle. Warns of other conflicts, useless geo codes,
 * useless locations and names that cannot work in each zone, and of records that no zone accepts.
 */
function checkRecords(
  options: KuadrantOptions,
  ownership: ZoneOwnership,
  { records, places }: CheckedManifests,
  { all, c, warn }: Surroundings,
): InputError[] {
  const faults = findCnameLoops(records, places)
  const { source, peering, fallthrough } = options
  const coverage = c.block.shared.find(GEO_COVERAGE)
  const aliases = new OfflineAliases(records, zonesOf(source, all), aliasOf(source, all))
  for (const { key, owner, text } of aliases.faults) {
    const proviso = peering.peers.length > 0 ? ', unless a peer has it' : ''
    const at = places.endpoint({ key, owner, type: ALIAS_TYPE })
    warn(new InputError(at, `DNSRecord ${key}: ${text}${proviso}`))
  }
  const allZones = [...all.flatMap((other) => other.zones), ...c.blockZones]
  const isAlone = peering.peers.length === 0 && isFirst(c, 'kuadrant')
  // Health does not affect conflicts.
  const health = NOTHING_KNOWN
  for (const apex of options.zones) {
    mailboxOf(apex, options, (text) => warn(new InputError(options.rnamePosition, text)))
    const zone = { apex, key: nameKey(apex) }
    // A peer may have further endpoints.
    const isComplete = (): boolean => peering.peers.length === 0
    const quiet = { onConflict: () => {}, isComplete, onOut: () => {} }
    const content = createRecordZone(apex, options, { sink: NO_SINK, health, ...quiet })
    const own = records
      .filter((record) => belongs(record, zone, options, ownership))
      .map((record) => aliases.of(record))
    faults.push(...findConflicts(content, own, places, warn))
    // In the gateway-local form, codes and locations are data for peers and need not match clients.
    if (isLocalZone(apex)) continue
    // The records of a cluster are not read.
    const lame =
      abilitiesOf(source).directory !== undefined
        ? findLameServers(apex, content, options.zones)
        : []
    for (const text of lame) warn(new InputError(options.position, text))
    for (const warning of findUnmatched(own, coverage, places)) warn(warning)
    const inZone = {
      apex,
      zones: allZones.filter((other) => other.length > apex.length && isSubdomain(other, apex)),
      has: (name: Uint8Array) => content.explain(name, NO_REPORT).length > 0,
      isWhole: isAlone && !fallthrough.touches(apex),
    }
    for (const warning of findUnusableNames(own, inZone, places)) warn(warning)
  }
  for (const warning of findIdleSettings(records, options, places)) warn(warning)
  for (const { key, packed } of records) {
    if (ownership.zoneKeyOf(packed) !== '') continue
    const at = places.record(key) ?? options.position
    warn(new InputError(at, `no zone is served for DNSRecord ${key}: it is ignored`))
  }
  return faults
}

/** Finds settings of records that have no effect. */
function* findIdleSettings(
  records: CheckedManifests['records'],
  options: KuadrantOptions,
  places: RecordPlaces,
): Iterable<InputError> {
  const { health = NO_HEALTH, peering } = options
  yield* findLostCommands(records, health, places)
  yield* findRefusedProbes(records, health, places)
  // A peer may have the other endpoint.
  if (peering.peers.length > 0) return
  yield* findLostFallbacks(records, places)
  yield* findLostDefault(records, options)
  yield* findIdleShifts(records, places)
}

/** Reads the manifests. For a cluster, checks only its configuration and reads no records. */
async function readSource(
  { source, position }: KuadrantOptions,
  isOffline: boolean,
): Promise<CheckedManifests> {
  const { directory } = abilitiesOf(source)
  if (directory !== undefined) {
    const read = await readManifests(directory)
    return { ...read, summary: `${directory}: ${read.summary}` }
  }
  const warning = isOffline ? '' : await warningOf(source)
  const warnings = warning === '' ? [] : [new InputError(position, warning)]
  const summary = `the cluster${isOffline ? '' : ' (only its configuration)'}: not read`
  const places = new RecordPlaces(new Map())
  return { records: [], probes: [], faults: [], warnings, places, summary }
}

function warnOfSnapshot(
  options: KuadrantOptions,
  all: readonly KuadrantOptions[],
  warn: Warn,
): void {
  if (options.snapshot === undefined) return
  const { path, position } = options.snapshot
  const found = loadSnapshot(path, digestOfShape(options, all))
  const isThere = existsSync(dirname(path))
  if (!isThere) warn(new InputError(position, `${dirname(path)} does not exist`))
  if (found?.kind !== 'refused') return
  warn(new InputError(position, `snapshot ${path} is not used: ${found.reason}`))
}
