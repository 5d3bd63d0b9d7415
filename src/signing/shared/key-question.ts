import { randomBytes } from 'node:crypto'
import { NAME_OCTETS_MAX } from '../../dns/name/name.ts'

/** Octets of a nonce and of a digest, and of each as a label: its length, then hexadecimal digits. */
export const TOKEN_OCTETS = 16
const LABEL_OCTETS = 1 + 2 * TOKEN_OCTETS
/** The label above a zone below which its keys are asked for. */
const RESERVED = Buffer.from('\x0d_sextant-keys', 'latin1')
const HEAD_OCTETS = 2 * LABEL_OCTETS + RESERVED.length
const HEX = /^[0-9a-f]+$/

/** A question for the keys of a zone: the name `DIGEST.NONCE._sextant-keys.ZONE`. */
export interface KeyQuestion {
  /** Lower-case wire form. */
  readonly zone: Uint8Array
  /** Random octets, which the reply is bound to. */
  readonly nonce: Uint8Array
  /** Of what the asking server has; it gets no keys if they are the same. */
  readonly digest: Uint8Array
}

export function createNonce(): Uint8Array {
  return randomBytes(TOKEN_OCTETS)
}

/** Returns the name that is asked for; undefined = the name of the zone is too long. */
export function composeKeyQuestion({ zone, nonce, digest }: KeyQuestion): Uint8Array | undefined {
  if (HEAD_OCTETS + zone.length > NAME_OCTETS_MAX) return undefined
  return Buffer.concat([labelOf(digest), labelOf(nonce), RESERVED, zone])
}

/** Returns the question that a name asks; undefined = none. `name`: lower-case wire form. */
export function scanKeyQuestion(name: Uint8Array): KeyQuestion | undefined {
  const octets = Buffer.from(name.buffer, name.byteOffset, name.byteLength)
  if (octets.length <= HEAD_OCTETS) return undefined
  if (!octets.subarray(2 * LABEL_OCTETS, HEAD_OCTETS).equals(RESERVED)) return undefined
  const [digest, nonce] = [tokenAt(octets, 0), tokenAt(octets, LABEL_OCTETS)]
  if (digest === undefined || nonce === undefined) return undefined
  return { zone: Uint8Array.from(octets.subarray(HEAD_OCTETS)), nonce, digest }
}

function labelOf(token: Uint8Array): Buffer {
  const text = Buffer.from(token).toString('hex')
  return Buffer.concat([Buffer.of(text.length), Buffer.from(text, 'latin1')])
}

function tokenAt(name: Buffer, at: number): Uint8Array | undefined {
  const text = name.toString('latin1', at + 1, at + LABEL_OCTETS)
  return name[at] === LABEL_OCTETS - 1 && HEX.test(text) ? Buffer.from(text, 'hex') : undefined
}
