import { createHash } from 'node:crypto'

/** Maximum length of the readable part: 253 of a name (RFC 1123), without the word, the digest and two hyphens. */
const READABLE_MAX = 200
/** Hexadecimal digits of the digest. */
const DIGEST_LENGTH = 10

/**
 * Returns the name of the DNSRecord of one host of an object, such as `shop-gateway-0a1b2c3d4e`: different for each
 * kind, object and host of a namespace. `word`: of the kind.
 */
export function recordNameOf(word: string, name: string, host: string): string {
  const digest = createHash('sha256')
    .update(JSON.stringify([word, name, host]))
    .digest('hex')
  const readable = name.slice(0, READABLE_MAX).replace(/[^a-z0-9]+$/, '')
  return `${readable}-${word}-${digest.slice(0, DIGEST_LENGTH)}`
}
