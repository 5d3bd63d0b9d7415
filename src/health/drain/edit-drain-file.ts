import { fchmodSync, fchownSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { InputError } from '../../base/errors.ts'
import { lockFile } from '../../base/persist/lock-file.ts'
import { NextFile } from '../../base/persist/next-file.ts'
import { stampOf } from '../../base/stat.ts'
import { isSystemError } from '../../base/system-error.ts'
import { type EndpointDrain, isActive } from './drain.ts'
import { readDrainFile } from './drain-file.ts'
import { DRAIN_FILE_OCTETS_MAX, printDrainLine, scanDrains } from './drain-text.ts'

/** Maximum number of attempts if an editor writes the file at the same time. */
const TRIES_MAX = 8
/** Of a new file, and the bits that a new version of a file keeps. */
const MODE = 0o644
const PERMISSIONS = 0o777
const HEADER = '# Drains, one per line: SELECTOR... until=TIME by=NAME created=TIME reason="TEXT"\n'

/** A change of a drain file. Throws InputError to change nothing. */
export type DrainEdit = (drains: readonly EndpointDrain[]) => {
  readonly removed: readonly EndpointDrain[]
  readonly added: readonly EndpointDrain[]
}

/**
 * Changes a drain file in one step. Processes that edit the file at the same time lose nothing: they
 * take turns. Comments and all other lines are kept, except drains that have ended. Rejects with an
 * InputError if the file is invalid or can't be written.
 */
export async function editDrainFile(path: string, nowMs: number, edit: DrainEdit): Promise<void> {
  try {
    const target = resolveLink(path)
    const release = await lockFile(target)
    try {
      for (let tries = 0; tries < TRIES_MAX; tries++) if (replace(target, nowMs, edit)) return
    } finally {
      release()
    }
    throw new InputError(undefined, `${path}: another process writes it constantly`)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw new InputError(undefined, `drain file ${path}: ${error.message}`, error)
  }
}

/** Returns false if the file changed meanwhile. */
function replace(path: string, nowMs: number, edit: DrainEdit): boolean {
  const stamp = stampOf(path)
  const [fault] = readDrainFile(path).faults
  if (fault !== undefined) {
    throw new InputError(fault.position, `${fault.message}; correct the drain file first`, fault)
  }
  const text = stamp === '' ? HEADER : readFileSync(path, 'utf8')
  const { drains } = scanDrains(text, path)
  const { removed, added } = edit(drains.map(({ drain }) => drain))
  const dropped = drains.filter(({ drain }) => removed.includes(drain) || !isActive(drain, nowMs))
  const lines = new Set(dropped.map(({ line }) => line))
  const kept = text.split('\n').filter((_, i) => !lines.has(i + 1))
  if (kept.at(-1) === '') kept.pop()
  const written = [...kept, ...added.map(printDrainLine)].map((line) => `${line}\n`).join('')
  const [problem] = scanDrains(written, path).faults
  const isTooLong = Buffer.byteLength(written) > DRAIN_FILE_OCTETS_MAX
  const refusal = isTooLong ? 'it would be larger than 1 MiB; end drains first' : problem?.message
  if (refusal !== undefined) throw new InputError(undefined, `drain file ${path}: ${refusal}`)
  const next = new NextFile(path, MODE)
  try {
    copyPermissions(path, next.file)
    next.write(written)
    next.sync()
    return next.put(stamp) !== undefined
  } finally {
    next.close()
  }
}

/** Else the server could not read a file that root has edited. `file`: descriptor of the new version. */
function copyPermissions(path: string, file: number): void {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return
  try {
    fchownSync(file, stats.uid, stats.gid)
  } catch (error) {
    // Only root can keep the owner, and the group only its members.
    if (!isSystemError(error) || error.code !== 'EPERM') throw error
  }
  fchmodSync(file, stats.mode & PERMISSIONS)
}

/** Returns the file that a symbolic link leads to, so that an edit does not replace the link. */
function resolveLink(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    if (!isSystemError(error) || error.code !== 'ENOENT') throw error
    return path
  }
}
