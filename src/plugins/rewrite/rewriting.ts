import type { Query } from '../../dns/message/query.ts'
import { setQname } from '../../dns/message/set-qname.ts'
import { lowerName, printName, scanName } from '../../dns/name/name.ts'
import { restoreName } from '../../plugin/restore-name.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/** A change of the reply, which a rule caused for one query. */
export interface ReplyChange {
  /** False: it changes TTLs only. */
  readonly changesContent: boolean
  /** Changes the response. `query` is the one that the links below saw. */
  apply(tx: Transaction, rewriting: Rewriting): undefined | Promise<undefined>
}

/** The rewriting of one query: what it was, and what must change in its reply. */
export class Rewriting {
  /** In the order of their rules; they are applied in the opposite order. */
  readonly changes: ReplyChange[] = []
  /** The type that the links below were asked for. */
  qtype: number
  readonly #query: Query
  readonly #name: Uint8Array
  readonly #qtype: number
  readonly #qclass: number
  readonly #nsidRequested: boolean
  readonly #ecs: ClientSubnetState
  #text: string | undefined

  constructor(query: Query) {
    this.#query = query
    this.#name = query.qname.slice(0, query.qnameOctets)
    this.#qtype = query.qtype
    this.qtype = query.qtype
    this.#qclass = query.qclass
    this.#nsidRequested = query.nsidRequested
    this.#ecs = saveSubnet(query)
  }

  /** The current name of the query, printed in lower case. */
  get name(): string {
    this.#text ??= printName(this.#query.qname)
    return this.#text
  }

  /** Replaces the name. Returns false if `text` is not a domain name. */
  rename(text: string): boolean {
    const name = scanName(text)
    if (name === undefined) return false
    setQname(this.#query, lowerName(name))
    this.#text = undefined
    return true
  }

  /**
   * Makes the query the client's again. Records that point to its name point to a copy of the
   * rewritten one then.
   */
  restore(tx: Transaction): void {
    const { query } = tx
    // A signature allows any lower TTL.
    tx.response.needsSigning ||=
      query.qtype !== this.#qtype || this.changes.some((change) => change.changesContent)
    this.qtype = query.qtype
    query.qtype = this.#qtype
    query.qclass = this.#qclass
    query.nsidRequested = this.#nsidRequested
    restoreSubnet(query, this.#ecs)
    restoreName(tx, this.#name)
  }
}

/** The client subnet of a query. */
interface ClientSubnetState {
  readonly has: boolean
  readonly family: number
  readonly sourceBits: number
  readonly address: Uint8Array
}

function saveSubnet(query: Query): ClientSubnetState {
  return {
    has: query.hasEcs,
    family: query.ecsFamily,
    sourceBits: query.ecsSourceBits,
    address: query.ecsAddress.slice(),
  }
}

function restoreSubnet(
  query: Query,
  { has, family, sourceBits, address }: ClientSubnetState,
): void {
  query.hasEcs = has
  query.ecsFamily = family
  query.ecsSourceBits = sourceBits
  query.ecsAddress.set(address)
}
