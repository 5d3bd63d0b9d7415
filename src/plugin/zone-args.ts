import type { Dispenser } from '../corefile/dispenser.ts'
import { lowerName, scanName } from '../dns/name/name.ts'
import type { BlockConfig } from './directive.ts'

const ROOT = Uint8Array.of(0)

/**
 * Zones given as arguments of a directive, in lower-case wire form; relative names are taken from
 * the root. Throws InputError on a name that is none.
 */
export function scanZoneArgs(d: Dispenser, args: readonly string[]): Uint8Array[] {
  return args.map((text) => {
    const zone = scanName(text, ROOT)
    if (zone === undefined) throw d.error(`zone is not a valid domain name: ${text}`)
    return lowerName(zone)
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
