import { shortHash } from './short-hash.ts'

/** RFC 1123 subdomain, as the API takes it. */
const NAME_CHARACTERS_MAX = 253

/**
 * Name of the object of that kind that is made of the record `name`: `local-<name>`; where that is too long, its
 * front and a hash of the whole.
 */
export function derivedName(kind: 'local' | 'merged', name: string): string {
  const full = `${kind}-${name}`
  if (full.length <= NAME_CHARACTERS_MAX) return full
  const hash = shortHash(name)
  const front = full.slice(0, NAME_CHARACTERS_MAX - hash.length - 1).replace(/[-.]+$/, '')
  return `${front}-${hash}`
}
