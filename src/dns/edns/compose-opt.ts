import * as options from '../iana/options.ts'
import * as types from '../iana/types.ts'
import type { Query } from '../message/query.ts'
import * as queries from '../message/query.ts'
import type { Response } from '../message/response.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { Protocol } = queries
const { RRType } = types
const { OptionCode } = options

/** An OPT record without options: root owner and the ten fixed octets. */
const OPT_OCTETS = 11
const OPTION_HEADER_OCTETS = 4
const CLIENT_COOKIE_OCTETS = 8

/** True if the reply gets an OPT record: the query had one (RFC 6891 section 7), or `forceEdns` is set. */
function hasOpt(query: Query, response: Response): boolean {
  return query.hasEdns || response.forceEdns
}

/**
 * Returns the minimum of octets of the OPT record: with the client subnet, the cookie and the
 * keepalive timeout. NSID and extended error are added only if they fit. 0 = no OPT. The result is
 * at most 80, so the record always fits after a question.
 */
export function optOctets(query: Query, response: Response): number {
  if (!hasOpt(query, response)) return 0
  let octets = OPT_OCTETS
  if (query.hasEcs) octets += OPTION_HEADER_OCTETS + ecsOctets(query)
  if (cookieGoesOut(query, response)) {
    octets += OPTION_HEADER_OCTETS + CLIENT_COOKIE_OCTETS + response.serverCookieOctets
  }
  if (keepaliveGoesOut(query, response)) octets += OPTION_HEADER_OCTETS + 2
  return octets
}

/** Returns the same as `optOctets`, with NSID and extended error. */
export function wholeOptOctets(query: Query, response: Response): number {
  let octets = optOctets(query, response)
  if (octets === 0) return 0
  if (response.nsid !== null && query.nsidRequested) {
    octets += OPTION_HEADER_OCTETS + response.nsid.length
  }
  if (response.edeCode >= 0) octets += OPTION_HEADER_OCTETS + 2 + response.edeText.length
  return octets
}

/**
 * Writes the OPT record at `out[start]` and returns the offset behind it. `end`: limit of the
 * message, at least `optOctets` behind `start`.
 */
export function composeOpt(
  query: Query,
  response: Response,
  out: Uint8Array,
  start: number,
  end: number,
): number {
  out[start] = 0
  out[start + 1] = 0
  out[start + 2] = RRType.OPT
  out[start + 3] = response.payloadOctets >> 8
  out[start + 4] = response.payloadOctets & 0xff
  out[start + 5] = response.rcode >> 4
  out[start + 6] = 0
  out[start + 7] = query.dnssecOk ? 0x80 : 0
  out[start + 8] = 0
  let at = start + OPT_OCTETS
  if (query.hasEcs) at = composeEcs(query, response.scopeBits, out, at)
  if (cookieGoesOut(query, response)) at = composeCookie(query, response, out, at)
  if (keepaliveGoesOut(query, response)) {
    at = composeOptionHeader(OptionCode.KEEPALIVE, 2, out, at)
    out[at++] = response.keepaliveDeciseconds >> 8
    out[at++] = response.keepaliveDeciseconds & 0xff
  }
  if (query.nsidRequested && response.nsid !== null) {
    at = composeNsid(response.nsid, out, at, end)
  }
  if (response.edeCode >= 0) at = composeEde(response, out, at, end)
  const rdataOctets = at - start - OPT_OCTETS
  out[start + 9] = rdataOctets >> 8
  out[start + 10] = rdataOctets & 0xff
  return at
}

function composeOptionHeader(code: number, octets: number, out: Uint8Array, at: number): number {
  out[at] = code >> 8
  out[at + 1] = code & 0xff
  out[at + 2] = octets >> 8
  out[at + 3] = octets & 0xff
  return at + OPTION_HEADER_OCTETS
}

function ecsOctets(query: Query): number {
  return 4 + ((query.ecsSourceBits + 7) >> 3)
}

/** Writes family, source and address as in the query: RFC 7871 section 7.2.1. */
function composeEcs(query: Query, scopeBits: number, out: Uint8Array, start: number): number {
  const octets = ecsOctets(query)
  let at = composeOptionHeader(OptionCode.ECS, octets, out, start)
  out[at++] = 0
  out[at++] = query.ecsFamily
  out[at++] = query.ecsSourceBits
  // The reply to a client that hides its address (source 0) must have scope 0: section 7.1.3.
  out[at++] = query.ecsSourceBits === 0 ? 0 : scopeBits
  for (let i = 0; i < octets - 4; i++) out[at++] = query.ecsAddress[i]!
  return at
}

/**
 * True if the reply has a cookie. Without a server cookie it has none: a client cookie alone would
 * look like an echo.
 */
function cookieGoesOut(query: Query, response: Response): boolean {
  return query.cookieOctets !== 0 && response.serverCookieOctets !== 0
}

function composeCookie(query: Query, response: Response, out: Uint8Array, start: number): number {
  const octets = CLIENT_COOKIE_OCTETS + response.serverCookieOctets
  let at = composeOptionHeader(OptionCode.COOKIE, octets, out, start)
  for (let i = 0; i < CLIENT_COOKIE_OCTETS; i++) out[at++] = query.packet[query.cookieOffset + i]!
  for (let i = 0; i < response.serverCookieOctets; i++) out[at++] = response.serverCookie[i]!
  return at
}

/** True if the reply has a keepalive timeout. A server may send it only over TCP: RFC 7828 section 3.2.2. */
function keepaliveGoesOut(query: Query, response: Response): boolean {
  return (
    query.keepaliveRequested &&
    query.protocol === Protocol.Tcp &&
    response.keepaliveDeciseconds >= 0
  )
}

function composeNsid(nsid: Uint8Array, out: Uint8Array, start: number, end: number): number {
  if (start + OPTION_HEADER_OCTETS + nsid.length > end) return start
  let at = composeOptionHeader(OptionCode.NSID, nsid.length, out, start)
  for (let i = 0; i < nsid.length; i++) out[at++] = nsid[i]!
  return at
}

/**
 * Writes the extended error. Omits the text if it does not fit: the code alone still explains the
 * error (RFC 8914).
 */
function composeEde(response: Response, out: Uint8Array, start: number, end: number): number {
  const room = end - start - OPTION_HEADER_OCTETS - 2
  if (room < 0) return start
  const textOctets = response.edeText.length <= room ? response.edeText.length : 0
  let at = composeOptionHeader(OptionCode.EDE, 2 + textOctets, out, start)
  out[at++] = response.edeCode >> 8
  out[at++] = response.edeCode & 0xff
  for (let i = 0; i < textOctets; i++) out[at++] = response.edeText[i]!
  return at
}
