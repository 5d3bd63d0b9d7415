import { Worker } from 'node:worker_threads'
import type { Clock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import { runInSlices } from '../../base/slices.ts'
import { statIfAny } from '../../base/stat.ts'
import { beginProgress } from '../../base/telemetry/progress.ts'
import {
  type ImageJob,
  type ImageLoad,
  loadImage,
  outOfMemory,
  type PlainError,
  type PlainImage,
  toError,
  toLoaded,
  toPlain,
  toPlainImage,
} from './image-load.ts'

/**
 * Files and transfers from this size on are loaded in a thread of their own. It takes 50 ms to start. All memory of the
 * load goes with it, which is three times that of the zone, and the control thread works on meanwhile.
 */
const THREAD_OCTETS_MIN = 2 * 1024 * 1024

type ImageMessage =
  | PlainImage
  | Extract<ImageLoad, { kind: 'unchanged' }>
  | (Omit<Extract<ImageLoad, { kind: 'failed' }>, 'errors'> & {
      readonly errors: readonly PlainError[]
    })
  | { readonly kind: 'unreadable' }

/** The snapshot of the load is written. `fault`: why it could not be; '' = it is. */
interface SnapshotMessage {
  readonly kind: 'snapshot'
  readonly fault: string
}

/** Ends when the load that is under way does: two large ones at a time would need the memory of both. */
let current: Promise<void> = Promise.resolve()
let running: Worker | undefined
/** Loads that wait for it. */
let waiting = 0

interface ThreadOptions {
  /** The size from which a load has a thread. */
  readonly octetsMin?: number
  /** Called when the snapshot is written: see `SnapshotMessage`. */
  readonly onSnapshot?: (fault: string) => void
}

/**
 * Loads a zone, without holding the event loop for long. The process may exit once the load is there, while the
 * snapshot is written. The memory of a log may be gone afterwards.
 */
export async function loadWithoutPause(
  job: ImageJob,
  clock: Clock,
  { octetsMin = THREAD_OCTETS_MIN, onSnapshot = () => {} }: ThreadOptions = {},
): Promise<ImageLoad> {
  if (octetsOf(job) >= octetsMin) {
    const progress = beginProgress('path' in job ? job.path : 'a zone')
    const load = await loadInTurn(job, onSnapshot).finally(() => progress.end())
    if (load !== undefined) return load
  }
  return await runInSlices(loadImage(job), clock)
}

function octetsOf(job: ImageJob): number {
  if ('path' in job) return statIfAny(job.path)?.size ?? 0
  return job.log.chunks.reduce((sum, chunk) => sum + chunk.length, 0)
}

/** As `loadInThread`, after the loads before. */
async function loadInTurn(
  job: ImageJob,
  onSnapshot: (fault: string) => void,
): Promise<ImageLoad | undefined> {
  const before = current
  let end = (): void => {}
  current = new Promise((resolve) => {
    end = resolve
  })
  running?.ref()
  waiting++
  await before
  waiting--
  try {
    return await loadInThread(job, { onSnapshot, onEnd: end })
  } catch (error) {
    // `new Worker` throws if the system allows no more threads.
    end()
    return failed(error, job)
  }
}

interface ThreadHooks {
  readonly onSnapshot: (fault: string) => void
  /** Called when the thread has ended, which may be some time after the load. */
  readonly onEnd: () => void
}

/** Resolves to undefined if the thread did not start, or could not read the file. */
function loadInThread(
  job: ImageJob,
  { onSnapshot, onEnd }: ThreadHooks,
): Promise<ImageLoad | undefined> {
  return new Promise((resolve) => {
    // The sources run as .ts under a loader, and as .js after the build.
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
    const url = new URL(`./load-thread.${extension}`, import.meta.url)
    const transferList = 'log' in job ? job.log.chunks.map((chunk) => chunk.buffer) : []
    const worker = new Worker(url, { workerData: job, transferList, name: 'sextant load' })
    running = worker
    worker.on('message', (message: ImageMessage | SnapshotMessage) => {
      if (message.kind === 'snapshot') return onSnapshot(message.fault)
      if (waiting === 0) worker.unref()
      resolve(fromMessage(message))
    })
    worker.on('error', (error) => resolve(failed(error, job)))
    worker.on('exit', () => {
      running = undefined
      onEnd()
      resolve(failed(undefined, job))
    })
  })
}

function failed(error: unknown, job: ImageJob): ImageLoad | undefined {
  try {
    return { kind: 'failed', errors: [outOfMemory(error, job)], files: [] }
  } catch {
    // The same load of a file in this thread shows what is wrong. A log went with its thread.
    if ('path' in job) return undefined
    const message = 'the thread that loads the zone did not start, or ended early'
    return { kind: 'failed', errors: [new InputError(undefined, message, error)], files: [] }
  }
}

/** Returns the load in a form that can be sent between threads. */
export function toMessage(load: ImageLoad): ImageMessage {
  switch (load.kind) {
    case 'loaded':
      return toPlainImage(load)
    case 'failed':
      return { ...load, errors: load.errors.map(toPlain) }
    case 'unreadable':
      return { kind: 'unreadable' }
    default:
      return load
  }
}

function fromMessage(message: ImageMessage): ImageLoad | undefined {
  switch (message.kind) {
    case 'loaded':
      return toLoaded(message)
    case 'failed':
      return { ...message, errors: message.errors.map(toError) }
    case 'unreadable':
      return undefined
    default:
      return message
  }
}
