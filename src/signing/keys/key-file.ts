import { InputError } from '../../base/errors.ts'
import { canSign } from '../../dns/dnssec/algorithms.ts'
import { publicKeyOf, type SigningKey, signingKey } from '../../dns/dnssec/dnskey.ts'
import { keyTag } from '../../dns/dnssec/key-tag.ts'
import { type SignedSet, signSet, verifySet } from '../../dns/dnssec/rrsig.ts'
import { RRType } from '../../dns/iana/types.ts'
import { ROOT_NAME } from '../../dns/name/name.ts'
import type { KeyTimes } from './key-times.ts'
import { type PrivateText, scanPrivateText, unsupported } from './private-text.ts'
import { readPrivateFile, readPublicFile } from './protected-file.ts'
import { flagsFault, flagsOf, type PublicText, scanPublicText } from './public-text.ts'

/** A key pair in two files of BIND's format. */
export interface KeyPair extends SigningKey {
  /** Apex, lower-case wire form. */
  readonly zone: Uint8Array
  readonly times: KeyTimes
}

/**
 * Reads a key pair that BIND, ldns or Sextant wrote. `path`: of one of the two files, or without `.key` or `.private`.
 * Both files must belong to this user or to root, and only the owner may read the private one. @throws InputError that
 * names file and fix; its message has nothing of the private key.
 */
export function readKeyFile(path: string): KeyPair {
  const base = path.replace(/\.(key|private)$/, '')
  const publicFile = `${base}.key`
  const publicKey = readPublicKey(publicFile)
  const privateFile = `${base}.private`
  const privateKey = scanPrivateText(readPrivateFile(privateFile), privateFile)
  return pairOf(publicKey, privateKey, privateFile)
}

/** Reads and checks a public key file. @throws InputError. */
export function readPublicKey(file: string): PublicText {
  return checkedPublic(readPublicFile(file), file)
}

/** Reads and checks the text of a public key file. @throws InputError. */
export function checkedPublic(text: string, file: string): PublicText {
  const key = scanPublicText(text, file)
  const fault = publicFault(key.dnskey)
  if (fault !== '') throw new InputError({ file, line: 1 }, fault)
  return key
}

/** Returns why a DNSKEY is refused; '' = it is not. */
function publicFault(dnskey: Uint8Array): string {
  const algorithm = dnskey[3]!
  if (!canSign(algorithm)) return unsupported(algorithm)
  if (dnskey[2] !== PROTOCOL)
    return `the protocol of the DNSKEY is ${dnskey[2]}; it must be ${PROTOCOL}`
  try {
    publicKeyOf(dnskey)
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return error.message
  }
  return flagsFault(flagsOf(dnskey))
}

/** RFC 4034 section 2.1.2. */
const PROTOCOL = 3

/** Joins both halves. `file`: of the private key. @throws InputError if they are not of one key. */
export function pairOf(
  { zone, dnskey }: PublicText,
  { privateKey, algorithm, times }: PrivateText,
  file: string,
): KeyPair {
  const flags = flagsOf(dnskey)
  const key = algorithm === dnskey[3] ? signingKey(privateKey, algorithm, flags) : undefined
  if (key === undefined || Buffer.compare(key.dnskey, dnskey) !== 0 || !signsFor(key)) {
    const message = `the private key does not belong to the DNSKEY with tag ${keyTag(dnskey)} in the .key file`
    throw new InputError({ file, line: 1 }, message)
  }
  return { ...key, zone, times }
}

const SAMPLE: SignedSet = { owner: ROOT_NAME, type: RRType.TXT, ttlSeconds: 0, rdata: [] }

/** The numbers of an RSA key may contradict each other, and each signature would be wrong then. */
function signsFor(key: SigningKey): boolean {
  const times = { inceptionSeconds: 0, expirationSeconds: 0 }
  try {
    return verifySet(SAMPLE, signSet(SAMPLE, key, ROOT_NAME, times), key.dnskey)
  } catch {
    return false
  }
}
