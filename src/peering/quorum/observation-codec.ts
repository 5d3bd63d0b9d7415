import { RRType } from '../../dns/iana/types.ts'
import { isWellFormed } from '../../dns/rdata/index.ts'
import type { HealthObservation } from '../../health/address-health.ts'
import { ENDPOINTS_MAX } from '../../records/dns-record.ts'
import { composeStrings } from '../../records/validate/target.ts'
import { isSite } from '../site-name.ts'

/**
 * An observation in the zone kdrnt: TXT rdata of strings `key=value` at `o2.<host>.kdrnt`.
 *
 *     o=1 site=… a=192.0.2.1 health=up since=1790000000
 *
 * `o` comes first; a version that changes the meaning of a key changes `o`. `a` is the observed
 * address or host name: with this short key, each host name fits into one string. Readers ignore
 * unknown keys.
 */
const PREFIX = 'o='
const VERSION = '1'
const STRING_OCTETS_MAX = 255
/** Characters of an address or host name, without white space and control characters. */
const ADDRESS = /^[!-~]{1,253}$/
const SINCE = /^\d{1,12}$/

export interface SiteObservation extends HealthObservation {
  readonly site: string
}

/** True for rdata of an observation of any version. `rdata`: one character per octet. */
export function isObservation(rdata: string): boolean {
  return rdata.startsWith(PREFIX, 1)
}

/** Returns TXT rdata; undefined if the address is too long. */
export function composeObservation(observed: SiteObservation): Uint8Array | undefined {
  const { site, address, health, sinceSeconds } = observed
  const texts = [
    `${PREFIX}${VERSION}`,
    `site=${site}`,
    `a=${address}`,
    `health=${health}`,
    `since=${sinceSeconds}`,
  ]
  const strings = texts.map((text) => Buffer.from(text, 'latin1'))
  if (strings.some((string) => string.length > STRING_OCTETS_MAX)) return undefined
  const rdata = composeStrings(strings)
  return typeof rdata === 'string' ? undefined : rdata
}

/**
 * Reads the observations of one host at one peer: the first thousand in order. Leaves out what is
 * invalid or of another version. `records`: TXT rdata, one character per octet.
 */
export function readObservations(records: Iterable<string>): readonly SiteObservation[] {
  const rdatas = [...records].filter(isObservation).sort().slice(0, ENDPOINTS_MAX)
  return rdatas.map(scanObservation).filter((observed) => observed !== undefined)
}

function scanObservation(rdata: string): SiteObservation | undefined {
  if (!isWellFormed(RRType.TXT, Buffer.from(rdata, 'latin1'))) return undefined
  const values = new Map<string, string>()
  for (let at = 0; at < rdata.length; at += rdata.charCodeAt(at) + 1) {
    const text = rdata.slice(at + 1, at + 1 + rdata.charCodeAt(at))
    const end = text.indexOf('=')
    if (end > 0 && !values.has(text.slice(0, end)))
      values.set(text.slice(0, end), text.slice(end + 1))
  }
  const site = values.get('site') ?? ''
  const address = values.get('a') ?? ''
  const health = values.get('health')
  const since = values.get('since') ?? ''
  const isValid = values.get('o') === VERSION && isSite(site) && ADDRESS.test(address)
  if (!isValid || !SINCE.test(since) || (health !== 'up' && health !== 'down')) return undefined
  return { site, address, health, sinceSeconds: Number(since) }
}
