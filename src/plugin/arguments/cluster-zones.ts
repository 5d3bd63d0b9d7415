import type { Dispenser } from '../../corefile/dispenser.ts'
import { isReverseZone } from '../../dns/text/reverse-name.ts'
import type { BlockConfig } from '../directive.ts'
import { scanZoneArgsOrBlock } from './zones.ts'

const TTL_SECONDS_MAX = 3600
/** A zone has room for `NAME.NAMESPACE.svc` below it. */
const ZONE_OCTETS_MAX = 120

/**
 * Reads the zones of a directive that serves names of a cluster; without arguments, those of the
 * block. Throws InputError if none of them has room for names of Services.
 */
export function scanClusterZones(d: Dispenser, block: BlockConfig): readonly Uint8Array[] {
  const zones = scanZoneArgsOrBlock(d, d.remainingArgs(), block)
  if (zones.every(isReverseZone)) throw d.error('non-reverse zone name must be used')
  if (zones.some(({ length }) => length > ZONE_OCTETS_MAX))
    throw d.error(`a zone is longer than ${ZONE_OCTETS_MAX} octets, too long for names of Services`)
  const keys = zones.map((zone) => Buffer.from(zone).toString('latin1'))
  return zones.filter((_, i) => keys.indexOf(keys[i]!) === i)
}

/** Reads `ttl SECONDS`. Throws InputError. */
export function scanClusterTtl(d: Dispenser): number {
  const text = d.onlyArg()
  const ttl = /^\d{1,9}$/.test(text) ? Number(text) : -1
  if (ttl < 0 || ttl > TTL_SECONDS_MAX) throw d.error(`ttl must be in range [0, 3600]: ${text}`)
  return ttl
}
