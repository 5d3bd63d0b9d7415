import type { RollKey } from './roll-state.ts'

/** Returns a key as texts for people name it: `CSK 12345`. */
export function keyName({ role, id }: Pick<RollKey, 'role' | 'id'>): string {
  return `${role.toUpperCase()} ${tagText(id)}`
}

/** Returns the tag at the end of the id of a key, as BIND names its files, without leading zeros. */
export function tagText(id: string): string {
  return String(Number(id.slice(id.lastIndexOf('+') + 1)))
}
