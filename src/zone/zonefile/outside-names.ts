import { InputError } from '../../base/errors.ts'
import { plural } from '../../base/plural.ts'
import { printName } from '../../dns/name/name.ts'

/** The ignored records of one file. */
interface FileTally {
  readonly line: number
  readonly firstOwner: string
  count: number
}

/** Counts the records of a file or a transfer whose names are outside of the zone: they are ignored. */
export class OutsideNames {
  readonly #files = new Map<string, FileTally>()

  /** `owner`: name in wire form. */
  count(owner: Uint8Array, file: string, line: number): void {
    const tally = this.#files.get(file)
    if (tally !== undefined) tally.count++
    else this.#files.set(file, { line, firstOwner: printName(owner), count: 1 })
  }

  /** One warning per file, at its first ignored record. `zone`: lower-case wire form. `fix`: for it, or them. */
  warnings(zone: Uint8Array, fix: (them: string) => string): InputError[] {
    return [...this.#files].map(([file, { line, firstOwner, count }]) => {
      const records = `${plural(count, 'record')} of names outside of zone ${printName(zone)}`
      const message = `ignored ${records}, the first is ${firstOwner}; ${fix(count === 1 ? 'it' : 'them')}`
      return new InputError({ file, line }, message)
    })
  }
}
