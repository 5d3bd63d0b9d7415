import type { Clock } from '../base/clock.ts'
import type { Timers } from '../base/timers.ts'

/** What a sink says about a change: '' = it is in force, otherwise the reason why it is not. */
export type Acknowledgement = Promise<string>

/** What enforces or publishes that policies allow addresses. */
export interface Sink<Update> {
  /** Makes an update true. A rejection is a reason why it is not. */
  apply(update: Update): Acknowledgement
}

/** How a wait for sinks ended. After `timed out` and `failed`, the caller decides what it sends. */
export type GateResult = 'acknowledged' | 'timed out' | 'failed'

/** Holds replies until sinks have acknowledged their addresses, or a deadline is over. */
export class Gate {
  readonly #clock: Clock
  readonly #timers: Timers
  readonly #deadlineMs: number
  /** Replies that it has held since the start. */
  held = 0
  /** Those whose wait has ended, by result. */
  readonly results: Record<GateResult, number> = { acknowledged: 0, 'timed out': 0, failed: 0 }
  /** Time that they waited. */
  waitedMs = 0
  /** Replies that wait now. */
  waiting = 0

  constructor({ clock, timers }: { clock: Clock; timers: Timers }, deadlineMs: number) {
    this.#clock = clock
    this.#timers = timers
    this.#deadlineMs = deadlineMs
  }

  /** Resolves when all have acknowledged, at the latest at the deadline. `onEnd` is called just before. */
  hold(
    acknowledgements: readonly Acknowledgement[],
    onEnd: (result: GateResult, waitMs: number) => void,
  ): Promise<GateResult> {
    const startMs = this.#clock.monotonic()
    this.held++
    this.waiting++
    return new Promise((resolve) => {
      let isOver = false
      const finish = (result: GateResult): void => {
        if (isOver) return
        isOver = true
        cancel()
        const waitMs = this.#clock.monotonic() - startMs
        this.waiting--
        this.waitedMs += waitMs
        this.results[result]++
        onEnd(result, waitMs)
        resolve(result)
      }
      const cancel = this.#timers.after(this.#deadlineMs, () => finish('timed out'))
      void firstFault(acknowledgements).then((fault) => {
        finish(fault === '' ? 'acknowledged' : 'failed')
      })
    })
  }
}

/** Waits for all. Resolves with '' or the first reason; never rejects. */
export async function firstFault(all: readonly (Acknowledgement | string)[]): Promise<string> {
  const results = await Promise.allSettled(all)
  for (const result of results) {
    const fault = result.status === 'fulfilled' ? result.value : String(result.reason)
    if (fault !== '') return fault
  }
  return ''
}

/** Waits for several gates. Resolves with the worst result; undefined = nothing to wait for. */
export function waitForAll(
  waits: readonly (Promise<GateResult> | undefined)[],
): Promise<GateResult> | undefined {
  const open = waits.filter((wait) => wait !== undefined)
  if (open.length === 0) return undefined
  return Promise.all(open).then((results) => {
    if (results.includes('failed')) return 'failed'
    return results.includes('timed out') ? 'timed out' : 'acknowledged'
  })
}

interface Waiter {
  readonly isDone: (nowMs: number) => boolean
  readonly finish: (fault: string) => void
}

/** The acknowledgements that a sink owes. */
export class Waiters {
  readonly #waiters = new Map<Acknowledgement, Waiter>()

  /** Resolves with '' once `isDone` returns true, otherwise with a fault. */
  wait(isDone: Waiter['isDone']): Acknowledgement {
    let finish: Waiter['finish'] = () => {}
    const ended = new Promise<string>((resolve) => (finish = resolve))
    this.#waiters.set(ended, { isDone, finish })
    return ended
  }

  /** Its caller waits no longer. */
  forget(ended: Acknowledgement): void {
    this.#waiters.delete(ended)
  }

  /** Ends the waits that are done. `nowMs`: monotonic. */
  finish(nowMs: number): void {
    for (const [ended, { isDone }] of this.#waiters) if (isDone(nowMs)) this.#end(ended, '')
  }

  /** Ends all waits. */
  finishAll(fault: string): void {
    for (const ended of this.#waiters.keys()) this.#end(ended, fault)
  }

  #end(ended: Acknowledgement, fault: string): void {
    this.#waiters.get(ended)?.finish(fault)
    this.#waiters.delete(ended)
  }
}
