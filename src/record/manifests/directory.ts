import { type Dirent, readdirSync, realpathSync, type Stats, statSync } from 'node:fs'
import { join, relative, sep } from 'node:path'

/** Bounds on what is walked. */
const DEPTH_MAX = 8
export const FILES_MAX = 100_000
const DIRECTORIES_MAX = 1000
/** Entries looked at before others get their turn. */
const SLICE = 256

/** A manifest file as the file system shows it. */
export interface FileStamp {
  readonly path: string
  /** Different whenever the content may be: times, size and inode. */
  readonly stamp: string
  readonly octets: number
}

export interface Listing {
  /** Sorted by path. */
  readonly files: readonly FileStamp[]
  /** Directories to watch, the root among them. */
  readonly directories: readonly string[]
  /** What was left out, and why. */
  readonly warnings: readonly string[]
}

/**
 * Finds the manifests (*.yaml, *.yml, *.json) under `root`, in subdirectories as well. Names that start
 * with a dot are passed over. A symbolic link to a file counts if it leads to a place under `root`: so
 * ConfigMap volumes work (`a.yaml` -> `..data/a.yaml`, `..data` -> `..2026_1`), and nothing outside is
 * ever read. Links to directories are not followed. Throws the file system's error where `root` itself
 * can't be listed.
 */
export async function listManifests(root: string, pause: () => Promise<void>): Promise<Listing> {
  const files: FileStamp[] = []
  const directories = [root]
  const warnings: string[] = []
  const base = realpathSync(root)
  let looked = 0
  for (let i = 0; i < directories.length; i++) {
    const directory = directories[i]!
    for (const entry of listEntries(directory, directory === root)) {
      if (++looked % SLICE === 0) await pause()
      const path = join(directory, entry.name)
      if (entry.name.startsWith('.')) continue
      if (entry.isDirectory()) {
        const depth = relative(root, path).split(sep).length
        if (depth <= DEPTH_MAX && directories.length < DIRECTORIES_MAX) directories.push(path)
        else warnings.push(`${path}: not read, there are too many directories above or beside it`)
      } else if (isManifest(entry.name)) {
        const stamp = stampManifest(path, base, warnings)
        if (stamp !== undefined) files.push(stamp)
      }
    }
  }
  if (files.length > FILES_MAX) {
    warnings.push(`${root}: only the first ${FILES_MAX} of ${files.length} files are read`)
  }
  files.sort((a, b) => (a.path < b.path ? -1 : 1))
  return { files: files.slice(0, FILES_MAX), directories, warnings }
}

export function isManifest(name: string): boolean {
  return !name.startsWith('.') && /\.(?:ya?ml|json)$/.test(name)
}

/** The present state of one file; undefined where there is none, or it lies outside `base`. */
export function stampManifest(
  path: string,
  base: string,
  warnings: string[],
): FileStamp | undefined {
  let stats: Stats
  try {
    const real = realpathSync(path)
    if (!real.startsWith(base + sep)) {
      warnings.push(`${path}: not read, it leads out of the directory to ${real}`)
      return undefined
    }
    stats = statSync(real)
  } catch (error) {
    if (!isSystemError(error)) throw error
    return undefined
  }
  if (!stats.isFile()) return undefined
  const { mtimeMs, ctimeMs, size, ino } = stats
  return { path, stamp: `${mtimeMs} ${ctimeMs} ${size} ${ino}`, octets: size }
}

export function isSystemError(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'syscall' in error
}

/** A subdirectory may vanish or be closed to us while we walk; the root may not. */
function listEntries(directory: string, isRoot: boolean): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch (error) {
    if (isRoot || !isSystemError(error)) throw error
    return []
  }
}
