import type { ZoneReader } from '../zone/image/reader.ts'
import { countShared } from '../zone/image/shared-weight.ts'
import { ZoneAnswerer } from '../zone/lookup/answer.ts'

/** Number of the last version: each version of each zone has its own number. */
let lastVersion = 0

export function nextVersion(): number {
  return ++lastVersion
}

/** A version of a zone that is sent to other threads, which read the same memory. */
export interface VersionMemory {
  readonly version: number
  readonly buffer: SharedArrayBuffer
}

/**
 * Returns an answerer for one version. `nsInAuthority`: as CoreDNS's file plugin does, unless
 * `minimal` removes it.
 */
export function answererOf(reader: ZoneReader, nsInAuthority: boolean): ZoneAnswerer {
  countShared(reader.handle.buffer)
  return new ZoneAnswerer(reader, undefined, { apexNsInAuthority: nsInAuthority })
}
