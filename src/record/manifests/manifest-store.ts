import type { InputError } from '../../base/errors.ts'
import { type HealthProbe, recordKey } from '../dns-record.ts'
import { FoundAddresses, NONE, sameList } from '../found-addresses.ts'
import { serve } from '../served.ts'
import type { RecordChange, StoredRecord } from '../source.ts'
import { HeldRecord, type ManifestFile, manifestError } from './manifest-file.ts'

/** The document of a file that a record is in. */
export interface HeldPlace {
  readonly file: string
  /** Line of the file at which the document starts. */
  readonly line: number
  /** Of the document in its file. */
  readonly index: number
}

/**
 * The records of all files: who holds which key, which of several holders is served, and what probes
 * say of it. The first file by path wins, within a file the first document.
 */
export class ManifestStore {
  readonly #files = new Map<string, ManifestFile>()
  /** By key; nearly always one. In the order in which they win. */
  readonly #claims = new Map<string, HeldRecord | readonly HeldRecord[]>()
  /** What is served of a key. */
  readonly #served = new Map<string, StoredRecord>()
  readonly #down = new FoundAddresses()
  readonly #up = new FoundAddresses()
  readonly #refused = new Set<HeldRecord>()
  readonly #disputed = new Set<string>()
  /** Files with faults of their own, by path: few, and asked for after every change. */
  readonly #faulty = new Map<string, ManifestFile>()
  /** Grows whenever a file with probes came, changed or went. */
  probesVersion = 0

  get recordCount(): number {
    return this.#served.size
  }

  get fileCount(): number {
    return this.#files.size
  }

