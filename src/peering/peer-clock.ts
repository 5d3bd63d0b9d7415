import { randomBytes } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { OptionCode } from '../dns/iana/options.ts'
import type { Edns, EdnsOption } from '../dns/message/message.ts'

const CLIENT_COOKIE_OCTETS = 8
/** Client cookie, version, reserved octets, timestamp and hash (RFC 9018 section 4). */
const COOKIE_OCTETS = 24
const COOKIE_VERSION = 1
const TIMESTAMP_OFFSET = 12
/** Smaller changes of the difference are ignored: a cookie counts whole seconds, and the reply took time to arrive. */
const JITTER_MS = 3000
/** Minimum time between two changes: at each one, all hosts of the peer are merged again. */
const CHANGE_MS = 30_000

/** Returns an option to which a server adds its time of day: a client cookie (RFC 7873). */
export function cookieOption(): EdnsOption {
  return { code: OptionCode.COOKIE, data: randomBytes(CLIENT_COOKIE_OCTETS) }
}

/** Returns the Unix time modulo 2^32 in the server cookie of a reply (RFC 9018); undefined = it has none. */
export function readCookieTime(asked: EdnsOption, edns: Edns | undefined): number | undefined {
  const data = edns?.options.find(({ code }) => code === OptionCode.COOKIE)?.data
  if (data?.length !== COOKIE_OCTETS || data[CLIENT_COOKIE_OCTETS] !== COOKIE_VERSION)
    return undefined
  if (Buffer.compare(data.subarray(0, CLIENT_COOKIE_OCTETS), asked.data) !== 0) return undefined
  return new DataView(data.buffer, data.byteOffset).getUint32(TIMESTAMP_OFFSET)
}

/** The clock of a peer beside ours. */
export class PeerClock {
  #aheadMs: number | undefined
  /** Monotonic. */
  #changedMs = Number.NEGATIVE_INFINITY

  /** By how much it is ahead, in milliseconds; undefined = not known. */
  get aheadMs(): number | undefined {
    return this.#aheadMs
  }

  /**
   * Notes the time of day of a reply that arrived now. Returns true if the difference changed. Small changes count: the
   * clocks of two peers can differ from each other although neither differs from ours.
   */
  note(timeSeconds: number | undefined, clock: Pick<Clock, 'now' | 'monotonic'>): boolean {
    if (timeSeconds === undefined) return false
    const nowSeconds = Math.floor(clock.now() / 1000)
    // Serial number arithmetic (RFC 1982): the timestamp wraps in 2106.
    const aheadMs = ((timeSeconds - nowSeconds) | 0) * 1000
    return this.noteAhead(aheadMs, clock.monotonic())
  }

  /** As `note`, for a difference that was measured at `nowMs`, in monotonic milliseconds. */
  noteAhead(aheadMs: number, nowMs: number): boolean {
    if (Math.abs(aheadMs - (this.#aheadMs ?? 0)) < JITTER_MS) {
      this.#aheadMs ??= aheadMs
      return false
    }
    if (nowMs - this.#changedMs < CHANGE_MS) return false
    this.#changedMs = nowMs
    this.#aheadMs = aheadMs
    return true
  }
}
