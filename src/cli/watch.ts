import { setTimeout as delay } from 'node:timers/promises'
import { InputError } from '../base/errors.ts'
import { readReply } from './admin-client.ts'
import { type DataFormat, linesOfData, type Printable } from './data-format.ts'
import type { Output } from './output.ts'
import { type Line, toned } from './tones.ts'

export const WATCH_MS = 1000

/** Data that changes while its source runs. */
interface Watched {
  /** Rejects with InputError if the source is away. */
  readonly read: () => Promise<Printable>
  readonly format: DataFormat
  /** Pause between two reads. */
  readonly intervalMs: number
  /** Aborted to end the watch. */
  readonly stop: AbortSignal
}

/** Members that change without an event. */
const VOLATILE = new Set(['now', 'ageSeconds'])

/**
 * Prints data until `stop` is aborted. On a terminal, each table is drawn over the one before. Otherwise, each change
 * is printed below the others. If a read fails, its fault is printed, and the next read follows.
 */
export async function watchData(watched: Watched, output: Output): Promise<void> {
  const { read, format, intervalMs, stop } = watched
  const isTable = format === 'table' || format === 'wide'
  const show = isTable && output.screen !== undefined ? draw : printChanges()
  while (!stop.aborted) {
    const state = await unlessAborted(readState(read, format), stop)
    if (state === undefined) return
    show(state, output, format)
    await delay(intervalMs, undefined, { signal: stop }).catch(() => {})
  }
}

/** What was read: lines, or the fault that the source is away. */
interface State {
  readonly lines: readonly Line[]
  readonly fault: string
  /** The data without its volatile members; '' = none. */
  readonly version: string
}

async function readState(read: Watched['read'], format: DataFormat): Promise<State> {
  try {
    const printable = await read()
    const lines = readReply('a status', () => [...linesOfData(format, printable)])
    const replace = (name: string, value: unknown): unknown =>
      VOLATILE.has(name) ? undefined : value
    return { lines, fault: '', version: JSON.stringify(printable.data(), replace) }
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return { lines: [], fault: error.print(), version: '' }
  }
}

/** Resolves to undefined if the signal is aborted before. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const abort = (): void => resolve(undefined)
    signal.addEventListener('abort', abort, { once: true })
    const end = (): void => signal.removeEventListener('abort', abort)
    work.finally(end).then(resolve, reject)
  })
}

function draw({ lines, fault }: State, { screen }: Output): void {
  if (fault === '') screen?.(lines)
  else screen?.([[toned('bad', `${fault}; trying again`)]])
}

/** Returns a function that prints a state, unless it is that of the call before. */
function printChanges(): (state: State, output: Output, format: DataFormat) => void {
  let before: State | undefined
  let isFirst = true
  return (state, output, format) => {
    const { lines, fault, version } = state
    if (before?.version === version && before.fault === fault) return
    if (fault !== '') output.printError(`${fault}; trying again`)
    else {
      if (!isFirst) output.print(format === 'yaml' ? '---' : '')
      isFirst = false
      for (const line of lines) output.print(line)
      output.flush()
    }
    before = state
  }
}

/** Returns a signal that is aborted when the user ends the program. */
export function untilInterrupted(): AbortSignal {
  const controller = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => controller.abort())
  return controller.signal
}
