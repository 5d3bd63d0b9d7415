import type { Libc } from './libc.ts'

const EFD_NONBLOCK = 0x800
const EFD_CLOEXEC = 0x80000
const EVENT_OCTETS = 8

/**
 * How one thread wakes another that sleeps in `poll` or is busy: a flag in shared memory that is looked
 * at between batches, and an eventfd that ends the sleep.
 */
export interface WakeCall {
  readonly fd: number
  /** One word, on a SharedArrayBuffer: 1 = called. */
  readonly flag: Int32Array
}

/** The side that calls; it opens the eventfd. */
export class Waker implements WakeCall {
  readonly fd: number
  readonly flag: Int32Array
  readonly #libc: Libc
  readonly #one: Uint8Array
  readonly #address: number

  constructor(libc: Libc) {
    this.#libc = libc
    this.flag = new Int32Array(new SharedArrayBuffer(4))
    this.fd = libc.eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
    if (this.fd === -1) throw new Error(`eventfd: errno ${libc.errno()}`)
    this.#one = Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0)
    this.#address = libc.addressOf(this.#one)
  }

  call(): void {
    // Called already and not seen yet: the fd is readable or the flag is about to be read.
    if (Atomics.exchange(this.flag, 0, 1) === 1) return
    this.#libc.write(this.fd, this.#address, this.#one.length)
  }

  close(): void {
    this.#libc.close(this.fd)
  }
}

/** The side that is called. */
export class WakeReader {
  readonly fd: number
  readonly #flag: Int32Array
  readonly #libc: Libc
  readonly #count: Uint8Array = new Uint8Array(EVENT_OCTETS)
  readonly #address: number

  constructor(libc: Libc, call: WakeCall) {
    this.#libc = libc
    this.fd = call.fd
    this.#flag = call.flag
    this.#address = libc.addressOf(this.#count)
  }

  /** Whether somebody called since the last time; looks at memory only. @hot */
  isCalled(): boolean {
    if (Atomics.load(this.#flag, 0) === 0) return false
    Atomics.store(this.#flag, 0, 0)
    return true
  }

  /** Makes the fd unreadable again. */
  clear(): void {
    this.#libc.read(this.fd, this.#address, EVENT_OCTETS)
  }
}
