import { InputError } from '../base/errors.ts'
import { didYouMean } from '../base/nearest.ts'
import { lowerName, ROOT_NAME, scanName } from '../dns/name/name.ts'
import { FORMATS } from '../imports/formats.ts'
import type { ImportFormat } from '../imports/import-format.ts'
import { type CommandArgs, flagsOf, isOn, scanMixed } from './args.ts'

/** The arguments of `sextant import`. */
export interface ImportArgs {
  readonly format: ImportFormat
  /** At least one; `-` = standard input. */
  readonly files: readonly string[]
  /** Lower-case wire name; undefined = the files name it. */
  readonly zone: Uint8Array | undefined
  readonly namespace: string | undefined
  /** A file of the MMDB format; undefined = none. */
  readonly database: string | undefined
  readonly output: 'yaml' | 'json'
  /** Fail if anything is not imported. */
  readonly isStrict: boolean
}

const WORDS = FORMATS.map(({ word }) => word)
/** As in Kubernetes. */
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

export const IMPORT: CommandArgs = {
  usage: `import ${WORDS.join('|')} FILE... [FLAG]...`,
  flags: flagsOf(`
    FILE... | | the files, - = standard input; ${FORMATS.map(({ word, files }) => `${word}: ${files}`).join('; ')}
    --zone NAME | (as the files say) | the zone of the files
    --namespace NAME | (none) | namespace of the DNSRecords
    --database FILE | (none) | database with coordinates, for powerdns: places the targets of pickclosest
    --strict | | exit with 1 if anything is listed: not imported, or with another effect
    -o, --output yaml|json | yaml | form of the DNSRecords
  `),
}

/** Throws InputError. */
export function scanImportArgs(argv: readonly string[]): ImportArgs {
  const flags = scanMixed(argv, IMPORT.flags)
  if (typeof flags === 'string') refuse(flags)
  const { given, rest } = flags
  const [word, ...files] = rest
  if (word === undefined) refuse(`no format: sextant ${IMPORT.usage}`)
  const format = FORMATS.find((one) => one.word === word)
  if (format === undefined)
    refuse(
      `unknown format ${JSON.stringify(word)}: must be one of ${WORDS.join(' ')}${didYouMean(word, WORDS)}`,
    )
  if (files.length === 0) refuse(`no file: sextant import ${word} FILE...`)
  if (files.filter((file) => file === '-').length > 1) refuse('standard input can be read once')
  const output = given.get('o') ?? 'yaml'
  if (output !== 'yaml' && output !== 'json')
    refuse(`invalid value ${output} for -o: must be yaml or json`)
  const namespace = given.get('namespace')
  if (namespace !== undefined && !NAMESPACE.test(namespace))
    refuse(`invalid value ${JSON.stringify(namespace)} for --namespace: must be a namespace name`)
  const isStrict = isOn(flags, 'strict')
  const database = given.get('database')
  return { database, format, files, zone: scanZone(given.get('zone')), namespace, output, isStrict }
}

function scanZone(text: string | undefined): Uint8Array | undefined {
  if (text === undefined) return undefined
  const name = scanName(text, ROOT_NAME)
  if (name === undefined || text === '@')
    refuse(`invalid value ${JSON.stringify(text)} for --zone: must be a domain name`)
  return lowerName(name)
}

function refuse(message: string): never {
  throw new InputError(undefined, message)
}
