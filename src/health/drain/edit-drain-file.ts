import { readFileSync, readlinkSync, realpathSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { InputError } from '../../base/errors.ts'
import { isSystemError } from '../../base/system-error.ts'
import { NextFile, stampOf } from '../../persist/next-file.ts'
import { type EndpointDrain, isActive } from './drain.ts'
import { readDrainFile } from './drain-file.ts'
import { printDrainLine, scanDrains } from './drain-text.ts'

/** Maximum wait for another process that edits the file. An edit takes milliseconds. */
const LOCK_MS_MAX = 5000
const LOCK_RETRY_MS = 20
/** Maximum number of attempts if an editor writes the file at the same time. */
const TRIES_MAX = 8
const MODE = 0o644
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
    const release = await lock(`${target}.lock`)
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
  if (problem !== undefined)
    throw new InputError(undefined, `drain file ${path}: ${problem.message}`)
  const next = new NextFile(path, MODE)
  try {
    next.write(written)
    next.sync()
    return next.put(stamp) !== undefined
  } finally {
    next.close()
  }
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

/**
 * Locks with a symbolic link that names this process, because a link is never half written, even if
 * the disk is full. Returns the function that removes it.
 */
async function lock(path: string): Promise<() => void> {
  const endMs = performance.now() + LOCK_MS_MAX
  for (;;) {
    if (create(path)) return () => rmSync(path, { force: true })
    const holder = readHolder(path)
    if (holder !== '' && !isRunning(holder)) removeStale(path, holder)
    else if (performance.now() < endMs) await delay(LOCK_RETRY_MS)
    else {
      const who = holder === '' ? 'another process' : `process ${holder}`
      const message = `${path} exists: ${who} edits the drain file; remove the lock if that process does not run`
      throw new InputError(undefined, message)
    }
  }
}

/** Returns false if the file exists. */
function create(path: string): boolean {
  try {
    symlinkSync(String(process.pid), path)
    return true
  } catch (error) {
    if (!isSystemError(error) || error.code !== 'EEXIST') throw error
    return false
  }
}

/** Returns the process id in the lock; '' = the lock was released, or is no link. */
function readHolder(path: string): string {
  try {
    return readlinkSync(path)
  } catch (error) {
    if (!isSystemError(error) || (error.code !== 'ENOENT' && error.code !== 'EINVAL')) throw error
    return ''
  }
}

function isRunning(holder: string): boolean {
  const pid = Number(holder)
  if (!Number.isSafeInteger(pid) || pid <= 0) return true
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return !isSystemError(error) || error.code !== 'ESRCH'
  }
}

/** Removes the lock of a process that died. If another process replaced it meanwhile, it is put back. */
function removeStale(path: string, holder: string): void {
  const aside = `${path}.${process.pid}`
  try {
    renameSync(path, aside)
    const found = readHolder(aside)
    rmSync(aside, { force: true })
    if (found !== '' && found !== holder) symlinkSync(found, path)
  } catch (error) {
    // Another process removed the stale lock first, or locked the file since.
    if (!isSystemError(error) || (error.code !== 'ENOENT' && error.code !== 'EEXIST')) throw error
  }
}
