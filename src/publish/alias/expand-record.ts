import { printName } from '../../dns/name/name.ts'
import type { Cidr } from '../../dns/text/address.ts'
import { printAddress } from '../../dns/text/address.ts'
import { ProbePolicy } from '../../health/probes/probe-policy.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import { packRecord, unpackRecord } from '../../records/pack.ts'
import { StoredRecord } from '../../records/record-source.ts'
import type { ApexCnames } from './apex-cnames.ts'
import { AliasBudget, type AliasWorld, type ExpandedAlias, expandAlias } from './expand-alias.ts'

/** One ALIAS endpoint of a record. */
interface RecordAlias {
  readonly owner: Uint8Array
  readonly expanded: ExpandedAlias
}

/** A record with the endpoints that its ALIAS endpoints stand for. */
export interface ResolvedRecord {
  readonly record: StoredRecord
  readonly aliases: readonly RecordAlias[]
}

/** What is wrong with an ALIAS endpoint of a record. */
export interface AliasFault {
  readonly owner: Uint8Array
  readonly text: string
}

/** Puts A and AAAA endpoints behind each ALIAS endpoint. `original`: has ALIAS endpoints, or a CNAME at an apex. */
export function expandRecord(
  original: StoredRecord,
  world: AliasWorld,
  apexes: ApexCnames,
): ResolvedRecord {
  const content = unpackRecord(original.packed)
  const aliases: RecordAlias[] = []
  const budget = new AliasBudget(content.endpoints.length)
  const endpoints = content.endpoints.flatMap((endpoint): readonly Endpoint[] => {
    const alias = apexes.asAlias(endpoint)
    if (alias === undefined) return [endpoint]
    const expanded = expandAlias(alias, world, budget)
    aliases.push({ owner: alias.owner, expanded })
    return [alias, ...expanded.endpoints]
  })
  const packed = packRecord({ ...content, namespace: '', name: '', endpoints })
  const { key, origin, original: from, heldSinceSeconds } = original
  return { record: new StoredRecord(key, packed, origin, from, heldSinceSeconds), aliases }
}

/** Returns the faults of the ALIAS endpoints of a record. */
export function* faultsOf({ aliases }: Pick<ResolvedRecord, 'aliases'>): Generator<AliasFault> {
  for (const { owner, expanded } of aliases) {
    for (const fault of expanded.faults) {
      yield { owner, text: `ALIAS of ${printName(owner)}: ${fault}` }
    }
  }
}

/** Returns what refuses addresses that servers outside of our control must not name. */
export function refuserOf(allowed: readonly Cidr[]): AliasWorld['refusal'] {
  const policy = new ProbePolicy(allowed)
  return ({ bytes, family }) => {
    const text = printAddress(bytes, family)
    const refused = policy.findRefused(text)
    if (refused === undefined) return ''
    return `the address ${text}, which is refused (${refused.what}); \`alias-allow ${refused.text}\` allows it`
  }
}
