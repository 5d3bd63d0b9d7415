import { createHash } from 'node:crypto'
import type { TsigKey } from '../dns/tsig/key.ts'

/** Tells keys apart, and tells nothing of the secret. */
export function keyIdOf(key: TsigKey): string {
  const secret = createHash('sha256').update(key.secret.export()).digest('hex')
  return `${key.nameText} ${key.algorithm.text} ${secret}`
}
