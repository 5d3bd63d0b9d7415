import { randomBytes } from 'node:crypto'
import { OptionCode } from '../dns/iana/options.ts'
import type { Edns, EdnsOption } from '../dns/message/message.ts'

const CLIENT_COOKIE_OCTETS = 8
/** Client cookie, version, reserved octets, timestamp and hash (RFC 9018 section 4). */
const COOKIE_OCTETS = 24
const COOKIE_VERSION = 1
const TIMESTAMP_OFFSET = 12
/** A cookie has seconds, and is some time under way: a smaller change of the difference is no change. */
const JITTER_MS = 3000

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

  /** By how much it is ahead, in milliseconds; undefined = not known. */
  get aheadMs(): number | undefined {
    return this.#aheadMs
  }

  /**
   * Notes the time of day of a reply that arrived now. Returns true if the difference changed. Small changes count: the
   * clocks of two peers can differ from each other although neither differs from ours.
   */
  note(timeSeconds: number | undefined, nowMs: number): boolean {
    if (timeSeconds === undefined) return false
    const nowSeconds = Math.floor(nowMs / 1000)
    // Serial number arithmetic (RFC 1982): the timestamp wraps in 2106.
    const aheadMs = ((timeSeconds - nowSeconds) | 0) * 1000
    const before = this.#aheadMs
    if (before !== undefined && Math.abs(aheadMs - before) < JITTER_MS) return false
    this.#aheadMs = aheadMs
    return Math.abs(aheadMs - (before ?? 0)) >= JITTER_MS
  }
}
