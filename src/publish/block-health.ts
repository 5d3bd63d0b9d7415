import type { Clock } from '../base/clock.ts'
import { Random } from '../base/random.ts'
import type { ResourceRegistry } from '../base/resource-registry.ts'
import type { Stops } from '../base/stops.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { MetricsRegistry } from '../base/telemetry/metrics.ts'
import type { ProblemGroup, ProblemText } from '../base/telemetry/problems.ts'
import { systemTimers } from '../base/timers.ts'
import { type HostPort, printHostPort } from '../dns/host-port.ts'
import { printName } from '../dns/name/name.ts'
import { acquireHealthTable, acquireProbing, acquireSlowStart } from '../health/acquire-health.ts'
import type { AddressHealth } from '../health/address-health.ts'
import { acquireGroupLookup, readSystemServers } from '../health/drain/acquire-groups.ts'
import type { EndpointDrain } from '../health/drain/drain.ts'
import { DrainIndex } from '../health/drain/drain-index.ts'
import { CLUSTER_ONLY, type DrainFeed } from '../health/drain/drain-schedule.ts'
import { GroupDrains } from '../health/drain/group-drains.ts'
import type { HealthLoans, HealthTable } from '../health/health-table.ts'
import { ProbePolicy } from '../health/probes/probe-policy.ts'
import { createProber } from '../health/probes/prober.ts'
import { systemResolve } from '../health/probes/resolve.ts'
import type { RecordProbing } from '../health/record-probing.ts'
import { acquireShifts } from '../health/shift/acquire-shifts.ts'
import type { Shifts } from '../health/shift/shifts.ts'
import type { SlowStart } from '../health/slow-start.ts'
import type { RecordSource, StoredRecord } from '../records/record-source.ts'
import type { FollowedSource } from '../sources/source.ts'
import { type HealthOptions, type KeptFile, printProbing } from './health-options.ts'
import type { GroupOptions } from './options.ts'
import type { ProbedRecords } from './probed-records.ts'

/** Maximum of addresses, drains and shifts each that the ready page lists. */
export const NAMED_MAX = 3

interface BlockHealthParts {
  readonly resources: ResourceRegistry
  /** Name of the source; equal for equal sources. */
  readonly name: string
  readonly stops: Stops
  readonly log: Logger
  readonly clock: Clock
  readonly metrics: MetricsRegistry
}

/** The probes of a source, and what the ready page says about them. */
interface HealthNotes {
  /** Undefined = the source is not probed. */
  readonly probing: RecordProbing | undefined
  /** Text of the ready page; '' = nothing. */
  note(): string
  problemGroups(): ProblemGroup[]
}

export const NO_HEALTH_NOTES: HealthNotes = {
  probing: undefined,
  note: () => '',
  problemGroups: () => [],
}

/** Probes records of a source if `probe` is set. */
export function openHealth(
  source: FollowedSource,
  how: HealthOptions,
  probed: ProbedRecords,
  parts: BlockHealthParts,
): HealthNotes {
  const { probe } = how
  if (probe === undefined || probe === 'off') return NO_HEALTH_NOTES
  const probing = openProbing(probed, how, parts)
  return {
    probing,
    note: () => printNote(probing),
    problemGroups: () => [groupUnprobed(probing, source, how, parts.name), ...probing.problems],
  }
}

/** `of`: name of the source. */
function groupUnprobed(
  probing: RecordProbing,
  source: FollowedSource,
  { allowed }: HealthOptions,
  of: string,
): ProblemGroup {
  const unprobed = [...probing.unprobed()]
  const policy = new ProbePolicy(allowed.map(({ cidr }) => cidr))
  function* list(): Iterable<ProblemText> {
    for (const { probe, key, reason } of unprobed) {
      const { address, testAddress = address } = probe
      const network = policy.findRefused(testAddress)
      const fix = network === undefined ? '' : `; \`probe-allow ${network.text}\` allows it`
      const text = `${key}: ${address} is always served: ${reason}${fix}`
      yield { place: source.printPlace(key), object: key, reason: text }
    }
  }
  return { kind: 'unprobed-address', of, count: unprobed.length, problems: list() }
}

/**
 * Returns the table of the records that the zones serve, with the drains of a file, of feeds and of annotations. A
 * drain may select every record, so the drained ones are found in slices.
 */
