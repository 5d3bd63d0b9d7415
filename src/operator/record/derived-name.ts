import { shortHash } from './short-hash.ts'

/** Longest RFC 1123 subdomain that the API accepts. */
const NAME_CHARACTERS_MAX = 253

/**
 * Name of the object of that kind that is derived from the record `name`: `local-<name>`. If that
 * is too long, its beginning and a hash of the whole name.
 */
export function derivedName(kind: 'local' | 'merged', name: string): string {
  const full = `${kind}-${name}`
  if (full.length <= NAME_CHARACTERS_MAX) return full
  const hash = shortHash(name)
  const front = full.slice(0, NAME_CHARACTERS_MAX - hash.length - 1).replace(/[-.]+$/, '')
  return `${front}-${hash}`
}
