import type { Query } from '../message/query.ts'
import type { Response } from '../message/response.ts'
import type { CookieSecrets } from './cookie-secrets.ts'
import { sipHash24 } from './siphash.ts'

/** Version, reserved octets, timestamp and hash: RFC 9018 section 4. */
export const SERVER_COOKIE_OCTETS = 16

const CLIENT_COOKIE_OCTETS = 8
const COOKIE_VERSION = 1
const HASH_OFFSET = 8
const HASH_OCTETS = 8
/** Offset of the client address in the input of the hash. */
const ADDRESS_OFFSET = CLIENT_COOKIE_OCTETS + HASH_OFFSET
/** The longest input, with an IPv6 address, and the block of zeros behind it. */
const INPUT_WORDS = (ADDRESS_OFFSET + 16 + 8) / 4
/**
 * Version and reserved bits of a cookie, the lowest octet first. Cookies with other reserved bits are valid, but
 * ours have none, so they are replaced.
 */
const HEAD_WORD = COOKIE_VERSION
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
 * The first secret makes cookies. Those of the others are valid, so that a rollover invalidates no client's cookie.
 */
export class CookieJar {
  readonly #secrets: CookieSecrets
  /** Input of the hash: client cookie, first half of the server cookie, address, zeros to the end of a block. */
  readonly #input = new Int32Array(INPUT_WORDS)
  readonly #hash = new Int32Array(HASH_OCTETS / 4)

  constructor(secrets: CookieSecrets) {
    this.#secrets = secrets
  }

  /**
   * Sets `response.serverCookie` for a query with a COOKIE option. Returns true if the query has a
   * valid server cookie, which proves that its source address is real. `nowSeconds`: since 1970.
   * @hot
   */
  serve(query: Query, response: Response, nowSeconds: number): boolean {
    const cookie = response.serverCookie
    response.serverCookieOctets = SERVER_COOKIE_OCTETS
    const { packet } = query
    const at = query.cookieOffset + CLIENT_COOKIE_OCTETS
    const octets = this.#fillInput(query)
    const age = ageOf(query, at, nowSeconds)
    const { first } = this.#secrets
    const key = this.#secrets.keyAt(first)
    const isCurrent = age !== -1 && this.#matches(key, packet, at, octets)
    if (isCurrent && age < FRESH_SECONDS && this.#input[2] === HEAD_WORD) {
      for (let i = 0; i < SERVER_COOKIE_OCTETS; i++) cookie[i] = packet[at + i]!
      return true
    }
    const isProved = isCurrent || (age !== -1 && this.#matchesOther(first, packet, at, octets))
    this.#make(key, cookie, octets, nowSeconds)
    return isProved
  }

  #make(key: Int32Array, cookie: Uint8Array, octets: number, nowSeconds: number): void {
    const input = this.#input
    cookie[0] = COOKIE_VERSION
    cookie[1] = cookie[2] = cookie[3] = 0
    cookie[4] = nowSeconds >>> 24
    cookie[5] = nowSeconds >>> 16
    cookie[6] = nowSeconds >>> 8
    cookie[7] = nowSeconds
    input[2] = HEAD_WORD
    input[3] = wordAt(cookie, 4)
    sipHash24(key, input, octets, this.#hash)
    for (let i = 0; i < HASH_OCTETS; i++) {
      cookie[HASH_OFFSET + i] = this.#hash[i >> 2]! >> ((i & 3) << 3)
    }
  }

  #matchesOther(first: number, packet: Uint8Array, at: number, octets: number): boolean {
    const end = this.#secrets.endOf(first)
    for (let place = first + 1; place < end; place++) {
      if (this.#matches(this.#secrets.keyAt(place), packet, at, octets)) return true
    }
    return false
  }

  /** Whether the server cookie at `packet[at]` has the hash that `key` gives. */
  #matches(key: Int32Array, packet: Uint8Array, at: number, octets: number): boolean {
    const input = this.#input
    const hash = this.#hash
    input[2] = wordAt(packet, at)
    input[3] = wordAt(packet, at + 4)
    sipHash24(key, input, octets, hash)
    // No early exit: the time must not reveal how many octets are right.
    const low = hash[0]! ^ wordAt(packet, at + HASH_OFFSET)
    const high = hash[1]! ^ wordAt(packet, at + HASH_OFFSET + 4)
    return (low | high) === 0
  }

  /** Writes client cookie and address into the input of the hash. Returns the octets of the input. */
  #fillInput({ packet, cookieOffset, peerAddress, peerFamily }: Query): number {
    const input = this.#input
    input[0] = wordAt(packet, cookieOffset)
    input[1] = wordAt(packet, cookieOffset + 4)
    input[4] = wordAt(peerAddress, 0)
    if (peerFamily === 1) {
      input[5] = 0
      return ADDRESS_OFFSET + 4
    }
    for (let i = 1; i < 4; i++) input[4 + i] = wordAt(peerAddress, i * 4)
    return ADDRESS_OFFSET + 16
  }
}

/**
 * Returns the age in seconds of a server cookie in our form, 0 if it is ahead of our clock; -1 if
 * the form or the age is invalid.
 */
function ageOf({ packet, cookieOctets }: Query, at: number, nowSeconds: number): number {
  if (cookieOctets !== CLIENT_COOKIE_OCTETS + SERVER_COOKIE_OCTETS) return -1
  if (packet[at] !== COOKIE_VERSION) return -1
  const stamp =
    (packet[at + 4]! << 24) | (packet[at + 5]! << 16) | (packet[at + 6]! << 8) | packet[at + 7]!
  // Serial number arithmetic (RFC 1982): the timestamp wraps in 2106.
  const age = (nowSeconds - stamp) | 0
  if (age > AGE_MAX_SECONDS || age < -AHEAD_MAX_SECONDS) return -1
  return Math.max(age, 0)
}

/** Reads four octets, the lowest first. */
function wordAt(octets: Uint8Array, at: number): number {
  return octets[at]! | (octets[at + 1]! << 8) | (octets[at + 2]! << 16) | (octets[at + 3]! << 24)
}
