import { type FileHandle, open, rename, stat } from 'node:fs/promises'
import { lockFile } from '../../base/persist/lock-file.ts'
import { findPlaceFault, problemsOfFile } from '../../base/persist/state-file.ts'
import { isSystemError } from '../../base/system-error.ts'
import type { EventLog } from '../../base/telemetry/event-log.ts'
import { NEWLINE } from '../../base/telemetry/lines.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { ProblemGroup } from '../../base/telemetry/problems.ts'

/** Characters that wait to be written; more are dropped. */
const WAITING_MAX = 4 * 1024 * 1024
const MODE = 0o640

interface EventFileOptions {
  readonly path: string
  readonly octetsMax: number
  readonly events: EventLog
  readonly log: Logger
}

/** Appends the events of a log to a file, as lines of JSON. */
export class EventFile {
  /** A file that would exceed it becomes `PATH.1`, which it replaces. */
  octetsMax: number
  readonly #options: EventFileOptions
  readonly #unsubscribe: () => void
  #waiting = ''
  #dropped = 0
  /** Why the last write failed, or none is possible; '' = none of both. */
  #fault = ''
  /** The file may end in a part of a line: after a fault, and after an earlier process died. */
  #mayBeCut = true
  #writing: Promise<void> | undefined

  constructor(options: EventFileOptions) {
    this.#options = options
    this.octetsMax = options.octetsMax
    this.#unsubscribe = options.events.subscribe((line) => this.#add(line))
    const fault = findPlaceFault(options.path)
    if (fault !== '') this.#reportFault(fault, 0)
  }

  /** Why events can't be written now. */
  get problems(): readonly ProblemGroup[] {
    const { path } = this.#options
    const fault = this.#dropped > 0 ? this.#fault : findPlaceFault(path)
    return problemsOfFile(path, 'events', fault, 'events are lost')
  }

  /** Resolves once all events so far are written, or can't be. */
  async written(): Promise<void> {
    await this.#writing
  }

  /** Ends the subscription. Events so far are still written. */
  close(): void {
    this.#unsubscribe()
  }

  #add(line: string): void {
    if (this.#waiting.length + line.length > WAITING_MAX) this.#dropped++
    else this.#waiting += `${line}\n`
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined
    })
  }

  async #write(): Promise<void> {
    // Events of one turn are one write.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#waiting !== '') {
      const text = this.#waiting
      this.#waiting = ''
      try {
        await this.#append(text)
        this.#reportRecovery()
      } catch (error) {
        const fault = error instanceof Error ? error.message : String(error)
        this.#reportFault(fault, text.split('\n').length - 1)
      }
    }
  }

  async #append(text: string): Promise<void> {
    const { path } = this.#options
    const octets = Buffer.from(text)
    if (await this.#isFull(octets.length)) await this.#rotate(octets.length)
    const file = await open(path, 'a+', MODE)
    try {
      if (this.#mayBeCut && (await isCut(file))) await file.appendFile('\n')
      this.#mayBeCut = true
      await file.appendFile(octets)
      this.#mayBeCut = false
    } finally {
      await file.close()
    }
  }

  async #isFull(added: number): Promise<boolean> {
    const size = await sizeOf(this.#options.path)
    return size > 0 && size + added > this.octetsMax
  }

  /** During a take-over, two processes write the file. Only one may rename it: the second would rename the new file. */
  async #rotate(added: number): Promise<void> {
    const { path } = this.#options
    const release = await lockFile(path)
    try {
      if (await this.#isFull(added)) await rename(path, `${path}.1`)
    } finally {
      release()
    }
  }

  #reportFault(fault: string, lines: number): void {
    this.#dropped += lines
    const isFirst = this.#fault === ''
    this.#fault = fault
    const { log, path } = this.#options
    if (isFirst)
      log.error(`events cannot be written to ${path}: ${fault}`, 'event-file-write-failed')
  }

  #reportRecovery(): void {
    this.#fault = ''
    if (this.#dropped === 0) return
    const { log, path } = this.#options
    log.warning(`${path} lacks ${this.#dropped} events that could not be written`, 'event-file-gap')
    this.#dropped = 0
  }
}

/**
 * Returns the length of a file in octets; 0 = the file is missing. Rejects if `path` is not a regular
 * file, because opening a FIFO would block.
 */
async function sizeOf(path: string): Promise<number> {
  try {
    const stats = await stat(path)
    if (!stats.isFile()) throw new Error('it is not a regular file')
    return stats.size
  } catch (error) {
    if (!isSystemError(error) || error.code !== 'ENOENT') throw error
    return 0
  }
}

async function isCut(file: FileHandle): Promise<boolean> {
  const { size } = await file.stat()
  if (size === 0) return false
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
  return buffer[0] !== NEWLINE
}
