import { ROOT_NAME } from '../../dns/name/name.ts'
import type { Selector } from './selector.ts'

/**
 * Selectors of all names, of any octets, and of the root. Patterns select names of letters, digits, `-`
 * and `_` only.
 */
export const EVERY_NAME: readonly Selector[] = [
  { kind: 'exact', suffix: ROOT_NAME, key: '.', text: '*' },
  { kind: 'many-label', suffix: ROOT_NAME, key: 'many *.', text: '*' },
]
