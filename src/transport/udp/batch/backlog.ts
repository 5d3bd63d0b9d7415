import type { Layout } from './layout.ts'
import * as layouts from './layout.ts'
import type { Libc } from './libc.ts'

const { BATCH, CONTROL_OCTETS, HEADER_CONTROLLEN, UNIT_CONTROL } = layouts

const SOL_SOCKET = 1
/** Also the type of the message with a datagram's time of arrival (SCM_TIMESTAMPNS, socket(7)). */
const SO_TIMESTAMPNS = 35
/** cmsg_len 0..7, cmsg_level 8, cmsg_type 12, then `struct timespec`: tv_sec 16..23, tv_nsec 24..31. */
const STAMP_OCTETS = 32

/** Full batches in a row that are a backlog: 4096 datagrams, of the ten thousand that a socket holds. */
export const BACKLOG_BATCHES = 64
/** A backlog is over when no batch was full for so long. */
const CALM_MS = 1000

export interface BacklogOptions {
  /** Datagrams that waited longer are late. */
  readonly maxAgeMs: number
  /** The time of the system's clock, in ms since 1970; default: Date.now. */
  readonly nowMs?: () => number
}

/**
 * Finds the datagrams of a socket that waited too long, while datagrams arrive faster than they are
 * answered. Their clients have given up or have asked again, and an answer to them delays those
 * that still wait. Only during a backlog does the kernel note times of arrival: that costs it time
 * for every datagram. Those that arrived before it began to are not late.
 */
export class Backlog {
  readonly #libc: Libc
  readonly #layout: Layout
  readonly #fd: number
  readonly #maxAgeMs: number
  readonly #nowMs: () => number
  /** 1 = the datagram in this slot is late. */
  readonly #isLate = new Uint8Array(BATCH)
  #fullBatches = 0
  #isNoting = false
  #fullMs = 0

  constructor(libc: Libc, layout: Layout, fd: number, { maxAgeMs, nowMs }: BacklogOptions) {
    this.#libc = libc
    this.#layout = layout
    this.#fd = fd
    this.#maxAgeMs = maxAgeMs
    this.#nowMs = nowMs ?? Date.now
    // A thread that had the socket before may have ended during a backlog.
    this.#setNoting(false)
  }

  /** Whether the kernel notes times of arrival, so that some datagrams may be late. */
  get isNoting(): boolean {
    return this.#isNoting
  }

  isLate(slot: number): boolean {
    return this.#isLate[slot] === 1
  }

  /** Call it after each `receive`, with the number of filled slots. @hot */
  note(count: number): void {
    if (this.#isNoting) this.#findLate(count)
    else if (count < BATCH) this.#fullBatches = 0
    else if (++this.#fullBatches === BACKLOG_BATCHES) this.#begin()
  }

  #begin(): void {
    // Without times (an old emulation of the kernel), nothing is late.
    this.#setNoting(true)
    this.#isLate.fill(0)
    this.#fullMs = this.#nowMs()
  }

  #findLate(count: number): void {
    const nowMs = this.#nowMs()
    if (count === BATCH) this.#fullMs = nowMs
    // The clock may have been set back.
    else if (Math.abs(nowMs - this.#fullMs) > CALM_MS) {
      this.#setNoting(false)
      this.#fullBatches = 0
    }
    for (let slot = 0; slot < count; slot++) {
      const arrivedMs = this.#takeStamp(slot)
      this.#isLate[slot] = arrivedMs !== 0 && nowMs - arrivedMs > this.#maxAgeMs ? 1 : 0
    }
  }

  /**
   * Returns the time of arrival in ms, 0 = unknown, and removes its message, which is the first one:
   * nothing else expects it.
   */
  #takeStamp(slot: number): number {
    const { words, octets } = this.#layout
    const length = words[(this.#layout.receiveHeader(slot) + HEADER_CONTROLLEN) >> 2]!
    const control = this.#layout.unit(slot) + UNIT_CONTROL
    const at = control >> 2
    if (length < STAMP_OCTETS || words[at + 2] !== SOL_SOCKET || words[at + 3] !== SO_TIMESTAMPNS) {
      return 0
    }
    const seconds = words[at + 4]! + words[at + 5]! * 0x1_0000_0000
    const arrivedMs = seconds * 1000 + words[at + 6]! / 1e6
    octets.copyWithin(control, control + STAMP_OCTETS, control + CONTROL_OCTETS)
    octets.fill(0, control + CONTROL_OCTETS - STAMP_OCTETS, control + CONTROL_OCTETS)
    return arrivedMs
  }

  #setNoting(isNoting: boolean): void {
    const { words, base, scratch } = this.#layout
    words[scratch >> 2] = isNoting ? 1 : 0
    const result = this.#libc.setsockopt(this.#fd, SOL_SOCKET, SO_TIMESTAMPNS, base + scratch, 4)
    this.#isNoting = isNoting && result === 0
  }
}
