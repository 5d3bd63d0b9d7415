import type { RollKey } from './roll-state.ts'

/** Tag in the id of a key, as BIND names its files. */
const TAG = /\+0*(\d+)$/

/** Returns a key as texts for people name it: `CSK 12345`. */
export function keyName({ role, id }: Pick<RollKey, 'role' | 'id'>): string {
  return `${role.toUpperCase()} ${tagText(id)}`
}

/** Returns the tag of a key, without leading zeros. */
export function tagText(id: string): string {
  return TAG.exec(id)?.[1] ?? id
}
