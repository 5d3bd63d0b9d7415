import { Opcode, Rcode } from '../dns/iana/index.ts'
import { CHAIN_END } from '../plugin/chain-end.ts'
import type { Handler, HandlerFactory } from '../plugin/handler.ts'
import type { AnswerSource } from '../zone/lookup/answer-source.ts'

/** The chain of a block without a directive that answers: it refuses every query, as CoreDNS does. */
const EMPTY_CHAIN: Handler = {
  name: '',
  serve: () => Rcode.REFUSED,
}

/** Makes NOTIFYs bypass a link that would treat them as queries. */
export function besideNotify(factory: HandlerFactory): HandlerFactory {
  return (next) => {
    const link = factory(next)
    return {
      name: link.name,
      link: link.link,
      only: link.only,
      source: link.source,
      serve: (tx) => (tx.query.opcode === Opcode.NOTIFY ? next.serve(tx) : link.serve(tx)),
    }
  }
}

/**
 * Gives the queries that a link serves to a thread that can wait. `answers`: the link answers
 * them; else the one below it does.
 */
export function handingOver(factory: HandlerFactory, answers: boolean): HandlerFactory {
  return (next) => {
    const { name, only } = factory(next)
    const selects = only?.selects
    const to = answers || next.name === '' ? name : next.name
    return {
      name,
      only,
      serve: (tx) =>
        selects === undefined || selects(tx) ? tx.server.handOver(to) : next.serve(tx),
    }
  }
}

/** Adds the zones that a link answers from to `sources`, which are in the order of the chain. */
export function collectingSource(factory: HandlerFactory, sources: AnswerSource[]): HandlerFactory {
  return (next) => {
    const link = factory(next)
    if (link.source !== undefined) sources.unshift(link.source)
    return link
  }
}

/** Links the handlers of one block, first to last. `CHAIN_END` follows the last one. */
export function linkChain(factories: readonly HandlerFactory[]): Handler {
  if (factories.length === 0) return EMPTY_CHAIN
  return factories.reduceRight((next, factory) => factory(next), CHAIN_END)
}
