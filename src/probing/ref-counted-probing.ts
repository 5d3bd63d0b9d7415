import type { RecordSource } from '../record/source.ts'
import type { MetricsRegistry } from '../telemetry/metrics.ts'
import { lookCounter, measureProbing } from './metrics.ts'
import { RecordProbing, type RecordProbingOptions } from './record-probing.ts'
import { SlowStart, type SlowStartOptions } from './slow-start.ts'
import { SlowStartFile } from './slow-start-file.ts'

interface Use<T> {
  readonly taken: T
  users: number
}

/** What several blocks share, and both instances of a reload: closed when the last one gives it back. */
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

/** A probing with the metrics that show it. */
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
/** By path. */
const files = new RefCountedByKey<SlowStartFile>()

/** A slow start with the file that keeps it over a restart; path '' = none does. */
class StoredSlowStart extends SlowStart {
  readonly #releaseFile: (() => void) | undefined
  #removeUser = (): void => {}

  constructor(options: SlowStartOptions, path: string) {
    const file =
      path === '' ? undefined : files.take(path, () => new SlowStartFile({ ...options, path }))
    const onChange = (): void => file?.taken.noteChange()
    super({ ...options, kept: file?.taken.known ?? [], onChange })
    this.#releaseFile = file?.release
    if (file !== undefined) this.#removeUser = file.taken.add(() => this.slowStarted())
  }

  override close(): void {
    // The file is written once more while this source is still in it.
    this.#releaseFile?.()
    this.#removeUser()
    super.close()
  }
}

/**
 * The probing of the source of that name (no newline in it), with `how` it is done as text: one for all who
 * ask for the same. One that is done in another way, as before a reload, hands over what it knows.
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

/** Tells sources apart that go by one name: with peers every block has one of its own. */
const sourceNumbers = new WeakMap<RecordSource, number>()
let sourceCount = 0

function numberOf(source: RecordSource): number {
  const number = sourceNumbers.get(source) ?? ++sourceCount
  sourceNumbers.set(source, number)
  return number
}

/**
 * The rising of what comes back in the source of that name (no newline in it): one for all who ask for the same. Another
 * one, as after a reload that made another source of it, goes on where those before it are.
 */
export function acquireSlowStart(
  name: string,
  options: Omit<SlowStartOptions, 'known' | 'kept' | 'onChange'>,
  path: string,
): { readonly taken: SlowStart; readonly release: () => void } {
  const prefix = `${name}\n`
  const { source, durationMs } = options
  return slowStarts.take(`${prefix}${durationMs}\n${path}\n${numberOf(source)}`, () => {
    const known = [...slowStarts.withPrefix(prefix)].flatMap((other) => [...other.slowStarted()])
    return new StoredSlowStart({ ...options, known }, path)
  })
}
