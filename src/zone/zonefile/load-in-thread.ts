import { Worker } from 'node:worker_threads'
import type { Clock } from '../../base/clock.ts'
import { InputError, type Position } from '../../base/errors.ts'
import { runInSlices } from '../../base/slices.ts'
import { statIfAny } from '../../base/stat.ts'
import { type ImageJob, type ImageLoad, loadImage, outOfMemory } from './image-load.ts'

/**
 * Files and transfers from this size on are loaded in a thread of their own. It takes 50 ms to start. All memory of the
 * load goes with it, which is three times that of the zone, and the control thread works on meanwhile.
 */
const THREAD_OCTETS_MIN = 2 * 1024 * 1024

/** An error as plain data: errors lose their class when they are sent between threads. */
interface PlainError {
  readonly position: Position | undefined
  readonly message: string
}

type ImageMessage =
  | (Omit<Extract<ImageLoad, { kind: 'loaded' }>, 'warnings' | 'signatures'> & {
      readonly warnings: readonly PlainError[]
      readonly expiry: Extract<ImageLoad, { kind: 'loaded' }>['signatures']['expiry']
      /** Which of the warnings is that of the signatures; -1 = none. */
      readonly signatureWarning: number
    })
  | Extract<ImageLoad, { kind: 'unchanged' }>
  | (Omit<Extract<ImageLoad, { kind: 'failed' }>, 'errors'> & {
      readonly errors: readonly PlainError[]
    })
  | { readonly kind: 'unreadable' }

/** The load that is under way: two large ones at a time would need the memory of both. */
let current: Promise<unknown> = Promise.resolve()

/**
 * Loads a zone, without holding the event loop for long. The process may exit in the meantime. The memory of a log
 * may be gone afterwards. `threadOctetsMin`: the size from which a load has a thread.
 */
export async function loadWithoutPause(
  job: ImageJob,
  clock: Clock,
  threadOctetsMin: number = THREAD_OCTETS_MIN,
): Promise<ImageLoad> {
  if (octetsOf(job) >= threadOctetsMin) {
    // `new Worker` throws if the system allows no more threads. The next load waits for this promise.
    const loaded = current.then(() => loadInThread(job)).catch(() => undefined)
    current = loaded
    const load = await loaded
    if (load !== undefined) return load
  }
  return await runInSlices(loadImage(job), clock)
}

function octetsOf(job: ImageJob): number {
  if ('path' in job) return statIfAny(job.path)?.size ?? 0
  return job.log.chunks.reduce((sum, chunk) => sum + chunk.length, 0)
}

/** Resolves to undefined if the thread did not start, or could not read the file. */
function loadInThread(job: ImageJob): Promise<ImageLoad | undefined> {
  return new Promise((resolve) => {
    // The sources run as .ts under a loader, and as .js after the build.
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
    const url = new URL(`./load-thread.${extension}`, import.meta.url)
    const transferList = 'log' in job ? job.log.chunks.map((chunk) => chunk.buffer) : []
    const worker = new Worker(url, { workerData: job, transferList, name: 'sextant load' })
    worker.unref()
    worker.on('message', (message: ImageMessage) => resolve(fromMessage(message)))
    worker.on('error', (error) => resolve(failed(error, job)))
    worker.on('exit', () => resolve(failed(undefined, job)))
  })
}

function failed(error: unknown, job: ImageJob): ImageLoad | undefined {
  try {
    return { kind: 'failed', errors: [outOfMemory(error, job)], files: [] }
  } catch {
    // The same load of a file in this thread shows what is wrong. A log went with its thread.
    if ('path' in job) return undefined
    const message = 'the thread that loads the zone ended early'
    return { kind: 'failed', errors: [new InputError(undefined, message, error)], files: [] }
  }
}

/** Returns the load in a form that can be sent between threads. */
export function toMessage(load: ImageLoad): ImageMessage {
  switch (load.kind) {
    case 'loaded': {
      const { signatures, ...rest } = load
      const { expiry, warning } = signatures
      const signatureWarning = warning === undefined ? -1 : load.warnings.indexOf(warning)
      return { ...rest, warnings: load.warnings.map(toPlain), expiry, signatureWarning }
    }
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
    case 'loaded': {
      const { expiry, signatureWarning, ...rest } = message
      const warnings = message.warnings.map(toError)
      return { ...rest, warnings, signatures: { warning: warnings[signatureWarning], expiry } }
    }
    case 'failed':
      return { ...message, errors: message.errors.map(toError) }
    case 'unreadable':
      return undefined
    default:
      return message
  }
}

function toPlain({ position, message }: InputError): PlainError {
  return { position, message }
}

function toError({ position, message }: PlainError): InputError {
  return new InputError(position, message)
}
