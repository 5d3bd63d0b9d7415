/** Serializes work per key, so that each writer sees the previous writer's result. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>()

  /**
   * Runs `work` after all earlier work for `key` has ended, successful or not. Settles as `work`
   * does.
   */
  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).then(work)
    const over = turn.then(ignore, ignore)
    this.#last.set(key, over)
    try {
      return await turn
    } finally {
      if (this.#last.get(key) === over) this.#last.delete(key)
    }
  }

  /** Keys with running or waiting work. */
  get size(): number {
    return this.#last.size
  }
}

function ignore(): void {}
