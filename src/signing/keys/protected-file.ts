import { closeSync, constants, fstatSync, openSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { InputError } from '../../base/errors.ts'
import { readAtMost } from '../../base/read.ts'
import { isSystemError } from '../../base/system-error.ts'

/** The largest key, RSA with 4096 bits, has 4 KiB. */
const OCTETS_MAX = 64 * 1024
const GROUP_READS = 0o040
const OTHERS_WRITE = 0o002
/** What a private key must not have: any permission of the group and of others. */
const GROUP_AND_OTHERS = 0o077
const ROOT = 0

/** Reads a file with a private key. @throws InputError if other users can read or replace its content. */
export function readPrivateFile(path: string): string {
  return readChecked(path, (stats) => ownerFault(path, stats) || privateFault(path, stats))
}

/** Reads a file with a public key. @throws InputError if other users can change its content. */
export function readPublicFile(path: string): string {
  return readChecked(path, (stats) => ownerFault(path, stats) || writersFault(path, stats))
}

/** Returns why a folder for keys is refused; '' = it is not. */
export function folderFault(path: string, stats: Stats): string {
  if (!stats.isDirectory()) return `${path} is not a directory`
  return writersFault(path, stats)
}

function readChecked(path: string, faultOf: (stats: Stats) => string): string {
  let octets: Buffer | undefined
  try {
    // O_NONBLOCK: opening a pipe would wait for its writer.
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      const stats = fstatSync(descriptor)
      const fault = stats.isFile() ? faultOf(stats) : `${path} is not a regular file`
      if (fault !== '') throw new InputError(undefined, fault)
      octets = readAtMost(descriptor, OCTETS_MAX)
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw new InputError(undefined, `can't read ${path}: ${error.message}`, error)
  }
  if (octets === undefined)
    throw new InputError(undefined, `${path} is larger than ${OCTETS_MAX} octets: it is not a key`)
  return octets.toString('utf8')
}

/** The owner can change the content whatever the permissions are. */
function ownerFault(path: string, { uid }: Stats): string {
  const user = userId()
  if (uid === user || uid === ROOT) return ''
  // Root may manage the keys of a server that runs as another user.
  if (user === ROOT && statSync(dirname(path)).uid === uid) return ''
  return `${path} belongs to user ${uid}, not to user ${user} that reads it; run chown ${user} ${path}`
}

/** As PostgreSQL: the group may read a file of root, because Kubernetes gives the files of Secrets to a group. */
function privateFault(path: string, { mode, uid }: Stats): string {
  const excess = mode & GROUP_AND_OTHERS
  if (excess === 0) return ''
  if (excess === GROUP_READS && uid === ROOT && userId() !== ROOT) return ''
  return `other users can read the private key ${path}, its mode is ${printMode(mode)}; run chmod 600 ${path}`
}

function writersFault(path: string, { mode }: Stats): string {
  if ((mode & OTHERS_WRITE) === 0) return ''
  return `any user can write ${path}, its mode is ${printMode(mode)}; run chmod o-w ${path}`
}

function printMode(mode: number): string {
  return (mode & 0o777).toString(8).padStart(4, '0')
}

function userId(): number {
  return process.geteuid?.() ?? ROOT
}
