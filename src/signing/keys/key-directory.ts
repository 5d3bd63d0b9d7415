import { existsSync, fchownSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as pause } from 'node:timers/promises'
import type { Clock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import { lockFile } from '../../base/persist/lock-file.ts'
import { NextFile } from '../../base/persist/next-file.ts'
import { isSystemError } from '../../base/system-error.ts'
import type { Timers } from '../../base/timers.ts'
import type { generatePrivateKey } from '../../dns/dnssec/dnskey.ts'
import { printName } from '../../dns/name/name.ts'
import { FolderWatch } from './folder-watch.ts'
import {
  type FollowedKeys,
  followedServers,
  followFault,
  followMark,
  planFollow,
} from './follow-keys.ts'
import { pairOf, readPublicKey } from './key-file.ts'
import { fileNameOf, keyId, scanKeyId } from './key-name.ts'
import type { ImportStore, LoadedKeys, StoredKey } from './key-store.ts'
import type { KeyTimes } from './key-times.ts'
import { createKey, importKey, type NewKeyStore, storedKey, textsOf } from './new-key.ts'
import {
  hasLeftovers,
  makeKeyFolder,
  namesIn,
  REMOVED,
  recover,
  retirePair,
  storePair,
} from './pair-files.ts'
import { scanPrivateText } from './private-text.ts'
import { folderFault, readPrivateFile, readPublicFile } from './protected-file.ts'
import type { PublicText } from './public-text.ts'

/** Keys that are read before other work runs. */
const KEYS_PER_SLICE = 8
const STATE_MODE = 0o644
/** The name of the lock, `keys.lock`, without its ending. */
const LOCK = 'keys'

interface KeyDirectoryParts {
  /** Absolute path; made with the first key if it does not exist. */
  readonly path: string
  readonly clock: Clock
  readonly timers: Timers
  /** The servers whose keys it follows, as a text: only `follow` changes it. Undefined = it follows none. */
  readonly follows?: string | undefined
  /** Makes a private key; replaced by tests. */
  readonly generate?: typeof generatePrivateKey
}

/** What was read from the files of a key, and their versions. */
interface CachedKey {
  readonly version: string
  readonly key: StoredKey
}

/**
 * Keys in the files of a directory, in BIND's format, and the state of rolls in `rolls-ZONE.state`. Several processes
 * may use the directory: a lock serialises their changes, and each of them sees those of the others.
 */
export class KeyDirectory implements ImportStore {
  readonly #path: string
  readonly #parts: KeyDirectoryParts
  readonly #cache = new Map<string, CachedKey>()
  readonly #watches = new Set<FolderWatch>()

  constructor(parts: KeyDirectoryParts) {
    this.#path = parts.path
    this.#parts = parts
  }

  async load(): Promise<LoadedKeys> {
    try {
      return await this.#load()
    } catch (error) {
      return { keys: [], faults: [this.#faultOf(error, 'read')] }
    }
  }

  async #load(): Promise<LoadedKeys> {
    const folder = this.#path
    const stats = statSync(folder, { throwIfNoEntry: false })
    const fault = stats === undefined ? '' : folderFault(folder, stats)
    if (fault !== '') throw new InputError(undefined, fault)
    // In a folder that can't be written, an incomplete key is a fault below.
    if (hasLeftovers(folder, namesIn(folder))) await this.#locked(() => {}).catch(ignoreInputError)
    const names = new Set(namesIn(folder))
    const found: (StoredKey | InputError)[] = []
    for (const id of idsOf(names)) {
      found.push(this.#read(id, names))
      if (found.length % KEYS_PER_SLICE === 0) await pause()
    }
    for (const id of this.#cache.keys()) if (!names.has(`${id}.key`)) this.#cache.delete(id)
    return withoutRepeated(folder, found)
  }

  create(zone: Uint8Array, algorithm: number, flags: number, bits?: number): Promise<StoredKey> {
    return createKey({ zone, algorithm, flags, bits }, this.#new)
  }

  add(key: PublicText, privateKey: StoredKey['privateKey'], times: KeyTimes): Promise<StoredKey> {
    return importKey(storedKey(key, privateKey, times), this.#new)
  }

  async readState(zone: Uint8Array): Promise<string | undefined> {
    return this.#readState(zone)
  }

  async editState(
    zone: Uint8Array,
    edit: (text: string | undefined) => string | undefined,
  ): Promise<void> {
    const name = stateName(zone)
    await this.#change([name], () => {
      const before = this.#readState(zone)
      const text = edit(before)
      if (text !== undefined && text !== before) this.#write(name, text)
    })
  }

  async retire(id: string): Promise<void> {
    if (scanKeyId(id) === undefined) throw new InputError(undefined, `${id} is not the id of a key`)
    await this.#change(filesOf(id), () => {
      const isStored = existsSync(join(this.#path, `${id}.key`))
      if (isStored) retirePair(this.#path, id)
      // It may be retired already, by a process that was killed before it noted that.
      else if (!existsSync(join(this.#path, REMOVED, `${id}.key`)))
        throw new InputError(undefined, `${this.#path} has no key ${id}`)
    })
  }

  /**
   * Makes the keys of a zone, and the state of their rolls, those of the followed servers. Keys that these have removed
   * are retired. Resolves to true if something changed. @throws InputError, and changes nothing, if the directory has
   * other keys than the servers.
   */
  follow(keys: FollowedKeys): Promise<boolean> {
    const folder = this.#path
    const { zone, state } = keys
    const prefix = `K${fileNameOf(zone)}+`.toLowerCase()
    const isOfZone = (name: string): boolean => name.toLowerCase().startsWith(prefix)
    const changed = [stateName(zone)]
    return this.#change(changed, () => {
      const names = new Set(namesIn(folder))
      const ids = idsOf(names).filter(isOfZone)
      const local = ids.map((id) => readKey(folder, id, names))
      const servers = this.#parts.follows ?? ''
      const { add, retire } = planFollow(folder, local, keys, servers)
      if (followedServers(folder) !== servers) {
        const { name, text } = followMark(servers)
        this.#write(name, text)
      }
      changed.push(...[...add.map(({ id }) => id), ...retire].flatMap(filesOf))
      for (const key of add) storePair(folder, key.id, textsOf(key))
      const isNewState = this.#readState(zone) !== state
      if (isNewState) this.#write(stateName(zone), state)
      for (const id of retire) retirePair(folder, id)
      return isNewState || add.length + retire.length > 0
    })
  }

  /** Ids of the keys that are out of use. @throws InputError. */
  removedIds(): readonly string[] {
    try {
      return idsOf(new Set(namesIn(join(this.#path, REMOVED))))
    } catch (error) {
      throw this.#faultOf(error, 'read')
    }
  }

  watch(listener: () => void): () => void {
    const watch = new FolderWatch(this.#path, this.#parts.timers, {
      versions: () => this.#versions(),
      versionOf: (name) => this.#versionOf(name),
      listener,
    })
    this.#watches.add(watch)
    return () => {
      this.#watches.delete(watch)
      watch.close()
    }
  }

  get #new(): NewKeyStore {
    const { path, clock, generate } = this.#parts
    const store = (key: StoredKey): Promise<boolean> =>
      this.#change(filesOf(key.id), () => {
        if (this.#hasTag(key.zone, key.tag)) return false
        storePair(path, key.id, textsOf(key))
        return true
      })
    return { place: path, clock, generate, store }
  }

  /** Runs `work` under the lock. What it does to the files `own` is not reported as a change. */
  async #change<T>(own: readonly string[], work: () => T): Promise<T> {
    try {
      return await this.#locked(() => {
        const servers = this.#parts.follows === undefined ? followedServers(this.#path) : ''
        if (servers !== '') throw new InputError(undefined, followFault(this.#path, servers))
        return work()
      })
    } finally {
      for (const watch of this.#watches) watch.accept(own)
    }
  }

  async #locked<T>(work: () => T): Promise<T> {
    try {
      makeKeyFolder(this.#path)
      const release = await lockFile(join(this.#path, LOCK))
      try {
        recover(this.#path)
        return work()
      } finally {
        release()
      }
    } catch (error) {
      throw this.#faultOf(error, 'change')
    }
  }

  /** Returns a system error as an InputError. Throws other errors. */
  #faultOf(error: unknown, verb: 'read' | 'change'): InputError {
    if (error instanceof InputError) return error
    if (!isSystemError(error)) throw error
    return new InputError(
      undefined,
      `can't ${verb} the keys in ${this.#path}: ${error.message}`,
      error,
    )
  }

  #read(id: string, names: ReadonlySet<string>): StoredKey | InputError {
    const version = `${this.#versionOf(`${id}.key`)}, ${this.#versionOf(`${id}.private`)}`
    const cached = this.#cache.get(id)
    if (cached?.version === version) return cached.key
    try {
      const key = readKey(this.#path, id, names)
      this.#cache.set(id, { version, key })
      return key
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      this.#cache.delete(id)
      return error
    }
  }

  /** A retired key counts too: signatures with it may be in caches. */
  #hasTag(zone: Uint8Array, tag: number): boolean {
    const names = [...namesIn(this.#path), ...namesIn(join(this.#path, REMOVED))]
    return idsOf(new Set(names)).some((id) => {
      const name = scanKeyId(id)
      return name?.tag === tag && name.zone.toLowerCase() === fileNameOf(zone).toLowerCase()
    })
  }

  #readState(zone: Uint8Array): string | undefined {
    const path = join(this.#path, stateName(zone))
    return existsSync(path) ? readPublicFile(path) : undefined
  }

  #write(name: string, text: string): void {
    const next = new NextFile(join(this.#path, name), STATE_MODE)
    try {
      const { uid, gid } = statSync(this.#path)
      if (process.geteuid?.() === 0 && uid !== 0) fchownSync(next.file, uid, gid)
      next.write(text)
      next.sync()
      if (next.put() === undefined)
        throw new InputError(undefined, `another program replaces ${name} in ${this.#path}`)
    } finally {
      next.close()
    }
  }

  #versions(): ReadonlyMap<string, string> {
    let names: readonly string[] = []
    try {
      names = namesIn(this.#path)
    } catch (error) {
      if (!isSystemError(error)) throw error
    }
    const used = names.filter((name) => /^(?:K.*\.(?:key|private)|rolls-.*\.state)$/.test(name))
    return new Map(used.map((name) => [name, this.#versionOf(name)]))
  }

  /** Returns a text that changes with the content and the permissions of a file; '' = the file is missing. */
  #versionOf(name: string): string {
    try {
      const options = { bigint: true, throwIfNoEntry: false } as const
      const stats = statSync(join(this.#path, name), options)
      return stats === undefined ? '' : `${stats.ino} ${stats.ctimeNs} ${stats.size}`
    } catch (error) {
      if (!isSystemError(error)) throw error
      return error.message
    }
  }
}

function filesOf(id: string): string[] {
  return [`${id}.key`, `${id}.private`]
}

function ignoreInputError(error: unknown): void {
  if (!(error instanceof InputError)) throw error
}

function stateName(zone: Uint8Array): string {
  return `rolls-${fileNameOf(zone)}state`
}

/** The ids of keys with a file among `names`, those in BIND's spelling before others. */
function idsOf(names: ReadonlySet<string>): string[] {
  const ids = new Set<string>()
  for (const name of names) {
    const [, id = ''] = /^(.*)\.(?:key|private)$/.exec(name) ?? []
    if (scanKeyId(id) !== undefined) ids.add(id)
  }
  return [...ids].sort()
}

/** Reads one key. @throws InputError. */
function readKey(folder: string, id: string, names: ReadonlySet<string>): StoredKey {
  const [publicFile, privateFile] = [join(folder, `${id}.key`), join(folder, `${id}.private`)]
  if (existsSync(join(folder, REMOVED, `${id}.key`))) {
    const fix = 'remove it from one of the two directories'
    throw new InputError(undefined, `${publicFile} is also in ${REMOVED}, so it is retired; ${fix}`)
  }
  if (!names.has(`${id}.key`)) {
    const fix = 'restore it, or import the private key from another folder (sextant keys import)'
    throw new InputError(undefined, `${privateFile} has no public file ${id}.key; ${fix}`)
  }
  const publicKey = readPublicKey(publicFile)
  const key = storedKey(publicKey, undefined, undefined)
  if (key.id.toLowerCase() !== id.toLowerCase()) {
    const zone = printName(key.zone)
    const message = `the file has the key ${key.id} of ${zone}, not the one that its name says`
    throw new InputError(
      { file: publicFile, line: 1 },
      `${message}; rename both files, or remove them`,
    )
  }
  if (!names.has(`${id}.private`)) return { ...key, id }
  const privateText = scanPrivateText(readPrivateFile(privateFile), privateFile)
  const { privateKey, times } = pairOf(publicKey, privateText, privateFile)
  return { ...key, id, privateKey, times }
}

/** Names of files differ in case, names of zones do not: of keys with one zone, algorithm and tag, only one is used. */
function withoutRepeated(folder: string, found: readonly (StoredKey | InputError)[]): LoadedKeys {
  const keys = new Map<string, StoredKey>()
  const faults: InputError[] = []
  const isCanonical = (key: StoredKey): boolean =>
    key.id === keyId(key.zone, key.algorithm, key.tag)
  for (const one of found) {
    if (one instanceof InputError) {
      faults.push(one)
      continue
    }
    const id = keyId(one.zone, one.algorithm, one.tag)
    const before = keys.get(id)
    const [used, refused] =
      before !== undefined && isCanonical(before) ? [before, one] : [one, before]
    keys.set(id, used)
    if (refused === undefined) continue
    const message = `${join(folder, refused.id)}.key has the zone, algorithm and tag of ${used.id}`
    faults.push(new InputError(undefined, `${message}; remove one of the two keys`))
  }
  return { keys: [...keys.values()], faults }
}
