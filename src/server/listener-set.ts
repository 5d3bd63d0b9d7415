/** Something that listens, and can be told to serve something else without closing. */
export interface WantedListener<Want> {
  /** Serves `want` from now on: no await between the old and the new. */
  use(want: Want): void
  /** Stops taking in, lets what is in flight finish (bounded), frees the address. */
  close(): Promise<void>
}

/** A prepared step from the listeners of one instance to those of the next: commit or abandon it. */
export interface ListenerChange {
  /** Swaps what kept addresses serve, synchronously; resolves once dropped ones are closed. */
  commit(): Promise<void>
  /** Closes what was opened for the change; the old listeners never noticed. */
  abandon(): Promise<void>
}

/**
 * The open listeners of one kind, by address. New addresses are opened before anything is swapped,
 * kept ones are never closed, dropped ones are closed last: a reload loses no query, and one that
 * fails changes nothing.
 */
export class ListenerSet<Want, Open extends WantedListener<Want>> {
  readonly #openOne: (address: string, want: Want) => Promise<Open>
  #open = new Map<string, Open>()

  /** `openOne` rejects where the address can't be had. */
  constructor(openOne: (address: string, want: Want) => Promise<Open>) {
    this.#openOne = openOne
  }

  /** Opens the addresses of `wants` that are not open. Rejects, with nothing opened, if one can't be. */
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

  /** Closes them all; rejects with the first failure after trying each. */
  async close(): Promise<void> {
    const closing = [...this.#open.values()].map((listener) => listener.close())
    this.#open = new Map()
    for (const result of await Promise.allSettled(closing)) {
      if (result.status === 'rejected') throw result.reason
    }
  }
}
