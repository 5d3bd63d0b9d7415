import { InputError } from '../../base/errors.ts'
import { plural } from '../../base/plural.ts'
import { printName } from '../../dns/name/name.ts'
import type { ScannedRecord } from './sink.ts'

/** The ignored records of one file. */
interface FileTally {
  readonly line: number
  readonly firstOwner: string
  count: number
}

/** Counts the records whose names are outside of the zone, by file: they are ignored. */
export class OutsideNames {
  readonly #files = new Map<string, FileTally>()

  count(record: ScannedRecord, file: string, line: number): void {
    const tally = this.#files.get(file)
    if (tally !== undefined) tally.count++
    else this.#files.set(file, { line, firstOwner: printName(record.owner), count: 1 })
  }

  /** One warning per file, at its first ignored record. `zone`: lower-case wire form. */
  warnings(zone: Uint8Array): InputError[] {
    return [...this.#files].map(([file, { line, firstOwner, count }]) => {
      const records = `${plural(count, 'record')} of names outside of zone ${printName(zone)}`
      const fix = `move ${count === 1 ? 'it' : 'them'} to the file of the right zone`
      const message = `ignored ${records}, the first is ${firstOwner}; ${fix}`
      return new InputError({ file, line }, message)
    })
  }
}
