import type { Query } from '../../dns/message/query.ts'
import { type Handler, Link, PASS, Trait } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/** With `edns-subnet`: uses the address of a client subnet option as the client, if a query has one. */
export class ClientFromSubnet extends Link {
  readonly name = 'geoip'

  constructor(next: Handler) {
    super(next, Trait.Subnet, 0)
  }

  /** @hot */
  override before(tx: Transaction): number {
    selectSubnet(tx.query)
    return PASS
  }
}

/**
 * True if the query has a client subnet (rule 6 of the rules of choice). With a source prefix of
 * zero bits, the client asks not to be located by it (RFC 7871 section 7.1.2): then the resolver's
 * address counts. @hot
 */
export function hasSubnet(query: Query): boolean {
  return query.ecsFamily !== 0 && query.ecsSourceBits !== 0
}

/** @hot */
function selectSubnet(query: Query): void {
  if (!hasSubnet(query)) return
  query.clientAddress = query.ecsAddress
  query.clientFamily = query.ecsFamily
  query.clientBits = query.ecsSourceBits
  query.clientIsEcs = true
}
