import * as packets from '../../base/packet-memory.ts'
import { putOctets } from '../../base/packet-memory.ts'
import * as options from '../iana/options.ts'
import * as types from '../iana/types.ts'
import type { Query } from '../message/query.ts'
import * as queries from '../message/query.ts'
import type { Response } from '../message/response.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { packetView } = packets
const { Protocol } = queries
const { RRType } = types
const { OptionCode } = options

/** An OPT record without options: root owner and the ten fixed octets. */
const OPT_OCTETS = 11
const OPTION_HEADER_OCTETS = 4
const CLIENT_COOKIE_OCTETS = 8
/** Labels of the zone, kind of version, serial (RFC 9660 section 2). */
const ZONE_VERSION_OCTETS = 6
/** The kind of version: the serial of the SOA. */
const SOA_SERIAL = 0

/** True if the reply gets an OPT record: the query had one (RFC 6891 section 7), or `forceEdns` is set. */
function hasOpt(query: Query, response: Response): boolean {
  return query.hasEdns || response.forceEdns
}

/**
 * Returns the minimum of octets of the OPT record: with the client subnet, the cookie and the
 * keepalive timeout. The other options are added only if they fit. 0 = no OPT. The result is
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

/** Returns the same as `optOctets`, with the options that are left out if they do not fit. */
export function wholeOptOctets(query: Query, response: Response): number {
  let octets = optOctets(query, response)
  if (octets === 0) return 0
  if (response.nsid !== null && query.nsidRequested) {
    octets += OPTION_HEADER_OCTETS + response.nsid.length
  }
  if (response.reportAgent !== null) octets += OPTION_HEADER_OCTETS + response.reportAgent.length
  if (zoneVersionGoesOut(query, response)) octets += OPTION_HEADER_OCTETS + ZONE_VERSION_OCTETS
  if (response.edeCode >= 0) octets += OPTION_HEADER_OCTETS + 2 + response.edeText.length
  return octets
}

/**
 * Writes the OPT record at `start` of the packet memory and returns the offset behind it. `end`:
 * limit of the message, at least `optOctets` behind `start`. @hot
 */
export function composeOpt(query: Query, response: Response, start: number, end: number): number {
  // Root owner, type, size; upper bits of the rcode, version 0, flags, length.
  packetView.setInt32(start, (RRType.OPT << 8) | (response.payloadOctets >> 8))
  packetView.setInt32(start + 4, (response.payloadOctets << 24) | ((response.rcode >> 4) << 16))
  const dnssecOk = query.dnssecOk ? -0x8000_0000 : 0
  packetView.setInt32(start + 7, response.isCompact ? dnssecOk | 0x4000_0000 : dnssecOk)
  let at = start + OPT_OCTETS
  if (query.hasEcs) at = composeEcs(query, response.scopeBits, at)
  if (cookieGoesOut(query, response)) at = composeCookie(query, response, at)
  if (keepaliveGoesOut(query, response)) {
    at = composeOptionHeader(OptionCode.KEEPALIVE, 2, at)
    packetView.setInt16(at, response.keepaliveDeciseconds)
    at += 2
  }
  if (query.nsidRequested && response.nsid !== null) {
    at = composeOctets(OptionCode.NSID, response.nsid, at, end)
  }
  if (response.reportAgent !== null) {
    at = composeOctets(OptionCode.REPORT_CHANNEL, response.reportAgent, at, end)
  }
  if (zoneVersionGoesOut(query, response)) at = composeZoneVersion(response, at, end)
  if (response.edeCode >= 0) at = composeEde(response, at, end)
  packetView.setInt16(start + 9, at - start - OPT_OCTETS)
  return at
}

function composeOptionHeader(code: number, octets: number, at: number): number {
  packetView.setInt32(at, (code << 16) | octets)
  return at + OPTION_HEADER_OCTETS
}

function ecsOctets(query: Query): number {
  return 4 + ((query.ecsSourceBits + 7) >> 3)
}

/** Writes family, source and address as in the query: RFC 7871 section 7.2.1. */
function composeEcs(query: Query, scopeBits: number, start: number): number {
  const octets = ecsOctets(query)
  const at = composeOptionHeader(OptionCode.ECS, octets, start)
  // The reply to a client that hides its address (source 0) must have scope 0: section 7.1.3.
  const scope = query.ecsSourceBits === 0 ? 0 : scopeBits
  packetView.setInt32(at, (query.ecsFamily << 16) | (query.ecsSourceBits << 8) | scope)
  const end = at + octets
  // The last turn may write octets behind the option; what follows overwrites them.
  for (let to = at + 4; to < end; to += 4) {
    packetView.setInt32(to, query.ecsWords[(to - at - 4) >> 2]!, true)
  }
  return end
}

/**
 * True if the reply has a cookie. Without a server cookie it has none: a client cookie alone would
 * look like an echo.
 */
function cookieGoesOut(query: Query, response: Response): boolean {
  return query.cookieOctets !== 0 && response.serverCookieOctets !== 0
}

function composeCookie(query: Query, response: Response, start: number): number {
  const octets = CLIENT_COOKIE_OCTETS + response.serverCookieOctets
  const at = composeOptionHeader(OptionCode.COOKIE, octets, start)
  putOctets(query.packet, query.cookieOffset, CLIENT_COOKIE_OCTETS, at)
  putOctets(response.serverCookie, 0, response.serverCookieOctets, at + CLIENT_COOKIE_OCTETS)
  return at + octets
}

/** True if the reply has a keepalive timeout. A server may send it only over TCP: RFC 7828 section 3.2.2. */
function keepaliveGoesOut(query: Query, response: Response): boolean {
  return (
    query.keepaliveRequested &&
    query.protocol !== Protocol.Udp &&
    response.keepaliveDeciseconds >= 0
  )
}

/** Writes an option if it fits. */
function composeOctets(code: number, data: Uint8Array, start: number, end: number): number {
  if (start + OPTION_HEADER_OCTETS + data.length > end) return start
  const at = composeOptionHeader(code, data.length, start)
  putOctets(data, 0, data.length, at)
  return at + data.length
}

function zoneVersionGoesOut(query: Query, response: Response): boolean {
  return query.zoneVersionRequested && response.zoneLabels >= 0
}

function composeZoneVersion(response: Response, start: number, end: number): number {
  if (start + OPTION_HEADER_OCTETS + ZONE_VERSION_OCTETS > end) return start
  const at = composeOptionHeader(OptionCode.ZONEVERSION, ZONE_VERSION_OCTETS, start)
  packetView.setInt16(at, (response.zoneLabels << 8) | SOA_SERIAL)
  packetView.setInt32(at + 2, response.zoneSerial)
  return at + ZONE_VERSION_OCTETS
}

/**
 * Writes the extended error. Omits the text if it does not fit: the code alone still explains the
 * error (RFC 8914).
 */
function composeEde(response: Response, start: number, end: number): number {
  const room = end - start - OPTION_HEADER_OCTETS - 2
  if (room < 0) return start
  const { edeText } = response
  const textOctets = edeText.length <= room ? edeText.length : 0
  const at = composeOptionHeader(OptionCode.EDE, 2 + textOctets, start)
  packetView.setInt16(at, response.edeCode)
  putOctets(edeText, 0, textOctets, at + 2)
  return at + 2 + textOctets
}
