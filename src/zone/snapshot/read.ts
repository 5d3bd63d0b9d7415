import { createHash, type Hash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { InputError } from '../../base/errors.ts'
import { Arena } from '../image/arena.ts'
import type { WrittenArena } from '../image/compact.ts'
import { restoreArena, type SteeringCheck } from '../image/restore.ts'
import { CHECKSUM, CHECKSUM_OCTETS, fileOctets, PREAMBLE_OCTETS, scanPreamble } from './format.ts'

const STEP_OCTETS = 4 * 1024 * 1024

/** Why a file is not used. */
export interface RefusedSnapshot {
  readonly kind: 'refused'
  readonly reason: string
}

/** What a file holds; nothing in it was looked at yet, but every octet is as it was written. */
export interface ReadSnapshot {
  readonly kind: 'read'
  /** As it was given to `writeSnapshot`: JSON. */
  readonly facts: string
  readonly octets: number
  readonly arena: Arena
}

export function refuse(reason: string): RefusedSnapshot {
  return { kind: 'refused', reason }
}

/** Reads a snapshot file; undefined where there is none. Whatever the file is, this does not throw. */
export function readSnapshot(path: string): ReadSnapshot | RefusedSnapshot | undefined {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
  let file: number
  try {
    // Without waiting for the other end of a pipe.
    file = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    return refuse(code === 'ELOOP' ? 'it is a symbolic link' : message)
  }
  try {
    return readOpened(file)
  } catch (error) {
    if (!(error instanceof Error)) throw error
    // The disk, or no memory for what it says it holds.
    if (!(error instanceof InputError) && !('syscall' in error)) throw error
    return refuse(error.message)
  } finally {
    closeSync(file)
  }
}

/** Takes over the arena; see `restoreArena`. */
export function restoreSnapshot(
  { arena }: ReadSnapshot,
  checkSteering: SteeringCheck,
): WrittenArena | RefusedSnapshot {
  const restored = restoreArena(arena, checkSteering)
  return restored ?? refuse('it holds no zone image of this machine')
}

function readOpened(file: number): ReadSnapshot | RefusedSnapshot {
  const stats = fstatSync(file)
  if (!stats.isFile()) return refuse('it is no file')
  const hash = createHash(CHECKSUM)
  const preamble = Buffer.alloc(Math.min(PREAMBLE_OCTETS, stats.size))
  readAll(file, preamble, hash)
  const sizes = scanPreamble(preamble)
  if (typeof sizes === 'string') return refuse(sizes)
  const octets = fileOctets(sizes)
  if (stats.size !== octets) return refuse(`it is torn: ${stats.size} of ${octets} octets`)
  const facts = Buffer.alloc(sizes.factsOctets)
  readAll(file, facts, hash)
  const arena = Arena.restore(sizes.arenaOctets, (target) => readAll(file, target, hash))
  const checksum = Buffer.alloc(CHECKSUM_OCTETS)
  const isRead = readAll(file, checksum) && arena !== undefined
  if (!isRead || !checksum.equals(hash.digest())) {
    return refuse('it is damaged: its checksum is wrong')
  }
  return { kind: 'read', facts: facts.toString('utf8'), octets, arena }
}

/** Fills `target` with what comes next in the file; false if it ends before. */
function readAll(file: number, target: Buffer, hash?: Hash): boolean {
  for (let at = 0; at < target.length; ) {
    const octets = readSync(file, target, at, Math.min(STEP_OCTETS, target.length - at), null)
    if (octets === 0) return false
    hash?.update(target.subarray(at, at + octets))
    at += octets
  }
  return true
}
