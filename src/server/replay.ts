import type { Clock } from '../base/clock.ts'
import type { Random } from '../base/random.ts'
import { ResourceRegistry } from '../base/resource-registry.ts'
import { SharedValues } from '../base/shared-values.ts'
import type { LineWriter } from '../base/telemetry/lines.ts'
import { createLogger } from '../base/telemetry/log.ts'
import { NO_METRICS } from '../base/telemetry/metrics.ts'
import { systemTimers } from '../base/timers.ts'
import { sharedClock } from '../cache/shared-clock.ts'
import { type StoredAnswer, storedAnswer } from '../cache/stored-answer.ts'
import { compose } from '../dns/message/compose.ts'
import type { Protocol, Query } from '../dns/message/query.ts'
import type { AddressFamily } from '../dns/text/address.ts'
import type { Transaction } from '../plugin/transaction.ts'
import { STEERER_FACTORY, type SteererFactory } from '../steering/steerer.ts'
import { HAND_OVER } from '../transport/exchange.ts'
import type { ZoneAnswerer } from '../zone/lookup/answer.ts'
import { ServerCounts, ServerTotals } from './counters.ts'
import { Instance } from './instance.ts'
import { prepareInternalLookup } from './internal-lookup.ts'
import type { ListenPlan } from './listen-plan.ts'
import { type RoutedBlock, RoutingTable } from './routing.ts'
import { Server } from './server.ts'
import { DataChannel } from './thread-channel.ts'

interface ReplayParts {
  /** Makes the steerers. */
  readonly steererOf: SteererFactory
  /** Source of all other random numbers. */
  readonly random: Random
}

interface ReplayedQuery {
  /** The message as on the wire. */
  readonly packet: Uint8Array
  readonly protocol: Protocol
  /** Source address. */
  readonly peer: { readonly family: AddressFamily; readonly bytes: Uint8Array }
}

/** The reply to a replayed query. */
export interface ReplayedReply {
  /** The reply as on the wire; undefined = the server sends none. */
  readonly octets: Uint8Array | undefined
  /**
   * The directive that must answer the query, because it queries other servers; undefined = `octets` is
   * the whole reply, else it has the records found so far.
   */
  readonly handedOverTo: string | undefined
  /** The directive that answered; '' = unknown. */
  readonly answeredBy: string
  readonly error: string
  /** Undefined = the reply does not come from a cache. */
  readonly stored: StoredAnswer | undefined
  /** The zone of the server block; '' = no block serves the name. */
  readonly zone: string
  readonly view: string
  readonly client: Pick<Query, 'clientFamily' | 'clientBits' | 'clientIsEcs'> & {
    readonly address: Uint8Array
  }
}

/** Zones of a directive that may have a name. */
export interface ServingSource {
  readonly directive: string
  readonly answerer: ZoneAnswerer
}

const REPLY_OCTETS_MAX = 65_535

const NO_OCTETS = Buffer.alloc(0)
const NO_LINES: LineWriter = {
  octets: NO_OCTETS,
  view: new DataView(NO_OCTETS.buffer),
  begin: () => -1,
  end: () => {},
  write: () => {},
}

/**
 * Answers queries as the server would, with chosen random numbers and without a trace: the
 * directives are set up once more, as in a data thread, and follow the same data. Nothing is
 * counted, logged or learned, and no other server is queried.
 */
export class Replay {
  readonly plans: readonly ListenPlan[]
  readonly #parts: ReplayParts
  readonly #clock: Clock
  readonly #sharedMs: (monotonicMs: number) => number
  readonly #leave: () => void
  readonly #servers = new Map<string, { server: Server; routing: RoutingTable<RoutedBlock> }>()
  /** Reused: a new one for each reply would cause a major garbage collection every few hundred replies. */
  readonly #out = new Uint8Array(REPLY_OCTETS_MAX)

