import { EdeCode, Rcode } from '../../dns/iana/index.ts'
import type { Query } from '../../dns/message/query.ts'
import type { AddressSet } from '../../dns/text/address-set.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import { DROP, type Handler, Link, PASS, Trait } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { ZoneSet } from '../../zone/lookup/zone-set.ts'

/** The action for a query that a policy matches. */
export const AclAction = {
  /** No policy matched: the next rule decides. */
  None: 0,
  Allow: 1,
  /** REFUSED with the extended error Blocked. */
  Block: 2,
  /** NOERROR without records, with the extended error Filtered. */
  Filter: 3,
  /** No reply. */
  Drop: 4,
} as const
export type AclAction = (typeof AclAction)[keyof typeof AclAction]

/** Actions that are counted per zone: Block, Filter and Drop. */
const ZONE_COUNTERS = 3

/** A set of query types: one bit each. */
export class QtypeSet {
  readonly #bits = new Uint8Array(65536 / 8)

  add(type: number): void {
    this.#bits[type >>> 3]! |= 1 << (type & 7)
  }

  addAll(): void {
    this.#bits.fill(0xff)
  }

  has(type: number): boolean {
    return (this.#bits[type >>> 3]! & (1 << (type & 7))) !== 0
  }
}

export interface AclPolicy {
  readonly action: AclAction
  /** Undefined = all types. */
  readonly qtypes: QtypeSet | undefined
  /** Undefined = all sources. */
  readonly sources: AddressSet | undefined
}

export interface AclRule {
  readonly zones: ZoneSet
  /** For metrics; parallel to `zones.zones`. */
  readonly zoneTexts: readonly string[]
  readonly policies: readonly AclPolicy[]
}

/** The growth of one counter. `zone` is '' for Allow, which is not counted by zone. */
interface AclCount {
  readonly action: AclAction
  readonly server: string
  readonly zone: string
  readonly view: string
  readonly count: number
}

/** Lets queries through, or answers them itself: the first policy that matches decides. */
export class Acl extends Link {
  readonly name = 'acl'
  readonly #rules: readonly AclRule[]
  /** By rule: the index of its zones' first counter in a slot. Counter 0 counts allowed queries. */
  readonly #counterStart: readonly number[]
  readonly #slots: CounterSlots

  constructor(next: Handler, rules: readonly AclRule[], slots: CounterSlots) {
    const starts: number[] = []
    let counters = 1
    for (const rule of rules) {
      starts.push(counters)
      counters += rule.zoneTexts.length * ZONE_COUNTERS
    }
    super(next, Trait.Every, Trait.Every)
    this.#rules = rules
    this.#counterStart = starts
    this.#slots = slots
    slots.length = counters
  }

  /** @hot */
  override before(tx: Transaction): number {
    for (let i = 0; i < this.#rules.length; i++) {
      const rule = this.#rules[i]!
      const zone = rule.zones.match(tx.query)
      if (zone === -1) continue
      const action = decide(rule.policies, tx.query.qtype, tx.query)
      if (action === AclAction.Allow) return PASS
      if (action === AclAction.None) continue
      const counter = this.#counterStart[i]! + zone * ZONE_COUNTERS + action - AclAction.Block
      this.#slots.of(tx)[counter]! += 1
      return reject(tx, action)
    }
    return PASS
  }

  /** @hot */
  override after(tx: Transaction, status: number): number {
    if (!tx.server.isHandingOver) this.#slots.of(tx)[0]! += 1
    return status
  }

  /** Visits every counter that grew since the last call. Not for the hot path. */
  takeCounts(visit: (count: AclCount) => void): void {
    this.#slots.forEach((counts, { server, view }) => {
      const take = (index: number, action: AclAction, zone: string): void => {
        const count = counts.take(index)
        if (count > 0) visit({ action, server, zone, view, count })
      }
      take(0, AclAction.Allow, '')
      this.#rules.forEach((rule, r) => {
        rule.zoneTexts.forEach((zone, z) => {
          const start = this.#counterStart[r]! + z * ZONE_COUNTERS
          take(start, AclAction.Block, zone)
          take(start + 1, AclAction.Filter, zone)
          take(start + 2, AclAction.Drop, zone)
        })
      })
    })
  }
}

/** Returns the action for a query type. `query`: provides the source address. */
function decide(policies: readonly AclPolicy[], qtype: number, query: Query): AclAction {
  for (let i = 0; i < policies.length; i++) {
    const { action, qtypes, sources } = policies[i]!
    if (qtypes !== undefined && !qtypes.has(qtype)) continue
    // The source address of the packet, never the ECS address, which any client can forge.
    if (sources !== undefined && !sources.has(query.peerAddress, 0, query.peerFamily)) continue
    return action
  }
  return AclAction.None
}

function reject(tx: Transaction, action: AclAction): number {
  if (action === AclAction.Drop) return DROP
  const response = tx.response
  const isBlock = action === AclAction.Block
  response.edeCode = isBlock ? EdeCode.BLOCKED : EdeCode.FILTERED
  response.forceEdns = true
  response.imputedLabel = tx.query.labelCount
  response.answeredBy = 'acl'
  response.needsSigning = !isBlock
  response.rcode = isBlock ? Rcode.REFUSED : Rcode.NOERROR
  return response.rcode
}
