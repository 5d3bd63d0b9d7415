import { type AddressFamily, printAddress, scanCidr } from '../../../dns/text/address.ts'
import type { AddressRules, Denial } from '../../learned/address-rules.ts'
import type { AddressEnd } from '../../learned/learned-table.ts'
import type { CachedName } from './fqdn-status.ts'

const HOST_BITS: Readonly<Record<AddressFamily, number>> = { 1: 32, 2: 128 }

interface GrantRules {
  readonly addresses: AddressRules
  readonly skipsAaaa: boolean
}

/** What a policy grants for one name. */
export interface FqdnGrants {
  /** By CIDR, such as `192.0.2.1/32`: the end of the grant, in monotonic milliseconds. */
  readonly untilMs: ReadonlyMap<string, number>
  /** Addresses that DNS has and that are never granted. */
  readonly denied: ReadonlyMap<string, Denial>
}

/** What is granted of the addresses of a name. One that is given twice ends at the later time. */
export function fqdnGrants(
  ends: Iterable<AddressEnd>,
  rules: GrantRules,
  nowMs: number,
): FqdnGrants {
  const latest = new Map<string, number>()
  for (const [address, endMs] of ends) {
    latest.set(address, Math.max(endMs, latest.get(address) ?? endMs))
  }
  const untilMs = new Map<string, number>()
  const denied = new Map<string, Denial>()
  for (const [address, endMs] of latest) {
    const family = address.includes(':') ? 2 : 1
    if (endMs <= nowMs || (family === 2 && rules.skipsAaaa)) continue
    const denial = rules.addresses.denialOf(address)
    if (denial === undefined) untilMs.set(`${address}/${HOST_BITS[family]}`, endMs)
    else denied.set(address, denial)
  }
  return { untilMs, denied }
}

/**
 * Returns the addresses of a stored entry with their ends. An end that is too late, after a change of the setting or
 * of the clock, is cut down. Networks that are larger than an address are ignored: no answer explains them.
 * `wallMs` and `nowMs`: the same time by the system clock and by the monotonic clock.
 */
export function restoreEnds(
  { expiryMs }: CachedName,
  expirationMs: number,
  wallMs: number,
  nowMs: number,
): readonly AddressEnd[] {
  const ends: AddressEnd[] = []
  for (const [text, endMs] of expiryMs) {
    const cidr = scanCidr(text)
    if (cidr === undefined || cidr.bits !== HOST_BITS[cidr.family]) continue
    // A name whose addresses have all expired counts as not resolved yet.
    if (endMs <= wallMs) continue
    const leftMs = Math.min(endMs - wallMs, expirationMs)
    ends.push([printAddress(cidr.bytes, cidr.family), nowMs + leftMs])
  }
  return ends
}
