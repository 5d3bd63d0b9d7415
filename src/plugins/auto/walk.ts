import { type Dirent, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { statIfAny } from '../../base/stat.ts'
import { lowerName, nameKey, printName, ROOT_NAME, scanName } from '../../dns/name/name.ts'
import { reason } from '../../zone/zonefile/text.ts'
import type { FilePattern } from './file-pattern.ts'

/** Deepest directory below the configured one: symbolic links can form circles. */
const DEPTH_MAX = 32
/** Most files and directories visited. */
const ENTRIES_MAX = 1_000_000

/** Files between two pauses. */
const SLICE_FILES = 64

/** A file that the pattern accepts as a zone file. */
export interface FoundZone {
  /** Lower-case wire form. */
  readonly zone: Uint8Array
  readonly key: string
  readonly path: string
}

/** By name key, in order of the paths. */
export type FoundZones = ReadonlyMap<string, FoundZone>

/**
 * All zone files below a directory; pauses now and then. Files may be symbolic links;
 * directories below the first may not. If two files are for one origin, the first is used. `warn`
 * is called with that, and with everything that can't be read. Returns undefined if the directory
 * itself can't be read: then nothing is known. `before`: what the last search found.
 */
export function* findZoneFiles(
  directory: string,
  pattern: FilePattern,
  warn: (text: string) => void,
  before: FoundZones = new Map(),
): Generator<void, FoundZones | undefined> {
  const files = yield* filesBelow(directory, warn)
  if (files === undefined) return undefined
  const found = new Map<string, FoundZone>()
  const known = before.values()
  let next = known.next().value
  for (const [i, path] of files.entries()) {
    if (i % SLICE_FILES === 0) yield
    while (next !== undefined && next.path < path) next = known.next().value
    const file = next?.path === path ? next : scanPath(path, pattern, warn)
    if (file === undefined) continue
    const previous = found.get(file.key)
    if (previous === undefined) found.set(file.key, file)
    else warn(multiple(file.zone, path, previous.path))
  }
  return found
}

/** Returns undefined if the file is not one of a zone. */
function scanPath(
  path: string,
  pattern: FilePattern,
  warn: (text: string) => void,
): FoundZone | undefined {
  const origin = pattern.origin(basename(path))
  if (origin === undefined) return undefined
  const name = scanName(origin, ROOT_NAME)
  if (name === undefined) {
    warn(`${path}: ${JSON.stringify(origin)} is not a domain name; rename the file`)
    return undefined
  }
  const zone = lowerName(name)
  return { zone, key: nameKey(zone), path }
}

function multiple(zone: Uint8Array, path: string, previous: string): string {
  const origin = JSON.stringify(printName(zone))
  const [used, ignored] = [JSON.stringify(previous), JSON.stringify(path)]
  return `Multiple zone files match origin ${origin}: using ${used} instead of ${ignored}`
}

/** In order of the paths. */
function* filesBelow(
  directory: string,
  warn: (text: string) => void,
): Generator<void, string[] | undefined> {
  // The directory itself may be a link, as in a mounted ConfigMap. Links inside it are not followed.
  const top = listDirectory(directory, warn)
  if (top === undefined) return undefined
  const files: string[] = []
  const waiting = top.map((entry) => ({ entry, path: join(directory, entry.name), depth: 0 }))
  let entryCount = 0
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { entry, path, depth } = next
    if (entryCount % SLICE_FILES === 0) yield
    if (++entryCount > ENTRIES_MAX) {
      warn(`${directory}: more than ${ENTRIES_MAX} files; the rest is ignored`)
      break
    }
    if (entry.isFile() || (entry.isSymbolicLink() && isFile(path))) files.push(path)
    else if (entry.isDirectory() && depth < DEPTH_MAX && !isVersion(entry.name)) {
      for (const inner of listDirectory(path, warn) ?? []) {
        waiting.push({ entry: inner, path: join(path, inner.name), depth: depth + 1 })
      }
    }
  }
  return files.sort()
}

/** True for a directory in which Kubernetes keeps the files of a mounted volume: links lead to them. */
function isVersion(name: string): boolean {
  return name.startsWith('..')
}

function listDirectory(directory: string, warn: (text: string) => void): Dirent[] | undefined {
  try {
    return readdirSync(directory, { withFileTypes: true })
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      warn(`Directory does not exist: ${directory}`)
    } else warn(`error reading ${directory}: ${reason(error)}`)
    return undefined
  }
}

function isFile(path: string): boolean {
  return statIfAny(path)?.isFile() ?? false
}
