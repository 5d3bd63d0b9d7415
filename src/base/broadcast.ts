/**
 * A value that the control thread replaces as a whole and that data threads follow. It brings what
 * a directive loads to its handlers in all threads.
 *
 *     control: publish(value) ──postMessage──▶ data: follow(value), between two batches
 *
 * SharedArrayBuffers are shared; everything else is copied for each thread.
 */
export interface Broadcast<T> {
  /**
   * Called on the control thread. Threads that start later get the last value. `change`: what the other threads get
   * instead; `follow` must then be able to apply a change to the value before, and a value to no value.
   */
  publish(value: T, change?: T): void
  /**
   * Called in a data thread: applies what was published so far. A handler needs this if it finds
   * data in shared memory that only a later value describes. Does nothing on the control thread.
   */
  catchUp(): void
}
