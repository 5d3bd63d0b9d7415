import type { InputError } from '../../base/errors.ts'
import type { ProblemGroup } from '../../base/telemetry/problems.ts'
import type { AddressHealth, Finding } from '../../health/address-health.ts'
import { type HealthProbe, recordKey } from '../../records/dns-record.ts'
import { type RecordChange, StoredRecord } from '../../records/record-source.ts'
import { IgnoredIndex } from '../ignored-index.ts'
import { ManifestFaults } from './manifest-faults.ts'
import { type HeldDocument, HeldRecord, type ManifestFile, manifestError } from './manifest-file.ts'

/** Steps between two yields, and maximum of records that change at once. */
const RUN = 256
const NO_CHANGES: readonly RecordChange[] = []
const NO_FINDINGS: readonly CountedFinding[] = []

/** A probe that was added (1) or removed (-1). */
interface CountedFinding {
  readonly finding: Finding
  readonly step: 1 | -1
}

/** The records that a change of a file affects, with the findings that it adds or removes. */
type Touched = Map<string, readonly CountedFinding[]>

/** The document of a file that a record is in. */
export interface HeldPlace {
  readonly file: string
  /** Line of the file at which the document starts, from 1. */
  readonly line: number
  /** Index of the document in its file. */
  readonly index: number
}

/**
 * The records of all files: which documents have a key, and which one is served. The first file by
 * path wins, and in a file the first document. Findings of probes are written to the health table.
 */
export class ManifestStore {
  readonly #files = new Map<string, ManifestFile>()
  /** Records by key; nearly always one. */
  readonly #claims = new Map<string, HeldRecord | ReadonlySet<HeldRecord>>()
  /** The served record of each key. */
  readonly #served = new Map<string, StoredRecord>()
  readonly #health: AddressHealth
  readonly #ignored = new IgnoredIndex<HeldDocument>()
  readonly #faults = new ManifestFaults((key) => this.#printDispute(key))
  /** Number of steps done: the cost of replacing a file, for tests. */
  steps = 0
  #runEnd = 0
  /** Increases when a file with probes is added, changed or removed. */
  probesVersion = 0

  constructor(health: AddressHealth) {
    this.#health = health
  }

  get recordCount(): number {
    return this.#served.size
  }

  get fileCount(): number {
    return this.#files.size
  }

  /** The faults of files and records. */
  get faults(): ManifestFaults {
    return this.#faults
  }

