/** Work on one thing, one after the other: whoever writes what others write as well begins with what they wrote. */
export class KeyedMutex {
  readonly #last = new Map<string, Promise<void>>()

  /** Runs `work` once all that was given before it for `key` is over, failed or not. Settles as `work` does. */
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

  /** Things that somebody works on. */
  get size(): number {
    return this.#last.size
  }
}

function ignore(): void {}
