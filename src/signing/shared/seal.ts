import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { TOKEN_OCTETS } from './key-question.ts'

const CIPHER = 'aes-256-gcm'
const HASH = 'sha256'
const PURPOSE = 'sextant zone keys 1'
const KEY_OCTETS = 32
const IV_OCTETS = 12
const SALT_OCTETS = 32
const AUTH_TAG = { authTagLength: 16 }
/** A shorter secret could be guessed from recorded traffic. */
const SECRET_OCTETS_MIN = 16

/** True if private keys may be encrypted with a key made from the secret. */
export function isStrong(secret: KeyObject): boolean {
  return (secret.symmetricKeySize ?? 0) >= SECRET_OCTETS_MIN
}

/**
 * Encrypts with a key that is used once: HKDF makes it from the secret of a TSIG key and a random salt, because TSIG
 * does not encrypt. `context`: only with the same octets can it be decrypted.
 */
export function seal(text: string, secret: KeyObject, context: Uint8Array): Buffer {
  const salt = randomBytes(SALT_OCTETS)
  const { key, iv } = derive(secret, salt)
  const cipher = createCipheriv(CIPHER, key, iv, AUTH_TAG).setAAD(context)
  const sealed = [cipher.update(text, 'utf8'), cipher.final()]
  return Buffer.concat([salt, cipher.getAuthTag(), ...sealed])
}

/** The inverse of `seal`; undefined = the octets were sealed with other arguments, or changed. */
export function unseal(
  octets: Uint8Array,
  secret: KeyObject,
  context: Uint8Array,
): string | undefined {
  const tagEnd = SALT_OCTETS + AUTH_TAG.authTagLength
  if (octets.length < tagEnd) return undefined
  const { key, iv } = derive(secret, octets.subarray(0, SALT_OCTETS))
  const decipher = createDecipheriv(CIPHER, key, iv, AUTH_TAG).setAAD(context)
  decipher.setAuthTag(octets.subarray(SALT_OCTETS, tagEnd))
  try {
    const text = [decipher.update(octets.subarray(tagEnd)), decipher.final()]
    return Buffer.concat(text).toString('utf8')
  } catch {
    return undefined
  }
}

/** Returns a digest that only owners of the secret can compare with a text. */
export function digestText(text: string, secret: KeyObject, nonce: Uint8Array): Uint8Array {
  return createHmac(HASH, secret).update(nonce).update(text).digest().subarray(0, TOKEN_OCTETS)
}

function derive(secret: KeyObject, salt: Uint8Array): { key: Uint8Array; iv: Uint8Array } {
  const octets = Buffer.from(hkdfSync(HASH, secret, salt, PURPOSE, KEY_OCTETS + IV_OCTETS))
  return { key: octets.subarray(0, KEY_OCTETS), iv: octets.subarray(KEY_OCTETS) }
}
