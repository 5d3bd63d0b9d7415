import { assert } from '../../base/assert.ts'
import type { Query } from '../message/query.ts'
import type { Response } from '../message/response.ts'
import { SIPHASH_KEY_OCTETS, sipHash24 } from './siphash.ts'

/** Version, reserved octets, timestamp and hash: RFC 9018 section 4. */
export const SERVER_COOKIE_OCTETS = 16

const CLIENT_COOKIE_OCTETS = 8
const COOKIE_VERSION = 1
const HASH_OFFSET = 8
const HASH_OCTETS = 8
/**
 * Limits on the age of a cookie (RFC 9018 section 4.3): one that is older than an hour, or 5
 * minutes ahead, is invalid.
 */
const AGE_MAX_SECONDS = 3600
const AHEAD_MAX_SECONDS = 300
/** A cookie below this age is returned unchanged. */
const FRESH_SECONDS = 1800

/**
 * Makes and checks server cookies (RFC 7873). Servers of other vendors with the same secret accept
 * them (RFC 9018):
 *
 *     octet   0        1..3       4..7         8..15
 *             version  reserved   timestamp    SipHash-2-4(client cookie | octets 0..7 | client address)
 *
 * The previous secret remains valid for checks, so that a rotation invalidates no client's cookie.
 */
export class CookieJar {
  #secret: Uint8Array
  #previous: Uint8Array | undefined = undefined
  /** Client cookie, first half of the server cookie, and address: at most 32 octets. */
  readonly #input: Uint8Array = new Uint8Array(CLIENT_COOKIE_OCTETS + HASH_OFFSET + 16)
  readonly #hash: Uint8Array = new Uint8Array(HASH_OCTETS)

  /** `secret`: 16 octets from a cryptographic source of randomness. */
  constructor(secret: Uint8Array) {
    assert(secret.length === SIPHASH_KEY_OCTETS, 'a cookie secret must have 16 octets')
    this.#secret = secret
  }

  /** Makes new cookies with `secret`. Cookies of the previous secret remain valid until the next call. */
  rotate(secret: Uint8Array): void {
    assert(secret.length === SIPHASH_KEY_OCTETS, 'a cookie secret must have 16 octets')
    this.#previous = this.#secret
    this.#secret = secret
  }

  /**
   * Sets `response.serverCookie` for a query with a COOKIE option. Returns true if the query has a
   * valid server cookie, which proves that its source address is real. `nowSeconds`: since 1970.
   */
  serve(query: Query, response: Response, nowSeconds: number): boolean {
    const cookie = response.serverCookie
    response.serverCookieOctets = SERVER_COOKIE_OCTETS
    const at = query.cookieOffset + CLIENT_COOKIE_OCTETS
    const age = this.#age(query, at, nowSeconds)
    const current = age !== -1 && this.#matches(this.#secret, query, at)
    if (current && age < FRESH_SECONDS && reservedIsZero(query.packet, at)) {
      for (let i = 0; i < SERVER_COOKIE_OCTETS; i++) cookie[i] = query.packet[at + i]!
      return true
    }
    cookie[0] = COOKIE_VERSION
    cookie[1] = cookie[2] = cookie[3] = 0
    cookie[4] = (nowSeconds >>> 24) & 0xff
    cookie[5] = (nowSeconds >>> 16) & 0xff
    cookie[6] = (nowSeconds >>> 8) & 0xff
    cookie[7] = nowSeconds & 0xff
    const octets = this.#fillInput(query, cookie, 0)
    sipHash24(this.#secret, this.#input, octets, cookie, HASH_OFFSET)
    if (current) return true
    const previous = this.#previous
    return age !== -1 && previous !== undefined && this.#matches(previous, query, at)
  }

  /**
   * Returns the age in seconds of a server cookie in our form, 0 if it is ahead of our clock; -1 if
   * the form or the age is invalid.
   */
  #age(query: Query, at: number, nowSeconds: number): number {
    const packet = query.packet
    if (query.cookieOctets !== CLIENT_COOKIE_OCTETS + SERVER_COOKIE_OCTETS) return -1
    if (packet[at] !== COOKIE_VERSION) return -1
    const stamp =
      (packet[at + 4]! << 24) | (packet[at + 5]! << 16) | (packet[at + 6]! << 8) | packet[at + 7]!
    // Serial number arithmetic (RFC 1982): the timestamp wraps in 2106.
    const age = (nowSeconds - stamp) | 0
    if (age > AGE_MAX_SECONDS || age < -AHEAD_MAX_SECONDS) return -1
    return Math.max(age, 0)
  }

  #matches(secret: Uint8Array, query: Query, at: number): boolean {
    const octets = this.#fillInput(query, query.packet, at)
    sipHash24(secret, this.#input, octets, this.#hash, 0)
    // No early exit: the time must not reveal how many octets are right.
    let difference = 0
    for (let i = 0; i < HASH_OCTETS; i++) {
      difference |= this.#hash[i]! ^ query.packet[at + HASH_OFFSET + i]!
    }
    return difference === 0
  }

  /** Writes the input of the hash and returns its length. */
  #fillInput(query: Query, cookie: Uint8Array, at: number): number {
    const input = this.#input
    let octets = 0
    for (let i = 0; i < CLIENT_COOKIE_OCTETS; i++) {
      input[octets++] = query.packet[query.cookieOffset + i]!
    }
    for (let i = 0; i < HASH_OFFSET; i++) input[octets++] = cookie[at + i]!
    const addressOctets = query.peerFamily === 1 ? 4 : 16
    for (let i = 0; i < addressOctets; i++) input[octets++] = query.peerAddress[i]!
    return octets
  }
}

/**
 * True if the reserved bits are zero. Cookies with other bits are valid, but ours have none, so
 * they are replaced.
 */
function reservedIsZero(packet: Uint8Array, at: number): boolean {
  return (packet[at + 1]! | packet[at + 2]! | packet[at + 3]!) === 0
}
