import type { Clock } from '../base/clock.ts'
import { copyOctets, equalOctets } from '../base/octets.ts'
import * as packets from '../base/packet-memory.ts'
import { RRClass } from '../dns/iana/classes.ts'
import type { Query } from '../dns/message/query.ts'
import * as plain from '../dns/message/simple-query.ts'
import { type FastPathChain, type FastPathGuard, planFastPath } from '../plugin/fast-path.ts'
import { LimitAction, type ReplyLimiter } from '../plugin/reply-limiter.ts'
import type { Transaction } from '../plugin/transaction.ts'
import { type PacketSource, SILENT } from '../transport/exchange.ts'
import type { FastAnswers } from '../zone/lookup/fast-answers.ts'
import { takePeerAsClient } from './internal-lookup.ts'
import type { RoutedBlock, RoutingTable } from './routing.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { packetView } = packets
const { parseSimpleQuery, simpleQuery } = plain

/** A block whose plain queries can skip its chain. */
interface FastRoute {
  readonly block: RoutedBlock
  readonly chain: FastPathChain
  /** Whether an observer reads all fields of a query. */
  readonly readsAll: boolean
  /** Whether there is an observer, a gate or a limiter, which may read the addresses. */
  readonly readsPeer: boolean
}

/**
 * The fast path of a server. A plain query (see plugin/plain.ts) of a chain that was planned for
 * the fast path is read and answered in the memory of its packet. Any other query is left unchanged
 * for `Server.serve`.
 *
 *     parseSimpleQuery ─▶ the zone found last, or routing, source, apex ─▶ FastAnswers ─▶ observers
 *
 * If no zone is deeper than the one found last, a name below that zone is in no other zone. Then
 * one comparison finds the zone.
 */
export class FastPath {
  readonly #routing: RoutingTable
  readonly #clock: Clock
  readonly #paths: ReadonlyMap<RoutedBlock, FastRoute>
  /** False = no query is plain here. */
  readonly #isOpen: boolean
  /** Route of the zone found last. */
  #path: FastRoute | undefined = undefined
  #holder: object | undefined = undefined
  #answers: FastAnswers | undefined = undefined
  readonly #apex: Uint8Array = new Uint8Array(256)
  #apexOctets = 0
  #apexHash = 0
  /** Labels of the apex of that zone; -1 if deeper zones exist, so that each query looks its zone up. */
  #apexLabels = -1
  /** Offset of that zone in the image, valid for one version until the next compaction. */
  #zone = 0
  #version = -1
  #buffer: SharedArrayBuffer | undefined = undefined

