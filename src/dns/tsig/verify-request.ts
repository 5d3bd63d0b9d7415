import { Rcode } from '../iana/rcodes.ts'
import { findAlgorithm, type TsigAlgorithm } from './algorithm.ts'
import type { TsigKey, TsigKeyring } from './key.ts'
import { digestVariables, equalMacs, startMac } from './mac.ts'
import { parseTsig, type TsigRecord, unsignedMessage } from './record.ts'
import { ReplySigner } from './reply-signer.ts'

/** A shorter MAC is rejected without a check (RFC 8945 section 5.2.2.1). */
const MAC_OCTETS_MIN = 10

/** The result of checking a signed request. */
export interface VerifiedRequest {
  /** The key of the sender, if `error` is 0, BADTIME or BADTRUNC. */
  readonly key: TsigKey | undefined
  /** 0 = authentic and current; else the TSIG error of the reply, which has rcode NOTAUTH. */
  readonly error: number
  readonly signer: ReplySigner
  readonly record: TsigRecord
}

/** A signed request whose key and algorithm are known; its MAC is not checked yet. */
interface SignedRequest {
  readonly record: TsigRecord
  readonly key: TsigKey
  readonly algorithm: TsigAlgorithm
}

/**
 * Checks the request whose TSIG record begins at `offset`: key, MAC, time and length of the MAC, in
 * that order (RFC 8945 section 5.2). Returns undefined if it is malformed: FORMERR. Accepts only
 * full-length MACs. Accepts any supported algorithm, as CoreDNS does.
 */
export function verifyRequest(
  packet: Uint8Array,
  offset: number,
  octets: number,
  keyring: TsigKeyring,
  nowSeconds: number,
): VerifiedRequest | undefined {
  const request = readSignedRequest(packet, offset, octets, keyring)
  if (request === undefined || 'signer' in request) return request
  return verifyMac(packet, offset, request, nowSeconds)
}

/** Runs the part of `verifyRequest` that needs no MAC; returns a SignedRequest if `verifyMac` must follow. */
export function readSignedRequest(
  packet: Uint8Array,
  offset: number,
  octets: number,
  keyring: TsigKeyring,
): SignedRequest | VerifiedRequest | undefined {
  const record = parseTsig(packet, offset, octets)
  if (record === undefined) return undefined
  const key = keyring.find(record.keyName)
  const algorithm = findAlgorithm(record.algorithmName)
  if (key === undefined || algorithm === undefined) return refused(record, Rcode.BADKEY)
  const least = Math.max(MAC_OCTETS_MIN, algorithm.macOctets / 2)
  if (record.mac.length < least || record.mac.length > algorithm.macOctets) return undefined
  return { record, key, algorithm }
}

/** Runs the rest of `verifyRequest`. */
export function verifyMac(
  packet: Uint8Array,
  offset: number,
  { record, key, algorithm }: SignedRequest,
  nowSeconds: number,
): VerifiedRequest {
  const hmac = startMac(key, algorithm)
  hmac.update(unsignedMessage(packet, offset, record.originalId))
  digestVariables(hmac, record)
  const mac = hmac.digest().subarray(0, record.mac.length)
  if (!equalMacs(mac, record.mac)) return refused(record, BADSIG)
  const error = tsigErrorOf(record, algorithm, nowSeconds)
  return { key, error, record, signer: new ReplySigner(record, { key, algorithm }, error) }
}

/** The code of a bad MAC; as an rcode of EDNS the same number is BADVERS. */
export const BADSIG = 16

function tsigErrorOf(record: TsigRecord, algorithm: TsigAlgorithm, nowSeconds: number): number {
  if (Math.abs(nowSeconds - record.timeSeconds) > record.fudgeSeconds) return Rcode.BADTIME
  return record.mac.length < algorithm.macOctets ? Rcode.BADTRUNC : 0
}

/**
 * Returns the result for a request whose sender is not authenticated. Its reply is not signed (RFC
 * 8945 sections 5.2.1, 5.2.2).
 */
function refused(record: TsigRecord, error: number): VerifiedRequest {
  return { key: undefined, error, record, signer: new ReplySigner(record, undefined, error) }
}

/** Returns the name of a TSIG error for logs. */
export function printTsigError(error: number): string {
  if (error === BADSIG) return 'BADSIG'
  if (error === Rcode.BADKEY) return 'BADKEY'
  if (error === Rcode.BADTIME) return 'BADTIME'
  return error === Rcode.BADTRUNC ? 'BADTRUNC' : `error ${error}`
}
