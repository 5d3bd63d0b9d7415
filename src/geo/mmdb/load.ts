import { closeSync, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import type { InputError } from '../../base/errors.ts'
import type { DatabaseImage } from './database.ts'
import { mmdbFault } from './fault.ts'

/** Largest database taken into memory; GeoIP2 Enterprise has about 0.5 GB. */
const FILE_OCTETS_MAX = 1024 * 1024 * 1024

/** What tells one version of a file from the next, without reading it. */
export interface FileVersion {
  readonly mtimeMs: number
  readonly octets: number
}

export interface LoadedFile {
  readonly image: DatabaseImage
  readonly version: FileVersion
}

export function isSameVersion(a: FileVersion, b: FileVersion): boolean {
  return a.mtimeMs === b.mtimeMs && a.octets === b.octets
}

/** Version of a file now. Throws InputError if there is none. */
export function fileVersionSync(file: string): FileVersion {
  return versionOf(orFault(file, () => statSync(file)))
}

/** The same without holding up anyone. */
export async function fileVersion(file: string): Promise<FileVersion> {
  return versionOf(await stat(file))
}

function versionOf(stats: Stats): FileVersion {
  return { mtimeMs: stats.mtimeMs, octets: stats.size }
}

/** Path of the CC0 country database that comes with Sextant. */
export function bundledDatabasePath(): string {
  return createRequire(import.meta.url).resolve(
    '@ip-location-db/geo-whois-asn-country-mmdb/geo-whois-asn-country.mmdb',
  )
}

/** Reads a file into shared memory, holding up the caller: for the start. Throws InputError. */
export function loadFileSync(file: string): LoadedFile {
  const fd = orFault(file, () => openSync(file, 'r'))
  try {
    const version = versionOf(fstatSync(fd))
    const size = version.octets
    const target = allocate(file, size)
    let filled = 0
    while (filled < size) {
      const octets = orFault(file, () => readSync(fd, target, filled, size - filled, filled))
      if (octets === 0) throw mmdbFault(file, 'became shorter while it was read')
      filled += octets
    }
    return { image: imageOf(file, target), version }
  } finally {
    closeSync(fd)
  }
}

/** The same without holding up anyone. Rejects with InputError. */
export async function loadFile(file: string): Promise<LoadedFile> {
  const handle = await open(file, 'r').catch((error: unknown) => {
    throw unreadable(file, error)
  })
  try {
    const version = versionOf(await handle.stat())
    const size = version.octets
    const target = allocate(file, size)
    let filled = 0
    while (filled < size) {
      const { bytesRead } = await handle.read(target, filled, size - filled, filled)
      if (bytesRead === 0) throw mmdbFault(file, 'became shorter while it was read')
      filled += bytesRead
    }
    return { image: imageOf(file, target), version }
  } finally {
    await handle.close()
  }
}

function imageOf(file: string, bytes: Uint8Array): DatabaseImage {
  return { file, bytes, ignoreSpecial: file === bundledDatabasePath() }
}

function allocate(file: string, octets: number): Uint8Array {
  if (octets > FILE_OCTETS_MAX) throw mmdbFault(file, `is larger than ${FILE_OCTETS_MAX} octets`)
  return new Uint8Array(new SharedArrayBuffer(octets))
}

function orFault<T>(file: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw unreadable(file, error)
  }
}

function unreadable(file: string, cause: unknown): InputError {
  const reason = cause instanceof Error ? cause.message : String(cause)
  return mmdbFault(file, `can't be read: ${reason}`, cause)
}
