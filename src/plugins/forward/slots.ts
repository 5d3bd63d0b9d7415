import { type Holder, Places, peerOf } from '../../base/places.ts'
import type { Message } from '../../dns/message/message.ts'
import type { Query } from '../../dns/message/query.ts'

/** IPv4 in `Query.peerFamily`. */
const IPV4 = 1
/** The query waited for as long as its client does. */
export const TOO_LATE = 'no upstream replied in time'
/** Another client had fewer slots. */
export const EVICTED = Symbol('evicted')

/** How a wait ended: with a reply, with the reason for none, or early. */
export type Waited = Message | string | typeof EVICTED

/** A query that waits for a reply of an upstream. */
export class Waiter implements Holder {
  /** The first to end of its client, so that a client at its share evicts none of its own queries. */
  isNew = true
  readonly #startedMs: number
  #resolve: (waited: Waited) => void = ignore
  #reject: (error: unknown) => void = ignore
  #ended: Promise<Waited> | undefined

  constructor(startedMs: number) {
    this.#startedMs = startedMs
    this.#ended = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
  }

  /** Until `free`. */
  get ended(): Promise<Waited> {
    return this.#ended!
  }

  /**
   * Lets go of the reply. Tables of a Set that grew keep their old entries until a full garbage collection, and
   * so would keep the replies of all of them.
   */
  free(): void {
    this.#ended = undefined
    this.#resolve = ignore
    this.#reject = ignore
  }

  precedence(): number {
    return this.isNew ? Number.NEGATIVE_INFINITY : this.#startedMs
  }

  /** Only the first end counts. */
  end(waited: Waited): void {
    this.#resolve(waited)
  }

  fail(error: unknown): void {
    this.#reject(error)
  }
}

/**
 * Limits the queries that wait. If all slots are in use, a new query takes one of the client with the most, in
 * the network with the most: so names without a reply cost a client only its own slots.
 */
export class Slots {
  readonly #max: number
  readonly #places = new Places<Waiter>()

  constructor(max: number) {
    this.#max = max
  }

  get max(): number {
    return this.#max
  }

  /** False: the client has as many slots as any other one, and none is free. */
  enter(waiter: Waiter, { peerAddress, peerFamily }: Query): boolean {
    this.#places.enter(waiter, peerOf(peerAddress, peerFamily === IPV4))
    if (this.#places.size > this.#max) {
      const last = this.#places.worst(0)!
      this.#places.leave(last)
      if (last === waiter) return false
      last.end(EVICTED)
    }
    waiter.isNew = false
    return true
  }

  leave(waiter: Waiter): void {
    this.#places.leave(waiter)
  }
}

function ignore(): void {}
