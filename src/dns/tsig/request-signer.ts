import type { Hmac } from 'node:crypto'
import { equalNames } from '../name/name.ts'
import type { TsigKey } from './key.ts'
import { digestMac, digestTimers, digestVariables, equalMacs, startMac } from './mac.ts'
import {
  appendTsig,
  findTsig,
  parseTsig,
  type TsigRecord,
  tsigOctets,
  unsignedMessage,
} from './record.ts'
import { FUDGE_SECONDS } from './reply-signer.ts'
import { printTsigError } from './verify-request.ts'

/** Maximum of messages of a stream without a signature between two signed ones (RFC 8945 section 5.3.1). */
const UNSIGNED_MAX = 99

const NO_OCTETS = new Uint8Array(0)

/** Signs a request of this server, and checks the messages of the reply. */
export class RequestSigner {
  readonly #key: TsigKey
  #hmac: Hmac | undefined
  /** MAC of the request, or of the last valid message. */
  #priorMac: Uint8Array = NO_OCTETS
  #isFirst = true
  #unsigned = 0

  constructor(key: TsigKey) {
    this.#key = key
  }

  /** False while no signature covers the last message yet: the stream must not end with it. */
  get isSettled(): boolean {
    return this.#unsigned === 0 && !this.#isFirst
  }

  /** Returns the message with its TSIG record. */
  sign(message: Uint8Array, nowSeconds: number): Uint8Array {
    const { name: keyName, algorithm } = this.#key
    const { name: algorithmName, macOctets } = algorithm
    const record = {
      keyName,
      algorithmName,
      timeSeconds: nowSeconds,
      fudgeSeconds: FUDGE_SECONDS,
      error: 0,
      other: NO_OCTETS,
    }
    const hmac = startMac(this.#key, algorithm)
    hmac.update(message)
    digestVariables(hmac, record)
    const mac = hmac.digest()
    this.#restart(mac)
    this.#isFirst = true
    this.#unsigned = 0
    const signed = new Uint8Array(message.length + tsigOctets(keyName, algorithmName, macOctets, 0))
    signed.set(message)
    const originalId = (message[0]! << 8) | message[1]!
    appendTsig(signed, message.length, { ...record, mac, originalId })
    return signed
  }

  /**
   * Checks the next message of the reply; returns what is wrong with it, '' = nothing. After an
   * invalid message, the caller can check another one in its place.
   */
  verify(message: Uint8Array, nowSeconds: number): string {
    const offset = findTsig(message, message.length)
    if (offset === -1) return 'the message is malformed'
    if (offset === 0) return this.#takeUnsigned(message)
    const record = parseTsig(message, offset, message.length)
    if (record === undefined) return 'the TSIG record is malformed'
    const fault = this.#faultOf(record, message, offset)
    if (fault !== '') return fault
    if (Math.abs(nowSeconds - record.timeSeconds) > record.fudgeSeconds) {
      this.#restart(this.#priorMac)
      return `the time of the signature differs by ${Math.round(nowSeconds - record.timeSeconds)} s`
    }
    this.#restart(record.mac)
    this.#isFirst = false
    this.#unsigned = 0
    return ''
  }

  #takeUnsigned(message: Uint8Array): string {
    if (this.#isFirst) return 'the reply is not signed'
    if (++this.#unsigned > UNSIGNED_MAX) return `more than ${UNSIGNED_MAX} messages are not signed`
    this.#hmac!.update(message)
    return ''
  }

  #faultOf(record: TsigRecord, message: Uint8Array, offset: number): string {
    const { name, algorithm } = this.#key
    if (!equalNames(record.keyName, name)) return 'the reply is signed with another key'
    if (!equalNames(record.algorithmName, algorithm.name)) {
      return 'the reply is signed with another algorithm'
    }
    if (record.error !== 0) return `the peer replied ${printTsigError(record.error)}`
    const hmac = this.#hmac!
    hmac.update(unsignedMessage(message, offset, record.originalId))
    if (this.#isFirst) digestVariables(hmac, record)
    else digestTimers(hmac, record)
    if (equalMacs(hmac.digest(), record.mac)) return ''
    // A finished digest accepts no more data.
    this.#restart(this.#priorMac)
    return 'the signature is wrong'
  }

  /** Starts the digest of the next messages with this MAC. */
  #restart(mac: Uint8Array): void {
    this.#priorMac = mac
    this.#hmac = startMac(this.#key, this.#key.algorithm)
    digestMac(this.#hmac, mac)
  }
}
