import { unpackPlace } from '../records/pack.ts'
import { printHost } from '../records/print-endpoint.ts'
import type { StoredRecord } from '../records/record-source.ts'
import { lowerNameKey, scanHost } from '../records/validate/names.ts'
import { MERGED_NAMESPACE } from './merged-namespace.ts'

/** Returns the map key of a host as text; '' = not a host name. */
export function keyOfHost(host: string): string {
  const name = scanHost(host)
  return name === undefined ? '' : lowerNameKey(name)
}

/** Returns the map key of a record's host. */
export function hostKeyOf(record: StoredRecord): string {
  return unpackPlace(record.packed).rootHostKey
}

/** As `hostKeyOf`, for the key of a record of another site; '' = not such a key. */
export function siteHostKeyOf(key: string): string {
  const host = scanHost(hostOfSiteKey(key))
  return host === undefined ? '' : lowerNameKey(host)
}

/** Returns the host of a record of another site by its key, `peers/HOST@SITE`; '' = not such a key. */
export function hostOfSiteKey(key: string): string {
  const prefix = `${MERGED_NAMESPACE}/`
  return key.startsWith(prefix) ? key.slice(prefix.length, key.indexOf('@')) : ''
}

/** As in a PeerEndpoint. */
export function rootHostOf({ packed }: StoredRecord): string {
  const { rootHostKey, isWildcardHost } = unpackPlace(packed)
  const host = printHost(Buffer.from(rootHostKey, 'latin1'))
  return isWildcardHost ? `*.${host}` : host
}
