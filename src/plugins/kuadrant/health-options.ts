import { resolve } from 'node:path'
import { printDuration, scanDuration } from '../../base/duration.ts'
import type { Position } from '../../base/errors.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { type Cidr, scanCidr } from '../../dns/text/address.ts'
import { SLOW_START_MS_MAX, SLOW_START_MS_MIN } from '../../dnsrecord/slow-start-bounds.ts'
import type { BlockConfig } from '../../plugin/directive.ts'
import type { SourcePlace } from '../../publish/source-place.ts'

/** Health options of a block. */
export interface HealthOptions {
  /** Undefined = this server does not probe. */
  readonly probe: ProbeOptions | undefined
  /** Networks that are refused by default but may be probed, as written. */
  readonly allowed: readonly { readonly text: string; readonly cidr: Cidr }[]
  /** Time until a recovered address has its full weight; 0 = at once. */
  readonly slowStartMs: number
  /** File that keeps slow starts over a restart; undefined = they are not kept. */
  readonly slowStartFile?: KeptFile | undefined
}

export interface KeptFile {
  /** Absolute path. */
  readonly path: string
  readonly position: Position
}

export interface ProbeOptions {
  /** Absolute path of the file that keeps probe results; '' = none. */
  readonly file: string
  readonly position: Position
}

export const NO_HEALTH: HealthOptions = { probe: undefined, allowed: [], slowStartMs: 0 }

/**
 * Reads `probe [FILE]`, `probe-allow CIDR...` or `ramp-up DURATION [FILE]`. Returns undefined for
 * another property. Throws InputError.
 */
export function scanHealthProperty(
  d: Dispenser,
  options: HealthOptions,
  block: BlockConfig,
): HealthOptions | undefined {
  switch (d.value()) {
    case 'probe': {
      if (options.probe !== undefined) throw d.error('probe is given twice')
      const [file, ...more] = d.remainingArgs()
      if (more.length > 0) throw d.argError()
      const path = file === undefined ? '' : resolve(block.root, file)
      return { ...options, probe: { file: path, position: d.position() } }
    }
    case 'probe-allow':
      return { ...options, allowed: [...options.allowed, ...scanNetworks(d)] }
    case 'ramp-up':
      return { ...options, ...scanSlowStart(d, block) }
    default:
      return undefined
  }
}

/** Throws InputError if the block's health options do not fit its source. */
export function checkHealth(d: Dispenser, options: HealthOptions, source: SourcePlace): void {
  if (options.probe === undefined) {
    if (options.allowed.length > 0) throw d.error('probe-allow needs probe beside it')
    return
  }
  if (source.kind === 'manifests') return
  throw d.error('probe needs manifests: in a cluster it is the operator that probes')
}

/** Prints the probe options: equal text for equal options. */
export function printProbing({ probe, allowed }: HealthOptions): string {
  if (probe === undefined) return ''
  return [probe.file, ...allowed.map(({ text }) => text).sort()].join(' ')
}

function scanNetworks(d: Dispenser): { text: string; cidr: Cidr }[] {
  const texts = d.remainingArgs()
  if (texts.length === 0) throw d.argError()
  return texts.map((text) => {
    const cidr = scanCidr(text)
    if (cidr === undefined) throw d.error(`probe-allow: ${text} is no network such as 192.0.2.0/24`)
    return { text, cidr }
  })
}

function scanSlowStart(
  d: Dispenser,
  block: BlockConfig,
): Pick<HealthOptions, 'slowStartMs' | 'slowStartFile'> {
  const [text, file, ...more] = d.remainingArgs()
  if (text === undefined || more.length > 0) throw d.argError()
  const durationMs = scanDuration(text)
  if (durationMs === undefined) throw d.error(`ramp-up is no duration: ${text}`)
  if (durationMs < SLOW_START_MS_MIN || durationMs > SLOW_START_MS_MAX) {
    const least = printDuration(SLOW_START_MS_MIN)
    throw d.error(`ramp-up is ${least} to ${printDuration(SLOW_START_MS_MAX)}, not ${text}`)
  }
  const slowStartFile =
    file === undefined ? undefined : { path: resolve(block.root, file), position: d.position() }
  return { slowStartMs: durationMs, slowStartFile: slowStartFile }
}