  /** What is wrong with the files. `of`: name of the source. */
  problemGroups(of: string): ProblemGroup[] {
    return [...this.#faults.groups(of), ...this.#ignored.groups(of)]
  }

  file(path: string): ManifestFile | undefined {
    return this.#files.get(path)
  }

  paths(): IterableIterator<string> {
    return this.#files.keys()
  }

  records(): Iterable<StoredRecord> {
    return this.#served.values()
  }

  /** The probes of all files. Visits every document. */
  *probes(): Iterable<HealthProbe> {
    for (const { documents } of this.#files.values()) {
      for (const document of documents) yield* document.probes
    }
  }

  find(key: string): StoredRecord | undefined {
    return this.#served.get(key)
  }

  /** Returns the record as a file has it; the first one of duplicates. */
  findIn(path: string, key: string): HeldRecord | undefined {
    let first: HeldRecord | undefined
    for (const held of this.#claimsOf(key)) {
      if (held.file === path && (first === undefined || this.#isBefore(held, first))) first = held
    }
    return first
  }

  /** Place of the served record with that key. */
  placeOf(key: string): HeldPlace | undefined {
    const claims = this.#claims.get(key)
    const winner = claims === undefined ? undefined : this.#findWinner(claims)
    if (winner === undefined) return undefined
    return { file: winner.file, line: this.#lineOf(winner), index: winner.document }
  }

  /** Places of the served records and of the probes, by key. */
  places(): Map<string, HeldPlace> {
    const places = new Map<string, HeldPlace>()
    for (const [key, claims] of this.#claims) {
      const winner = this.#findWinner(claims)
      if (winner === undefined) continue
      const { file, document: index } = winner
      places.set(key, { file, line: this.#lineOf(winner), index })
    }
    for (const [file, { documents }] of this.#files) {
      for (const [index, { line, probes }] of documents.entries()) {
        for (const probe of probes) places.set(probePlaceKey(probe), { file, line, index })
      }
    }
    return places
  }

  /**
   * Replaces the state of a file (undefined = the file is removed). Yields after every RUN steps,
   * so that the caller can pause. A yielded value has the records that changed; `find` and
   * `records` return their new state.
   */
  *replace(path: string, file: ManifestFile | undefined): Generator<readonly RecordChange[], void> {
    const previous = this.#files.get(path)
    this.#faults.replaceFile(path, previous, file)
    const removed = new Set<HeldDocument>()
    for (const document of previous?.documents ?? []) {
      removed.add(document)
      if (this.#isRun()) yield NO_CHANGES
    }
    const touched: Touched = new Map()
    const added: HeldDocument[] = []
    for (const document of file?.documents ?? []) {
      if (!removed.delete(document)) added.push(document)
      // The order of documents with the same key may have changed.
      else if (this.#faults.disputedCount > 0) this.#touchDisputed(document, touched)
      if (this.#isRun()) yield NO_CHANGES
    }
    if (file === undefined) this.#files.delete(path)
    else this.#files.set(path, file)
    yield* this.#count(removed, -1, touched, path)
    yield* this.#count(added, 1, touched, path)
    this.#faults.endReplace()
    yield* this.#settle(touched)
  }

  /** Adds (step 1) or removes (step -1) the probes and records of documents. */
  *#count(
    documents: Iterable<HeldDocument>,
    step: 1 | -1,
    touched: Touched,
    path: string,
  ): Generator<readonly RecordChange[], void> {
    for (const document of documents) {
      const { ignored } = document
      const placeOf = (lineOffset: number): string => `${path}:${document.line + lineOffset}`
      this.#ignored.set(document, step === 1 ? ignored : [], placeOf)
      this.#countProbes(document, step, touched)
      for (const held of document.records) {
        if (step === 1) this.#addClaim(held)
        else this.#dropClaim(held)
        touch(touched, held.key)
        if (this.#isRun()) yield NO_CHANGES
      }
      if (this.#isRun()) yield NO_CHANGES
    }
  }

  *#settle(touched: Touched): Generator<readonly RecordChange[], void> {
    let changes: RecordChange[] = []
    for (const [key, findings] of touched) {
      // Written together with the record: the file may add or remove both.
      for (const { finding, step } of findings) {
        if (step === 1) this.#health.add(finding)
        else this.#health.remove(finding)
      }
      const change = this.#settleKey(key)
      if (change !== undefined) changes.push(change)
      if (!this.#isRun()) continue
      yield changes
      changes = []
    }
    yield changes
  }

  #settleKey(key: string): RecordChange | undefined {
    const before = this.#served.get(key)
    const claims = this.#claims.get(key)
    const packed = claims === undefined ? undefined : this.#findWinner(claims)?.packed
    if (before?.packed === packed) return undefined
    const after = packed === undefined ? undefined : new StoredRecord(key, packed)
    if (after === undefined) this.#served.delete(key)
    else this.#served.set(key, after)
    return { before, after }
  }

  #isRun(): boolean {
    if (++this.steps < this.#runEnd) return false
    this.#runEnd = this.steps + RUN
    return true
  }

  #claimsOf(key: string): Iterable<HeldRecord> {
    const claims = this.#claims.get(key)
    if (claims === undefined) return []
    return claims instanceof HeldRecord ? [claims] : claims
  }

  #addClaim(held: HeldRecord): void {
    const { key } = held
    this.#faults.addRecord(held)
    const claims = this.#claims.get(key)
    if (claims === undefined) {
      this.#claims.set(key, held)
      return
    }
    // A set, because a file may have one key a hundred thousand times.
    const all = claims instanceof HeldRecord ? new Set([claims]) : (claims as Set<HeldRecord>)
    all.add(held)
    this.#claims.set(key, all)
    this.#faults.dispute(key)
  }

  #dropClaim(held: HeldRecord): void {
    const { key } = held
    this.#faults.dropRecord(held)
    const claims = this.#claims.get(key)
    if (claims === undefined) return
    if (claims instanceof HeldRecord) {
      if (claims === held) this.#claims.delete(key)
      return
    }
    const rest = claims as Set<HeldRecord>
    rest.delete(held)
    if (rest.size > 1) return
    const [last] = rest
    if (last === undefined) this.#claims.delete(key)
    else this.#claims.set(key, last)
    this.#faults.endDispute(key)
  }

  /** Returns the first record with a valid version. */
  #findWinner(claims: HeldRecord | ReadonlySet<HeldRecord>): HeldRecord | undefined {
    if (claims instanceof HeldRecord) return claims.packed === undefined ? undefined : claims
    let winner: HeldRecord | undefined
    for (const held of claims) {
      this.steps++
      if (held.packed === undefined) continue
      if (winner === undefined || this.#isBefore(held, winner)) winner = held
    }
    return winner
  }

  #isBefore(a: HeldRecord, b: HeldRecord): boolean {
    if (a.file !== b.file) return a.file < b.file
    if (a.document !== b.document) return a.document < b.document
    const records = this.#files.get(a.file)?.documents[a.document]?.records ?? []
    return records.indexOf(a) < records.indexOf(b)
  }

  #lineOf({ file, document }: HeldRecord): number {
    return this.#files.get(file)?.documents[document]?.line ?? 1
  }

  #touchDisputed({ records }: HeldDocument, touched: Touched): void {
    for (const { key } of records) if (this.#faults.isDisputed(key)) touch(touched, key)
  }

  #printDispute(key: string): InputError {
    let first: HeldRecord | undefined
    let second: HeldRecord | undefined
    for (const held of this.#claimsOf(key)) {
      if (first === undefined || this.#isBefore(held, first)) [first, second] = [held, first]
      else if (second === undefined || this.#isBefore(held, second)) second = held
    }
    const place = second === undefined ? 1 : this.#lineOf(second)
    const message = `DNSRecord ${key} is also in ${first?.file}; that one is served`
    return manifestError(second?.file ?? '', place, message)
  }

  #countProbes({ probes }: HeldDocument, step: 1 | -1, touched: Touched): void {
    if (probes.length > 0) this.probesVersion++
    for (const { check, namespace, recordName, address, isDown, downReason } of probes) {
      // The status of this probe is unknown.
      if (check !== undefined) continue
      const key = recordKey(namespace, recordName)
      const finding: Finding = isDown
        ? { recordKey: key, address, health: 'down', reason: downReason }
        : { recordKey: key, address, health: 'up' }
      const known = touched.get(key) ?? NO_FINDINGS
      // Nearly always the first probe of its record.
      touched.set(key, known.length === 0 ? [{ finding, step }] : [...known, { finding, step }])
    }
  }
}

function touch(touched: Touched, key: string): void {
  if (!touched.has(key)) touched.set(key, NO_FINDINGS)
}

/** Key of a probe in `ManifestStore.places`. Keys of records contain no space. */
export function probePlaceKey({ namespace, name }: HealthProbe): string {
  return `DNSHealthCheckProbe ${recordKey(namespace, name)}`
}
