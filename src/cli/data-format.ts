import { InputError } from '../base/errors.ts'
import { printJsonText } from '../base/json-text.ts'
import { didYouMean } from '../base/nearest.ts'
import { printBlockYaml } from '../yaml/print-block-yaml.ts'
import { flagsOf } from './args.ts'
import type { Output } from './output.ts'
import type { Line } from './tones.ts'

const FORMATS = ['table', 'wide', 'json', 'yaml'] as const

/** The form of data that a command prints. `table`: for people. `wide`: the same, with all that is known. */
export type DataFormat = (typeof FORMATS)[number]

/** The flag of each command that prints data. */
export const FORMAT_FLAG = flagsOf(
  `-o, --output ${FORMATS.join('|')} | table | form of the output; wide = a table with all that is known`,
)

/** Reads the value of FORMAT_FLAG. Returns an object if it is invalid. */
export function scanFormat(
  given: ReadonlyMap<string, string>,
): DataFormat | { readonly fault: string } {
  const text = given.get('o') ?? 'table'
  const format = FORMATS.find((one) => one === text)
  if (format !== undefined) return format
  const list = `${FORMATS.slice(0, -1).join(', ')} or ${FORMATS.at(-1)}`
  return { fault: `invalid value ${text} for -o: must be ${list}${didYouMean(text, FORMATS)}` }
}

/** As `scanFormat`. Throws InputError. */
export function readFormat(given: ReadonlyMap<string, string>): DataFormat {
  const format = scanFormat(given)
  if (typeof format !== 'string') throw new InputError(undefined, format.fault)
  return format
}

/** Data that a command prints, and the lines of its table. */
export interface Printable<T extends Line = Line> {
  data(): object
  table(isWide: boolean): Iterable<T>
}

/** Returns what a command prints. Throws RangeError if the data is nested too deep. */
export function linesOfData<T extends Line>(
  format: DataFormat,
  { data, table }: Printable<T>,
): Iterable<T | string> {
  if (format === 'json') return printJsonText(data(), 2).split('\n')
  if (format === 'yaml') return printBlockYaml(data())
  return table(format === 'wide')
}

/** Prints line by line: a long line would be cut. */
export function printData(
  { print }: Pick<Output, 'print'>,
  format: DataFormat,
  printable: Printable,
): void {
  for (const line of linesOfData(format, printable)) print(line)
}
