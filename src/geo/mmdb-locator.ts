import { assert } from '../base/assert.ts'
import { InputError } from '../base/errors.ts'
import type { ResourceRegistry } from '../base/resource-registry.ts'
import { Stops } from '../base/stops.ts'
import type { Timers } from '../base/timers.ts'
import { type AddressFamily, isWithin } from '../dns/text/address.ts'
import { type ClassTrie, FlatClassTrie } from './class-trie.ts'
import { coverageOf, type GeoCoverage } from './classes/coverage.ts'
import type { PointSet } from './classes/point-orders.ts'
import type { GeoCode } from './code.ts'
import { isPlaceLabel, readField } from './fields.ts'
import { type Location, UNKNOWN_LOCATION } from './location.ts'
import type { DatabaseEvidence, Locator } from './locator.ts'
import { Database, type DatabaseImage } from './mmdb/database.ts'
import { DatabaseFile } from './mmdb/database-file.ts'
import { loadFileSync } from './mmdb/load.ts'
import { isMapped, type Net, NetTable } from './net.ts'
import type { JobRunner } from './worker/run-job.ts'

export interface MmdbLocatorOptions {
  readonly resources: ResourceRegistry
  /** Absolute paths in order of precedence: the first that has a fact about an address wins. */
  readonly paths: readonly string[]
  readonly nets: readonly Net[]
  readonly timers: Timers
  readonly runJob: JobRunner
  /**
   * Called after a changed file is loaded, or with `fault` if it can't be used and the old version
   * remains in use.
   */
  readonly onReload: (path: string, fault: Error | undefined) => void
  /**
   * Called once for each version of a file that is loaded, by one of the locators that share the file. `builtSeconds`:
   * when the version was built, in Unix seconds; 0 = unknown.
   */
  readonly onLoad: (path: string, builtSeconds: number) => void
}

/** What a locator needs from its files. */
interface OpenOptions {
  /**
   * True to keep the content in memory, so that entries can be read. Building classes does not need
   * it. Without entries, `locate` and `field` use only custom nets.
   */
  readonly readsEntries: boolean
}

/**
 * Locates clients with MMDB files, overridden by custom nets. Has no data before `open`. Locators
 * that name the same file share it.
 */
export class MmdbLocator implements Locator {
  readonly #options: MmdbLocatorOptions
  readonly #nets: NetTable
  #files: readonly DatabaseFile[] = []
  /** Databases to use instead of files: see `follow`. */
  #followed: readonly Database[] = []
  readonly #listeners = new Set<() => void>()
  readonly #stops = new Stops()

  constructor(options: MmdbLocatorOptions) {
    this.#options = options
    this.#nets = new NetTable(options.nets)
  }

  /** Opens the files. Rejects with InputError, without a position, if one can't be used. */
  async open({ readsEntries }: OpenOptions = { readsEntries: false }): Promise<void> {
    const files: DatabaseFile[] = []
    try {
      for (const path of this.#options.paths) files.push(await this.#openFile(path, readsEntries))
    } catch (error) {
      this.#stops.close()
      throw error
    }
    this.#files = files
    for (const file of files) this.#reportLoad(file)
    const stops = files.map((file) =>
      file.onChange((fault) => {
        this.#options.onReload(file.path, fault)
        this.#reportLoad(file)
        if (fault === undefined)
          for (const listener of this.#listeners) this.#notify(listener, file)
      }),
    )
    this.#stops.add(...stops)
  }

  async #openFile(path: string, readsEntries: boolean): Promise<DatabaseFile> {
    const { resources, timers, runJob } = this.#options
    const { item, release } = resources.acquire(DatabaseFile, path, () => {
      return new DatabaseFile(path, { timers, runJob })
    })
    this.#stops.add(release)
    if (readsEntries) this.#stops.add(item.readEntries())
    await item.catchUp()
    return item
  }

  #reportLoad(file: DatabaseFile): void {
    const builtSeconds = file.takeBuildTime()
    if (builtSeconds !== undefined) this.#options.onLoad(file.path, builtSeconds)
  }

  /** Changed files that can't be used, so that their older version remains in use. */
  get faults(): { readonly path: string; readonly fault: Error }[] {
    return this.#files.flatMap(({ path, fault }) => (fault === undefined ? [] : [{ path, fault }]))
  }

  /** The files in use, for the status of the server. */
  get files(): readonly Pick<DatabaseFile, 'path' | 'builtSeconds' | 'fault'>[] {
    return this.#files
  }

  /** The databases in memory, for `follow` in another thread. */
  get images(): readonly DatabaseImage[] {
    return this.#files.flatMap((file) => file.image ?? [])
  }

  /** Uses databases that another thread opened, instead of files. */
  follow(images: readonly DatabaseImage[]): void {
    this.#followed = images.map((image) => new Database(image))
  }

