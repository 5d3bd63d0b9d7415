import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { printHostPort } from '../dns/host-port.ts'
import { printName } from '../dns/name/name.ts'
import { abilitiesOf } from '../sources/source-place.ts'
import type { ZoneSettings } from './build/owner-set.ts'
import { NO_SETTINGS } from './build/owner-settings.ts'
import type { PublishOptions } from './options.ts'
import { ofSource, siteOf } from './same-source.ts'

/**
 * Returns a digest of everything except records that shapes the zones. A snapshot with another digest is
 * of other zones. `all`: the options of all publishers, since their zones share the records.
 */
export function digestOfShape(options: PublishOptions, all: readonly PublishOptions[]): string {
  const { zones, source, rname, nameservers, ownAddresses = [] } = options
  const { allowedNamespaces, peering, settings } = options
  const own = nameservers.length > 0 ? [] : ownAddresses
  const claimed = ofSource(source, all).flatMap((other) => other.zones)
  const shape = [
    zones.map((zone) => printName(zone)).sort(),
    claimed.map((zone) => printName(zone)).sort(),
    abilitiesOf(source).directory ?? source,
    rname,
    nameservers.map(({ name, addresses }) => {
      return [printName(name), ...addresses.map(({ bytes }) => Buffer.from(bytes).toString('hex'))]
    }),
    allowedNamespaces === undefined ? null : [...allowedNamespaces].sort(),
    siteOf(options, all),
    peering.peers.map(printHostPort).sort(),
    ...printSettings(settings),
    // Nothing for unsigned zones, so that snapshots from before signing remain valid.
    ...(options.signed === undefined || options.signed.size === 0
      ? []
      : [[...options.signed.keys()].sort()]),
    // Nothing for no addresses, so that snapshots from before them remain valid.
    ...own.map(({ bytes }) => Buffer.from(bytes).toString('hex')),
  ]
  return createHash('sha256').update(JSON.stringify(shape)).digest('hex')
}

/** Nothing for the defaults, so that snapshots from before these settings remain valid. */
function printSettings(given: Partial<ZoneSettings> = {}): readonly ZoneSettings[] {
  const settings = { ...NO_SETTINGS, ...given }
  return isDeepStrictEqual(settings, NO_SETTINGS) ? [] : [settings]
}
