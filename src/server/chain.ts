import { Rcode } from '../dns/iana/index.ts'
import { CHAIN_END } from '../plugin/chain-end.ts'
import type { Handler, HandlerFactory } from '../plugin/handler.ts'

/** The chain of a block that no directive answers in: everything is refused, as by CoreDNS. */
export const EMPTY_CHAIN: Handler = {
  name: '',
  serve: () => Rcode.REFUSED,
}

/** Links the handlers of one block, first to last; below the last stands `CHAIN_END`. */
export function linkChain(factories: readonly HandlerFactory[]): Handler {
  if (factories.length === 0) return EMPTY_CHAIN
  return factories.reduceRight((next, factory) => factory(next), CHAIN_END)
}
