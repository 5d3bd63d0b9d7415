import { readFile, stat } from 'node:fs/promises'
import { printDuration } from '../../base/duration.ts'
import { guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import { copyWeights, scanWeights, WEIGHT_FILE_OCTETS_MAX, type WeightMemory } from './weights.ts'

interface WeightFileOptions {
  readonly path: string
  /** How often the file is checked; 0 = only at the start. */
  readonly reloadMs: number
  readonly log: Logger
  readonly timers: Timers
  /** Puts new weights in force. */
  readonly serve: (weights: WeightMemory) => void
}

/**
 * Loads weights from a file, and follows its changes. If the file becomes invalid, the last valid
 * weights are kept.
 */
export class WeightFile {
  readonly #path: string
  readonly #reloadMs: number
  readonly #log: Logger
  readonly #timers: Timers
  readonly #serve: (weights: WeightMemory) => void
  #text: string | undefined
  #lastFault = ''
  #busy = false
  #stop = (): void => {}

  constructor({ path, reloadMs, log, timers, serve }: WeightFileOptions) {
    this.#path = path
    this.#serve = serve
    this.#reloadMs = reloadMs
    this.#log = log
    this.#timers = timers
  }

  /**
   * Loads the file and starts to watch it. A missing file is a warning if the file is watched, else
   * an error. An invalid file is always an error.
   */
  async start(): Promise<void> {
    const { missing, fault } = await this.#load()
    if (missing && this.#reloadMs > 0)
      this.#log.warning(this.#printMissing(fault), 'weight-file-missing')
    else if (fault !== '') throw new Error(fault)
    if (this.#reloadMs === 0) return
    const guarded = guarding(this.#log, `Reloading ${this.#path}`)
    this.#stop = this.#timers.every(this.#reloadMs, () => void guarded(() => this.#reload()))
  }

  stop(): void {
    this.#stop()
  }

  /** The current fault of the file; '' = none. `warn` gets the warnings of a start. */
  async check(warn: (text: string) => void): Promise<string> {
    const { missing, fault } = await this.#load(() => {})
    if (!missing || this.#reloadMs === 0) return fault
    warn(this.#printMissing(fault))
    return ''
  }

  #printMissing(fault: string): string {
    const again = printDuration(this.#reloadMs)
    return `Failed to open weight file:${fault}. Will try again in ${again}`
  }

  async #reload(): Promise<void> {
    // Reads must not pile up on a slow disk.
    if (this.#busy) return
    this.#busy = true
    const { fault } = await this.#load().finally(() => {
      this.#busy = false
    })
    if (fault !== '' && fault !== this.#lastFault) this.#log.error(fault, 'weight-file-failed')
    this.#lastFault = fault
  }

  /** `fault` is '' if the table matches the file. */
  async #load(announce = this.#log.info): Promise<{ missing: boolean; fault: string }> {
    let text: string
    try {
      const { size } = await stat(this.#path)
      if (size > WEIGHT_FILE_OCTETS_MAX) {
        const most = `${WEIGHT_FILE_OCTETS_MAX} octets`
        return { missing: false, fault: `weight file ${this.#path} is larger than ${most}` }
      }
      text = await readFile(this.#path, 'utf8')
    } catch (error) {
      return { missing: true, fault: error instanceof Error ? error.message : String(error) }
    }
    if (text === this.#text) return { missing: false, fault: '' }
    const weights = scanWeights(text, this.#path)
    if (typeof weights === 'string') return { missing: false, fault: weights }
    this.#text = text
    this.#serve(copyWeights(weights))
    announce(`Successfully reloaded weight file ${this.#path}`, 'weight-file-reloaded')
    return { missing: false, fault: '' }
  }
}