  /** `instance`: one of the control thread. */
  constructor(instance: Instance, parts: ReplayParts) {
    const { directives, directiveNames, dnsPort, clock, channel: control } = instance.parts
    const channel = new DataChannel({
      catchUp: () => {},
      send: () => {},
      octetsTo: () => ({ octets: NO_OCTETS, begin: () => -1, end: () => {} }),
      announce: () => {},
    })
    const shared = new SharedValues()
    shared.provide(STEERER_FACTORY, parts.steererOf)
    const { instance: copy, errors } = Instance.create(instance.blocks, instance.corefile, {
      directives,
      directiveNames,
      dnsPort,
      clock,
      timers: systemTimers,
      random: () => 0,
      metrics: NO_METRICS,
      serverCounters: new ServerTotals(),
      sink: () => {},
      lines: NO_LINES,
      requestReload: () => Promise.resolve('a replay reloads nothing'),
      resources: new ResourceRegistry(),
      channel,
      shared,
    })
    if (errors[0] !== undefined) throw errors[0]
    this.#leave = control.join?.(channel) ?? (() => {})
    this.#parts = parts
    this.#clock = clock
    this.#sharedMs = sharedClock(clock)
    this.plans = copy.plans
  }

  close(): void {
    this.#leave()
  }

  /** Answers a query that arrives at an address of the plan. */
  serve(plan: ListenPlan, { packet, protocol, peer }: ReplayedQuery): ReplayedReply {
    const { server } = this.#at(plan)
    const tx = server.acquire()
    try {
      const { query, response } = tx
      query.packet = packet
      query.packetAt = -1
      query.packetOctets = packet.length
      query.protocol = protocol
      query.peerAddress.set(peer.bytes)
      query.peerFamily = peer.family
      query.peerPort = 53
      query.localAddress.fill(0)
      query.localFamily = peer.family
      query.localPort = plan.port
      const out = this.#out
      const length = server.serve(tx, out)
      const isHandedOver = length === HAND_OVER || typeof length !== 'number'
      const octets = isHandedOver ? composeSoFar(tx, out) : Math.max(length, 0)
      return {
        octets: octets === 0 ? undefined : out.slice(0, octets),
        handedOverTo: isHandedOver ? server.handedOverTo : undefined,
        answeredBy: response.answeredBy,
        error: response.error,
        stored: storedAnswer(response.answeredBy, tx.chasedOctets, this.#sharedMs(tx.startedMs)),
        zone: tx.zone,
        view: tx.view,
        client: {
          address: query.clientAddress.slice(0, query.clientFamily === 1 ? 4 : 16),
          clientFamily: query.clientFamily,
          clientBits: query.clientBits,
          clientIsEcs: query.clientIsEcs,
        },
      }
    } finally {
      server.release(tx)
    }
  }

  /**
   * Returns the loaded zones that a client's queries for a name may be answered from, in the order
   * of the chain; undefined = no server block serves the name. `qname`: lower-case wire form.
   */
  findSources(
    plan: ListenPlan,
    peer: ReplayedQuery['peer'],
    qname: Uint8Array,
    qtype: number,
  ): readonly ServingSource[] | undefined {
    const { server, routing } = this.#at(plan)
    const outer = server.acquire()
    const tx = server.acquire()
    try {
      outer.query.peerAddress.set(peer.bytes)
      outer.query.peerFamily = peer.family
      prepareInternalLookup(tx, outer, qname, qtype)
      const block = routing.find(tx)
      if (block === undefined) return undefined
      return (block.sources ?? []).flatMap((source) => {
        const answerer = source.find(tx.query)
        return answerer === undefined ? [] : [{ directive: source.name, answerer }]
      })
    } finally {
      server.release(outer)
      server.release(tx)
    }
  }

  #at(plan: ListenPlan): { server: Server; routing: RoutingTable<RoutedBlock> } {
    const known = this.#servers.get(plan.address)
    if (known !== undefined) return known
    const { random } = this.#parts
    const server = new Server({
      address: plan.address,
      // Only replies to real clients are limited and tapped.
      blocks: plan.blocks.map((block) => ({ ...block, limiter: undefined, tap: undefined })),
      clock: this.#clock,
      random,
      log: createLogger(
        '',
        () => {},
        () => false,
      ),
      counters: new ServerCounts(),
      // A cache that would refresh an answer sends the stored one meanwhile.
      canHandOver: () => false,
    })
    const made = { server, routing: new RoutingTable(plan.blocks) }
    this.#servers.set(plan.address, made)
    return made
  }
}

/** Composes the records that a chain added before it handed the query over; 0 = none. */
function composeSoFar({ query, response }: Transaction, out: Uint8Array): number {
  const count = response.count + response.direct.count
  return count === 0 ? 0 : compose(query, response, out, out.length)
}
