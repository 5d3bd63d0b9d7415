import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/telemetry/log.ts'
import { systemTimers } from '../base/timers.ts'
import type { TcpCounters } from '../transport/tcp-counters.ts'
import { loadLibc } from '../transport/udp/batch/libc.ts'

/** A lower peak leaves too little memory behind to justify a pause. */
const PEAK_MIN = 500
/** Fraction of the peak to which connections must have fallen. */
const REST = 1 / 10
const RELEASE_MS_MIN = 60_000
/** The collection of a heap of 30 MiB takes 60 to 85 ms, that of 50 MiB up to 140 ms. */
const HEAP_OCTETS_MAX = 32 * 2 ** 20
const CHECK_MS = 1000
/** After the resident memory grew by this many octets, much of it is likely garbage of a transfer or a load. */
const GROWTH_MIN = 64 * 2 ** 20
/** Growth between two checks that is part of a transfer or a load. */
const GROWING_MIN = 2 ** 20
const MIB = 2 ** 20

interface MemoryReleaseParts {
  readonly clock: Clock
  readonly log: Pick<Logger, 'info'>
  /** Open TCP connections. */
  readonly connections: () => number
  readonly memory: () => Pick<NodeJS.MemoryUsage, 'rss' | 'heapUsed'>
  /** Collects all garbage, then calls `done`. */
  readonly collect: (done: () => void) => void
  /** Returns free memory to the system. */
  readonly trim: () => void
}

/**
 * Returns the memory of a flood of TCP connections, and of large data that was read, to the system. V8 collects the
 * closed sockets and the buffers of an idle process only after minutes, or never, and malloc keeps the memory that they
 * free, and that of threads which loaded a zone. This class releases both after connections fell from a peak of at
 * least 500 to less than a tenth, and stopped falling, and after the resident memory grew by at least 64 MiB, and
 * stopped growing. It does so at most once a minute. It does not collect a large heap, because that would block the
 * control thread for longer than 100 ms.
 */
export class MemoryRelease {
  readonly #parts: MemoryReleaseParts
  #peak = 0
  #last = 0
  /**
   * Octets in use before the peak. The duration of a collection depends on these; garbage adds
   * little.
   */
  #heapBefore = 0
  #releasedMs = Number.NEGATIVE_INFINITY
  /** Octets of resident memory now, and the least since the last release. */
  #rss = 0
  #rssLeast: number

  constructor(parts: MemoryReleaseParts) {
    this.#parts = parts
    this.#rssLeast = parts.memory().rss
  }

  /** Call it about once a second. */
  check(): void {
    const { heapUsed, rss } = this.#parts.memory()
    this.#checkConnections(heapUsed)
    this.#checkGrowth(heapUsed, rss)
  }

  #checkConnections(heapUsed: number): void {
    const last = this.#last
    const now = this.#parts.connections()
    const peak = Math.max(this.#peak, now)
    this.#last = now
    this.#peak = peak
    if (peak < PEAK_MIN) this.#heapBefore = heapUsed
    else if (now < peak * REST && now >= last) {
      const isDone = this.#release(this.#heapBefore, `TCP connections fell from ${peak} to ${now}`)
      if (isDone) this.#peak = now
    }
  }

  #checkGrowth(heapUsed: number, rss: number): void {
    const isGrowing = rss - this.#rss > GROWING_MIN
    this.#rss = rss
    this.#rssLeast = Math.min(this.#rssLeast, rss)
    if (isGrowing || rss - this.#rssLeast < GROWTH_MIN) return
    if (heapUsed <= HEAP_OCTETS_MAX) this.#release(heapUsed, 'after large data was read')
  }

  /** Returns false if the last release was less than a minute ago. `heap`: its octets in use. */
  #release(heap: number, why: string): boolean {
    const { clock, log, memory, collect, trim } = this.#parts
    const nowMs = clock.monotonic()
    if (nowMs - this.#releasedMs < RELEASE_MS_MIN) return false
    const before = memory().rss
    this.#releasedMs = nowMs
    const finish = (): void => {
      trim()
      const { rss } = memory()
      this.#rssLeast = rss
      logRelease(log, before, rss, why)
    }
    if (heap > HEAP_OCTETS_MAX) finish()
    else collect(finish)
    return true
  }
}

/** A heap of this size after the start has much garbage, if few objects live; octets. */
const START_HEAP_MIN = 32 * MIB
/** With more octets of resident memory after the start, much is garbage of threads that loaded zones. */
const START_RSS_MIN = 160 * MIB

interface StartReleaseParts {
  readonly log: Pick<Logger, 'info'>
  readonly memory: () => { readonly rss: number; readonly heapTotal: number }
  readonly collect: (done: () => void) => void
  readonly trim: () => void
}

/**
 * Returns the memory of a start to the system: what was parsed to fill zones is garbage by then, and V8 would keep its
 * pages. The control thread pauses for as long as the collection of what lives takes: about 0.25 s with 10 000 records.
 * Data threads answer meanwhile. It is not done before the server listens, because that would delay the first answer.
 */
export function releaseMemoryAfterStart(log: Logger): void {
  releaseAfterStart({ log, memory: () => process.memoryUsage(), ...SYSTEM })
}

/** @internal Exported for its test. */
export function releaseAfterStart({ log, memory, collect, trim }: StartReleaseParts): void {
  const before = memory()
  if (before.heapTotal < START_HEAP_MIN && before.rss < START_RSS_MIN) return
  collect(() => {
    trim()
    logRelease(log, before.rss, memory().rss, 'after the start')
  })
}

function logRelease(log: Pick<Logger, 'info'>, before: number, after: number, why: string): void {
  const [from, to] = [before, after].map((octets) => Math.round(octets / MIB))
  log.info(`memory: resident memory reduced from ${from} to ${to} MiB, ${why}`, 'memory-released')
}

/** Releases memory after floods over TCP as long as this process runs. */
export function releaseMemoryAfterFloods(
  counters: Readonly<TcpCounters>,
  clock: Clock,
  log: Logger,
): void {
  const release = new MemoryRelease({
    clock,
    log,
    connections: () => counters.open,
    memory: () => process.memoryUsage(),
    ...SYSTEM,
  })
  systemTimers.every(CHECK_MS, () => release.check())
}

/**
 * Collects all garbage and shrinks the heap. In Node.js 20 only the inspector can do that; `gc` can from Node.js 22 on.
 * Rejects if Node.js was built without the inspector.
 */
async function collectGarbage(): Promise<void> {
  const { Session } = await import('node:inspector/promises')
  const session = new Session()
  session.connect()
  try {
    await session.post('HeapProfiler.collectGarbage')
  } finally {
    session.disconnect()
  }
}

const SYSTEM = {
  collect: (done: () => void): void => void collectGarbage().then(done, done),
  trim,
}

function trim(): void {
  try {
    loadLibc().mallocTrim(0)
  } catch {
    // If koffi does not load, malloc keeps its free memory.
  }
}
