import { type HostShare, ROOT_KEY } from '../records/host-share.ts'
import { isLocalZone } from '../records/local-zone.ts'
import { nameOf, type SourcePlace } from '../sources/source-place.ts'
import { type HealthOptions, type KeptFile, NO_HEALTH } from './health-options.ts'
import { type AliasOptions, type GroupOptions, NO_ALIAS, type PublishOptions } from './options.ts'

/** Returns the site name: from these options, or from others of the same source; '' = no name. */
export function siteOf(options: PublishOptions, all: readonly PublishOptions[]): string {
  if (options.site !== '') return options.site
  return ofSource(options.source, all).find(({ site }) => site !== '')?.site ?? ''
}

/**
 * Returns how the records of a source are probed. One of the options with `probe` is enough for all. Without it, peers
 * are enough.
 */
export function probingOf(source: SourcePlace, all: readonly PublishOptions[]): HealthOptions {
  const having = ofSource(source, all).flatMap(({ health }) => {
    return health?.probe === undefined ? [] : [health]
  })
  const explicit = having.find(({ probe }) => probe === 'off' || probe?.isDefault !== true)
  return explicit ?? having[0] ?? NO_HEALTH
}

/** A file for all records of a source. One of the options with its property is enough for all. */
type SourceFile = 'drainFile' | 'shiftFile'

/** Returns that file of the records of a source; undefined = none. */
export function sourceFileOf(
  which: SourceFile,
  source: SourcePlace,
  all: readonly PublishOptions[],
): KeptFile | undefined {
  for (const { health } of ofSource(source, all)) {
    if (health?.[which] !== undefined) return health[which]
  }
  return undefined
}

/** Returns the group of the site, and the zones of the blocks that name it; undefined = none. */
export function groupOf(
  source: SourcePlace,
  all: readonly PublishOptions[],
): (GroupOptions & { readonly zones: readonly Uint8Array[] }) | undefined {
  const named = ofSource(source, all).filter(({ group }) => group !== undefined)
  if (named.length === 0) return undefined
  const { group } = named[0]!
  return {
    ...group!,
    zones: named.flatMap(({ zones }) => zones.filter((zone) => !isLocalZone(zone))),
  }
}

/** True if annotations of Namespaces drain the records of a source. One of the options with it is enough for all. */
export function readsNamespacesOf(source: SourcePlace, all: readonly PublishOptions[]): boolean {
  return ofSource(source, all).some(({ health }) => health?.readsNamespaces === true)
}

/** Returns the ConfigMap whose drains apply to the records of a source; undefined = none. */
export function drainsPlaceOf(
  source: SourcePlace,
  all: readonly PublishOptions[],
): HealthOptions['drainsPlace'] {
  const having = ofSource(source, all).find(({ health }) => health?.drainsPlace !== undefined)
  return having?.health?.drainsPlace
}

/**
 * Returns which namespaces may have hosts of others. One of the options with a share is enough for all. Namespaces
 * that one of them allows by name may share all hosts.
 */
export function sharesOf(source: SourcePlace, all: readonly PublishOptions[]): HostShare[] {
  return ofSource(source, all).flatMap(({ allowedNamespaces: namespaces, shares = [] }) => {
    return namespaces === undefined ? shares : [...shares, { host: ROOT_KEY, namespaces }]
  })
}

/** Returns how ALIAS endpoints of a source are resolved. What one of the options has is enough for all. */
export function aliasOf(source: SourcePlace, all: readonly PublishOptions[]): AliasOptions {
  const having = ofSource(source, all).map(({ alias = NO_ALIAS }) => alias)
  return {
    servers: having.find(({ servers }) => servers.length > 0)?.servers ?? [],
    allowed: having.flatMap(({ allowed }) => allowed),
  }
}

/** Returns the zones of a source, without the gateway-local form. */
export function zonesOf(source: SourcePlace, all: readonly PublishOptions[]): Uint8Array[] {
  const zones = ofSource(source, all).flatMap((options) => options.zones)
  return zones.filter((zone) => !isLocalZone(zone))
}

/** Returns the options that read the same source. */
export function ofSource<O extends PublishOptions>(source: SourcePlace, all: readonly O[]): O[] {
  return all.filter((other) => nameOf(other.source) === nameOf(source))
}
