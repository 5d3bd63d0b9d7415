import type { Clock } from '../../base/clock.ts'
import { Random } from '../../base/random.ts'
import { systemTimers } from '../../base/timers.ts'
import { ProbePolicy } from '../../probing/probe-policy.ts'
import { createProber } from '../../probing/prober.ts'
import type { RecordProbing } from '../../probing/record-probing.ts'
import { systemResolve } from '../../probing/resolve.ts'
import { acquireProbing, acquireRampUp } from '../../probing/shared-probing.ts'
import { ManifestSource } from '../../record/manifests/manifest-source.ts'
import type { RecordSource } from '../../record/source.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { MetricsRegistry } from '../../telemetry/metrics.ts'
import { type HealthOptions, printProbing } from './health-options.ts'
import type { Stops } from './stops.ts'

/** Addresses that the ready page names. */
const NAMED_MAX = 3

/** The records of a block with what probes make of them. */
export interface BlockHealth {
  readonly records: RecordSource
  /** What is to be known of it, for the ready page; '' = nothing. */
  readonly note: () => string
}

export interface BlockHealthParts {
  /** Names the source; equal for equal sources. */
  readonly name: string
  readonly stops: Stops
  readonly log: Logger
  readonly clock: Clock
  readonly metrics: MetricsRegistry
}

/**
 * Lays what probes find, and the ramp-up, over a source:
 *
 *     source ─▶ probing (`probe`) ─▶ ramp-up (`ramp-up`) ─▶ zones
 */
export function openHealth(
  source: RecordSource,
  { probing: how, rampUpMs }: { readonly probing: HealthOptions; readonly rampUpMs: number },
  parts: BlockHealthParts,
): BlockHealth {
  const { name, stops, log, clock } = parts
  let records = source
  let note = (): string => ''
  if (how.probe !== undefined && source instanceof ManifestSource) {
    const probing = openProbing(source, how, parts)
    records = probing.records
    note = () => printNote(probing)
  }
  if (rampUpMs > 0) {
    const options = { source: records, durationMs: rampUpMs, clock, timers: systemTimers, log }
    const { taken, release } = acquireRampUp(`${name}\n${printProbing(how)}`, options)
    stops.add(release)
    records = taken.records
  }
  return { records, note }
}

function openProbing(
  source: ManifestSource,
  how: HealthOptions,
  { name, stops, log, clock, metrics }: BlockHealthParts,
): RecordProbing {
  const at = { source: name, how: printProbing(how) }
  const { probing, release } = acquireProbing(at, metrics, () => {
    const timers = systemTimers
    const policy = new ProbePolicy(how.allowed.map(({ cidr }) => cidr))
    const resolve = systemResolve()
    return {
      source,
      probe: createProber({ policy, resolve, readHeaders: undefined, timers }),
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
