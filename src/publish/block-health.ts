import type { Clock } from '../base/clock.ts'
import { Random } from '../base/random.ts'
import type { ResourceRegistry } from '../base/resource-registry.ts'
import type { Stops } from '../base/stops.ts'
import { systemTimers } from '../base/timers.ts'
import type { RecordSource, StoredRecord } from '../dnsrecord/record-source.ts'
import { acquireDrainedHealth, acquireProbing, acquireSlowStart } from '../health/acquire-health.ts'
import type { HealthTable, HealthView } from '../health/address-health.ts'
import { ProbePolicy } from '../health/probes/probe-policy.ts'
import { createProber } from '../health/probes/prober.ts'
import { systemResolve } from '../health/probes/resolve.ts'
import type { RecordProbing } from '../health/record-probing.ts'
import { acquireShifts } from '../health/shift/acquire-shifts.ts'
import { ManifestSource } from '../sources/manifests/manifest-source.ts'
import type { FollowedSource } from '../sources/source.ts'
import type { Logger } from '../telemetry/log.ts'
import type { MetricsRegistry } from '../telemetry/metrics.ts'
import { type HealthOptions, type KeptFile, printProbing } from './health-options.ts'

/** Maximum of addresses that the ready page lists. */
const NAMED_MAX = 3

export interface BlockHealthParts {
  readonly resources: ResourceRegistry
  /** Name of the source; equal for equal sources. */
  readonly name: string
  readonly stops: Stops
  readonly log: Logger
  readonly clock: Clock
  readonly metrics: MetricsRegistry
}

/** The probes of a source, and what the ready page and explanations say about health. */
export interface HealthNotes {
  /** Undefined = the source is not probed. */
  readonly probing: RecordProbing | undefined
  /** Text of the ready page; '' = nothing. */
  note(): string
  /** See `RecordProbing.downReason`. */
  downReason(recordKey: string, address: string): string
}

export const NO_HEALTH_NOTES: HealthNotes = {
  probing: undefined,
  note: () => '',
  downReason: () => '',
}

/** Probes the records of a source if `probe` is set. */
export function openHealth(
  source: FollowedSource,
  how: HealthOptions,
  parts: BlockHealthParts,
): HealthNotes {
  if (how.probe === undefined || !(source instanceof ManifestSource)) return NO_HEALTH_NOTES
  const probing = openProbing(source, how, parts)
  return {
    probing,
    note: () => printNote(probing),
    downReason: (recordKey, address) => probing.downReason(recordKey, address),
  }
}

/** Returns the health of the records that the zones serve, with the drains of a file and of annotations. */
export function openDrains(
  source: RecordSource,
  health: HealthTable,
  drains: {
    readonly file: KeptFile | undefined
    readonly site: string
    readonly sitesOf: (record: StoredRecord) => readonly (readonly string[])[]
  },
  { resources, stops, log, clock }: BlockHealthParts,
): { readonly health: HealthTable; readonly note: () => string } {
  const { file, site, sitesOf } = drains
  const options = { source, health, site, sitesOf, clock, timers: systemTimers, log }
  const { item, release } = acquireDrainedHealth(options, file?.path ?? '', resources)
  stops.add(release)
  return { health: item, note: () => item.note(NAMED_MAX) }
}

/** Returns the health of the records that the zones serve, with the shifts of their traffic. */
export function openShifts(
  source: RecordSource,
  health: HealthTable,
  file: KeptFile | undefined,
  { resources, name, stops, log, clock, metrics }: BlockHealthParts,
): { readonly health: HealthTable; readonly note: () => string } {
  const options = { source, health, clock, timers: systemTimers, log }
  const parts = { name, path: file?.path ?? '', resources, metrics }
  const { item, release } = acquireShifts(options, parts)
  stops.add(release)
  return { health: item, note: () => item.note(NAMED_MAX) }
}

/**
 * Returns the health that the zones serve, with slow start. If `slowStartMs` is 0, an address that
 * recovers has its full weight at once. `source`: the records that the zones serve, with those of
 * peers.
 */
export function openSlowStart(
  source: RecordSource,
  health: HealthTable,
  { slowStartMs, slowStartFile }: Pick<HealthOptions, 'slowStartMs' | 'slowStartFile'>,
  { resources, name, stops, log, clock }: BlockHealthParts,
): HealthView {
  if (slowStartMs === 0) return health
  const options = { source, health, durationMs: slowStartMs, clock, timers: systemTimers, log }
  const path = slowStartFile?.path ?? ''
  const { item, release } = acquireSlowStart(name, options, path, resources)
  stops.add(release)
  return item
}

function openProbing(
  source: ManifestSource,
  how: HealthOptions,
  { resources, name, stops, log, clock, metrics }: BlockHealthParts,
): RecordProbing {
  const at = { source: name, how: printProbing(how) }
  const { probing, release } = acquireProbing(at, { resources, metrics }, () => {
    const timers = systemTimers
    const policy = new ProbePolicy(how.allowed.map(({ cidr }) => cidr))
    const resolve = systemResolve()
    const { commands } = how
    return {
      source,
      health: source.health,
      probe: createProber({ policy, resolve, readHeaders: undefined, commands, timers }),
      file: how.probe?.file ?? '',
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
