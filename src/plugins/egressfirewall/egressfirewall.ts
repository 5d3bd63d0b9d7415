import type { Clock } from '../../base/clock.ts'
import { observeReply } from '../../client/resolver/observation.ts'
import { Opcode, Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import { HeaderFlag } from '../../dns/message/header.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
import { printName } from '../../dns/name/name.ts'
import { embedIPv4 } from '../../dns/nat64.ts'
import { printAddress, scanIPv4 } from '../../dns/text/address.ts'
import type { GateResult } from '../../egress/gate.ts'
import type { AddressRules } from '../../egress/learned/address-rules.ts'
import type { Lookup } from '../../egress/policies/openshift/resolved-names.ts'
import type { SelectorIndex } from '../../egress/selectors/selector-index.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import { type Concern, DROP, type Handler, Trait } from '../../plugin/handler.ts'
import { sentAnswer } from '../../plugin/sent-answer.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/** Counters, by server, zone and view. */
export const EgressCount = { Matched: 0, Denied: 1 } as const
const IPV6_OCTETS = 16

/** What a thread knows of the names that policies select. */
interface NameSource {
  readonly selectors: SelectorIndex
  /** Undefined in data threads, and before the start. */
  readonly observer: NameObserver | undefined
}

interface NameObserver {
  /** Applies a lookup of `name`. Returns a wait for its effect; undefined = the reply need not wait. */
  submit(name: HashedName, lookup: Lookup): Promise<GateResult> | undefined
}

interface EgressFirewallParts {
  readonly name: string
  readonly source: NameSource
  readonly rules: AddressRules
  readonly clock: Clock
  readonly slots: CounterSlots
}

/**
 * Observes the addresses that the links below answer with, of names that policies select. All other
 * queries pass it by, at the cost of one lookup. Data threads hand over the queries that it serves.
 */
export class EgressFirewall implements Handler {
  readonly name: string
  readonly only: Concern
  readonly #next: Handler
  readonly #parts: EgressFirewallParts

  constructor(next: Handler, parts: EgressFirewallParts) {
    this.name = parts.name
    this.#next = next
    this.#parts = parts
    this.only = { queries: Trait.Every, next, selects: (tx) => this.#selects(tx) }
    parts.slots.length = Object.keys(EgressCount).length
  }

  serve(tx: Transaction): number | Promise<number> {
    if (!this.#selects(tx)) return this.#next.serve(tx)
    const status = this.#next.serve(tx)
    if (typeof status === 'number') return this.#observe(tx, status)
    return status.then((late) => this.#observe(tx, late))
  }

  /** @hot */
  #selects({ query }: Transaction): boolean {
    const { qtype } = query
    if (qtype !== RRType.A && qtype !== RRType.AAAA) return false
    if (query.qclass !== RRClass.IN || query.opcode !== Opcode.QUERY) return false
    return this.#parts.source.selectors.selects(query)
  }

  #observe(tx: Transaction, status: number): number | Promise<number> {
    const { source, slots } = this.#parts
    if (status === DROP || source.observer === undefined) return status
    slots.of(tx)[EgressCount.Matched]! += 1
    const lookup = this.#lookupOf(tx, status)
    const wait = lookup === undefined ? undefined : source.observer.submit(tx.query, lookup)
    return wait === undefined ? status : wait.then(() => status)
  }

  /** Returns undefined if the reply says nothing about the name. */
  #lookupOf(tx: Transaction, status: number): Lookup | undefined {
    const { rules, clock, slots } = this.#parts
    // Refused here, as with `max_concurrent`, not by a resolver: a client that floods could remove a name so.
    if (status === Rcode.REFUSED) return undefined
    const sent = sentAnswer(tx, status)
    const { question, rcode } = sent
    const observed = observeReply(sent, 0, '')
    if (observed === undefined || observed.kind === 'nodata') return undefined
    const base = { dnsName: printName(question.name), nowMs: clock.now() }
    if (observed.kind === 'failed') {
      // A resolver may refuse to answer without recursion: any Pod could remove a name so.
      if ((tx.query.flags & HeaderFlag.RD) === 0) return undefined
      // A CNAME loop is a failure too, although the rcode of the reply is NOERROR.
      const failure = rcode === Rcode.NOERROR ? Rcode.SERVFAIL : rcode
      return { ...base, rcode: failure, addresses: [] }
    }
    const granted = observed.facts.filter(({ address }) => rules.denialOf(address) === undefined)
    slots.of(tx)[EgressCount.Denied]! += observed.facts.length - granted.length
    if (granted.length === 0) return undefined
    const addresses = granted.map(({ address, ttlSeconds }) => {
      return { ip: sentAddress(tx, address), ttlSeconds }
    })
    return { ...base, rcode, addresses }
  }
}

/** Returns what the client gets in place of an address of the reply: the address that it connects to. */
function sentAddress({ nat64Prefix }: Transaction, text: string): string {
  const address = nat64Prefix === undefined ? undefined : scanIPv4(text)
  if (nat64Prefix === undefined || address === undefined) return text
  const octets = new Uint8Array(IPV6_OCTETS)
  embedIPv4(nat64Prefix, address.bytes, 0, octets, 0)
  return printAddress(octets, 2)
}
