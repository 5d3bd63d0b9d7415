import type { Libc } from './libc.ts'

const EFD_NONBLOCK = 0x800
const EFD_CLOEXEC = 0x80000
const EVENT_OCTETS = 8

/**
 * How one thread wakes another that sleeps in `poll` or is busy: a flag in shared memory, which is
 * checked between batches, and an eventfd, which ends the sleep.
 */
export interface WakeCall {
  readonly fd: number
  /** Two 32-bit integers on a SharedArrayBuffer: 1 = called; number of checks of the thread. */
  readonly flag: Int32Array
}

const CALLED = 0
const LOOKS = 1

/** The calling side, which opens the eventfd. */
export class Waker implements WakeCall {
  readonly fd: number
  readonly flag: Int32Array
  readonly #libc: Libc
  readonly #one: Uint8Array
  readonly #address: number

  constructor(libc: Libc) {
    this.#libc = libc
    this.flag = new Int32Array(new SharedArrayBuffer(8))
    this.fd = libc.eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
    if (this.fd === -1) throw new Error(`eventfd: errno ${libc.errno()}`)
    this.#one = Uint8Array.of(1, 0, 0, 0, 0, 0, 0, 0)
    this.#address = libc.addressOf(this.#one)
  }

  /** Number of checks of the thread. Does not change while the thread hangs. Wraps around. */
  get looks(): number {
    return Atomics.load(this.flag, LOOKS)
  }

  call(): void {
    // An earlier call is not handled yet: the fd is readable, or the thread is about to check the flag.
    if (Atomics.exchange(this.flag, CALLED, 1) === 1) return
    this.#libc.write(this.fd, this.#address, this.#one.length)
  }

  close(): void {
    this.#libc.close(this.fd)
  }
}

/** The called side. */
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

  /** Whether another thread has called since the last time. Reads memory only. @hot */
  isCalled(): boolean {
    this.#flag[LOOKS]! += 1
    if (Atomics.load(this.#flag, CALLED) === 0) return false
    Atomics.store(this.#flag, CALLED, 0)
    return true
  }

  /** Makes the fd unreadable again. */
  clear(): void {
    this.#libc.read(this.fd, this.#address, EVENT_OCTETS)
  }
}
