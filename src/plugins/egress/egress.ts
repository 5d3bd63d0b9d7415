import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import {
  type Observation,
  observeHints,
  observeReply,
  observeSearched,
} from '../../client/resolver/observation.ts'
import { EdeCode, Opcode, Rcode, RRType } from '../../dns/iana/index.ts'
import { fittingAnswers, replyLimit, uncompressedOctets } from '../../dns/message/compose.ts'
import { Protocol, type Query } from '../../dns/message/query.ts'
import { NameBuffer } from '../../dns/name/hashed-name.ts'
import type { Client } from '../../egress/agent/client.ts'
import type { EgressGate } from '../../egress/agent/egress-gate.ts'
import { type GateResult, waitForAll } from '../../egress/gate.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import type { BlockConfig } from '../../plugin/directive.ts'
import { type Concern, DROP, type Handler, Trait } from '../../plugin/handler.ts'
import { type SentAnswer, sentAnswer } from '../../plugin/sent-answer.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { Concurrency } from './concurrency.ts'
import { denialLine } from './decision.ts'
import type { ReplyTimes } from './reply-times.ts'

/** Counters, by server, zone and view. */
export const EgressCount = { Denied: 0, Rejected: 1, TimedOut: 2, Failed: 3 } as const

/** What a thread knows of the clients. */
export interface ClientSource {
  /** Addresses of clients. Only data threads use it: they have no gate. */
  addresses: { has(bytes: Uint8Array, offset: number, family: number): boolean }
  /** Undefined in data threads, and before the start. */
  gate: EgressGate | undefined
}

export interface EgressOptions {
  /** The rcode for names that a client may not ask for: REFUSED or NXDOMAIN. */
  readonly denyRcode: number
  /** What a client gets if its addresses are not in force in time. */
  readonly onTimeout: 'release' | 'servfail'
}

interface EgressParts {
  readonly source: ClientSource
  readonly options: EgressOptions
  readonly block: Pick<BlockConfig, 'bufsizeOctets'>
  readonly concurrency: Concurrency
  readonly clock: Clock
  readonly slots: CounterSlots
  readonly times: ReplyTimes
  /** Writes a line for each denied query; undefined = they are not logged. */
  readonly logDecision: Logger['info'] | undefined
}

/** A query of a client. Times are monotonic milliseconds. */
interface Asked {
  readonly client: Client
  readonly gate: EgressGate
  readonly startMs: number
}

/**
 * Decides which names clients may ask for, and notes the addresses that they get, before they get them. Comes before
 * all links that change or cache answers. The queries of others pass it by, at the cost of one lookup. Data threads
 * hand over those of clients.
 */
export class Egress implements Handler {
  readonly name = 'egress'
  readonly only: Concern
  readonly #next: Handler
  readonly #parts: EgressParts
  readonly #name = new NameBuffer()

  constructor(next: Handler, parts: EgressParts) {
    this.#next = next
    this.#parts = parts
    this.only = { queries: Trait.Every, next, selects: (tx) => this.#selects(tx) }
    parts.slots.length = Object.keys(EgressCount).length
  }

  serve(tx: Transaction): number | Promise<number> {
    const { source, clock } = this.#parts
    const { gate } = source
    if (!this.#selects(tx) || gate === undefined) return this.#next.serve(tx)
    const client = clientOf(tx, gate)
    if (client === undefined) return this.#next.serve(tx)
    return this.#admit(tx, { client, gate, startMs: clock.monotonic() })
  }

  /** @hot */
  #selects({ query, chainDepth }: Transaction): boolean {
    // Lookups of the server itself are part of a query that has passed already.
    if (chainDepth > 0 || query.opcode !== Opcode.QUERY) return false
    const { addresses, gate } = this.#parts.source
    const { peerAddress, peerFamily } = query
    if (gate !== undefined) return gate.clientAt(peerAddress, 0, peerFamily) !== undefined
    return addresses.has(peerAddress, 0, peerFamily)
  }

  #admit(tx: Transaction, asked: Asked): number | Promise<number> {
    const { concurrency, slots, times } = this.#parts
    const { id } = asked.client
    if (!concurrency.enter(id, asked.startMs)) {
      slots.of(tx)[EgressCount.Rejected]! += 1
      times.observe('proxyErr', 'totalTime', 0)
      tx.response.error = `egress: too many queries of ${id} or of all clients are in progress`
      return Rcode.SERVFAIL
    }
    let status: number | Promise<number>
    try {
      status = this.#decide(tx, asked)
    } catch (error) {
      concurrency.leave(id)
      throw error
    }
    if (typeof status !== 'number') return status.finally(() => concurrency.leave(id))
    concurrency.leave(id)
    return status
  }

