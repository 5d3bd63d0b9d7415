import type { AddressFamily } from '../../dns/text/address.ts'
import {
  ADDRESS_OCTETS_MAX,
  NUMBER_OCTETS_MAX,
  putAddress,
  putNumber,
  putThreeDigits,
  putWords,
  wordsOf,
} from '../../dns/text/put.ts'
import {
  ADDRESS,
  CLIENT_IPV6,
  DESTINATION_IPV6,
  DNSSEC_OK,
  FLAGS_MASK,
  FLAGS_SHIFT,
  HEAD,
  MANNER,
  NANOSECONDS,
  nameOctetsOfHead,
  OVER_TCP,
  opcodeOf,
  QUESTION,
  SECONDS,
  SILENT,
} from './entry.ts'
import * as memory from './memory.ts'
import { CLASSES, putBoolean, putFlags, putUnknown, RCODES, TYPES } from './mnemonics.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { entryOctets, entryWords } = memory

export const HOST_OCTETS_MAX = ADDRESS_OCTETS_MAX + 2
export const DURATION_OCTETS_MAX = NUMBER_OCTETS_MAX + 11

const DOT = 0x2e
const DIGIT_0 = 0x30
const OPEN = 0x5b
const CLOSE = 0x5d
const SECONDS_UNIT = 0x73

const UDP = wordsOf(Buffer.from('udp'))
const TCP = wordsOf(Buffer.from('tcp'))

/*
 * The printed fields of an entry. Each function writes to `out` from `at` on, and returns the
 * offset after its text. `entry` is the index of the entry in `entryWords`.
 */

export function putRcode(out: DataView, at: number, entry: number): number {
  const manner = entryWords[entry + MANNER]!
  if ((manner & SILENT) !== 0) return putUnknown(out, at)
  return RCODES.put(out, at, manner & 0xffff)
}

export function putReplyFlags(out: DataView, at: number, entry: number): number {
  const manner = entryWords[entry + MANNER]!
  if ((manner & SILENT) !== 0) return putUnknown(out, at)
  return putFlags(out, at, (manner >>> FLAGS_SHIFT) & FLAGS_MASK)
}

/** Seconds with up to nine decimals, without trailing zeros: `0.00003799s`, `2s`. @hot */
export function putDuration(out: DataView, at: number, entry: number): number {
  const nanoseconds = entryWords[entry + NANOSECONDS]!
  let to = putNumber(out, at, entryWords[entry + SECONDS]!)
  if (nanoseconds !== 0) {
    out.setUint8(to, DOT)
    const microseconds = (nanoseconds / 1000) | 0
    const wholeMs = (microseconds / 1000) | 0
    to = putThreeDigits(out, to + 1, wholeMs)
    to = putThreeDigits(out, to, (microseconds - wholeMs * 1000) | 0)
    to = putThreeDigits(out, to, (nanoseconds - microseconds * 1000) | 0)
    while (out.getUint8(to - 1) === DIGIT_0) to--
  }
  out.setUint8(to, SECONDS_UNIT)
  return to + 1
}

export function putClient(out: DataView, at: number, entry: number): number {
  const isIPv6 = (entryWords[entry + MANNER]! & CLIENT_IPV6) !== 0
  return putHost(out, at, (entry + ADDRESS) << 2, isIPv6 ? 2 : 1)
}

/** The query's destination address, for an entry that has it. */
export function putDestination(out: DataView, at: number, entry: number): number {
  const isIPv6 = (entryWords[entry + MANNER]! & DESTINATION_IPV6) !== 0
  const nameWords = (nameOctetsOfHead(entryWords[entry + HEAD]!) + 3) >> 2
  return putHost(out, at, nameStart(entry) + (nameWords << 2), isIPv6 ? 2 : 1)
}

/** `from`: offset in `entryOctets`. */
function putHost(out: DataView, at: number, from: number, family: AddressFamily): number {
  if (family === 1) return putAddress(out, at, entryOctets, 1, from)
  out.setUint8(at, OPEN)
  const end = putAddress(out, at + 1, entryOctets, family, from)
  out.setUint8(end, CLOSE)
  return end + 1
}

/** Offset of the name in `entryOctets`. */
export function nameStart(entry: number): number {
  const isIPv6 = (entryWords[entry + MANNER]! & CLIENT_IPV6) !== 0
  return (entry + ADDRESS + (isIPv6 ? 4 : 1)) << 2
}

export function putType(out: DataView, at: number, entry: number): number {
  return TYPES.put(out, at, entryWords[entry + QUESTION]! & 0xffff)
}

export function putClass(out: DataView, at: number, entry: number): number {
  return CLASSES.put(out, at, entryWords[entry + QUESTION]! >>> 16)
}

export function putProtocol(out: DataView, at: number, entry: number): number {
  return putWords(out, at, (entryWords[entry + MANNER]! & OVER_TCP) !== 0 ? TCP : UDP, 0, 3)
}

export function putOpcode(out: DataView, at: number, entry: number): number {
  return putNumber(out, at, opcodeOf(entryWords[entry + MANNER]!))
}

export function putDo(out: DataView, at: number, entry: number): number {
  return putBoolean(out, at, (entryWords[entry + MANNER]! & DNSSEC_OK) !== 0)
}
