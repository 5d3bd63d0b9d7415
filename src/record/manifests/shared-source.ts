import { realpathSync } from 'node:fs'
import { containing } from '../../telemetry/contain.ts'
import { ZoneClaims } from '../zone-claims.ts'
import { isSystemError } from './directory.ts'
import { directoryError } from './manifest-file.ts'
import { ManifestSource, type ManifestSourceOptions } from './manifest-source.ts'

/** How long zones may come and go before records that none of them takes are worth a warning. */
const CLAIMS_SETTLE_MS = 1000
/** Records named in one warning. */
const NAMED_MAX = 5

/**
 * One directory of manifests with everybody who reads it: several server blocks over the same
 * directory parse it once, and so do the old and the new instance of a reload.
 */
export class SharedSource {
  readonly source: ManifestSource
  readonly claims: ZoneClaims = new ZoneClaims()
  readonly #options: ManifestSourceOptions
  readonly #unclaimed = new Set<string>()
  #cancelWarning: (() => void) | undefined

  constructor(options: ManifestSourceOptions) {
    this.#options = options
    this.source = new ManifestSource(options)
    this.claims.onChange(() => this.#scheduleWarning())
  }

  /** Records that belong to no zone served; counted anew a while after zones came or went. */
  get unclaimedCount(): number {
    return this.#unclaimed.size
  }

  async start(): Promise<void> {
    await this.source.load()
    await this.source.follow()
    this.source.subscribe((changes) => {
      const keys = changes.map(({ before, after }) => after?.key ?? before?.key ?? '')
      this.#check(keys)
    })
  }

  close(): void {
    this.#cancelWarning?.()
    this.source.close()
  }

  #scheduleWarning(): void {
    this.#cancelWarning?.()
    const { log, timers } = this.#options
    const contained = containing(log, 'Looking for records of no zone')
    this.#cancelWarning = timers.after(
      CLAIMS_SETTLE_MS,
      () => void contained(() => this.#recount()),
    )
  }

  #recount(): void {
    this.#unclaimed.clear()
    const keys: string[] = []
    for (const record of this.source.records()) keys.push(record.key)
    this.#check(keys)
  }

  #check(keys: readonly string[]): void {
    const fresh: string[] = []
    for (const key of keys) {
      const record = this.source.find(key)
      const isClaimed = record === undefined || this.claims.zoneKeyOf(record.packed) !== ''
      if (isClaimed) this.#unclaimed.delete(key)
      else if (!this.#unclaimed.has(key)) {
        this.#unclaimed.add(key)
        fresh.push(key)
      }
    }
    if (fresh.length === 0) return
    const named = fresh.slice(0, NAMED_MAX).join(', ')
    const more = fresh.length > NAMED_MAX ? ` and ${fresh.length - NAMED_MAX} more` : ''
    this.#options.log.warning(`no zone is served for DNSRecords ${named}${more}: they are ignored`)
  }
}

interface Use {
  readonly shared: SharedSource
  readonly started: Promise<void>
  users: number
}

const uses = new Map<string, Use>()

/**
 * The source of a directory, read and followed. Throws InputError where the directory can't be read.
 * The returned function gives it back; the last one to do so closes it.
 */
export async function acquireSource(
  options: ManifestSourceOptions,
): Promise<{ readonly shared: SharedSource; readonly release: () => void }> {
  const key = resolveDirectory(options.directory)
  let use = uses.get(key)
  if (use === undefined) {
    const shared = new SharedSource(options)
    use = { shared, started: shared.start(), users: 0 }
    uses.set(key, use)
  }
  use.users++
  const release = once(() => giveBack(key, use))
  try {
    await use.started
  } catch (error) {
    release()
    throw error
  }
  return { shared: use.shared, release }
}

/** True if somebody in this process reads the directory. */
export function isSourceOpen(directory: string): boolean {
  try {
    return uses.has(realpathSync(directory))
  } catch (error) {
    if (!isSystemError(error)) throw error
    return false
  }
}

function giveBack(key: string, use: Use): void {
  if (--use.users > 0) return
  if (uses.get(key) === use) uses.delete(key)
  use.shared.close()
}

function once(run: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) run()
    isDone = true
  }
}

function resolveDirectory(directory: string): string {
  try {
    return realpathSync(directory)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw directoryError(directory, error)
  }
}
