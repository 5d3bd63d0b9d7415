import { createHash } from 'node:crypto'
import type { TsigKey } from '../../dns/tsig/key.ts'

/** Identifies a key without revealing its secret. */
export function keyIdOf(key: TsigKey): string {
  const secret = createHash('sha256').update(key.secret.export()).digest('hex')
  return `${key.nameText} ${key.algorithm.text} ${secret}`
}
