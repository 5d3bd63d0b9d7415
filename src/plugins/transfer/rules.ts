import type { Query } from '../../dns/message/query.ts'
import { isSubdomain, nameKey } from '../../dns/name/name.ts'
import type { AddressSet } from '../../dns/text/address-set.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'

/** A host that gets NOTIFYs. */
export interface NotifyTarget {
  readonly host: string
  readonly port: number
}

/** One `transfer` directive of the Corefile. */
export interface TransferRule {
  readonly zones: readonly Uint8Array[]
  readonly addresses: AddressSet
  /**
   * Name of the key that transfers must be signed with, and that signs NOTIFYs; undefined = no key.
   */
  readonly keyName: Uint8Array | undefined
  readonly targets: readonly NotifyTarget[]
  /** Source address of NOTIFYs; '' = any. */
  readonly source: string
}

/** A rule in the form that is checked for queries. */
class AppliedRule {
  readonly rule: TransferRule
  readonly #key: string | undefined

  constructor(rule: TransferRule) {
    this.rule = rule
    this.#key = rule.keyName === undefined ? undefined : nameKey(rule.keyName)
  }

  /** True if the sender of the query may transfer the zone. */
  allows({ query, tsigKey }: Transaction): boolean {
    if (!this.rule.addresses.has(query.peerAddress, 0, query.peerFamily)) return false
    if (this.#key === undefined) return true
    return tsigKey !== undefined && nameKey(tsigKey.name) === this.#key
  }
}

/**
 * The rules of one block. The rule with the longest matching suffix counts; if several match, the
 * first one.
 */
export class TransferRules {
  readonly rules: readonly AppliedRule[]
  readonly #zones: ZoneSet
  readonly #ruleOfZone: readonly AppliedRule[]

  constructor(rules: readonly TransferRule[]) {
    this.rules = rules.map((rule) => new AppliedRule(rule))
    const zones = new Map<string, { zone: Uint8Array; rule: AppliedRule }>()
    for (const applied of this.rules) {
      for (const zone of applied.rule.zones) {
        const key = nameKey(zone)
        if (!zones.has(key)) zones.set(key, { zone, rule: applied })
      }
    }
    const all = [...zones.values()]
    this.#zones = new ZoneSet(all.map(({ zone }) => zone))
    this.#ruleOfZone = all.map(({ rule }) => rule)
  }

  match(query: Query): AppliedRule | undefined {
    const index = this.#zones.match(query)
    return index === -1 ? undefined : this.#ruleOfZone[index]
  }

  /** As `match`, for an apex. */
  ruleOf(zone: Uint8Array): TransferRule | undefined {
    let best = -1
    this.#zones.zones.forEach((candidate, i) => {
      if (!isSubdomain(zone, candidate)) return
      if (best === -1 || candidate.length > this.#zones.zones[best]!.length) best = i
    })
    return best === -1 ? undefined : this.#ruleOfZone[best]!.rule
  }
}
