import { closeSync, openSync } from 'node:fs'
import { resolve } from 'node:path'
import { InputError } from '../base/errors.ts'
import { readAtMost } from '../base/read.ts'
import { isSystemError } from '../base/system-error.ts'
import type { RecordsPlace } from '../publish/offline/offline-records.ts'

const STANDARD_INPUT = 0
/** Largest dump. */
const DUMP_OCTETS_MAX = 512 * 1024 * 1024

/**
 * Reads the dump that a flag such as `--records` names; `-` = standard input. Undefined = the flag is
 * not given. Throws InputError if it can't be read.
 */
export function chooseRecords(file: string | undefined): RecordsPlace | undefined {
  return file === undefined ? undefined : { kind: 'dump', ...readDump(file) }
}

/** Reads a file that must not be empty; `-` = standard input. Throws InputError if it can't be read. */
export function readDump(file: string): { readonly name: string; readonly octets: Buffer } {
  const name = file === '-' ? '/dev/stdin' : resolve(file)
  const octets = readDumpFile(file, name)
  if (octets === undefined)
    throw new InputError(undefined, `${name}: longer than ${DUMP_OCTETS_MAX} octets`)
  // A `kubectl` that fails prints nothing; otherwise it prints a List, also of no records.
  if (!octets.some((octet) => octet > 0x20)) throw new InputError(undefined, `${name}: is empty`)
  return { name, octets }
}

function readDumpFile(file: string, name: string): Buffer | undefined {
  try {
    if (file === '-') return readAtMost(STANDARD_INPUT, DUMP_OCTETS_MAX)
    const descriptor = openSync(file, 'r')
    try {
      return readAtMost(descriptor, DUMP_OCTETS_MAX)
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw new InputError(undefined, `${name}: cannot be read: ${error.message}`)
  }
}
