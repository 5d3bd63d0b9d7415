import { RRType } from '../dns/iana/types.ts'
import { ALIASES_MAX } from '../dns/message/direct-answer.ts'
import { nameKey } from '../dns/name/name.ts'
import { scanAddress } from '../dns/text/address.ts'
import type { Endpoint } from '../records/dns-record.ts'
import { scanHost } from '../records/validate/names.ts'

/** Indexes of targets. */
type Indexes = Pick<ReadonlyMap<number, unknown>, 'keys'>

const NONE: ReadonlySet<number> = new Set()
/** Maximum length of a CNAME chain. */
export const CHAIN_MAX = ALIASES_MAX

/**
 * Returns which targets of each endpoint of one record are down, in the order of `endpoints`.
 * `downAddresses`: addresses that the record's probes found unhealthy. A CNAME target is down in
 * two cases. It is the host name of a down address, or it is a name of the same record whose
 * targets are all down. So a cluster whose gateways are all down is removed at every level above.
 * `also`: targets that are out for another reason, by endpoint and index; they count as down.
 * `chainMax`: maximum length of the chains; 0 = what a CNAME leads to does not count.
 */
export function findDownTargets(
  endpoints: readonly Endpoint[],
  downAddresses: readonly string[],
  also: readonly Indexes[] = [],
  chainMax = CHAIN_MAX,
): readonly ReadonlySet<number>[] {
  if (downAddresses.length === 0 && also.length === 0) return endpoints.map(() => NONE)
  const addresses = new Set<string>()
  const names = new Set<string>()
  for (const text of downAddresses) {
    const address = scanAddress(text)
    const host = address === undefined ? scanHost(text) : undefined
    if (address !== undefined) addresses.add(Buffer.from(address.bytes).toString('latin1'))
    if (host !== undefined) names.add(nameKey(host))
  }
  let down = endpoints.map((endpoint, i) => downIn(endpoint, addresses, names, also[i]))
  for (let step = 0; step < chainMax; step++) {
    const before = names.size
    for (const name of ownersDown(endpoints, down)) names.add(name)
    if (names.size === before) break
    down = endpoints.map((endpoint, i) => downIn(endpoint, addresses, names, also[i]))
  }
  return down
}

/** True if clients of a CNAME follow it to this type. What else is at its target counts neither way. */
export function isFollowed(type: number): boolean {
  return type === RRType.A || type === RRType.AAAA || type === RRType.CNAME
}

function downIn(
  endpoint: Endpoint,
  addresses: ReadonlySet<string>,
  names: ReadonlySet<string>,
  also: Indexes | undefined,
): ReadonlySet<number> {
  const isAddress = endpoint.type !== RRType.CNAME
  const down = new Set<number>(also?.keys())
  if (!isFollowed(endpoint.type)) return down.size === 0 ? NONE : down
  for (const [index, rdata] of endpoint.rdata.entries()) {
    const key = Buffer.from(rdata).toString('latin1')
    if (isAddress ? addresses.has(key) : names.has(key)) down.add(index)
  }
  return down
}

/** Owners whose addresses and CNAMEs are all down. */
function ownersDown(
  endpoints: readonly Endpoint[],
  down: readonly ReadonlySet<number>[],
): Iterable<string> {
  const isDown = new Map<string, boolean>()
  for (const [i, endpoint] of endpoints.entries()) {
    if (!isFollowed(endpoint.type)) continue
    const owner = nameKey(endpoint.owner)
    const all = down[i]!.size === endpoint.rdata.length
    isDown.set(owner, (isDown.get(owner) ?? true) && all)
  }
  return [...isDown].filter(([, all]) => all).map(([owner]) => owner)
}
