import type { Clock } from '../../base/clock.ts'
import { Random } from '../../base/random.ts'
import type { ResourceRegistry } from '../../base/resource-registry.ts'
import type { Stops } from '../../base/stops.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import { systemTimers } from '../../base/timers.ts'
import { printHostPort } from '../../dns/host-port.ts'
import { printName } from '../../dns/name/name.ts'
import { numberOf } from '../../health/source-numbers.ts'
import type { RecordSource } from '../../records/record-source.ts'
import type { AliasOptions } from '../options.ts'
import { AliasSource } from './alias-source.ts'
import { refuserOf } from './expand-record.ts'
import { OutsideAddresses } from './outside-addresses.ts'

interface AliasParts {
  readonly resources: ResourceRegistry
  readonly stops: Stops
  readonly log: Logger
  readonly clock: Clock
}

/**
 * Returns the records of a source with the addresses of ALIAS endpoints. Callers with the same source and options share
 * it. What is known of names outside outlives a reload.
 */
export function openAliases(
  source: RecordSource,
  zones: readonly Uint8Array[],
  { servers, allowed }: AliasOptions,
  { resources, stops, log, clock }: AliasParts,
): AliasSource {
  const parts = { log, clock, timers: systemTimers }
  const serversText = servers.map(printHostPort).join(' ')
  const open = (): OutsideAddresses => {
    const known = resources.withPrefix(OutsideAddresses, '')
    const random = new Random(Math.trunc(Math.random() * 2 ** 32))
    return new OutsideAddresses({ ...parts, servers, random, known })
  }
  const outside =
    servers.length === 0 ? undefined : resources.acquire(OutsideAddresses, serversText, open)
  const key = `${numberOf(source, resources)} ${keyOfAliases(zones, { servers, allowed })}`
  const aliases = resources.acquire(AliasSource, key, () => {
    const refusal = refuserOf(allowed.map(({ cidr }) => cidr))
    return new AliasSource({ ...parts, source, zones, outside: outside?.item, refusal })
  })
  stops.add(aliases.release, outside?.release ?? (() => {}))
  return aliases.item
}

/** Returns a text that is equal for the same zones and options. */
export function keyOfAliases(
  zones: readonly Uint8Array[],
  { servers, allowed }: AliasOptions,
): string {
  const networks = allowed.map(({ text }) => text)
  const names = zones.map((zone) => printName(zone))
  return JSON.stringify([names.sort(), servers.map(printHostPort), networks])
}
