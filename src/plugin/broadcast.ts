/**
 * A value that the control thread replaces as a whole and the data threads follow: how what a
 * directive loads gets to its handlers in all threads.
 *
 *     control: publish(value) ──postMessage──▶ data: follow(value), between two batches
 *
 * What lies in SharedArrayBuffers is shared, the rest is copied for each thread.
 */
export interface Broadcast<T> {
  /** On the control thread. Threads that start later get the last value. */
  publish(value: T): void
  /**
   * In a data thread: follows at once what was published up to now, for handlers that have found in
   * shared memory what only a later value explains. Elsewhere it does nothing.
   */
  catchUp(): void
}