  /** Calls a listener. If it fails, that listener keeps its old version; other listeners are still called. */
  #notify(listener: () => void, { path }: DatabaseFile): void {
    try {
      listener()
    } catch (error) {
      this.#options.onReload(path, error instanceof Error ? error : new Error(String(error)))
    }
  }

  close(): void {
    this.#stops.close()
    this.#files = []
  }

  locate(address: Uint8Array, family: number): Location {
    const [folded, foldedFamily] = fold(address, family)
    return this.#nets.place(folded, foldedFamily, this.#locateInFiles(folded, foldedFamily))
  }

  evidence(address: Uint8Array, family: number): readonly DatabaseEvidence[] {
    const [folded, foldedFamily] = fold(address, family)
    return this.#databases().map((database) => {
      const { file, type, builtSeconds, tree } = database
      const ignored = database.ignoredAround(folded, foldedFamily)
      const prefixBits = ignored?.bits ?? tree.prefixBits(folded, foldedFamily)
      const isIgnored = ignored !== undefined
      const location = locateIn(database, folded, foldedFamily)
      return { file, type, builtSeconds, family: foldedFamily, prefixBits, isIgnored, location }
    })
  }

  netsAround(address: Uint8Array, family: number): readonly Net[] {
    const [folded, foldedFamily] = fold(address, family)
    return this.#nets.nets.filter(({ cidr }) => isWithin(cidr, folded, foldedFamily))
  }

  async readEntries(): Promise<() => void> {
    const ends = this.#files.map((file) => file.readEntries())
    for (const file of this.#files) await file.catchUp()
    return () => {
      for (const end of ends) end()
    }
  }

  field(address: Uint8Array, family: number, label: string): string {
    const [folded, foldedFamily] = fold(address, family)
    const known = this.#locateInFiles(folded, foldedFamily)
    const placed = this.#nets.place(folded, foldedFamily, known)
    const fromPlace = printPlace(placed, label)
    if (fromPlace !== undefined) return fromPlace
    const { coordinates } = placed
    if (coordinates !== undefined && coordinates !== known.coordinates) {
      if (label === 'geoip/latitude') return String(coordinates.latitude)
      if (label === 'geoip/longitude') return String(coordinates.longitude)
    }
    const moved = placed.country !== known.country || placed.continent !== known.continent
    if (moved && isPlaceLabel(label)) return ''
    for (const database of this.#databases()) {
      const text = fieldIn(database, folded, foldedFamily, label)
      if (text !== '') return text
    }
    return ''
  }

  /**
   * Returns what the files and nets know of all addresses, for `sextant check`.
   * Reads the files, open or not. Takes up to seconds. Throws InputError if a file can't be used.
   */
  coverage(): GeoCoverage {
    const databases = this.#options.paths.map((path) => new Database(loadFileSync(path).image))
    return coverageOf(databases, this.#nets.nets)
  }

  async classify(
    codes: readonly GeoCode[],
    pointSets: readonly PointSet[] = [],
  ): Promise<ClassTrie> {
    const held = this.#files.flatMap((file) => file.hold() ?? [])
    try {
      const sources = held.map((open) => open.source)
      const { nets } = this.#nets
      const job = { kind: 'classify', sources, nets, codes, pointSets } as const
      const { trie } = await this.#options.runJob(job)
      assert(trie !== undefined, 'the job makes a trie')
      return new FlatClassTrie(trie)
    } finally {
      for (const open of held) open.release()
    }
  }

  onChange(callback: () => void): () => void {
    this.#listeners.add(callback)
    return () => this.#listeners.delete(callback)
  }

  #databases(): readonly Database[] {
    if (this.#files.length === 0) return this.#followed
    return this.#files.flatMap((file) => file.database ?? [])
  }

  /** Takes place and ASN, independently, from the first file that has them. */
  #locateInFiles(address: Uint8Array, family: number): Location {
    let found = UNKNOWN_LOCATION
    for (const database of this.#databases()) {
      const location = locateIn(database, address, family)
      const place = found.country === '' && found.continent === '' ? location : found
      const asn = found.asn === 0 ? location.asn : found.asn
      found = { ...place, asn }
    }
    return found
  }
}

/** Converts IPv4-mapped addresses to the IPv4 addresses that they contain. */
function fold(address: Uint8Array, family: number): [Uint8Array, AddressFamily] {
  if (family === 1) return [address, 1]
  return isMapped(address) ? [address.subarray(12), 1] : [address, 2]
}

function locateIn(database: Database, address: Uint8Array, family: number): Location {
  try {
    return database.locate(address, family)
  } catch (error) {
    // An unreadable entry in an otherwise valid file: its addresses have an unknown location.
    if (error instanceof InputError) return UNKNOWN_LOCATION
    throw error
  }
}

function fieldIn(database: Database, address: Uint8Array, family: number, label: string): string {
  try {
    const entry = database.findEntry(address, family)
    return entry === -1 ? '' : readField(database.data, entry, label)
  } catch (error) {
    if (error instanceof InputError) return ''
    throw error
  }
}

function printPlace(location: Location, label: string): string | undefined {
  if (label === 'geoip/country/code') return location.country
  if (label === 'geoip/continent/code') return location.continent
  if (label === 'geoip/asn/number') return location.asn === 0 ? '' : String(location.asn)
  if (label === 'geoip/subdivisions/code') {
    return location.subdivisions.map((code) => code.slice(3)).join()
  }
  return undefined
}
