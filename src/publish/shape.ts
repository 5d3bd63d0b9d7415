import { createHash } from 'node:crypto'
import { printHostPort } from '../dns/host-port.ts'
import { printName } from '../dns/name/name.ts'
import type { KuadrantOptions } from '../plugins/kuadrant/options.ts'
import { siteOf } from './site.ts'
import { nameOf } from './source-place.ts'

/**
 * Returns a digest of everything except records that shapes the zones of a block. A snapshot with
 * another digest is of other zones. `all`: the blocks of the Corefile, since their zones share the
 * records.
 */
export function digestOfShape(options: KuadrantOptions, all: readonly KuadrantOptions[]): string {
  const { zones, source, rname, nameservers, allowedNamespaces, peering } = options
  const claimed = all
    .filter((other) => nameOf(other.source) === nameOf(source))
    .flatMap((o) => o.zones)
  const shape = [
    zones.map((zone) => printName(zone)).sort(),
    claimed.map((zone) => printName(zone)).sort(),
    source.kind === 'manifests' ? source.directory : source,
    rname,
    nameservers.map(({ name, addresses }) => {
      return [printName(name), ...addresses.map(({ bytes }) => Buffer.from(bytes).toString('hex'))]
    }),
    allowedNamespaces === undefined ? null : [...allowedNamespaces].sort(),
    siteOf(options, all),
    peering.peers.map(printHostPort).sort(),
  ]
  return createHash('sha256').update(JSON.stringify(shape)).digest('hex')
}
