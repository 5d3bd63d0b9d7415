import { InputError, type Position } from '../../base/errors.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import type { PublishOptions } from '../../publish/options.ts'
import { ofSource } from '../../publish/same-source.ts'
import { isAtOrBelow } from '../../records/host-owners.ts'
import { type HostShare, ROOT_KEY, scanShare } from '../../records/host-share.ts'
import { isLocalZone } from '../../records/local-zone.ts'
import { unpackNames, unpackPlace } from '../../records/pack.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import { lowerNameKey } from '../../records/validate/names.ts'
import { abilitiesOf } from '../../sources/source-place.ts'
import { NAMESPACE } from './namespaces.ts'

/** A line that gives rights to namespaces. */
export interface RightsLine {
  readonly property: 'allow-namespaces' | 'share-hosts'
  /** As written; '' = all hosts. */
  readonly hostText: string
  readonly share: HostShare
  readonly position: Position
}

/** Reads `share-hosts HOST NAMESPACE...`. Throws InputError. */
export function scanShareHosts(d: Dispenser): RightsLine {
  const words = d.remainingArgs(1)
  const share = scanShare(words)
  if (typeof share === 'string') throw d.error(`share-hosts: ${share}`)
  return { property: 'share-hosts', hostText: words[0]!, share, position: d.position() }
}

/** Reads `allow-namespaces NAMESPACE...`. Throws InputError. */
export function scanAllowNamespaces(d: Dispenser): RightsLine {
  const names = d.remainingArgs(1)
  const bad = names.find((name) => !NAMESPACE.test(name))
  if (bad !== undefined) {
    throw d.error(`allow-namespaces: ${JSON.stringify(bad)} is not the name of a namespace`)
  }
  const share = { host: ROOT_KEY, namespaces: new Set(names) }
  return { property: 'allow-namespaces', hostText: '', share, position: d.position() }
}

/** Finds lines that can never have an effect, whatever the records are. `all`: the blocks of the Corefile. */
export function* findIdleRights(
  { rights, source }: Pick<PublishOptions, 'source'> & { readonly rights: readonly RightsLine[] },
  all: readonly PublishOptions[],
): Iterable<InputError> {
  const blocks = ofSource(source, all)
  const zones = blocks.flatMap(({ zones }) => zones)
  const { namespaces: watched = [] } = abilitiesOf(source)
  const allowed = blocks.flatMap(({ allowedNamespaces }) =>
    allowedNamespaces === undefined ? [] : [allowedNamespaces],
  )
  for (const { property, hostText, share, position } of rights) {
    const name = `${property}${hostText && ` ${hostText}`}`
    const warn = (why: string): InputError => new InputError(position, `${name}: ${why}`)
    const isLost = (namespace: string): boolean => !watched.includes(namespace)
    const lost = watched.length === 0 ? [] : [...(share.namespaces ?? [])].filter(isLost)
    if (!zones.some(isLocalZone) && !zones.some((zone) => overlaps(share.host, zone)))
      yield warn('no zone that is served from these records has the host; correct it')
    else if (property === 'share-hosts' && allowed.length === blocks.length)
      yield warn('no effect: namespaces of allow-namespaces share all hosts; remove this line')
    else if (lost.length > 0)
      yield warn(`not in WATCH_NAMESPACES, so not read: ${lost.join(', ')}; correct it`)
  }
}

function overlaps(host: string, zone: Uint8Array): boolean {
  const apex = lowerNameKey(zone)
  return isAtOrBelow(host, apex) || isAtOrBelow(apex, host)
}

/** Finds namespaces and hosts of lines that no record has. */
export function* findUnusedRights(
  rights: readonly RightsLine[],
  records: readonly StoredRecord[],
): Iterable<InputError> {
  const known = new Set(records.map(({ key }) => key.slice(0, key.indexOf('/'))))
  for (const { property, hostText, share, position } of rights) {
    const { host, namespaces = [] } = share
    const lost = [...namespaces].filter((namespace) => !known.has(namespace))
    if (lost.length > 0) {
      const message = `${property}: no record is in namespace ${lost.join(', ')}`
      yield new InputError(position, message)
    } else if (host !== ROOT_KEY && !records.some(({ packed }) => hasName(packed, host))) {
      const message = `${property} ${hostText}: no record has this host or a name below it`
      yield new InputError(position, message)
    }
  }
}

function hasName(packed: StoredRecord['packed'], host: string): boolean {
  const { rootHostKey } = unpackPlace(packed)
  return [rootHostKey, ...unpackNames(packed).owners].some((name) => isAtOrBelow(name, host))
}
