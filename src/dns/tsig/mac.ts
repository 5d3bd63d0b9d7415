import { createHmac, type Hmac, timingSafeEqual } from 'node:crypto'
import { RRClass } from '../iana/classes.ts'
import { OctetWriter } from '../rdata/octets.ts'
import type { TsigAlgorithm } from './algorithm.ts'
import type { TsigKey } from './key.ts'
import { putTime, type TsigRecord } from './record.ts'

/**
 * Starts a MAC (RFC 8945 section 4.3). It covers:
 *
 *     request         message, variables
 *     reply           MAC of the request, message, variables
 *     later replies   MAC before, messages since, timers
 */
export function startMac(key: TsigKey, algorithm: TsigAlgorithm): Hmac {
  return createHmac(algorithm.hash, key.secret)
}

/** Adds an earlier MAC to the digest. */
export function digestMac(hmac: Hmac, mac: Uint8Array): void {
  hmac.update(Uint8Array.of(mac.length >> 8, mac.length & 0xff))
  hmac.update(mac)
}

/** Adds all covered fields of the record to the digest. */
export function digestVariables(hmac: Hmac, tsig: Omit<TsigRecord, 'mac' | 'originalId'>): void {
  const output = new OctetWriter()
  output.put(tsig.keyName)
  output.u16(RRClass.ANY)
  output.u32(0)
  output.put(tsig.algorithmName)
  putTime(output, tsig.timeSeconds)
  output.u16(tsig.fudgeSeconds)
  output.u16(tsig.error)
  output.u16(tsig.other.length)
  output.put(tsig.other)
  hmac.update(output.octets())
}

/** Adds the covered fields of later records of a stream to the digest. */
export function digestTimers(
  hmac: Hmac,
  { timeSeconds, fudgeSeconds }: Pick<TsigRecord, 'timeSeconds' | 'fudgeSeconds'>,
): void {
  const output = new OctetWriter()
  putTime(output, timeSeconds)
  output.u16(fudgeSeconds)
  hmac.update(output.octets())
}

/** Compares in constant time, so that the time does not reveal how many octets agree. */
export function equalMacs(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b)
}
