import { readFile, stat } from 'node:fs/promises'
import { printDuration } from '../../base/duration.ts'
import type { Timers } from '../../base/timers.ts'
import { guarding } from '../../telemetry/guard.ts'
import type { Logger } from '../../telemetry/log.ts'
import { copyWeights, scanWeights, WEIGHT_FILE_OCTETS_MAX, type WeightMemory } from './weights.ts'

export interface WeightFileOptions {
  readonly path: string
  /** How often the file is looked at; 0 = never again. */
  readonly reloadMs: number
  readonly log: Logger
  readonly timers: Timers
  /** Puts new weights in force. */
  readonly serve: (weights: WeightMemory) => void
}

/** Keeps weights as their file says. A bad file leaves the last good ones in place. */
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
   * Loads the file and begins to watch it. A missing file is a warning if it is looked for again;
   * otherwise it is an error, and so is a bad one.
   */
  async start(): Promise<void> {
    const { missing, fault } = await this.#load()
    if (missing && this.#reloadMs > 0) this.#log.warning(this.#printMissing(fault))
    else if (fault !== '') throw new Error(fault)
    if (this.#reloadMs === 0) return
    const guarded = guarding(this.#log, `Reloading ${this.#path}`)
    this.#stop = this.#timers.every(this.#reloadMs, () => void guarded(() => this.#reload()))
  }

  stop(): void {
    this.#stop()
  }

  /** What is wrong with the file now; '' = nothing. `warn` is told of what a start would warn of. */
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
    // A slow disk must not pile up reads.
    if (this.#busy) return
    this.#busy = true
    const { fault } = await this.#load().finally(() => {
      this.#busy = false
    })
    if (fault !== '' && fault !== this.#lastFault) this.#log.error(fault)
    this.#lastFault = fault
  }

  /** `fault` is '' if the table is as the file says. */
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
    announce(`Successfully reloaded weight file ${this.#path}`)
    return { missing: false, fault: '' }
  }
}
