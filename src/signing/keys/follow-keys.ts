import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { InputError } from '../../base/errors.ts'
import type { StoredKey } from './key-store.ts'
import { REMOVED } from './pair-files.ts'
import { readPublicFile } from './protected-file.ts'

/** The file in a directory of keys that names the servers whose keys it follows. */
const MARK = 'follows'

/** The keys of a zone as another server has them. */
export interface FollowedKeys {
  /** Lower-case wire form. */
  readonly zone: Uint8Array
  /** Of the rolls. */
  readonly state: string
  readonly keys: readonly StoredKey[]
  /** Keys that are out of use, as `numberOf` returns them. */
  readonly removed: ReadonlySet<string>
}

/** How the keys of a zone in a directory become the followed ones. */
interface FollowPlan {
  readonly add: readonly StoredKey[]
  /** Ids, as their files are named. */
  readonly retire: readonly string[]
}

/** Returns algorithm and tag of the id of a key: `013+12345`. */
export function numberOf(id: string): string {
  return id.slice(-'013+12345'.length)
}

/** Returns the servers that a directory follows; '' = none, or the directory does not exist. @throws InputError. */
export function followedServers(folder: string): string {
  const path = join(folder, MARK)
  if (!existsSync(path)) return ''
  return readPublicFile(path).trim() || 'another server'
}

/** Name and text of the file that says which servers a directory follows. */
export function followMark(servers: string): { name: string; text: string } {
  return { name: MARK, text: `${servers}\n` }
}

/** Why nothing but the servers changes the keys in a directory. */
export function followFault(folder: string, servers: string): string {
  const fix = `change the keys on that server; to change them here instead, remove ${join(folder, MARK)}`
  return `${folder} follows the keys of ${servers}; ${fix}`
}

/**
 * Compares the keys of a zone in a directory with the followed ones. @throws InputError if the directory has a key that
 * the servers lack: it may be the only copy.
 */
export function planFollow(
  folder: string,
  local: readonly StoredKey[],
  { keys, removed }: FollowedKeys,
  servers: string,
): FollowPlan {
  const followed = new Map(keys.map((key) => [numberOf(key.id), key]))
  const own = new Set(local.map(({ id }) => numberOf(id)))
  const retire: string[] = []
  for (const key of local) {
    const same = followed.get(numberOf(key.id))
    if (same === undefined && removed.has(numberOf(key.id))) retire.push(key.id)
    else if (same === undefined || !areEqual(same, key)) throw conflict(folder, key, same, servers)
  }
  const add = keys.filter(({ id }) => !own.has(numberOf(id)))
  const lost = add.find(({ id }) => existsSync(join(folder, REMOVED, `${id}.key`)))
  if (lost !== undefined) {
    const message = `${join(folder, REMOVED)} has ${lost.id}, which is in use at ${servers}`
    throw new InputError(undefined, `${message}; move its files back to ${folder}`)
  }
  return { add, retire }
}

function areEqual(one: StoredKey, other: StoredKey): boolean {
  const isSame = Buffer.compare(one.dnskey, other.dnskey) === 0
  return isSame && (one.privateKey === undefined) === (other.privateKey === undefined)
}

function conflict(
  folder: string,
  key: StoredKey,
  same: StoredKey | undefined,
  servers: string,
): InputError {
  const { id, dnskey, privateKey } = key
  const isHalf = privateKey === undefined && same !== undefined
  if (isHalf && Buffer.compare(dnskey, same.dnskey) === 0) {
    const message = `${folder} has only the public key of ${id}`
    return new InputError(undefined, `${message}; remove ${id}.key, so that both are fetched again`)
  }
  const message = `${folder} has ${id}, but not ${servers}, or not the same key`
  const fix = 'import it there (sextant keys import), or move its files to another directory'
  return new InputError(undefined, `${message}; ${fix}`)
}
