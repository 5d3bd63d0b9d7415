import { type KeyObject, sign, verify } from 'node:crypto'
import { RRClass } from '../iana/classes.ts'
import { labelOffsets, lowerName } from '../name/name.ts'
import { schemeOf } from './algorithms.ts'
import { canonicalSet } from './canonical.ts'
import { publicKeyOf, type SigningKey } from './dnskey.ts'

/** Octets of RRSIG rdata before the signer's name (RFC 4034 section 3.1). */
const HEAD_OCTETS = 18
/** Owner, type, class, TTL and length before the rdata of a record, without the owner. */
const RECORD_OCTETS = 10

const { IN } = RRClass
const WILDCARD = Buffer.from('\x01*', 'latin1')

/** An RRset of class IN that a signature covers. */
export interface SignedSet {
  /** Wire form. In an answer that a wildcard made, the name of the answer. */
  readonly owner: Uint8Array
  readonly type: number
  readonly ttlSeconds: number
  /** Uncompressed, in any order. */
  readonly rdata: readonly Uint8Array[]
}

/** When a signature is valid, in seconds since the Unix epoch. */
export interface SignatureTimes {
  readonly inceptionSeconds: number
  readonly expirationSeconds: number
}

/** Returns the RRSIG rdata of a set. `signer`: apex of the zone, lower-case wire form. */
export function signSet(
  set: SignedSet,
  key: SigningKey,
  signer: Uint8Array,
  { inceptionSeconds, expirationSeconds }: SignatureTimes,
): Uint8Array {
  const head = Buffer.alloc(HEAD_OCTETS + signer.length)
  head.writeUInt16BE(set.type, 0)
  head[2] = key.algorithm
  head[3] = labelsOf(set.owner)
  head.writeUInt32BE(set.ttlSeconds, 4)
  head.writeUInt32BE(expirationSeconds % 2 ** 32, 8)
  head.writeUInt32BE(inceptionSeconds % 2 ** 32, 12)
  head.writeUInt16BE(key.tag, 16)
  head.set(signer, HEAD_OCTETS)
  const { hash } = schemeOf(key.algorithm)!
  return Buffer.concat([head, sign(hash, signedOctets(head, set), withEncoding(key.privateKey))])
}

/** True if a signature is right for a set and a key, whatever the time. `dnskey`: DNSKEY rdata. */
export function verifySet(set: SignedSet, rrsig: Uint8Array, dnskey: Uint8Array): boolean {
  const scheme = schemeOf(algorithmOf(rrsig))
  const start = HEAD_OCTETS + signerOf(rrsig).length
  if (scheme === undefined || rrsig.length <= start || coveredType(rrsig) !== set.type) return false
  if (labelsOf(set.owner) < rrsig[3]!) return false
  const head = Buffer.from(rrsig.subarray(0, start))
  head.set(lowerName(head.subarray(HEAD_OCTETS)), HEAD_OCTETS)
  const key = withEncoding(publicKeyOf(dnskey))
  return verify(scheme.hash, signedOctets(head, set), key, rrsig.subarray(start))
}

/** Returns the type that RRSIG rdata covers. */
export function coveredType(rrsig: Uint8Array): number {
  return (rrsig[0]! << 8) | rrsig[1]!
}

export function algorithmOf(rrsig: Uint8Array): number {
  return rrsig[2]!
}

/** Returns the TTL that the signature covers, in seconds. */
export function originalTtlOf(rrsig: Uint8Array): number {
  return u32(rrsig, 4)
}

/** In seconds since the Unix epoch, modulo 2^32. */
export function expirationOf(rrsig: Uint8Array): number {
  return u32(rrsig, 8)
}

/** In seconds since the Unix epoch, modulo 2^32. */
export function inceptionOf(rrsig: Uint8Array): number {
  return u32(rrsig, 12)
}

export function tagOf(rrsig: Uint8Array): number {
  return (rrsig[16]! << 8) | rrsig[17]!
}

/** Returns the signer's name, a view of `rrsig`. */
export function signerOf(rrsig: Uint8Array): Uint8Array {
  let end = HEAD_OCTETS
  while ((rrsig[end] ?? 0) > 0) end += rrsig[end]! + 1
  return rrsig.subarray(HEAD_OCTETS, end + 1)
}

/** Labels of an owner without the root and a leading `*` (RFC 4034 section 3.1.3). */
function labelsOf(owner: Uint8Array): number {
  const { length } = labelOffsets(owner)
  return isWildcard(owner) ? length - 1 : length
}

function isWildcard(owner: Uint8Array): boolean {
  return owner[0] === 1 && owner[1] === WILDCARD[1]
}

/** Returns what a signature covers (RFC 4034 section 3.1.8.1): RRSIG rdata without the signature, then the records. */
function signedOctets(head: Buffer, set: SignedSet): Buffer {
  const rdata = canonicalSet(set.type, set.rdata)
  const owner = canonicalOwner(set.owner, head[3]!)
  const recordOctets = owner.length + RECORD_OCTETS
  const total = rdata.reduce((sum, one) => sum + recordOctets + one.length, head.length)
  const octets = Buffer.allocUnsafe(total)
  octets.set(head)
  let at = head.length
  for (const one of rdata) {
    octets.set(owner, at)
    at += owner.length
    octets.writeUInt16BE(set.type, at)
    octets.writeUInt16BE(IN, at + 2)
    // The TTL of the signature: an answer may have a lower one.
    octets.set(head.subarray(4, 8), at + 4)
    octets.writeUInt16BE(one.length, at + 8)
    octets.set(one, at + RECORD_OCTETS)
    at += RECORD_OCTETS + one.length
  }
  return octets
}

/** Returns the wildcard that made the name, if it has more labels than the signature says. */
function canonicalOwner(owner: Uint8Array, labels: number): Uint8Array {
  const name = lowerName(owner)
  const offsets = labelOffsets(name)
  const excess = offsets.length - labels
  if (excess <= 0) return name
  return Buffer.concat([WILDCARD, name.subarray(offsets[excess] ?? name.length - 1)])
}

function withEncoding(key: KeyObject) {
  return { key, dsaEncoding: 'ieee-p1363' } as const
}

function u32(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!) >>> 0
  )
}
