import { Reader, type Response } from 'mmdb-lib'
import { type AddressFamily, type Cidr, printAddress } from '../../dns/text/address.ts'
import { type Location, UNKNOWN_LOCATION } from '../location.ts'
import { isWithin, SPECIAL_PREFIXES } from '../special-prefixes.ts'
import { DataSection } from './data-section.ts'
import { mmdbFault } from './fault.ts'
import { readLocation } from './schema.ts'
import { SearchTree } from './search-tree.ts'

/** A database as it was read: plain data, over shared memory, so that a worker can use it too. */
export interface DatabaseImage {
  /** Path, for messages. */
  readonly file: string
  readonly bytes: Uint8Array
  /**
   * True to take special-purpose addresses as unknown whatever the file says: databases made from
   * registry data put 192.168.0.0/16 wherever its number block was handed out.
   */
  readonly ignoreSpecial?: boolean
}

const METADATA_MARKER = Buffer.from('abcdef4d61784d696e642e636f6d', 'hex')
/** Largest metadata section, marker included (MaxMind DB File Format Specification 2.0). */
const METADATA_OCTETS_MAX = 128 * 1024
/** Entries looked at to find out whether a database knows places at all. */
const PROBED_ENTRIES = 64
/** Most decoded entries kept: about 5 MB of City records. */
const RECORDS_MAX = 1024
/** Most nodes visited for that. */
const PROBED_NODES = 20_000

/**
 * One MaxMind DB. The tree walk and the reading of places are our own and bounded; mmdb-lib reads the
 * metadata and whole entries, and only after `DataSection.check` has seen them.
 */
export class Database {
  readonly file: string
  readonly tree: SearchTree
  readonly data: DataSection
  /** Such as `GeoLite2-City`. */
  readonly type: string
  readonly buildEpochMs: number
  /** Prefixes that count as unknown, whatever the tree says. */
  readonly ignored: readonly Cidr[]
  readonly #reader: Reader<Response>
  /** Decoded entries, by offset: thousands of prefixes share one. */
  readonly #records = new Map<number, Response>()

  /** Throws InputError if the file is no MaxMind DB, or is truncated. */
  constructor(image: DatabaseImage) {
    const { file, bytes } = image
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const start = Math.max(0, buffer.length - METADATA_OCTETS_MAX)
    const marker = buffer.subarray(start).lastIndexOf(METADATA_MARKER) + start
    if (marker < start)
      throw mmdbFault(file, 'is not a MaxMind DB, or is truncated: no metadata found')
    const metadataStart = marker + METADATA_MARKER.length
    new DataSection(file, bytes, metadataStart, bytes.length - metadataStart).check(0)
    this.#reader = openReader(file, buffer)
    const { metadata } = this.#reader
    checkMetadata(file, metadata)
    const { nodeCount, recordSize, ipVersion } = metadata
    const layout = { file, bytes, metadataOffset: marker, nodeCount, ipVersion }
    this.file = file
    this.tree = new SearchTree({ ...layout, recordBits: recordSize })
    this.data = new DataSection(file, bytes, this.tree.dataOffset, this.tree.dataOctets)
    this.type = String(metadata.databaseType)
    this.ignored = image.ignoreSpecial === true ? SPECIAL_PREFIXES : []
    this.buildEpochMs = metadata.buildEpoch.getTime()
  }

  /** Where an address is; unknown where its entry can't be read. `family` 1 or 2. */
  locate(address: Uint8Array, family: number): Location {
    const entry = this.#findEntry(address, family)
    return entry === -1 ? UNKNOWN_LOCATION : readLocation(this.data, entry)
  }

  /** The whole entry of an address, decoded; undefined if there is none. Throws InputError. */
  record(address: Uint8Array, family: AddressFamily): Response | undefined {
    const entry = this.#findEntry(address, family)
    if (entry === -1) return undefined
    const known = this.#records.get(entry)
    if (known !== undefined) return known
    this.data.check(entry)
    const record = this.#reader.get(printAddress(address, family)) ?? undefined
    if (this.#records.size === RECORDS_MAX) this.#records.clear()
    if (record !== undefined) this.#records.set(entry, record)
    return record
  }

  #findEntry(address: Uint8Array, family: number): number {
    if (this.ignored.some((prefix) => isWithin(prefix, address, family))) return -1
    return this.tree.findEntry(address, family)
  }

  /** Throws InputError if none of the first entries holds anything that a geo code can match. */
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
        `(${this.type}) has no place that we can read: it needs a country, continent or ASN schema`,
      )
    }
  }
}

function openReader(file: string, buffer: Buffer): Reader<Response> {
  try {
    return new Reader<Response>(buffer)
  } catch (cause) {
    // The library throws whatever a corrupt file leads it to: all of it means the same here.
    throw mmdbFault(file, 'is corrupt: its metadata or search tree is unreadable', cause)
  }
}

function checkMetadata(file: string, metadata: Reader<Response>['metadata']): void {
  const { binaryFormatMajorVersion, ipVersion, nodeCount } = metadata
  if (binaryFormatMajorVersion !== 2) {
    throw mmdbFault(file, `has format version ${binaryFormatMajorVersion}; only 2 is known`)
  }
  if (ipVersion !== 4 && ipVersion !== 6) throw mmdbFault(file, 'has an unknown IP version')
  if (!Number.isInteger(nodeCount) || nodeCount < 1 || nodeCount > 0x7fffffff) {
    throw mmdbFault(file, 'is corrupt: its node count is impossible')
  }
}
