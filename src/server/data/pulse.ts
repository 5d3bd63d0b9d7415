/** How often a thread's turns are looked at. */
export const LOOK_MS = 1000
/** Looks in a row that find a thread where it was; asleep it takes a turn a second. */
const STILL_LOOKS_MAX = 10

/**
 * Tells a thread that hangs from one that sleeps or is slow. It goes by looks rather than by the time: while
 * the thread that looks stands still itself (a machine that was suspended, a process that was stopped),
 * none is taken.
 */
export class Pulse {
  #turns = 0
  #stillLooks = 0

  /** One look. `turns`: how many there were, 0 = the thread is starting. True: it hangs; said once. */
  hangs(turns: number): boolean {
    if (turns === 0 || turns !== this.#turns) {
      this.#turns = turns
      this.#stillLooks = 0
      return false
    }
    return ++this.#stillLooks === STILL_LOOKS_MAX
  }
}
