import { createHash } from 'node:crypto'

const HASH_CHARACTERS = 8

/**
 * The short hash in Kuadrant's names and ids: the first 8 characters of the SHA-224 of `text` as a
 * number in base 36, lower case.
 */
export function shortHash(text: string): string {
  const digest = createHash('sha224').update(text).digest('hex')
  return BigInt(`0x${digest}`).toString(36).slice(0, HASH_CHARACTERS)
}
