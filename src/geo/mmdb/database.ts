import { escapeControls } from '../../base/telemetry/log.ts'
import { type Cidr, isWithin } from '../../dns/text/address.ts'
import { type Location, UNKNOWN_LOCATION } from '../location.ts'
import { SPECIAL_PREFIXES } from '../special-prefixes.ts'
import { DataSection } from './data-section.ts'
import { mmdbFault } from './fault.ts'
import { readLocation } from './schema.ts'
import { SearchTree } from './search-tree.ts'

/** The content of a database as plain data; in shared memory if several threads read it. */
export interface DatabaseImage {
  /** Path, for messages. */
  readonly file: string
  readonly bytes: Uint8Array
  /**
   * True to treat special-purpose addresses as unknown. Databases made from registry data place
   * 192.168.0.0/16 in the region that received its number block.
   */
  readonly ignoreSpecial?: boolean
}

const METADATA_MARKER = Buffer.from('abcdef4d61784d696e642e636f6d', 'hex')
/** Largest metadata section, marker included (MaxMind DB File Format Specification 2.0). */
const METADATA_OCTETS_MAX = 128 * 1024
/** The end of the year 9999 in Unix seconds: text for later times does not exist (RFC 3339). */
const BUILT_SECONDS_MAX = 253_402_300_799
const TYPE_CHARACTERS_MAX = 64
/** Maximum of a 32-bit record's values: nodes and entries together. */
const NODES_MAX = 0x7fffffff
/** Number of entries to read when testing whether a database has places at all. */
const PROBED_ENTRIES = 64
/** Maximum of nodes to visit in that test. */
const PROBED_NODES = 20_000

/** One MaxMind DB (MaxMind DB File Format Specification 2.0), read in place, with limits on everything in it. */
export class Database {
  readonly file: string
  readonly tree: SearchTree
  readonly data: DataSection
  /** The database type, such as `GeoLite2-City`: one line of at most 64 characters. */
  readonly type: string
  /** When the file was built, in Unix seconds; 0 = unknown. */
  readonly builtSeconds: number
  /** Prefixes that are unknown, whatever the tree contains. */
  readonly ignored: readonly Cidr[]

  /** Throws InputError if the file is truncated or not a MaxMind DB. */
  constructor(image: DatabaseImage) {
    const { file, bytes } = image
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const start = Math.max(0, buffer.length - METADATA_OCTETS_MAX)
    const marker = buffer.subarray(start).lastIndexOf(METADATA_MARKER) + start
    if (marker < start)
      throw mmdbFault(file, 'is not a MaxMind DB, or is truncated: no metadata found')
    const metadata = readMetadata(image, marker + METADATA_MARKER.length)
    this.file = file
    this.tree = new SearchTree({ file, bytes, metadataOffset: marker, ...metadata })
    this.data = new DataSection(file, bytes, this.tree.dataOffset, this.tree.dataOctets)
    this.type = metadata.type
    this.builtSeconds = metadata.builtSeconds
    this.ignored = image.ignoreSpecial === true ? SPECIAL_PREFIXES : []
  }

  /** Returns the location of an address; unknown if it has no entry. `family` 1 or 2. Throws InputError. */
  locate(address: Uint8Array, family: number): Location {
    const entry = this.findEntry(address, family)
    return entry === -1 ? UNKNOWN_LOCATION : readLocation(this.data, entry)
  }

  /**
   * Returns the offset in `data` of the entry of an address; -1 if it has none. `family` 1 or 2.
   * Throws InputError.
   */
  findEntry(address: Uint8Array, family: number): number {
    if (this.ignoredAround(address, family) !== undefined) return -1
    return this.tree.findEntry(address, family)
  }

  /** Returns the prefix of `ignored` that the address is in. */
  ignoredAround(address: Uint8Array, family: number): Cidr | undefined {
    return this.ignored.find((prefix) => isWithin(prefix, address, family))
  }

  /** Throws InputError if none of the first entries has data that a geo code can match. */
  requirePlaces(): void {
    const pending = [0]
    let entries = 0
    for (let visited = 0; visited < PROBED_NODES && pending.length > 0; visited++) {
      const node = pending.pop()!
      for (const record of [this.tree.child(node, 1), this.tree.child(node, 0)]) {
        if (record < this.tree.nodeCount) {
          pending.push(record)
          continue
        }
        const entry = this.tree.entryOf(record)
        if (entry === -1) continue
        if (readLocation(this.data, entry) !== UNKNOWN_LOCATION) return
        if (++entries === PROBED_ENTRIES) visited = PROBED_NODES
      }
    }
    if (entries > 0) {
      throw mmdbFault(
        this.file,
        `(${this.type}) has no known fields: it needs a country, continent or ASN schema`,
      )
    }
  }
}

function readMetadata({ file, bytes }: DatabaseImage, start: number) {
  const data = new DataSection(file, bytes, start, bytes.length - start)
  const number = (key: string): number => data.uint(data.find(0, key))
  const version = number('binary_format_major_version')
  if (version !== 2)
    throw mmdbFault(file, `has format version ${version}; only version 2 is supported`)
  const ipVersion = number('ip_version')
  if (ipVersion !== 4 && ipVersion !== 6) {
    throw mmdbFault(file, `has the unknown IP version ${ipVersion}`)
  }
  const recordBits = number('record_size')
  if (recordBits !== 24 && recordBits !== 28 && recordBits !== 32) {
    throw mmdbFault(file, `has records of ${recordBits} bits; only 24, 28 and 32 are supported`)
  }
  const nodeCount = number('node_count')
  if (nodeCount < 1 || nodeCount > NODES_MAX) {
    throw mmdbFault(file, `is corrupt: its node count ${nodeCount} is invalid`)
  }
  const given = data.text(data.find(0, 'database_type'))
  const type = escapeControls(given).slice(0, TYPE_CHARACTERS_MAX)
  const built = number('build_epoch')
  const builtSeconds = built <= BUILT_SECONDS_MAX ? built : 0
  return { ipVersion, recordBits, nodeCount, type, builtSeconds }
}
