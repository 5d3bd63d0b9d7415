import { Cancellation, type UpstreamQuestion } from '../../client/upstream/upstream-query.ts'
import type { Message } from '../../dns/message/message.ts'
import { mixHash } from '../../dns/name/hash.ts'
import type { ForwardUpstream } from './forward-upstream.ts'
import type { Waiter } from './slots.ts'

/**
 * Flights of a name and type that use UDP at a time: each set of flags without a client subnet. A client that varies
 * them begins a flight with each query.
 */
const OVER_UDP_MAX = 16

/** A question that the upstreams are being asked, and all queries that wait for its reply. */
export class Flight {
  readonly question: UpstreamQuestion
  readonly deadlineMs: number
  /** The upstream asked last. */
  upstream: ForwardUpstream | undefined
  /** Another flight with the same hash. */
  next: Flight | undefined
  readonly cancellation = new Cancellation()
  /** True: equal questions begin another flight. */
  isOver = false
  readonly #waiters: Waiter[] = []
  /** Queries that wait. */
  #count = 0

  constructor(question: UpstreamQuestion, deadlineMs: number, next: Flight | undefined) {
    this.question = question
    this.deadlineMs = deadlineMs
    this.next = next
  }

  add(waiter: Waiter): void {
    this.#waiters.push(waiter)
    this.#count++
  }

  /** A query waits no longer. Returns true if it was the last one. */
  leave(): boolean {
    this.#count--
    return this.#count === 0
  }

  /** `result`: a reply, or why no upstream gave one. */
  land(result: Message | string): void {
    for (const waiter of this.#waiters.splice(0)) waiter.end(result)
  }

  fail(error: unknown): void {
    for (const waiter of this.#waiters.splice(0)) waiter.fail(error)
  }
}

/**
 * The questions in flight. Equal queries share one query to the upstream: each further one would give a forger
 * another id to guess (RFC 5452 section 5).
 */
export class Flights {
  readonly #byHash = new Map<number, Flight>()

  find(question: UpstreamQuestion): Flight | undefined {
    let flight = this.#byHash.get(question.hash)
    while (flight !== undefined && !isSame(flight.question, question)) flight = flight.next
    return flight
  }

  /** True if a further flight of this name and type must not use UDP. */
  isCrowded({ hash }: UpstreamQuestion): boolean {
    let count = 0
    for (let one = this.#byHash.get(hash); one !== undefined; one = one.next) count++
    return count >= OVER_UDP_MAX
  }

  add(question: UpstreamQuestion, deadlineMs: number): Flight {
    const flight = new Flight(question, deadlineMs, this.#byHash.get(question.hash))
    this.#byHash.set(question.hash, flight)
    return flight
  }

  /** A query waits no longer. After the last one, the upstream's reply is not needed. */
  leave(flight: Flight): void {
    if (flight.isOver || !flight.leave()) return
    this.remove(flight)
    flight.cancellation.cancel()
  }

  remove(flight: Flight): void {
    if (flight.isOver) return
    flight.isOver = true
    const { hash } = flight.question
    let before = this.#byHash.get(hash)
    if (before !== flight) {
      while (before!.next !== flight) before = before!.next
      before!.next = flight.next
    } else if (flight.next === undefined) this.#byHash.delete(hash)
    else this.#byHash.set(hash, flight.next)
  }
}

/** True if two questions send the same. */
function isSame(a: UpstreamQuestion, b: UpstreamQuestion): boolean {
  if (a.type !== b.type || a.rrclass !== b.rrclass || a.flags !== b.flags) return false
  if (a.dnssecOk !== b.dnssecOk || !isEqual(a.name, b.name)) return false
  if (a.subnet === undefined || b.subnet === undefined) return a.subnet === b.subnet
  return isEqual(a.subnet, b.subnet)
}

function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}

/** Hash of a name, type and class. `nameHash`: of the name. */
export function hashQuestion(nameHash: number, type: number, rrclass: number): number {
  return mixHash(nameHash ^ Math.imul((type << 16) | rrclass, 0x9e3779b1)) | 0
}
