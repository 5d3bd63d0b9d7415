import { isInNetwork } from '../../src/dns/text/address.ts'
import {
  type AddressName,
  type Connection,
  includesPort,
} from '../../src/egress/rules/connection.ts'
import type { EgressRule, TierList } from '../../src/egress/rules/rule.ts'
import { selectsName } from '../../src/egress/selectors/selects-name.ts'

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
