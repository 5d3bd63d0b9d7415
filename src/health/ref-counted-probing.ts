import type { RecordSource } from '../dnsrecord/record-source.ts'
import type { MetricsRegistry } from '../telemetry/metrics.ts'
import { lookCounter, measureProbing } from './probes/metrics.ts'
import { RecordProbing, type RecordProbingOptions } from './record-probing.ts'
import { SlowStart, type SlowStartOptions } from './slow-start.ts'
import { SlowStartFile } from './slow-start-file.ts'

interface Use<T> {
  readonly taken: T
  users: number
}

/**
 * Objects that several blocks use, and both instances of a reload. The last user to release an
 * object closes it.
 */
class RefCountedByKey<T extends { close(): void }> {
  readonly #uses = new Map<string, Use<T>>()

  take(key: string, open: () => T): { readonly taken: T; readonly release: () => void } {
    let use = this.#uses.get(key)
    if (use === undefined) {
      use = { taken: open(), users: 0 }
      this.#uses.set(key, use)
    }
    const own = use
    own.users++
    const release = (): void => {
      if (--own.users > 0) return
      this.#uses.delete(key)
      own.taken.close()
    }
    return { taken: own.taken, release }
  }

  *withPrefix(prefix: string): Iterable<T> {
    for (const [key, { taken }] of this.#uses) if (key.startsWith(prefix)) yield taken
  }
}

/** A probing and its metrics. */
class MeasuredProbing {
  readonly probing: RecordProbing
  readonly #stopMeasuring: () => void

  constructor(source: string, options: RecordProbingOptions, metrics: MetricsRegistry) {
    this.probing = new RecordProbing(options)
    this.#stopMeasuring = measureProbing(metrics, source, this.probing)
  }

  close(): void {
    this.#stopMeasuring()
    this.probing.close()
  }
}

const probings = new RefCountedByKey<MeasuredProbing>()
const slowStarts = new RefCountedByKey<StoredSlowStart>()
/** Files by path. */
const files = new RefCountedByKey<SlowStartFile>()

/** A slow start and the file that stores it over a restart; path '' = no file. */
class StoredSlowStart extends SlowStart {
  readonly #releaseFile: (() => void) | undefined
  #removeUser = (): void => {}

  constructor(options: SlowStartOptions, path: string) {
    const file =
      path === '' ? undefined : files.take(path, () => new SlowStartFile({ ...options, path }))
    const onChange = (): void => file?.taken.noteChange()
    // A slow start of this process is newer than that of the file.
    const known = [...(file?.taken.known ?? []), ...(options.known ?? [])]
    super({ ...options, known, onChange })
    this.#releaseFile = file?.release
    if (file !== undefined) this.#removeUser = file.taken.add(() => this.slowStarts())
  }

  override close(): void {
    // The file is written once more before this source is removed from it.
    this.#releaseFile?.()
    this.#removeUser()
    super.close()
  }
}

/**
 * Returns the probing of the named source (no newline in the name) with the settings `how`, as
 * text. Callers with the same arguments share it. If the settings change, as at a reload, the old
 * probing passes its states on.
 */
export function acquireProbing(
  { source, how }: { readonly source: string; readonly how: string },
  metrics: MetricsRegistry,
  options: () => Omit<RecordProbingOptions, 'known' | 'onLook'>,
): { readonly probing: RecordProbing; readonly release: () => void } {
  const prefix = `${source}\n`
  const { taken, release } = probings.take(`${prefix}${how}`, () => {
    const others = [...probings.withPrefix(prefix)]
    const known = others.flatMap(({ probing }) => [...probing.states()])
    const onLook = lookCounter(metrics, source)
    return new MeasuredProbing(source, { ...options(), known, onLook }, metrics)
  })
  return { probing: taken.probing, release }
}

/** Distinguishes sources of the same name: with peers, every block has its own source. */
const sourceNumbers = new WeakMap<RecordSource, number>()
let sourceCount = 0

function numberOf(source: RecordSource): number {
  const number = sourceNumbers.get(source) ?? ++sourceCount
  sourceNumbers.set(source, number)
  return number
}

/**
 * Returns the slow start of the named source (no newline in the name). Callers with the same
 * arguments share it. If a reload replaces the source, the new slow start continues the old one.
 */
export function acquireSlowStart(
  name: string,
  options: Omit<SlowStartOptions, 'known' | 'onChange'>,
  path: string,
): { readonly taken: SlowStart; readonly release: () => void } {
  const prefix = `${name}\n`
  const { source, durationMs } = options
  return slowStarts.take(`${prefix}${durationMs}\n${path}\n${numberOf(source)}`, () => {
    const known = [...slowStarts.withPrefix(prefix)].flatMap((other) => [...other.slowStarts()])
    return new StoredSlowStart({ ...options, known }, path)
  })
}
