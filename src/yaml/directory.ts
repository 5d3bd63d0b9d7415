import {
  type Dir,
  type Dirent,
  lstatSync,
  opendirSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs'
import { join, relative, sep } from 'node:path'
import { isSystemError } from '../base/system-error.ts'

/** Bounds on the directory walk. */
const DEPTH_MAX = 8
const FILES_MAX = 100_000
const DIRECTORIES_MAX = 1000
/** Entries processed before other work runs. */
const SLICE = 256
/** Files that are sorted between two pauses. */
const SORTED_MAX = 4096
/** Endings of the names of manifests, for messages. */
const ENDINGS = '.yaml, .yml or .json'

/** The metadata of a manifest file in the file system. */
export interface ManifestStamp {
  readonly path: string
  /** Differs if the content may differ: times, size and inode. */
  readonly stamp: string
  readonly octets: number
  readonly inode: number
}

export interface Listing {
  /** Sorted by path. */
  readonly files: readonly ManifestStamp[]
  /** Directories to watch, including the root. */
  readonly directories: readonly string[]
  /** Files that were skipped, and why. */
  readonly warnings: readonly string[]
}

/**
 * Finds the manifests (*.yaml, *.yml, *.json) under `root` and its subdirectories. Names that start
 * with a dot are skipped. A symbolic link to a file counts if its target is under `root`. So
 * ConfigMap volumes work (`a.yaml` -> `..data/a.yaml`, `..data` -> `..2026_1`), and no file outside
 * is ever read. Links to directories are not followed. Throws the file system's error if `root`
 * itself cannot be listed.
 */
export async function listManifests(root: string, pause: () => Promise<void>): Promise<Listing> {
  const files: ManifestStamp[] = []
  const directories = [root]
  const warnings: string[] = []
  const base = realpathSync(root)
  let seen = 0
  for (let i = 0; i < directories.length; i++) {
    const directory = directories[i]!
    for (const entry of entriesOf(directory, directory === root)) {
      if (++seen % SLICE === 0) await pause()
      const path = join(directory, entry.name)
      if (entry.name.startsWith('.')) continue
      if (entry.isDirectory()) {
        const depth = relative(root, path).split(sep).length
        if (depth <= DEPTH_MAX && directories.length < DIRECTORIES_MAX) directories.push(path)
        else warnings.push(`${path}: not read, there are too many directories above or beside it`)
      } else if (isNearlyManifest(entry.name)) {
        warnings.push(`${path}: not read: the name of a manifest ends with ${ENDINGS}`)
      } else if (isManifest(entry.name)) {
        // Only links need their path resolved, which takes longer than reading the metadata.
        const stamp = entry.isFile() ? stampFile(path) : stampManifest(path, base, warnings)
        if (stamp !== undefined) files.push(stamp)
        // Node.js decodes names. A name that is not UTF-8 becomes a name that no file has.
        else if (entry.name.includes('\ufffd')) {
          warnings.push(`${path}: not read, its name is not valid UTF-8: rename the file`)
        }
      }
    }
  }
  if (files.length > FILES_MAX) {
    warnings.push(`${root}: only the first ${FILES_MAX} of ${files.length} files are read`)
  }
  const sorted = await sortByPath(files, pause)
  return { files: sorted.slice(0, FILES_MAX), directories, warnings }
}

/** Sorts and merges runs, with pauses in between. Sorting 100 000 files at once takes 0.1 s. */
async function sortByPath(
  files: readonly ManifestStamp[],
  pause: () => Promise<void>,
): Promise<readonly ManifestStamp[]> {
  let runs: ManifestStamp[][] = []
  for (let at = 0; at < files.length; at += SORTED_MAX) {
    runs.push(files.slice(at, at + SORTED_MAX).sort((a, b) => (a.path < b.path ? -1 : 1)))
    await pause()
  }
  while (runs.length > 1) {
    const merged: ManifestStamp[][] = []
    for (let i = 0; i < runs.length; i += 2) {
      merged.push(await mergeRuns(runs[i]!, runs[i + 1] ?? [], pause))
    }
    runs = merged
  }
  return runs[0] ?? []
}

async function mergeRuns(
  a: readonly ManifestStamp[],
  b: readonly ManifestStamp[],
  pause: () => Promise<void>,
): Promise<ManifestStamp[]> {
  const merged: ManifestStamp[] = []
  let atA = 0
  let atB = 0
  while (atA < a.length || atB < b.length) {
    const isOfA = atB === b.length || (atA < a.length && a[atA]!.path < b[atB]!.path)
    merged.push(isOfA ? a[atA++]! : b[atB++]!)
    if (merged.length % SORTED_MAX === 0) await pause()
  }
  return merged
}

/** Case matters, as for kubectl. Editors of some systems add the ending of a text. */
function isNearlyManifest(name: string): boolean {
  return !isManifest(name) && /\.(?:ya?ml|json)(?:\.txt)?$/i.test(name)
}

/** Returns the warning for a directory that has no manifest. */
export function noManifests(directory: string): string {
  return `${directory}: no file is a manifest: the name of a manifest ends with ${ENDINGS}`
}

export function isManifest(name: string): boolean {
  return !name.startsWith('.') && /\.(?:ya?ml|json)$/.test(name)
}

/**
 * Returns the current state of one file, following links; undefined if it is missing or outside
 * `base`.
 */
export function stampManifest(
  path: string,
  base: string,
  warnings: string[],
): ManifestStamp | undefined {
  let stats: Stats
  try {
    const real = realpathSync.native(path)
    if (!real.startsWith(base + sep)) {
      warnings.push(`${path}: not read, its target ${real} is outside of the directory`)
      return undefined
    }
    stats = statSync(real)
  } catch (error) {
    if (!isSystemError(error)) throw error
    return undefined
  }
  return stampOf(path, stats)
}

/** As `stampManifest`, for a path that is not a link. */
function stampFile(path: string): ManifestStamp | undefined {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false })
    return stats === undefined ? undefined : stampOf(path, stats)
  } catch (error) {
    if (!isSystemError(error)) throw error
    return undefined
  }
}

function stampOf(path: string, stats: Stats): ManifestStamp | undefined {
  if (!stats.isFile()) return undefined
  const { mtimeMs, ctimeMs, size, ino } = stats
  return { path, stamp: `${mtimeMs} ${ctimeMs} ${size} ${ino}`, octets: size, inode: ino }
}

/** Reads entries on demand, because reading a hundred thousand at once would block the thread. */
function* entriesOf(directory: string, isRoot: boolean): Generator<Dirent, void> {
  const opened = openDirectory(directory, isRoot)
  if (opened === undefined) return
  try {
    for (let entry = opened.readSync(); entry !== null; entry = opened.readSync()) yield entry
  } finally {
    opened.closeSync()
  }
}

/** A subdirectory may vanish or become unreadable during the walk; the root must not. */
function openDirectory(directory: string, isRoot: boolean): Dir | undefined {
  try {
    return opendirSync(directory, { bufferSize: SLICE })
  } catch (error) {
    if (isRoot || !isSystemError(error)) throw error
    return undefined
  }
}