  /** `server`: the address that it listens on, as in metrics. */
  constructor(routing: RoutingTable, blocks: readonly RoutedBlock[], clock: Clock, server: string) {
    this.#routing = routing
    this.#clock = clock
    this.#paths = new Map(
      blocks.flatMap((block): [RoutedBlock, FastRoute][] => {
        const at = { server, zone: block.zoneText, view: block.viewName }
        const chain = planFastPath(block.chain, at)
        // Only the chain knows how to handle a bug in a block with `debug`.
        if (chain === undefined || block.debug || block.waits === true) return []
        const readsAll = chain.observers.some((observer) => observer.readsAll)
        const readsPeer =
          chain.observers.length + chain.gates.length > 0 || block.limiter !== undefined
        return [[block, { block, chain, readsAll, readsPeer }]]
      }),
    )
    this.#isOpen = this.#paths.size > 0
  }

  /**
   * Replaces the packet of `octets` octets at `at` of the packet memory by its reply of up to
   * `room` octets, and returns the length of the reply. 0: the packet is unchanged and must take
   * the full path. SILENT: no reply is sent. `tx` is used for observers, gates and limiters. @hot
   */
  answer(
    tx: Transaction,
    at: number,
    octets: number,
    room: number,
    source: PacketSource,
    slot: number,
  ): number {
    if (!this.#isOpen || !parseSimpleQuery(at, octets) || !this.#find()) return 0
    const { block, chain, readsAll, readsPeer } = this.#path!
    const answers = this.#answers!
    const { query, response } = tx
    const hasSubnet = simpleQuery.ecsFamily !== 0
    response.scopeBits = 0
    if (hasSubnet) takeSubnet(query)
    if (readsPeer) source.describe(slot, query)
    if (chain.gates.length > 0 && !passesAll(chain.gates, query)) return 0
    if (readsAll) {
      describeQuery(query)
      response.reset(query)
    }
    // Observers may report the client's location, even if the answer does not depend on it.
    if (readsAll || answers.isSteered) {
      if (hasSubnet && chain.takesSubnet) takeSubnetAsClient(query)
      else {
        if (!readsPeer) source.describe(slot, query)
        takePeerAsClient(query)
      }
    }
    response.payloadOctets = block.bufsizeOctets
    const replyOctets = answers.compose(query, response, room, chain.onlyOne)
    if (chain.observers.length > 0 && replyOctets > 0) this.#showObservers(tx)
    if (block.limiter === undefined || replyOctets === 0) return replyOctets
    return this.#limit(tx, block.limiter, replyOctets)
  }

  /** Applies the limiter to a reply of `octets` octets, and returns the length to send. @hot */
  #limit(tx: Transaction, limiter: ReplyLimiter, octets: number): number {
    const { block } = this.#path!
    const nowMs = this.#clock.monotonic()
    // The counters of the limiter read the zone.
    tx.zone = block.zoneText
    tx.view = block.viewName
    const verdict = limiter.decideFast(tx, nowMs)
    if (verdict === LimitAction.Drop) return SILENT
    const gainedOctets = octets - simpleQuery.packetOctets
    if (verdict === LimitAction.Send && !limiter.amplifies(tx, simpleQuery, gainedOctets, nowMs)) {
      return octets
    }
    tx.response.scopeBits = 0
    return this.#answers!.composeTruncated(tx.query, tx.response)
  }

  /** Finds the route of the query read last, with its records. */
  #find(): boolean {
    const label = simpleQuery.labelCount - this.#apexLabels
    if (this.#apexLabels === -1 || label < 0 || !this.#isIn(label)) return this.#findAnew()
    return this.#answers!.find(this.#zone, simpleQuery.labelOffset[label]!)
  }

  /** Whether the query's name, from `label` on, is the apex found last, and that state is still valid. */
  #isIn(label: number): boolean {
    if (simpleQuery.suffixHash[label] !== this.#apexHash) return false
    if (this.#path!.chain.source.holder !== this.#holder) return false
    const { reader } = this.#answers!
    reader.refresh()
    if (reader.version !== this.#version || reader.handle.buffer !== this.#buffer) return false
    const start = simpleQuery.labelOffset[label]!
    const octets = this.#apexOctets
    if (simpleQuery.qnameOctets - start !== octets) return false
    return equalOctets(simpleQuery.qname, start, this.#apex, 0, octets)
  }

  #findAnew(): boolean {
    this.#apexLabels = -1
    const block = this.#routing.findUnconditional(simpleQuery)
    const path = block === undefined ? undefined : this.#paths.get(block)
    if (path === undefined) return false
    const { source } = path.chain
    const answers = source.find(simpleQuery)?.plain
    if (answers === undefined) return false
    const { reader } = answers
    reader.refresh()
    const zone = reader.matchZone(simpleQuery, 0)
    if (zone === 0) return false
    this.#path = path
    this.#answers = answers
    this.#holder = source.holder
    this.#zone = zone
    this.#version = reader.version
    this.#buffer = reader.handle.buffer
    const label = reader.zoneLabel
    this.#keepApex(label, Math.max(this.#routing.deepest, source.deepest, reader.deepest))
    return answers.find(zone, simpleQuery.labelOffset[label]!)
  }

  #keepApex(label: number, deepest: number): void {
    const start = simpleQuery.labelOffset[label]!
    this.#apexOctets = simpleQuery.qnameOctets - start
    copyOctets(simpleQuery.qname, start, this.#apex, 0, this.#apexOctets)
    this.#apexHash = simpleQuery.suffixHash[label]!
    const labels = simpleQuery.labelCount - label
    if (labels >= deepest) this.#apexLabels = labels
  }

  #showObservers(tx: Transaction): void {
    const { block, chain, readsAll } = this.#path!
    const { observers, source } = chain
    tx.startedMs = this.#clock.monotonic()
    tx.finishedMs = 0
    tx.sentOctets = this.#answers!.uncompressedOctets
    if (readsAll) {
      tx.response.authoritative = true
      tx.response.answeredBy = source.name
      tx.zone = block.zoneText
      tx.view = block.viewName
    }
    for (let i = 0; i < observers.length; i++) observers[i]!.observe(tx)
  }
}

/** @hot */
function passesAll(gates: readonly FastPathGuard[], query: Query): boolean {
  for (let i = 0; i < gates.length; i++) if (!gates[i]!.passes(query)) return false
  return true
}

/** Fills in what observers with `readsAll` read of a query. */
function describeQuery(query: Query): void {
  query.packetOctets = simpleQuery.packetOctets
  query.id = simpleQuery.id
  query.flags = simpleQuery.flags
  query.opcode = 0
  query.qtype = simpleQuery.qtype
  query.qclass = RRClass.IN
  query.qnameOctets = simpleQuery.qnameOctets
  copyOctets(simpleQuery.qname, 0, query.qname, 0, simpleQuery.qnameOctets)
  query.labelCount = simpleQuery.labelCount
  for (let label = 0; label <= simpleQuery.labelCount; label++) {
    query.labelOffset[label] = simpleQuery.labelOffset[label]!
    query.suffixHash[label] = simpleQuery.suffixHash[label]!
  }
  query.ecsFamily = simpleQuery.ecsFamily
  query.hasEdns = simpleQuery.hasEdns
  query.payloadOctets = simpleQuery.payloadOctets
  query.dnssecOk = simpleQuery.dnssecOk
}

/** Copies the client subnet out of the packet, because the answer overwrites it. @hot */
function takeSubnet(query: Query): void {
  const octets = (simpleQuery.ecsSourceBits + 7) >> 3
  query.ecsFamily = simpleQuery.ecsFamily
  query.ecsSourceBits = simpleQuery.ecsSourceBits
  const { ecsWords } = query
  for (let word = 0; word < 4; word++) {
    const rest = octets - word * 4
    if (rest <= 0) ecsWords[word] = 0
    else {
      const all = packetView.getUint32(simpleQuery.ecsAt + word * 4, true)
      ecsWords[word] = rest >= 4 ? all : all & ((1 << (rest * 8)) - 1)
    }
  }
}

/** @hot */
function takeSubnetAsClient(query: Query): void {
  query.clientAddress = query.ecsAddress
  query.clientFamily = query.ecsFamily
  query.clientBits = query.ecsSourceBits
  query.clientIsEcs = true
}
