import { createPublicKey, generateKeyPair, type JsonWebKey, type KeyObject } from 'node:crypto'
import { promisify } from 'node:util'
import { InputError } from '../../base/errors.ts'
import { canSign, printAlgorithm, type SignatureScheme, schemeOf } from './algorithms.ts'
import { keyTag } from './key-tag.ts'

/** Flags of a DNSKEY that signs zones (RFC 4034 section 2.1.1). */
export const FLAGS_ZSK = 0x0100
/** The same with the flag of a secure entry point: the parent's DS refers to it. */
export const FLAGS_KSK = 0x0101
/** RFC 5011 section 2.1. */
export const FLAG_REVOKE = 0x0080

/** Octets before the public key: flags, protocol, algorithm. */
const HEAD_OCTETS = 4
/** The only protocol (RFC 4034 section 2.1.2). */
const PROTOCOL = 3
const RSA_BITS_DEFAULT = 2048

/** A key pair that signs. */
export interface SigningKey {
  /** DNSKEY rdata. */
  readonly dnskey: Uint8Array
  readonly flags: number
  readonly algorithm: number
  readonly tag: number
  readonly privateKey: KeyObject
}

/** Returns a key that signs, from its private key. @throws InputError as `composeDnskey`. */
export function signingKey(privateKey: KeyObject, algorithm: number, flags: number): SigningKey {
  const dnskey = composeDnskey(privateKey, algorithm, flags)
  return { dnskey, flags, algorithm, tag: keyTag(dnskey), privateKey }
}

/**
 * Returns DNSKEY rdata (RFC 4034 section 2). `key`: private or public. @throws InputError for a key of another kind.
 */
export function composeDnskey(key: KeyObject, algorithm: number, flags: number): Uint8Array {
  const scheme = schemeOf(algorithm)
  const publicKey = key.type === 'private' ? createPublicKey(key) : key
  const jwk = publicKey.export({ format: 'jwk' })
  const type = publicKey.asymmetricKeyType
  if (scheme === undefined || scheme.keyType !== type || scheme.jwkCurve !== jwk.crv) {
    throw new InputError(undefined, `the key is not one of algorithm ${printAlgorithm(algorithm)}`)
  }
  const material = scheme.keyType === 'rsa' ? rsaMaterial(jwk) : curveMaterial(jwk)
  const rdata = new Uint8Array(HEAD_OCTETS + material.length)
  rdata.set([flags >> 8, flags & 0xff, PROTOCOL, algorithm])
  rdata.set(material, HEAD_OCTETS)
  return rdata
}

/** Returns the public key of DNSKEY rdata. @throws InputError if it has none that we can use. */
export function publicKeyOf(dnskey: Uint8Array): KeyObject {
  const algorithm = dnskey[3] ?? 0
  const scheme = schemeOf(algorithm)
  if (scheme === undefined) {
    throw new InputError(undefined, `algorithm ${printAlgorithm(algorithm)} is not supported`)
  }
  try {
    const key = toJwk(scheme, Buffer.from(dnskey.subarray(HEAD_OCTETS)))
    return createPublicKey({ key, format: 'jwk' })
  } catch (error) {
    throw new InputError(undefined, 'the DNSKEY has no valid public key', error)
  }
}

const generate = promisify(generateKeyPair)

/** Makes a private key of an algorithm that `canSign`. `bits`: of RSA, default 2048. */
export async function generatePrivateKey(
  algorithm: number,
  bits: number = RSA_BITS_DEFAULT,
): Promise<KeyObject> {
  const scheme = schemeOf(algorithm)
  if (scheme === undefined || !canSign(algorithm)) {
    throw new InputError(undefined, `no keys are made for algorithm ${printAlgorithm(algorithm)}`)
  }
  if (scheme.keyType === 'rsa') return (await generate('rsa', { modulusLength: bits })).privateKey
  if (scheme.keyType !== 'ec') return (await generate('ed25519')).privateKey
  return (await generate('ec', { namedCurve: scheme.curve! })).privateKey
}

/** RFC 3110 section 2: the exponent after its length, then the modulus. */
function rsaMaterial({ e, n }: JsonWebKey): Buffer {
  const exponent = Buffer.from(e!, 'base64url')
  const { length } = exponent
  const head = length < 256 ? [length] : [0, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from(head), exponent, Buffer.from(n!, 'base64url')])
}

/** RFC 6605 section 4 and RFC 8080 section 3. */
function curveMaterial({ x, y = '' }: JsonWebKey): Buffer {
  return Buffer.concat([Buffer.from(x!, 'base64url'), Buffer.from(y, 'base64url')])
}

function toJwk({ keyType, jwkCurve, octets = 0 }: SignatureScheme, material: Buffer): JsonWebKey {
  if (keyType === 'rsa') {
    const isLong = material[0] === 0
    const start = isLong ? 3 : 1
    const end = start + (isLong ? material.readUInt16BE(1) : material[0]!)
    const e = material.toString('base64url', start, end)
    return { kty: 'RSA', e, n: material.toString('base64url', end) }
  }
  const coordinates = keyType === 'ec' ? 2 : 1
  if (material.length !== octets * coordinates) throw new Error('wrong length')
  const x = material.toString('base64url', 0, octets)
  if (keyType !== 'ec') return { kty: 'OKP', crv: jwkCurve!, x }
  return { kty: 'EC', crv: jwkCurve!, x, y: material.toString('base64url', octets) }
}
