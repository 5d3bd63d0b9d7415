import { type AddressFamily, printAddress, scanCidr } from '../../dns/text/address.ts'
import type { AddressRules, Denial } from '../names/address-rules.ts'
import { type AddressFact, mergeAddress } from '../names/facts.ts'
import type { CachedName } from './fqdn-status.ts'

const HOST_BITS: Readonly<Record<AddressFamily, number>> = { 1: 32, 2: 128 }

interface GrantRules {
  /** How long an address is granted after it was seen last. */
  readonly expirationMs: number
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

/** The addresses of a name, from its answers and from the status of the policy. */
export function fqdnGrants(
  answered: Iterable<AddressFact>,
  restored: Iterable<AddressFact>,
  rules: GrantRules,
  nowMs: number,
): FqdnGrants {
  const facts = new Map<string, AddressFact>()
  for (const fact of [...answered, ...restored]) {
    const known = facts.get(fact.address)
    facts.set(fact.address, known === undefined ? fact : mergeAddress(known, fact))
  }
  const untilMs = new Map<string, number>()
  const denied = new Map<string, Denial>()
  for (const fact of facts.values()) {
    const { address, family } = fact
    const endMs = fact.lastSeenMs + rules.expirationMs
    if (endMs <= nowMs || (family === 2 && rules.skipsAaaa)) continue
    const denial = rules.addresses.denialOf(address)
    if (denial === undefined) untilMs.set(`${address}/${HOST_BITS[family]}`, endMs)
    else denied.set(address, denial)
  }
  return { untilMs, denied }
}

/**
 * Returns the facts that explain a stored entry: each address was seen `expirationMs` before its
 * expiry. An expiry that is too late, after a change of the setting or of the clock, is cut down.
 * Networks that are larger than an address are ignored: no answer explains them. `wallMs` and
 * `nowMs`: the same time by the system clock and by the monotonic clock.
 */
export function restoreFacts(
  { expiryMs }: CachedName,
  expirationMs: number,
  wallMs: number,
  nowMs: number,
): readonly AddressFact[] {
  const facts: AddressFact[] = []
  for (const [text, endMs] of expiryMs) {
    const cidr = scanCidr(text)
    if (cidr === undefined || cidr.bits !== HOST_BITS[cidr.family]) continue
    // A name whose addresses have all expired counts as not resolved yet.
    if (endMs <= wallMs) continue
    const seenMs = nowMs + Math.min(endMs - wallMs - expirationMs, 0)
    facts.push({
      family: cidr.family,
      address: printAddress(cidr.bytes, cidr.family),
      lastSeenMs: seenMs,
      ttlSeconds: 0,
      chain: [],
      endMs: seenMs,
    })
  }
  return facts
}
