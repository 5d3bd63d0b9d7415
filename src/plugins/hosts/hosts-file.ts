import type { Clock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import { runInSlices } from '../../base/slices.ts'
import { statIfAny } from '../../base/stat.ts'
import type { Logger } from '../../telemetry/log.ts'
import { type SharedRecords, shareRecords } from '../../zone/zonefile/shared-records.ts'
import { hasChanged, readZoneText } from '../../zone/zonefile/text.ts'
import { type HostsOptions, HostsTable } from './table.ts'

const FILE_OCTETS_MAX = 256 * 1024 * 1024
/** Octets per entry in ordinary hosts files, forward and reverse: the first guess of their number. */
const RECORD_OCTETS = 16

export interface HostsFileOptions extends HostsOptions {
  readonly path: string
  /** Lines of the Corefile; they hold whatever the file says. */
  readonly inline: readonly string[]
  readonly clock: Clock
  readonly log: Logger
  /** Puts new records in force. */
  readonly serve: (records: SharedRecords) => void
  /** Told of what came into force, with the file's time in seconds (0 = no file). */
  readonly onLoad: (entries: number, modifiedSeconds: number) => void
}

/** A hosts file: keeps what is served as it says. */
export class HostsFile {
  readonly #options: HostsFileOptions
  #stamp = ''
  #busy = false
  #stopped = false

  constructor(options: HostsFileOptions) {
    this.#options = options
  }

  /** Serves the inline lines, and the file if it is there. Says in the log what keeps it from that. */
  async load(): Promise<void> {
    const table = this.#emptyTable(0)
    this.#addInline(table, true)
    this.#options.serve(shareRecords(table.records))
    this.#options.onLoad(table.records.recordCount, 0)
    const { log, path } = this.#options
    const stat = statIfAny(path)
    if (stat === undefined) log.warning(`File does not exist: ${path}`)
    else if (stat.isDirectory()) log.warning(`Hosts file ${JSON.stringify(path)} is a directory`)
    else await this.reload()
  }

  /** Reads the file again if it changed. A file that is gone leaves what it said. */
  async reload(): Promise<void> {
    const { path } = this.#options
    if (this.#busy || this.#stopped || !hasChanged({ file: path, stamp: this.#stamp })) return
    this.#busy = true
    try {
      await this.#read()
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      if (this.#stamp !== '')
        this.#options.log.warning(`unable to access hosts file: ${error.message}`)
      this.#stamp = ''
    } finally {
      this.#busy = false
    }
  }

  stop(): void {
    this.#stopped = true
  }

  async #read(): Promise<void> {
    const { clock, log, onLoad, path, serve } = this.#options
    const source = readZoneText(path, FILE_OCTETS_MAX)
    const table = this.#emptyTable(source.text.length / RECORD_OCTETS)
    await runInSlices(table.addText(source.text), clock)
    this.#addInline(table, false)
    if (this.#stopped) return
    serve(shareRecords(table.records))
    this.#stamp = source.stamp
    const entries = table.records.recordCount
    log.debug(`Parsed hosts file into ${entries} entries`)
    const modifiedMs = statIfAny(path)?.mtimeMs ?? 0
    onLoad(entries, modifiedMs / 1000)
  }

  #emptyTable(recordsExpected: number): HostsTable {
    return new HostsTable(this.#options, Math.ceil(recordsExpected))
  }

  #addInline(table: HostsTable, warns: boolean): void {
    for (const line of this.#options.inline) {
      if (table.addLine(line) || !warns) continue
      this.#options.log.warning(
        `ignored ${JSON.stringify(line)}: it does not begin with an address`,
      )
    }
  }
}
