interface Waiter {
  readonly isDone: (nowMs: number) => boolean
  readonly finish: (fault: string) => void
}

/** Callers that wait until the kernel has something. */
export class Waiters {
  readonly #waiters = new Set<Waiter>()

  /** Resolves with '' once `isDone` returns true, otherwise with a fault. */
  wait(isDone: Waiter['isDone']): Promise<string> {
    return new Promise((resolve) => {
      const waiter = {
        isDone,
        finish: (fault: string) => {
          this.#waiters.delete(waiter)
          resolve(fault)
        },
      }
      this.#waiters.add(waiter)
    })
  }

  /** Ends the waits that are done. `nowMs`: monotonic. */
  finish(nowMs: number): void {
    for (const waiter of [...this.#waiters]) if (waiter.isDone(nowMs)) waiter.finish('')
  }

  /** Ends all waits. */
  finishAll(fault: string): void {
    for (const waiter of [...this.#waiters]) waiter.finish(fault)
  }
}