  #decide(tx: Transaction, asked: Asked): number | Promise<number> {
    const { clock, times } = this.#parts
    const { client, gate, startMs } = asked
    const isAllowed = gate.mayAsk(client, protocolOf(tx.query), tx.query)
    const checkedMs = clock.monotonic()
    const error = isAllowed ? 'allow' : 'denied'
    times.observe(error, 'policyCheckTime', checkedMs - startMs)
    if (!isAllowed) return this.#deny(tx, asked)
    const status = this.#next.serve(tx)
    if (typeof status === 'number') return this.#learn(tx, status, asked, checkedMs)
    return status.then((late) => this.#learn(tx, late, asked, checkedMs))
  }

  #deny(tx: Transaction, { client, startMs }: Asked): number {
    const { options, slots, clock, times, logDecision } = this.#parts
    const { response, query } = tx
    slots.of(tx)[EgressCount.Denied]! += 1
    times.observe('denied', 'totalTime', clock.monotonic() - startMs)
    logDecision?.(denialLine(client, query, options.denyRcode), 'egress-decision')
    response.edeCode = EdeCode.BLOCKED
    response.imputedLabel = query.labelCount
    response.rcode = options.denyRcode
    return options.denyRcode
  }

  /** Notes the addresses of the reply. `checkedMs`: when the links below began. */
  #learn(
    tx: Transaction,
    status: number,
    asked: Asked,
    checkedMs: number,
  ): number | Promise<number> {
    const { clock, times, block } = this.#parts
    const answeredMs = clock.monotonic()
    times.observe('allow', 'upstreamTime', answeredMs - checkedMs)
    const observed = status === DROP ? [] : observationsOf(tx, status, answeredMs, block)
    // While the query waited, the address may have become another client's.
    const client = clientOf(tx, asked.gate)
    if (observed.length === 0 || client?.id !== asked.client.id) {
      times.observe('allow', 'totalTime', answeredMs - asked.startMs)
      return status
    }
    const all = [...observed, ...this.#searched(tx, observed, asked)]
    const wait = waitForAll(all.map((one) => asked.gate.learn(client, one)))
    const learned = { ...asked, client, answeredMs }
    if (wait === undefined) return this.#finish(tx, status, learned, 'acknowledged')
    return wait.then((result) => this.#finish(tx, status, learned, result))
  }

  /** What the client would have got if it had not used its search path, as far as it may ask for that name. */
  #searched(
    { query, response }: Transaction,
    observed: readonly Observation[],
    { client, gate }: Asked,
  ): readonly Observation[] {
    return observed.flatMap((one) => {
      const searched = observeSearched(one, response.isSearched)
      if (searched === undefined) return []
      const { name } = searched
      const isName = this.#name.set(name, 0, name.length)
      return isName && gate.mayAsk(client, protocolOf(query), this.#name) ? [searched] : []
    })
  }

  #finish(
    tx: Transaction,
    status: number,
    { client, startMs, answeredMs }: Asked & { readonly answeredMs: number },
    result: GateResult,
  ): number {
    const { options, slots, clock, times } = this.#parts
    const nowMs = clock.monotonic()
    if (result === 'timed out') slots.of(tx)[EgressCount.TimedOut]! += 1
    if (result === 'failed') slots.of(tx)[EgressCount.Failed]! += 1
    const isSent =
      result === 'acknowledged' || (result === 'timed out' && options.onTimeout === 'release')
    const error = isSent ? 'allow' : 'proxyErr'
    times.observe(error, 'dataplaneTime', nowMs - answeredMs)
    times.observe(error, 'totalTime', nowMs - startMs)
    if (isSent) return status
    tx.response.error = `egress: addresses for ${client.id} are not in force: ${result}`
    return Rcode.SERVFAIL
  }
}

function protocolOf({ protocol }: Query): 'udp' | 'tcp' {
  return protocol === Protocol.Udp ? 'udp' : 'tcp'
}

function clientOf({ query }: Transaction, gate: EgressGate): Client | undefined {
  return gate.clientAt(query.peerAddress, 0, query.peerFamily)
}

/** The addresses in a reply. */
function observationsOf(
  tx: Transaction,
  status: number,
  nowMs: number,
  block: EgressParts['block'],
): readonly Observation[] {
  switch (tx.query.qtype) {
    case RRType.A:
    case RRType.AAAA: {
      const observed = observeReply(fittingAnswer(tx, status, block), nowMs, '')
      return observed?.kind === 'answer' ? [observed] : []
    }
    case RRType.HTTPS:
    case RRType.SVCB:
      return observeHints(fittingAnswer(tx, status, block), nowMs, '')
    default:
      return []
  }
}

/** The reply without what a client does not get: it asks again over TCP. */
function fittingAnswer(tx: Transaction, status: number, block: EgressParts['block']): SentAnswer {
  const sent = sentAnswer(tx, status)
  const { query, response } = tx
  const limit = replyLimit(query, block.bufsizeOctets) - (response.signer?.octets ?? 0)
  if (sent.answer.length === 0 || uncompressedOctets(query, response) <= limit) return sent
  return { ...sent, answer: sent.answer.slice(0, fittingAnswers(query, response, limit)) }
}
