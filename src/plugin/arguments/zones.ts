import { InputError } from '../../base/errors.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { scanKey } from '../../corefile/key.ts'
import { isSubdomain, printName } from '../../dns/name/name.ts'
import type { BlockConfig, SetupContext } from '../directive.ts'

/** Any valid port: the port of a zone argument is not used. */
const NO_PORT = 53

/**
 * Zones given as arguments of a directive, in lower-case wire form. They are read like the keys of
 * a server block: a CIDR stands for its reverse zones; a scheme or port is ignored. Throws
 * InputError on an invalid name.
 */
export function scanZoneArgs(d: Dispenser, args: readonly string[]): Uint8Array[] {
  return args.flatMap((text) => {
    try {
      return scanKey({ text, ...d.position() }, NO_PORT).map(({ zone }) => zone)
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      throw d.error(error.message.replace('error inspecting server blocks: ', ''))
    }
  })
}

/** As `scanZoneArgs`; without arguments, the zones of the server block. */
export function scanZoneArgsOrBlock(
  d: Dispenser,
  args: readonly string[],
  block: BlockConfig,
): Uint8Array[] {
  return args.length === 0 ? block.keys.map((key) => key.zone) : scanZoneArgs(d, args)
}

/** As `scanZoneArgsOrBlock`, for a directive that answers from these zones. Warns of a zone that has no queries. */
export function scanAnsweredZones(
  d: Dispenser,
  args: readonly string[],
  c: Pick<SetupContext, 'block' | 'warn'>,
): Uint8Array[] {
  const zones = scanZoneArgsOrBlock(d, args, c.block)
  // The directive rewrite can change names of the block into any others.
  if (c.block.directives.includes('rewrite')) return zones
  for (const zone of zones) {
    if (isInBlock(zone, c.block)) continue
    const message = `no query of the block is for ${printName(zone)}: it is outside of the block's zones`
    c.warn(message, d.position())
  }
  return zones
}

/** Returns the parts of `zones` that are in the block: a directive for `zones` gets queries for their names. */
export function zonesInBlock(zones: readonly Uint8Array[], { keys }: BlockConfig): Uint8Array[] {
  return zones.flatMap((zone) =>
    keys.flatMap((key) => {
      if (isSubdomain(zone, key.zone)) return [zone]
      return isSubdomain(key.zone, zone) ? [key.zone] : []
    }),
  )
}

/** True if some query of the block can be for the name or names below it. */
export function isInBlock(name: Uint8Array, { keys }: BlockConfig): boolean {
  return keys.some(({ zone }) => isSubdomain(name, zone) || isSubdomain(zone, name))
}
