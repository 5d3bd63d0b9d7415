import { accessSync, constants, statSync } from 'node:fs'
import { isAbsolute, resolve } from 'node:path'
import { printDuration, scanDuration } from '../../base/duration.ts'
import { isSystemError } from '../../base/system-error.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { type Cidr, scanCidr } from '../../dns/text/address.ts'
import { SLOW_START_MS_MAX, SLOW_START_MS_MIN } from '../../health/slow-start-bounds.ts'
import type { BlockConfig } from '../../plugin/directive.ts'
import type { HealthOptions } from '../../publish/health-options.ts'
import { COMMAND_NAME } from '../../records/checks/exec.ts'
import { abilitiesOf, type SourcePlace } from '../../sources/source-place.ts'

/** The properties that `scanHealthProperty` reads. */
export const HEALTH_PROPERTIES = [
  'probe',
  'probe-allow',
  'probe-exec',
  'slow-start',
  'drain',
  'shift',
  'namespace-drains',
  'cluster-drains',
] as const

/**
 * Reads `probe [FILE|off]`, `probe-allow CIDR...`, `probe-exec NAME COMMAND...`, `slow-start DURATION [FILE]`, `drain
 * FILE`, `namespace-drains`, `cluster-drains NS/NAME` or `shift FILE`. Returns undefined for another property. Throws
 * InputError.
 */
export function scanHealthProperty(
  d: Dispenser,
  property: string,
  options: HealthOptions,
  block: BlockConfig,
): HealthOptions | undefined {
  switch (property) {
    case 'probe': {
      if (options.probe !== undefined) throw d.error('probe appears twice')
      const [file] = d.remainingArgs(0, 1)
      if (file === 'off') return { ...options, probe: 'off' }
      const path = file === undefined ? '' : resolve(block.root, file)
      return { ...options, probe: { file: path, position: d.position() } }
    }
    case 'probe-allow':
      return { ...options, allowed: [...options.allowed, ...scanAllowed(d)] }
    case 'probe-exec':
      return { ...options, commands: scanCommand(d, options.commands ?? new Map()) }
    case 'slow-start':
      return { ...options, ...scanSlowStart(d, block) }
    case 'drain': {
      if (options.drainFile !== undefined) throw d.error('drain appears twice')
      const path = resolve(block.root, d.onlyArg())
      return { ...options, drainFile: { path, position: d.position() } }
    }
    case 'shift': {
      if (options.shiftFile !== undefined) throw d.error('shift appears twice')
      const path = resolve(block.root, d.onlyArg())
      return { ...options, shiftFile: { path, position: d.position() } }
    }
    default:
      return scanClusterProperty(d, property, options)
  }
}

/** Reads the properties that need a cluster. Returns undefined for another property. */
function scanClusterProperty(
  d: Dispenser,
  property: string,
  options: HealthOptions,
): HealthOptions | undefined {
  if (property === 'namespace-drains') {
    d.remainingArgs(0, 0)
    return { ...options, readsNamespaces: true }
  }
  if (property !== 'cluster-drains') return undefined
  if (options.drainsPlace !== undefined) throw d.error('cluster-drains appears twice')
  return { ...options, drainsPlace: scanConfigMap(d) }
}

/**
 * Completes the health options of a block. In a cluster, the server probes what the operator does not: addresses of
 * objects that are not DNSRecords, and of targets of ALIAS endpoints. `resolves`: the block has `alias-resolver`.
 * Throws InputError if the options do not fit the source.
 */
export function completeHealth(
  d: Dispenser,
  given: HealthOptions,
  source: SourcePlace,
  resolves: boolean,
): HealthOptions {
  const { isOurs, hasObjects } = abilitiesOf(source)
  const probes = !isOurs && (hasObjects || resolves)
  const byDefault = probes ? { file: '', position: d.position(), isDefault: true } : undefined
  const options = { ...given, probe: given.probe ?? byDefault }
  if (options.drainsPlace !== undefined && isOurs) {
    throw d.error('cluster-drains needs a cluster; use `drain FILE` with manifests')
  }
  if (options.readsNamespaces === true && isOurs) {
    throw d.error('namespace-drains needs a cluster; Namespaces are not read from manifests')
  }
  if (options.probe === undefined || options.probe === 'off') {
    if (options.allowed.length > 0) throw d.error('probe-allow needs probe or peer')
    if (options.commands !== undefined) throw d.error('probe-exec needs probe or peer')
    return options
  }
  if (isOurs || probes) return options
  throw d.error(
    'probe needs manifests, alias-resolver or other sources than dnsrecord; the operator probes the DNSRecords of a cluster',
  )
}

function scanConfigMap(d: Dispenser): NonNullable<HealthOptions['drainsPlace']> {
  const text = d.onlyArg()
  const [, namespace, name] = /^([a-z0-9-]{1,63})\/([a-z0-9.-]{1,253})$/.exec(text) ?? []
  if (namespace !== undefined && name !== undefined) return { namespace, name }
  throw d.error(`cluster-drains needs NAMESPACE/NAME of a ConfigMap, got ${text}`)
}

function scanAllowed(d: Dispenser): HealthOptions['allowed'] {
  const texts = d.remainingArgs(1)
  return texts.map((text) => ({ text, cidr: scanNetwork(d, 'probe-allow', text) }))
}

function scanCommand(
  d: Dispenser,
  known: NonNullable<HealthOptions['commands']>,
): HealthOptions['commands'] {
  const [name = '', ...command] = d.remainingArgs(2)
  if (!COMMAND_NAME.test(name)) throw d.error(`probe-exec: ${name} is not a name of a command`)
  if (known.has(name)) throw d.error(`probe-exec ${name} appears twice`)
  if (!isAbsolute(command[0]!)) {
    throw d.error(`probe-exec ${name}: ${command[0]} must be an absolute path`)
  }
  if (!isProgram(command[0]!)) {
    throw d.error(`probe-exec ${name}: ${command[0]} is not an executable file`)
  }
  return new Map([...known, [name, command]])
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch (error) {
    if (!isSystemError(error)) throw error
    return false
  }
}

/** Reads the networks that follow a property; at least one. Throws InputError. */
export function scanNetworks(d: Dispenser, property: string): Cidr[] {
  return d.remainingArgs(1).map((text) => scanNetwork(d, property, text))
}

/** Reads one network of a property. Throws InputError. */
export function scanNetwork(d: Dispenser, property: string, text: string): Cidr {
  const cidr = scanCidr(text)
  if (cidr === undefined)
    throw d.error(`${property}: ${text} is not a network; write it as 192.0.2.0/24`)
  return cidr
}

function scanSlowStart(
  d: Dispenser,
  block: BlockConfig,
): Pick<HealthOptions, 'slowStartMs' | 'slowStartFile'> {
  const [text, file] = d.remainingArgs(1, 2)
  const durationMs = scanDuration(text!)
  if (durationMs === undefined) throw d.error(`slow-start is not a duration: ${text}`)
  if (durationMs < SLOW_START_MS_MIN || durationMs > SLOW_START_MS_MAX) {
    const least = printDuration(SLOW_START_MS_MIN)
    const most = printDuration(SLOW_START_MS_MAX)
    throw d.error(`slow-start must be from ${least} to ${most}, got ${text}`)
  }
  const slowStartFile =
    file === undefined ? undefined : { path: resolve(block.root, file), position: d.position() }
  return { slowStartMs: durationMs, slowStartFile: slowStartFile }
}
