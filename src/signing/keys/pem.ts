import { createPrivateKey, type KeyObject } from 'node:crypto'
import { InputError } from '../../base/errors.ts'
import { Algorithm } from '../../dns/dnssec/algorithms.ts'
import { TOKEN_FAULT } from './private-text.ts'

/** True if a text is a key in PEM, or one in a token. */
export function isPem(text: string): boolean {
  return text.includes('-----BEGIN ') || text.startsWith('pkcs11:')
}

/**
 * Scans a private key in PEM: PKCS #8, as Knot DNS and PowerDNS write it, or the forms of OpenSSL for RSA and EC keys.
 * `file`: for messages, which have nothing of the key. @throws InputError.
 */
export function scanPem(text: string, file: string): KeyObject {
  const fault = (message: string): InputError => new InputError({ file, line: 1 }, message)
  if (/^pkcs11:|PKCS#11|TSS2/m.test(text)) throw fault(TOKEN_FAULT)
  if (/-----BEGIN ENCRYPTED |^Proc-Type: 4,ENCRYPTED/m.test(text)) {
    throw fault('the key is encrypted; decrypt it with `openssl pkcs8 -in FILE -out NEW`')
  }
  try {
    return createPrivateKey(text)
  } catch {
    // The message of the cause could show a part of the key.
    throw fault('the file has no valid private key in PEM')
  }
}

/** Returns the algorithm of a private key; of RSA keys, the one with SHA-256. Undefined = we can't sign with it. */
export function algorithmOfKey(key: KeyObject): number | undefined {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key
  if (type === 'rsa') return Algorithm.RsaSha256
  if (type === 'ed25519') return Algorithm.Ed25519
  if (type !== 'ec') return undefined
  if (details?.namedCurve === 'prime256v1') return Algorithm.EcdsaP256
  return details?.namedCurve === 'secp384r1' ? Algorithm.EcdsaP384 : undefined
}

/** Returns the text of a private key as PKCS #8 in PEM. */
export function printPem(key: KeyObject): string {
  return key.export({ format: 'pem', type: 'pkcs8' }).toString()
}
