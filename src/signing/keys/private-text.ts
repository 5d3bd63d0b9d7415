import { createECDH, createPrivateKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { InputError } from '../../base/errors.ts'
import {
  canSign,
  printAlgorithm,
  SIGNING_NAMES,
  type SignatureScheme,
  schemeOf,
} from '../../dns/dnssec/algorithms.ts'
import { scanBase64 } from '../../dns/rdata/binary.ts'
import { type KeyTimes, keyEventOf, printKeyTimes, scanKeyTime } from './key-times.ts'

/** The content of a private key file of BIND, or of a program that writes its format. */
export interface PrivateText {
  readonly algorithm: number
  readonly privateKey: KeyObject
  readonly times: KeyTimes
}

/** Fields of an RSA key, and their names in a JSON Web Key (RFC 7518 section 6.3). */
const RSA_FIELDS = {
  Modulus: 'n',
  PublicExponent: 'e',
  PrivateExponent: 'd',
  Prime1: 'p',
  Prime2: 'q',
  Exponent1: 'dp',
  Exponent2: 'dq',
  Coefficient: 'qi',
} as const
const VERSION = 'v1.3'

/** Why a key that a token holds is refused. */
export const TOKEN_FAULT =
  'the key is in a PKCS #11 token, and Sextant reads only keys in files; export the key from the token, or make another one'

/**
 * Scans a private key file of BIND (`Private-key-format: v1.2` or v1.3), as BIND, ldns, PowerDNS and other programs
 * write it. `file`: for messages, which never contain a value of the file. @throws InputError with the line.
 */
export function scanPrivateText(text: string, file: string): PrivateText {
  const fields = new Map<string, Field>()
  text.split('\n').forEach((line, index) => {
    // A comment of PowerDNS or of a person.
    if (line.trim() === '' || /^\s*[;#]/.test(line)) return
    const [, word, value = ''] = /^([\w-]+):(.*)$/.exec(line) ?? []
    if (word === undefined) throw fault(file, index + 1, 'the line is not of the form WORD: VALUE')
    if (fields.has(word)) throw fault(file, index + 1, `${word} appears twice`)
    fields.set(word, { text: value.trim(), line: index + 1 })
  })
  checkVersion(fields, file)
  // With `Engine`, `Label` names the key in a token.
  if (fields.has('Engine') || fields.has('Label')) throw fault(file, lineOf(fields), TOKEN_FAULT)
  const algorithm = scanAlgorithmField(fields, file)
  const privateKey = scanKey(fields, schemeOf(algorithm)!, file)
  return { algorithm, privateKey, times: scanTimes(fields, file) }
}

interface Field {
  readonly text: string
  readonly line: number
}

type Fields = ReadonlyMap<string, Field>

function fault(file: string, line: number, message: string): InputError {
  return new InputError({ file, line }, message)
}

function lineOf(fields: Fields): number {
  return (fields.get('Engine') ?? fields.get('Label'))?.line ?? 1
}

function checkVersion(fields: Fields, file: string): void {
  const version = fields.get('Private-key-format')
  if (version === undefined) {
    throw fault(file, 1, 'the file is not a private key of BIND: it has no line Private-key-format')
  }
  if (/^v1\.\d{1,3}$/.test(version.text)) return
  throw fault(file, version.line, `the version must be v1.2 or ${VERSION}`)
}

function scanAlgorithmField(fields: Fields, file: string): number {
  const field = fields.get('Algorithm')
  if (field === undefined) throw fault(file, 1, 'the line Algorithm is missing')
  const [, number = ''] = /^(\d{1,3})(?:\s|$)/.exec(field.text) ?? []
  if (number === '') throw fault(file, field.line, 'Algorithm must begin with a number')
  const algorithm = Number(number)
  if (canSign(algorithm)) return algorithm
  throw fault(file, field.line, unsupported(algorithm))
}

/** Why keys of an algorithm are refused. */
export function unsupported(algorithm: number): string {
  return `algorithm ${printAlgorithm(algorithm)} is not supported; use one of ${SIGNING_NAMES.join(', ')}`
}

function scanTimes(fields: Fields, file: string): KeyTimes {
  const times: { -readonly [Event in keyof KeyTimes]: KeyTimes[Event] } = {}
  for (const [word, field] of fields) {
    const event = keyEventOf(word)
    if (event === undefined) continue
    const seconds = scanKeyTime(field.text)
    if (seconds === undefined)
      throw fault(file, field.line, `${word} must be a time YYYYMMDDHHMMSS, in UTC`)
    times[event] = seconds
  }
  return times
}

function scanKey(fields: Fields, scheme: SignatureScheme, file: string): KeyObject {
  const key = scheme.keyType === 'rsa' ? rsaKey(fields, file) : curveKey(fields, scheme, file)
  try {
    return createPrivateKey({ key, format: 'jwk' })
  } catch {
    // The message of the cause could show a part of the key.
    throw fault(file, 1, 'the fields are not those of a valid private key')
  }
}

function rsaKey(fields: Fields, file: string): JsonWebKey {
  const key: JsonWebKey = { kty: 'RSA' }
  for (const [word, member] of Object.entries(RSA_FIELDS)) {
    key[member] = base64Field(fields, word, file).toString('base64url')
  }
  return key
}

function curveKey(fields: Fields, scheme: SignatureScheme, file: string): JsonWebKey {
  const { keyType, jwkCurve = '', octets = 0 } = scheme
  const secret = base64Field(fields, 'PrivateKey', file)
  const { line } = fields.get('PrivateKey')!
  // Some programs leave out zeros at the beginning.
  if (secret.length > octets || (keyType !== 'ec' && secret.length < octets)) {
    throw fault(file, line, `PrivateKey must have ${octets} octets`)
  }
  const d = Buffer.concat([Buffer.alloc(octets - secret.length), secret])
  return keyType === 'ec' ? ecKey(d, scheme, file) : ed25519Key(d, jwkCurve)
}

function ecKey(
  d: Buffer,
  { curve = '', jwkCurve = '', octets = 0 }: SignatureScheme,
  file: string,
): JsonWebKey {
  const pair = createECDH(curve)
  try {
    pair.setPrivateKey(d)
  } catch {
    throw fault(file, 1, 'PrivateKey is not a valid key of the curve')
  }
  // The point: an octet for its form, then both coordinates.
  const point = pair.getPublicKey()
  const x = point.toString('base64url', 1, 1 + octets)
  const y = point.toString('base64url', 1 + octets)
  return { kty: 'EC', crv: jwkCurve, x, y, d: d.toString('base64url') }
}

/** PKCS #8 of an Ed25519 key up to the key (RFC 8410 section 7). */
const ED25519_HEAD = Buffer.from('302e020100300506032b657004220420', 'hex')

/** A JSON Web Key needs the public key, which only the import of another form computes. */
function ed25519Key(d: Buffer, crv: string): JsonWebKey {
  const key = createPrivateKey({
    key: Buffer.concat([ED25519_HEAD, d]),
    format: 'der',
    type: 'pkcs8',
  })
  return { ...key.export({ format: 'jwk' }), crv }
}

function base64Field(fields: Fields, word: string, file: string): Buffer {
  const field = fields.get(word)
  if (field === undefined) throw fault(file, 1, `the line ${word} is missing`)
  const octets = scanBase64(field.text)
  if (octets === undefined || octets.length === 0)
    throw fault(file, field.line, `${word} must be base64`)
  return Buffer.from(octets)
}

/** Returns the text of a private key file in BIND's format. It contains the private key. */
export function printPrivateText({ algorithm, privateKey, times }: PrivateText): string {
  const jwk = privateKey.export({ format: 'jwk' })
  const isRsa = jwk.kty === 'RSA'
  const fields = isRsa ? Object.entries(RSA_FIELDS) : [['PrivateKey', 'd'] as const]
  const lines = [
    `Private-key-format: ${VERSION}`,
    `Algorithm: ${algorithm} (${printAlgorithm(algorithm)})`,
    ...fields.map(([word, member]) => `${word}: ${toBase64(jwk[member])}`),
    ...printKeyTimes(times),
  ]
  return lines.map((line) => `${line}\n`).join('')
}

function toBase64(text: string | undefined): string {
  return Buffer.from(text!, 'base64url').toString('base64')
}