  /** Records whose content in the file is refused. */
  get refusedCount(): number {
    return this.#refused.size
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

  /** The probes of all files. Looks at every document. */
  *probes(): Iterable<HealthProbe> {
    for (const { documents } of this.#files.values()) {
      for (const document of documents) yield* document.probes
    }
  }

  find(key: string): StoredRecord | undefined {
    return this.#served.get(key)
  }

  /** By key, the place of the record that is served. */
  places(): Map<string, HeldPlace> {
    const places = new Map<string, HeldPlace>()
    for (const [file, { documents }] of this.#files) {
      for (const [index, { line, records }] of documents.entries()) {
        for (const held of records) {
          const winner = this.#claimsOf(held.key).find((other) => other.packed !== undefined)
          if (winner === held) places.set(held.key, { file, line, index })
        }
      }
    }
    return places
  }

  /** Faults of files, whose last state is kept. */
  fileErrors(): InputError[] {
    return [...this.#faulty.keys()].sort().flatMap((path) => this.#faulty.get(path)!.errors)
  }

  problems(): InputError[] {
    if (this.#faulty.size + this.#refused.size + this.#disputed.size === 0) return []
    const refused = [...this.#refused].flatMap((r) => r.problem ?? [])
    const disputes = [...this.#disputed].map((key) => this.#printDispute(key))
    const at = (e: InputError): string =>
      `${e.position?.file ?? ''}\0${String(e.position?.line ?? 0).padStart(9, '0')}`
    return [...this.fileErrors(), ...refused, ...disputes].sort((a, b) => (at(a) < at(b) ? -1 : 1))
  }

  /** Puts in what a file holds now (undefined = it is gone); returns the records that changed by it. */
  replace(path: string, file: ManifestFile | undefined): RecordChange[] {
    const previous = this.#files.get(path)
    if (file !== undefined && file.errors.length > 0) this.#faulty.set(path, file)
    else this.#faulty.delete(path)
    if (previous === undefined && file !== undefined) return this.#add(path, file)
    const [removed, added] = difference(previous, file)
    if (file === undefined) this.#files.delete(path)
    else this.#files.set(path, file)
    const touched = new Set<string>()
    for (const held of removed) {
      this.#dropClaim(held)
      touched.add(held.key)
    }
    for (const held of added) {
      this.#addClaim(held)
      touched.add(held.key)
    }
    this.#replaceProbes(previous, file, touched)
    return this.#settle(touched)
  }

  /** Puts in a file that wasn't there, as all are at first. */
  #add(path: string, file: ManifestFile): RecordChange[] {
    this.#files.set(path, file)
    const touched = new Set<string>()
    for (const { records } of file.documents) {
      for (const held of records) {
        this.#addClaim(held)
        touched.add(held.key)
      }
    }
    this.#replaceProbes(undefined, file, touched)
    return this.#settle(touched)
  }

  #settle(touched: ReadonlySet<string>): RecordChange[] {
    const changes: RecordChange[] = []
    for (const key of touched) {
      const before = this.#served.get(key)
      const winner = this.#claimsOf(key).find((held) => held.packed !== undefined)
      const down = this.#down.of(key)
      const up = this.#up.of(key)
      const isSame = sameList(before?.down ?? NONE, down) && sameList(before?.up ?? NONE, up)
      if (before?.packed === winner?.packed && isSame) continue
      const packed = winner?.packed
      const after = packed === undefined ? undefined : serve(key, packed, down, up)
      if (after === undefined) this.#served.delete(key)
      else this.#served.set(key, after)
      changes.push({ before, after })
    }
    return changes
  }

  #claimsOf(key: string): readonly HeldRecord[] {
    const claims = this.#claims.get(key)
    if (claims === undefined) return []
    return claims instanceof HeldRecord ? [claims] : claims
  }

  #addClaim(held: HeldRecord): void {
    if (held.problem !== undefined) this.#refused.add(held)
    const claims = this.#claims.get(held.key)
    if (claims === undefined) {
      this.#claims.set(held.key, held)
      return
    }
    const all = [...this.#claimsOf(held.key), held]
    this.#claims.set(held.key, this.#sortClaims(all))
    this.#disputed.add(held.key)
  }

  #dropClaim(held: HeldRecord): void {
    this.#refused.delete(held)
    const rest = this.#claimsOf(held.key).filter((other) => other !== held)
    if (rest.length < 2) this.#disputed.delete(held.key)
    if (rest.length === 0) this.#claims.delete(held.key)
    else this.#claims.set(held.key, rest.length === 1 ? rest[0]! : rest)
  }

  #sortClaims(claims: HeldRecord[]): HeldRecord[] {
    const place = new Map<HeldRecord, number>()
    for (const path of new Set(claims.map((held) => held.file))) {
      let index = 0
      for (const document of this.#files.get(path)?.documents ?? []) {
        for (const held of document.records) place.set(held, index++)
      }
    }
    return claims.sort((a, b) => {
      if (a.file !== b.file) return a.file < b.file ? -1 : 1
      return (place.get(a) ?? 0) - (place.get(b) ?? 0)
    })
  }

  #printDispute(key: string): InputError {
    const [first, second] = this.#claimsOf(key)
    const file = second?.file ?? ''
    const document = this.#files.get(file)?.documents.find((d) => d.records.includes(second!))
    const message = `DNSRecord ${key} is in ${first?.file} as well: that one is served`
    return manifestError(file, document?.line ?? 1, message)
  }

  #replaceProbes(
    previous: ManifestFile | undefined,
    file: ManifestFile | undefined,
    touched: Set<string>,
  ): void {
    for (const [source, step] of [
      [previous, -1],
      [file, 1],
    ] as const) {
      for (const document of source?.documents ?? []) {
        if (document.probes.length > 0) this.probesVersion++
        for (const probe of document.probes) {
          // Nobody has judged it.
          if (probe.check !== undefined) continue
          const key = recordKey(probe.namespace, probe.recordName)
          const found = probe.isDown ? this.#down : this.#up
          found.count(key, probe.address, step)
          touched.add(key)
        }
      }
    }
  }
}

/** Records that only the one, and that only the other state of a file holds. */
function difference(
  previous: ManifestFile | undefined,
  next: ManifestFile | undefined,
): [HeldRecord[], HeldRecord[]] {
  const before = previous?.documents ?? []
  const after = next?.documents ?? []
  const kept = new Set(before)
  const added = after.filter((d) => !kept.delete(d)).flatMap((d) => d.records)
  return [[...kept].flatMap((d) => d.records), added]
}
