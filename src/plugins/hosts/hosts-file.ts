import type { Clock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import { runInSlices } from '../../base/slices.ts'
import { statIfAny } from '../../base/stat.ts'
import { type Logger, SILENT_LOG } from '../../base/telemetry/log.ts'
import {
  copyToSharedMemory,
  type RecordsInSharedMemory,
} from '../../zone/zonefile/records-in-shared-memory.ts'
import { hasChanged, readZoneText, type ZoneText } from '../../zone/zonefile/text.ts'
import { type HostsOptions, HostsTable, type IgnoredLines, LINE_OCTETS_MAX } from './table.ts'

const FILE_OCTETS_MAX = 256 * 1024 * 1024
/**
 * Octets per entry in ordinary hosts files, forward and reverse: for the first estimate of the
 * number of entries.
 */
const RECORD_OCTETS = 16
/** Most entries for which room is allocated in advance: a file may consist of one line. */
const RECORDS_EXPECTED_MAX = 1 << 20

interface HostsFileOptions extends HostsOptions {
  readonly path: string
  /** Lines of the Corefile; they are served whatever the file contains. */
  readonly inline: readonly string[]
  readonly clock: Clock
  readonly log: Logger
  /** Puts new records in force. */
  readonly serve: (records: RecordsInSharedMemory) => void
  /** Called with the number of entries in force, and the file's time in seconds (0 = no file). */
  readonly onLoad: (entries: number, modifiedSeconds: number) => void
}

/** Serves a hosts file, and follows its changes. */
export class HostsFile {
  readonly #options: HostsFileOptions
  #stamp = ''
  #lastFault = ''
  #busy = false
  #stopped = false

  constructor(options: HostsFileOptions) {
    this.#options = options
  }

  /** Serves the inline lines, and the file if it exists. Logs why the file can't be served. */
  async load(): Promise<void> {
    const table = this.#emptyTable(0)
    this.#addInline(table, true)
    this.#options.serve(copyToSharedMemory(table.records))
    this.#options.onLoad(table.records.recordCount, 0)
    const { log, path } = this.#options
    const stat = statIfAny(path)
    if (stat === undefined) log.warning(`File does not exist: ${path}`, 'hosts-file-missing')
    else if (stat.isDirectory())
      log.warning(`Hosts file ${JSON.stringify(path)} is a directory`, 'hosts-file-directory')
    else await this.reload()
  }

  /** Loads once, and reports to `warn` what a start would log. Returns whether the file was read. */
  async check(warn: (text: string) => void): Promise<boolean> {
    const log: Logger = { ...SILENT_LOG, warning: warn, error: warn }
    const file = new HostsFile({ ...this.#options, log, onLoad() {} })
    await file.load()
    return file.#stamp !== ''
  }

  /** Why the file can't be read; '' = it can. */
  get fault(): string {
    const { path } = this.#options
    return statIfAny(path) === undefined ? `file does not exist: ${path}` : this.#lastFault
  }

  /** Reads the file again if it changed. After the file was deleted, its last entries are kept. */
  async reload(): Promise<void> {
    const { path } = this.#options
    if (this.#busy || this.#stopped || !hasChanged({ file: path, stamp: this.#stamp })) return
    this.#busy = true
    try {
      await this.#read()
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      this.#notify(error)
      this.#stamp = ''
    } finally {
      this.#busy = false
    }
  }

  stop(): void {
    this.#stopped = true
  }

  /** Logs, once, why the file can't be read. A file that was deleted after the check is not a fault. */
  #notify(error: InputError): void {
    const { message } = error
    if (message !== this.#lastFault)
      this.#options.log.warning(`unable to access hosts file: ${message}`, 'hosts-file-failed')
    this.#lastFault = message
  }

  #warnOfIgnored({ firstLine, count }: IgnoredLines, why: string): void {
    if (count === 0) return
    const { path, log } = this.#options
    const more = count === 1 ? '' : `, and ${count - 1} more`
    log.warning(`${path}:${firstLine}: ignored, ${why}${more}`, 'hosts-line-ignored')
  }

  async #read(): Promise<void> {
    const { clock, log, onLoad, path, serve } = this.#options
    const source = readHosts(path)
    const table = this.#emptyTable(source.text.length / RECORD_OCTETS)
    await runInSlices(table.addText(source.text), clock)
    this.#addInline(table, false)
    if (this.#stopped) return
    serve(copyToSharedMemory(table.records))
    this.#stamp = source.stamp
    this.#lastFault = ''
    this.#warnOfIgnored(table.long, `longer than ${LINE_OCTETS_MAX} octets`)
    this.#warnOfIgnored(table.invalid, 'does not start with an address')
    const entries = table.records.recordCount
    log.debug(`Parsed hosts file into ${entries} entries`, 'hosts-file-read')
    const modifiedMs = statIfAny(path)?.mtimeMs ?? 0
    onLoad(entries, modifiedMs / 1000)
  }

  #emptyTable(recordsExpected: number): HostsTable {
    const room = Math.min(Math.ceil(recordsExpected), RECORDS_EXPECTED_MAX)
    return new HostsTable(this.#options, room)
  }

  #addInline(table: HostsTable, warns: boolean): void {
    for (const line of this.#options.inline) {
      if (table.addLine(line) || !warns) continue
      this.#options.log.warning(
        `ignored ${JSON.stringify(line)}: it does not start with an address`,
        'hosts-line-ignored',
      )
    }
  }
}

/** Reads the hosts file at `path`. Throws InputError if it is unreadable or too large. */
function readHosts(path: string): ZoneText {
  if ((statIfAny(path)?.size ?? 0) > FILE_OCTETS_MAX) {
    throw new InputError(undefined, `${path} is larger than ${FILE_OCTETS_MAX} octets`)
  }
  return readZoneText(path, FILE_OCTETS_MAX)
}
