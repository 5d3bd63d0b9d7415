import { lazyKey } from '../../base/shared-values.ts'

/** Counts what a full stack of replies loses; `server`: the address of the plan. */
export interface StackLosses {
  /** Called once for each address that has a stack. */
  begin(): void
  dropQuery(server: string): void
  dropReply(server: string): void
}

/** Set in a server block: replies wait in a `ReplyStack` if the driver of the address has a queue of replies. */
export const STACK_LOSSES = lazyKey('losses of stacks of replies', (): StackLosses[] => [])

/** A reply that waits for the socket. */
interface WaitingReply {
  readonly octets: Uint8Array
  readonly port: number
  readonly address: string
}

/** Most replies that wait: those of some milliseconds. */
const REPLIES_MAX = 1024

/** Replies that wait for a socket. The newest is sent first. A reply above the limit replaces the oldest. */
export class ReplyStack {
  readonly #ring: (WaitingReply | undefined)[] = new Array(REPLIES_MAX)
  /** Index for the next reply. The waiting replies precede it. */
  #next = 0
  #size = 0

  get isFull(): boolean {
    return this.#size === REPLIES_MAX
  }

  /** Adds a reply. Returns true if it replaced the oldest one. */
  push(reply: WaitingReply): boolean {
    const { isFull } = this
    this.#ring[this.#next] = reply
    this.#next = (this.#next + 1) % REPLIES_MAX
    if (!isFull) this.#size++
    return isFull
  }

  /** Removes the newest reply and returns it. */
  pop(): WaitingReply | undefined {
    if (this.#size === 0) return undefined
    this.#size--
    this.#next = (this.#next + REPLIES_MAX - 1) % REPLIES_MAX
    const reply = this.#ring[this.#next]
    this.#ring[this.#next] = undefined
    return reply
  }
}
