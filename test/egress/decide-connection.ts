import type { HashedName } from '../../src/dns/name/hashed-name.ts'
import { isInNetwork } from '../../src/dns/text/address.ts'
import { type Connection, includesPort } from '../../src/egress/rules/connection.ts'
import type { EgressRule, TierList } from '../../src/egress/rules/rule.ts'
import type { Selector } from '../../src/egress/selectors/selector.ts'
import { selectsLabels } from '../../src/egress/selectors/selects-name.ts'

/** A name that an address has or had, as one client learned it. */
export interface AddressName {
  readonly name: HashedName
  /** Monotonic milliseconds, finite. */
  readonly endMs: number
  /** True if its TTL has ended: it counts only for rules that last as long as connections are open. */
  readonly isZombie: boolean
}

/** True if the selector selects the name. */
export function selectsName(selector: Selector, name: HashedName): boolean {
  const { suffix } = selector
  const { qname, qnameOctets, labelCount, labelOffset } = name
  const start = qnameOctets - suffix.length
  const count = labelOffset.indexOf(start)
  if (count < 0 || count > labelCount) return false
  for (let i = 0; i < suffix.length; i++) if (suffix[i] !== qname[start + i]) return false
  return selectsLabels(selector, name, count)
}

/**
 * Decides whether a client may open a connection. `names`: those of the address; all of them count,
 * whatever their ends. It reads all rules: `CompiledRules` decides the same quickly.
 */
export function decisionOf(
  lists: readonly TierList[],
  connection: Connection,
  names: readonly AddressName[],
): 'accept' | 'deny' {
  return lists.every((list) => isAccepted(list, connection, names)) ? 'accept' : 'deny'
}

function isAccepted(
  list: TierList,
  connection: Connection,
  names: readonly AddressName[],
): boolean {
  for (const { rules, otherwise } of list) {
    const first = rules.find((rule) => matches(rule, connection, names))
    const action = first?.action ?? otherwise
    if (action !== 'pass') return action === 'accept'
  }
  return true
}

function matches(
  rule: EgressRule,
  { address, protocol, port }: Connection,
  names: readonly AddressName[],
): boolean {
  if (!includesPort(rule.ports, protocol, port)) return false
  const isInPeer = rule.networks.some(({ network, except }) => {
    if (network.family !== address.family || !isInNetwork(address.bytes, network)) return false
    return !except.some((part) => {
      return part.family === address.family && isInNetwork(address.bytes, part)
    })
  })
  return isInPeer || (rule.action === 'accept' && names.some((name) => isSelected(rule, name)))
}

function isSelected({ names, lasts }: EgressRule, { name, isZombie }: AddressName): boolean {
  if (isZombie && lasts === 'ttl') return false
  return names.some((selector) => selectsName(selector, name))
}
