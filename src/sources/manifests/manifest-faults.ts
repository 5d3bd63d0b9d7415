import type { InputError } from '../../base/errors.ts'
import { type ProblemGroup, type ProblemText, problemOf } from '../../base/telemetry/problems.ts'
import type { HeldRecord, ManifestFile } from './manifest-file.ts'

/** A new fault: a refused record, a fault of a file, or the key of a duplicate record. */
type News = HeldRecord | InputError | string

/**
 * Faults of files and records. Each change updates them, because a search for new faults would visit all records, and
 * 100 000 records may be faulty.
 */
export class ManifestFaults {
  readonly #printDispute: (key: string) => InputError
  /** Files with faults of their own, by path. */
  readonly #files = new Map<string, readonly InputError[]>()
  #fileFaultCount = 0
  readonly #refused = new Set<HeldRecord>()
  /** Keys of more than one document. */
  readonly #disputed = new Set<string>()
  #news = new Set<News>()
  /** Previous faults of the records in the file that is replaced, by key. */
  #before = new Map<string, string>()

  constructor(printDispute: (key: string) => InputError) {
    this.#printDispute = printDispute
  }

  get count(): number {
    return this.#fileFaultCount + this.#refused.size + this.#disputed.size
  }

  /** Number of records whose content in the file is refused. */
  get refusedCount(): number {
    return this.#refused.size
  }

  get disputedCount(): number {
    return this.#disputed.size
  }

  /** Number of files with faults of their own. Their last state is kept. */
  get fileCount(): number {
    return this.#files.size
  }

  /** Number of faults of files. */
  get fileFaultCount(): number {
    return this.#fileFaultCount
  }

  /** The first fault of the first file by path. */
  firstOfFiles(): InputError | undefined {
    let first: string | undefined
    for (const path of this.#files.keys()) if (first === undefined || path < first) first = path
    return first === undefined ? undefined : this.#files.get(first)![0]
  }

  /** `of`: name of the source. */
  groups(of: string): ProblemGroup[] {
    const files = this.#listFiles()
    const count = this.#fileFaultCount
    return [
      { kind: 'manifest', of, count, problems: files },
      { kind: 'refused-record', of, count: this.#refused.size, problems: this.#listRefused() },
      { kind: 'duplicate-record', of, count: this.#disputed.size, problems: this.#listDisputed() },
    ]
  }

  *#listFiles(): Generator<ProblemText> {
    for (const [path, errors] of this.#files) {
      for (const error of errors) yield problemOf(error, `file ${path}`)
    }
  }

  *#listRefused(): Generator<ProblemText> {
    for (const { key, problem } of this.#refused) yield problemOf(problem!, key)
  }

  *#listDisputed(): Generator<ProblemText> {
    for (const key of this.#disputed) yield problemOf(this.#printDispute(key), key)
  }

  isDisputed(key: string): boolean {
    return this.#disputed.has(key)
  }

  replaceFile(
    path: string,
    previous: ManifestFile | undefined,
    file: ManifestFile | undefined,
  ): void {
    const before = previous?.errors ?? []
    const after = file?.errors ?? []
    this.#fileFaultCount += after.length - before.length
    if (after.length > 0) this.#files.set(path, after)
    else this.#files.delete(path)
    const known = new Set(before.map((error) => error.print()))
    for (const error of before) this.#news.delete(error)
    for (const error of after) if (!known.has(error.print())) this.#news.add(error)
  }

  addRecord(held: HeldRecord): void {
    const { problem } = held
    if (problem === undefined) return
    this.#refused.add(held)
    if (this.#before.get(held.key) !== problem.print()) this.#news.add(held)
  }

  dropRecord(held: HeldRecord): void {
    const { problem } = held
    if (problem === undefined) return
    this.#refused.delete(held)
    // A fault that is not logged yet is still new.
    if (!this.#news.delete(held)) this.#before.set(held.key, problem.print())
  }

  /** Ends the replacement of a file, after all its records were dropped and added. */
  endReplace(): void {
    this.#before = new Map()
  }

  dispute(key: string): void {
    if (this.#disputed.has(key)) return
    this.#disputed.add(key)
    this.#news.add(key)
  }

  endDispute(key: string): void {
    this.#disputed.delete(key)
    this.#news.delete(key)
  }

  /** Returns up to `max` faults that are new since the last call, and the number of the others. */
  takeNew(max: number): { readonly texts: readonly string[]; readonly more: number } {
    const texts = new Set<string>()
    const news = this.#news
    this.#news = new Set()
    let seen = 0
    for (const one of news) {
      if (texts.size === max) break
      seen++
      texts.add(this.#print(one).print())
    }
    return { texts: [...texts], more: news.size - seen }
  }

  /** All faults, in order of files and lines. */
  all(): InputError[] {
    if (this.count === 0) return []
    // Several records may share one fault.
    const found = new Set<InputError>()
    for (const errors of this.#files.values()) for (const error of errors) found.add(error)
    for (const held of this.#refused) found.add(held.problem!)
    for (const key of this.#disputed) found.add(this.#printDispute(key))
    return [...found].sort(byPlace)
  }

  #print(news: News): InputError {
    if (typeof news === 'string') return this.#printDispute(news)
    return 'problem' in news ? news.problem! : news
  }
}

function byPlace({ position: a }: InputError, { position: b }: InputError): number {
  const [fileA, fileB] = [a?.file ?? '', b?.file ?? '']
  if (fileA !== fileB) return fileA < fileB ? -1 : 1
  return (a?.line ?? 0) - (b?.line ?? 0)
}
