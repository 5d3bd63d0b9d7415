import { Opcode, Rcode } from '../dns/iana/index.ts'
import { CHAIN_END } from '../plugin/chain-end.ts'
import type { Handler, HandlerFactory } from '../plugin/handler.ts'

/** The chain of a block that no directive answers in: everything is refused, as by CoreDNS. */
export const EMPTY_CHAIN: Handler = {
  name: '',
  serve: () => Rcode.REFUSED,
}

/** Lets NOTIFYs pass by a link that would take them for queries. */
export function besideNotify(factory: HandlerFactory): HandlerFactory {
  return (next) => {
    const link = factory(next)
    return {
      name: link.name,
      plain: link.plain,
      serve: (tx) => (tx.query.opcode === Opcode.NOTIFY ? next.serve(tx) : link.serve(tx)),
    }
  }
}

/** Links the handlers of one block, first to last; below the last stands `CHAIN_END`. */
export function linkChain(factories: readonly HandlerFactory[]): Handler {
  if (factories.length === 0) return EMPTY_CHAIN
  return factories.reduceRight((next, factory) => factory(next), CHAIN_END)
}
