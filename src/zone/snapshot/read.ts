import { createHash, type Hash } from 'node:crypto'
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs'
import { InputError } from '../../base/errors.ts'
import { runWhole } from '../../base/slices.ts'
import { Arena } from '../image/arena.ts'
import type { WrittenArena } from '../image/compact.ts'
import { type RestoreOptions, restoreArena, type SteeringCheck } from '../image/restore.ts'
import { CHECKSUM, CHECKSUM_OCTETS, fileOctets, PREAMBLE_OCTETS, scanPreamble } from './format.ts'

/** Octets between two pauses: some milliseconds. */
const STEP_OCTETS = 1024 * 1024

/** The reason why a file is not used. */
export interface RefusedSnapshot {
  readonly kind: 'refused'
  readonly reason: string
}

/** The content of a file. The checksum is verified; the content itself is not validated yet. */
interface ReadSnapshot {
  readonly kind: 'read'
  /** JSON, as the caller passed it to `writeSnapshot`. */
  readonly facts: string
  readonly octets: number
  readonly arena: Arena
}

export function refuse(reason: string): RefusedSnapshot {
  return { kind: 'refused', reason }
}

/** Reads a snapshot file; undefined if it does not exist. Never throws, whatever the file contains. */
export function readSnapshot(path: string): ReadSnapshot | RefusedSnapshot | undefined {
  return runWhole(readInSlices(path))
}

/**
 * As `readSnapshot`; pauses now and then. `check` gets the facts first, and returns why the rest is not needed; '' = it
 * is. The facts may still be damaged then.
 */
export function* readInSlices(
  path: string,
  check: (facts: string) => string = () => '',
): Generator<void, ReadSnapshot | RefusedSnapshot | undefined> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
  let file: number
  try {
    // O_NONBLOCK: opening a pipe would wait for its writer.
    file = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    return refuse(code === 'ELOOP' ? 'it is a symbolic link' : message)
  }
  try {
    return yield* readOpened(file, check)
  } catch (error) {
    if (!(error instanceof Error)) throw error
    // Expected: a failed read, or too little memory for the sizes in the file.
    if (!(error instanceof InputError) && !('syscall' in error)) throw error
    return refuse(error.message)
  } finally {
    closeSync(file)
  }
}

/** Validates the arena and makes an image of it; see `restoreArena`. */
export function restoreSnapshot(
  read: ReadSnapshot,
  checkSteering: SteeringCheck,
): WrittenArena | RefusedSnapshot {
  return runWhole(restoreInSlices(read, { checkSteering, mayBeSigned: true }))
}

/** As `restoreSnapshot`; pauses now and then. */
export function* restoreInSlices(
  { arena }: ReadSnapshot,
  options: RestoreOptions,
): Generator<void, WrittenArena | RefusedSnapshot> {
  const restored = yield* restoreArena(arena, options)
  return restored ?? refuse('it has no zone image of this kind of machine')
}

function* readOpened(
  file: number,
  check: (facts: string) => string,
): Generator<void, ReadSnapshot | RefusedSnapshot> {
  const stats = fstatSync(file)
  if (!stats.isFile()) return refuse('it is not a regular file')
  const hash = createHash(CHECKSUM)
  const preamble = Buffer.alloc(Math.min(PREAMBLE_OCTETS, stats.size))
  yield* readAll(file, preamble, hash)
  const sizes = scanPreamble(preamble)
  if (typeof sizes === 'string') return refuse(sizes)
  const octets = fileOctets(sizes)
  if (stats.size !== octets) return refuse(`it is incomplete: ${stats.size} of ${octets} octets`)
  const octetsOfFacts = Buffer.alloc(sizes.factsOctets)
  yield* readAll(file, octetsOfFacts, hash)
  const facts = octetsOfFacts.toString('utf8')
  const reason = check(facts)
  if (reason !== '') return refuse(reason)
  const arena = yield* Arena.restore(sizes.arenaOctets, (target) => readAll(file, target, hash))
  const checksum = Buffer.alloc(CHECKSUM_OCTETS)
  const isRead = (yield* readAll(file, checksum)) && arena !== undefined
  if (!isRead || !checksum.equals(hash.digest())) {
    return refuse('it is damaged: its checksum is wrong')
  }
  return { kind: 'read', facts, octets, arena }
}

/** Fills `target` with the next octets of the file; returns false if the file ends before. */
function* readAll(file: number, target: Buffer, hash?: Hash): Generator<void, boolean> {
  for (let at = 0; at < target.length; ) {
    const octets = readSync(file, target, at, Math.min(STEP_OCTETS, target.length - at), null)
    if (octets === 0) return false
    hash?.update(target.subarray(at, at + octets))
    at += octets
    yield
  }
  return true
}
