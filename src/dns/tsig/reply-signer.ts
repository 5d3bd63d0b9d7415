import { Rcode } from '../iana/rcodes.ts'
import { OctetWriter } from '../rdata/octets.ts'
import type { TsigAlgorithm } from './algorithm.ts'
import type { TsigKey } from './key.ts'
import { digestMac, digestTimers, digestVariables, startMac } from './mac.ts'
import { appendTsig, putTime, type TsigRecord, tsigOctets } from './record.ts'

/** Number of seconds that a signature is valid (RFC 8945 section 10). */
export const FUDGE_SECONDS = 300
const TIME_OCTETS = 6
const NO_OCTETS = new Uint8Array(0)

/** The key and the algorithm that sign a reply. */
interface SigningKey {
  readonly key: TsigKey
  readonly algorithm: TsigAlgorithm
}

/** Appends a TSIG record to the reply to a signed request, or to each message of that reply. */
export class ReplySigner {
  /** Octets that the signature adds to each message. */
  readonly octets: number
  readonly #request: TsigRecord
  readonly #signing: SigningKey | undefined
  readonly #error: number
  #priorMac: Uint8Array
  #isFirst = true

  /** `signing` undefined: the record has no MAC. */
  constructor(request: TsigRecord, signing: SigningKey | undefined, error: number) {
    this.#request = request
    this.#signing = signing
    this.#error = error
    this.#priorMac = request.mac
    const macOctets = signing?.algorithm.macOctets ?? 0
    const otherOctets = error === Rcode.BADTIME ? TIME_OCTETS : 0
    this.octets = tsigOctets(request.keyName, request.algorithmName, macOctets, otherOctets)
  }

  /** Signs `message`, which must have space behind its `octets` octets; returns its new length. */
  sign(message: Uint8Array, octets: number, nowSeconds: number): number {
    const { keyName, algorithmName, timeSeconds } = this.#request
    const isBadTime = this.#error === Rcode.BADTIME
    const record = {
      keyName,
      algorithmName,
      // With BADTIME, the client needs its own time to check the MAC and learn ours (RFC 8945
      // section 5.2.3).
      timeSeconds: isBadTime ? timeSeconds : nowSeconds,
      fudgeSeconds: FUDGE_SECONDS,
      error: this.#error,
      other: isBadTime ? composeTime(nowSeconds) : NO_OCTETS,
    }
    const mac = this.#mac(message.subarray(0, octets), record)
    const originalId = (message[0]! << 8) | message[1]!
    return appendTsig(message, octets, { ...record, mac, originalId })
  }

  #mac(message: Uint8Array, record: Omit<TsigRecord, 'mac' | 'originalId'>): Uint8Array {
    if (this.#signing === undefined) return NO_OCTETS
    const hmac = startMac(this.#signing.key, this.#signing.algorithm)
    digestMac(hmac, this.#priorMac)
    hmac.update(message)
    if (this.#isFirst) digestVariables(hmac, record)
    else digestTimers(hmac, record)
    this.#isFirst = false
    this.#priorMac = hmac.digest()
    return this.#priorMac
  }
}

function composeTime(seconds: number): Uint8Array {
  const output = new OctetWriter()
  putTime(output, seconds)
  return output.octets()
}