export async function openTable(
  source: RecordSource,
  loans: HealthLoans | undefined,
  found: readonly AddressHealth[],
  drains: {
    readonly file: KeptFile | undefined
    readonly feeds: readonly DrainFeed[]
    readonly isInCluster: boolean
    readonly site: string
    readonly sitesOf: (record: StoredRecord) => readonly (readonly string[])[]
  },
  { resources, name, stops, log, clock }: BlockHealthParts,
): Promise<HealthTable> {
  const { file, feeds, isInCluster, site, sitesOf } = drains
  const path = file?.path ?? ''
  const fileNote = isInCluster ? CLUSTER_ONLY : undefined
  const env = { clock, timers: systemTimers, log }
  const options = { source, loans, found, feeds, fileNote, site, sitesOf, ...env }
  const { item, release } = acquireHealthTable(options, path, resources)
  const index = resources.acquire(DrainIndex, '', () => new DrainIndex())
  const unfiled = (): readonly EndpointDrain[] => item.drains.unfiled
  const remove = index.item.add({ path, source: name, records: source, sitesOf, unfiled })
  stops.add(remove, index.release, release)
  await item.drains.ready
  return item
}

/** Returns the drains of a passive site, once its group was looked up; undefined = it has no group. */
export async function openGroupDrains(
  source: RecordSource,
  group: (GroupOptions & { readonly zones: readonly Uint8Array[] }) | undefined,
  site: string,
  { resources, stops, log, clock }: BlockHealthParts,
): Promise<DrainFeed | undefined> {
  if (group === undefined) return undefined
  const { name } = group
  const zones = new Map(group.zones.map((zone) => [printName(zone), zone]))
  const servers = group.servers.length > 0 ? group.servers : systemServers(log)
  const serversText = servers.map(printHostPort).join(' ')
  const key = JSON.stringify([name, site, [...zones.keys()], serversText])
  const { item, release } = resources.acquire(GroupDrains, key, () => {
    const how = { servers: () => servers, timers: systemTimers, log }
    const lookups = [...zones.values()].map((zone) => {
      return acquireGroupLookup({ zone, ...how }, serversText, resources)
    })
    return new GroupDrains({ group: name, site, lookups, clock, log })
  })
  // Released first: an ended lookup does not search again when a source is no longer followed.
  stops.add(item.follow(source), release)
  await item.start()
  return item
}

function systemServers(log: Logger): readonly HostPort[] {
  const found = readSystemServers()
  if (typeof found !== 'string') return found
  log.warning(`group: ${found}; name the servers to ask`, 'group-servers-unknown')
  return []
}

/** Returns the shifts of the traffic of the records that the zones serve. */
export function openShifts(
  source: RecordSource,
  table: HealthTable,
  file: KeptFile | undefined,
  { resources, name, stops, log, clock, metrics }: BlockHealthParts,
): Shifts {
  const options = { source, table, clock, timers: systemTimers, log }
  const parts = { name, path: file?.path ?? '', resources, metrics }
  const { item, release } = acquireShifts(options, parts)
  stops.add(release)
  return item
}

/**
 * Returns the slow starts of the records that the zones serve; undefined = an address that recovers has its full weight
 * at once. `source`: the records that the zones serve, with those of peers.
 */
export async function openSlowStart(
  source: RecordSource,
  table: HealthTable,
  { slowStartMs, slowStartFile }: Pick<HealthOptions, 'slowStartMs' | 'slowStartFile'>,
  { resources, name, stops, log, clock }: BlockHealthParts,
): Promise<SlowStart | undefined> {
  if (slowStartMs === 0) return undefined
  const options = { source, table, durationMs: slowStartMs, clock, timers: systemTimers, log }
  const path = slowStartFile?.path ?? ''
  const { item, release } = acquireSlowStart(name, options, path, resources)
  stops.add(release)
  await item.ready
  return item
}

function openProbing(
  { open, key, probes, health, leavesOf, probesMax }: ProbedRecords,
  how: HealthOptions,
  { resources, name, stops, log, clock, metrics }: BlockHealthParts,
): RecordProbing {
  const at = { source: name, how: `${printProbing(how)}\n${key}` }
  const file = how.probe === undefined || how.probe === 'off' ? '' : how.probe.file
  const records = open()
  const { probing, release } = acquireProbing(at, { resources, metrics }, () => {
    const timers = systemTimers
    const policy = new ProbePolicy(how.allowed.map(({ cidr }) => cidr))
    const resolve = systemResolve()
    const { commands } = how
    return {
      ...{ records, source: probes, health, leavesOf, probesMax },
      probe: createProber({ policy, resolve, readHeaders: undefined, commands, timers }),
      file,
      log,
      clock,
      timers,
      random: new Random(Math.trunc(Math.random() * 2 ** 32)),
    }
  })
  stops.add(release)
  return probing
}

function printNote(probing: RecordProbing): string {
  const { downCount, texts } = probing.reasons(NAMED_MAX)
  if (downCount === 0) return ''
  const more = downCount > texts.length ? ` and ${downCount - texts.length} more` : ''
  return `down by probes: ${texts.join(', ')}${more}`
}
