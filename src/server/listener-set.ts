/** A listener that can serve something else without closing. */
export interface WantedListener<Want> {
  /** Serves `want` from now on. There is no await between the old and the new. */
  use(want: Want): void
  /** Accepts nothing new, waits (bounded) for what is in flight, and closes the address. */
  close(): Promise<void>
}

/** A prepared step from the listeners of one instance to those of the next: commit or abandon it. */
interface ListenerChange {
  /**
   * Makes kept addresses serve the new instance, synchronously. Resolves once dropped ones are
   * closed.
   */
  commit(): Promise<void>
  /** Closes what was opened for the change. The old listeners are not affected. */
  abandon(): Promise<void>
}

/**
 * The open listeners of one kind, by address. New addresses are opened before any listener is
 * swapped. Kept ones are never closed, and dropped ones are closed last. So a reload loses no
 * query, and a failed reload changes nothing.
 */
export class ListenerSet<Want, Open extends WantedListener<Want>> {
  readonly #openOne: (address: string, want: Want) => Promise<Open>
  #open = new Map<string, Open>()

  /** `openOne` rejects if the address is not available. */
  constructor(openOne: (address: string, want: Want) => Promise<Open>) {
    this.#openOne = openOne
  }

  /** Opens the addresses of `wants` that are not open. If one fails, closes the others and rejects. */
  async prepare(wants: ReadonlyMap<string, Want>): Promise<ListenerChange> {
    const opened = new Map<string, Open>()
    const abandon = async (): Promise<void> => {
      await Promise.all([...opened.values()].map((listener) => listener.close()))
    }
    for (const [address, want] of wants) {
      if (this.#open.has(address)) continue
      try {
        opened.set(address, await this.#openOne(address, want))
      } catch (error) {
        await abandon()
        throw error
      }
    }
    return { commit: () => this.#commit(wants, opened), abandon }
  }

  async #commit(wants: ReadonlyMap<string, Want>, opened: Map<string, Open>): Promise<void> {
    const dropped: Open[] = []
    for (const [address, listener] of this.#open) {
      const want = wants.get(address)
      if (want === undefined) dropped.push(listener)
      else {
        listener.use(want)
        opened.set(address, listener)
      }
    }
    this.#open = opened
    await Promise.all(dropped.map((listener) => listener.close()))
  }

  /** The open listener of an address. */
  get(address: string): Open | undefined {
    return this.#open.get(address)
  }

  /** Closes all listeners. Tries each one, then rejects with the first failure. */
  async close(): Promise<void> {
    const closing = [...this.#open.values()].map((listener) => listener.close())
    this.#open = new Map()
    for (const result of await Promise.allSettled(closing)) {
      if (result.status === 'rejected') throw result.reason
    }
  }
}
