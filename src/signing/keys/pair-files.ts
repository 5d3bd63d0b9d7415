import {
  chownSync,
  closeSync,
  existsSync,
  fchownSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { InputError } from '../../base/errors.ts'
import { isSystemError } from '../../base/system-error.ts'
import { scanKeyId } from './key-name.ts'

// A process that is killed at any time leaves the files of a key as they were, or as they should be after `recover`.

/** The folder for keys that are no longer in use, inside the one of the keys. */
export const REMOVED = 'removed'
/** Ending of a file that is not complete yet. */
const NEXT = '.new'
const PRIVATE_MODE = 0o600
const PUBLIC_MODE = 0o644
const FOLDER_MODE = 0o700
/** What a file system without hard links returns. */
const LINKLESS: readonly string[] = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']

/** The texts of both files of a key; `privateText` is undefined if only the public key is known. */
export interface PairTexts {
  readonly publicText: string
  readonly privateText: string | undefined
}

/** Makes the folder of keys if it is missing. Throws the system's error. */
export function makeKeyFolder(folder: string): void {
  if (!existsSync(folder)) mkdirSync(folder, { recursive: true, mode: FOLDER_MODE })
}

/**
 * Stores the files of a new key; none of them may exist. Both are written beside their places first, so that neither a
 * full disk nor a kill leaves a part. The caller has the lock of the folder. @throws InputError if a file exists, or
 * the system's error; then nothing was stored.
 */
export function storePair(folder: string, id: string, texts: PairTexts): void {
  const base = join(folder, id)
  const files: { readonly path: string; readonly text: string; readonly mode: number }[] = []
  // The private file in its place means that both are complete: see `recover`.
  if (texts.privateText !== undefined)
    files.push({ path: `${base}.private`, text: texts.privateText, mode: PRIVATE_MODE })
  files.push({ path: `${base}.key`, text: texts.publicText, mode: PUBLIC_MODE })
  const taken = [`${base}.private`, `${base}.key`].find((path) => existsSync(path))
  if (taken !== undefined)
    throw new InputError(undefined, `${taken} exists; a key file is never replaced`)
  const placed: string[] = []
  try {
    for (const { path, text, mode } of files) writeWhole(`${path}${NEXT}`, text, mode, folder)
    syncFolder(folder)
    for (const { path } of files) {
      placeNew(`${path}${NEXT}`, path)
      placed.push(path)
    }
    syncFolder(folder)
  } catch (error) {
    for (const path of placed) rmSync(path, { force: true })
    throw error
  } finally {
    for (const { path } of files) rmSync(`${path}${NEXT}`, { force: true })
  }
}

/** Moves the files of a key to the folder `removed`. The caller has the lock. Throws the system's error. */
export function retirePair(folder: string, id: string): void {
  const removed = join(folder, REMOVED)
  if (!existsSync(removed)) {
    mkdirSync(removed, { mode: FOLDER_MODE })
    giveToOwner((uid, gid) => chownSync(removed, uid, gid), folder)
  }
  // The public file in `removed` means that the key is out of use: see `recover`.
  for (const ending of ['key', 'private']) {
    const from = join(folder, `${id}.${ending}`)
    if (existsSync(from)) moveNew(from, join(removed, `${id}.${ending}`))
  }
  syncFolder(removed)
  syncFolder(folder)
}

/** Names of the files in a folder; none if it does not exist. Throws the system's error. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if (!isSystemError(error) || error.code !== 'ENOENT') throw error
    return []
  }
}

/** True if a process was killed while it changed a key, or is changing one now. */
export function hasLeftovers(folder: string, names: readonly string[]): boolean {
  return leftoverIds(names).length > 0 || halfRetired(folder, names).length > 0
}

/** Completes or undoes what killed processes began. The caller has the lock. Throws the system's error. */
export function recover(folder: string): void {
  const names = namesIn(folder)
  for (const id of leftoverIds(names)) {
    const base = join(folder, id)
    const isStored = existsSync(`${base}.private`) && !existsSync(`${base}.key`)
    if (isStored && existsSync(`${base}.key${NEXT}`)) placeNew(`${base}.key${NEXT}`, `${base}.key`)
    for (const ending of ['private', 'key']) rmSync(`${base}.${ending}${NEXT}`, { force: true })
  }
  for (const id of halfRetired(folder, names)) retirePair(folder, id)
}

function leftoverIds(names: readonly string[]): string[] {
  const ids = names
    .map((name) => /^(.*)\.(?:key|private)\.new$/.exec(name)?.[1] ?? '')
    .filter((id) => scanKeyId(id) !== undefined)
  return [...new Set(ids)]
}

/** Keys with one file in `removed` and the same one, or the other one, still in use. */
function halfRetired(folder: string, names: readonly string[]): string[] {
  const removed = new Set(namesIn(join(folder, REMOVED)))
  const inUse = new Set(names)
  return [...removed]
    .filter((name) => name.endsWith('.key'))
    .map((name) => name.slice(0, -'.key'.length))
    .filter((id) => {
      const isMoved = (name: string): boolean => {
        return isSameFile(join(folder, name), join(folder, REMOVED, name))
      }
      const [publicFile, privateFile] = [`${id}.key`, `${id}.private`]
      if (inUse.has(publicFile)) return isMoved(publicFile)
      return inUse.has(privateFile) && (!removed.has(privateFile) || isMoved(privateFile))
    })
}

function isSameFile(a: string, b: string): boolean {
  const [one, other] = [a, b].map((path) => statSync(path, { throwIfNoEntry: false }))
  return one !== undefined && one.ino === other?.ino && one.dev === other.dev
}

function writeWhole(path: string, text: string, mode: number, folder: string): void {
  const file = openSync(path, 'wx', mode)
  try {
    giveToOwner((uid, gid) => fchownSync(file, uid, gid), folder)
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

/** Root may make keys for a server that runs as another user: the owner of the folder gets them. */
function giveToOwner(chown: (uid: number, gid: number) => void, folder: string): void {
  if (process.geteuid?.() !== 0) return
  const { uid, gid } = statSync(folder)
  if (uid !== 0) chown(uid, gid)
}

/** Gives a complete file its name. Unlike `rename`, `link` never replaces a file, and leaves `from`. */
function placeNew(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch (error) {
    if (!isSystemError(error) || !LINKLESS.includes(error.code)) throw error
    if (existsSync(to))
      throw new InputError(undefined, `${to} exists; a key file is never replaced`)
    renameSync(from, to)
  }
}

function moveNew(from: string, to: string): void {
  if (!isSameFile(from, to)) placeNew(from, to)
  rmSync(from, { force: true })
}

function syncFolder(folder: string): void {
  const file = openSync(folder, 'r')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}
