import { readFileSync, readlinkSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { InputError } from '../errors.ts'
import { isSystemError } from '../system-error.ts'

/** Maximum wait for another process. A change under the lock takes milliseconds. */
const LOCK_MS_MAX = 5000
const LOCK_RETRY_MS = 20
/** Index of `starttime` among the fields of `/proc/PID/stat` that follow the name. */
const START_FIELD = 19

/**
 * Locks a file against other processes that call this function. The lock, `<file>.lock`, is a symbolic link that names
 * this process, because a link is never half written, even if the disk is full. Resolves to the function that removes
 * it. Rejects with InputError if another process keeps the lock, or with the system's error.
 */
export async function lockFile(file: string): Promise<() => void> {
  const path = `${file}.lock`
  const endMs = performance.now() + LOCK_MS_MAX
  for (;;) {
    if (create(path)) return () => rmSync(path, { force: true })
    const holder = readHolder(path)
    if (holder !== '' && !isRunning(holder)) removeStale(path, holder)
    else if (performance.now() < endMs) await delay(LOCK_RETRY_MS)
    else {
      const who = holder === '' ? 'another process' : `process ${holder.split(' ')[0]}`
      const message = `${path} exists: ${who} changes the file; remove the lock if that process does not run`
      throw new InputError(undefined, message)
    }
  }
}

/** Returns false if the file exists. */
function create(path: string): boolean {
  try {
    symlinkSync(`${process.pid} ${startOf(process.pid)}`, path)
    return true
  } catch (error) {
    if (!isSystemError(error) || error.code !== 'EEXIST') throw error
    return false
  }
}

/** Returns the process id in the lock, and the start of that process; '' = the lock was released, or is no link. */
function readHolder(path: string): string {
  try {
    return readlinkSync(path)
  } catch (error) {
    if (!isSystemError(error) || (error.code !== 'ENOENT' && error.code !== 'EINVAL')) throw error
    return ''
  }
}

/** A container that is restarted has the same process ids as before, so the start counts as well. */
function isRunning(holder: string): boolean {
  const [id, start = ''] = holder.split(' ')
  const pid = Number(id)
  if (!Number.isSafeInteger(pid) || pid <= 0) return true
  try {
    process.kill(pid, 0)
    const found = startOf(pid)
    return start === '' || found === '' || start === found
  } catch (error) {
    return !isSystemError(error) || error.code !== 'ESRCH'
  }
}

/** Returns when a process was started, in ticks since the start of the system; '' = unknown. */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The second field is the name of the program in parentheses, and may contain any character.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[START_FIELD] ?? ''
  } catch (error) {
    if (!isSystemError(error)) throw error
    return ''
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
