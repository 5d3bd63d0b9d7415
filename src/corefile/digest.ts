import { createHash } from 'node:crypto'
import type { ServerBlock } from './parser.ts'

/**
 * SHA-512 over the parsed tokens and their places, in hexadecimal: equal digests mean that a reload
 * would change nothing. Imported files and substituted variables count. Comments at line ends do
 * not.
 */
export function digestBlocks(blocks: readonly ServerBlock[]): string {
  const hash = createHash('sha512')
  for (const block of blocks) {
    const directives = [...block.directives].map(([, tokens]) => tokens)
    hash.update(JSON.stringify([block.keys, directives]))
  }
  return hash.digest('hex')
}
