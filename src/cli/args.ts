import { didYouMean } from '../base/nearest.ts'

/** A flag of a command, or a word such as `@SERVER`. The parser and all that describes the command use it. */
export interface Flag {
  /** The name that messages print, such as `-conf`, `--records` or `+tcp`. */
  readonly name: string
  /** Other names of the same flag. */
  readonly aliases: readonly string[]
  /** What follows the name, such as `FILE`; '' = the flag is on or off. */
  readonly argument: string
  /** Value without the flag; '' = none. */
  readonly value: string
  /** Description of what happens without the flag, if `value` is ''; '' = none. */
  readonly otherwise: string
  /** What the flag does or is, in one line, without a full stop. */
  readonly help: string
}

/** The usage and the flags of a command. */
export interface CommandArgs {
  /** One line for each form of the command, such as `geo ADDR [-o json]`, without `sextant`. */
  readonly usage: string
  readonly flags: readonly Flag[]
}

/** Booleans as Go's strconv.ParseBool accepts them. */
export const TRUE = /^(1|t|T|true|TRUE|True)$/
export const FALSE = /^(0|f|F|false|FALSE|False)$/

/**
 * Reads a table with a line for each flag: `NAME[, ALIAS]... [ARGUMENT] | DEFAULT | HELP`. A default in parentheses is
 * not a value but a description.
 */
export function flagsOf(table: string): readonly Flag[] {
  return linesOf(table).map((line) => {
    const [forms = '', value = '', help = ''] = line.split(/ \|(?= |$)/).map((cell) => cell.trim())
    const [, names = '', argument = ''] = /^([^\s,]+(?:, [^\s,]+)*)(?: (.+))?$/.exec(forms) ?? []
    const [name = '', ...aliases] = names.split(', ')
    const [, otherwise] = /^\((.*)\)$/.exec(value) ?? []
    return {
      name,
      aliases,
      argument,
      value: otherwise === undefined ? value : '',
      otherwise: otherwise ?? '',
      help,
    }
  })
}

/** The lines of a text that are not empty, without the spaces around them. */
export function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

/** The flags of every command. */
export const COMMON_FLAGS = flagsOf(`
  -log-format FORMAT | text | form of log lines and errors: text or json
`)

function isFlag({ name }: Flag): boolean {
  return name.startsWith('-')
}

/** The name of a flag without its dashes or its plus sign. */
export function keyOf(name: string): string {
  return name.replace(/^(--?|\+)/, '')
}

/** The default of each flag, by key; '' = none. */
export function defaultsOf(flags: readonly Flag[]): Map<string, string> {
  return new Map(flags.filter(isFlag).map(({ name, value }) => [keyOf(name), value]))
}

/** Flags of a command line, not yet interpreted. */
export interface Flags {
  /** The given flags by key; `true` or `false` for a flag that is on or off. The last one given counts. */
  readonly given: ReadonlyMap<string, string>
  /** The arguments after the flags. */
  readonly rest: readonly string[]
}

export function isOn({ given }: Flags, key: string): boolean {
  return given.get(key) === 'true'
}

/**
 * Splits arguments as Go's flag package does: one dash or two, `-flag value` or `-flag=value`,
 * `-flag=false` for booleans. `--` or the first argument without a dash ends the flags. Returns a string
 * if the arguments are invalid: the reason.
 */
export function scanFlags(argv: readonly string[], flags: readonly Flag[]): Flags | string {
  const byName = new Map(
    flags
      .filter(isFlag)
      .flatMap((flag) => [flag.name, ...flag.aliases].map((name) => [keyOf(name), flag])),
  )
  const given = new Map<string, string>()
  for (let at = 0; at < argv.length; at++) {
    const arg = argv[at]!
    if (arg === '--') return { given, rest: argv.slice(at + 1) }
    const match = /^--?([^-=][^=]*)(?:=(.*))?$/s.exec(arg)
    if (match === null) {
      if (arg.startsWith('--') || arg.startsWith('-=')) return `bad flag syntax: ${arg}`
      return { given, rest: argv.slice(at) }
    }
    const [, name = '', inline] = match
    const flag = byName.get(name)
    if (flag === undefined) {
      return `flag provided but not defined: -${name}${didYouMean(name, [...byName.keys()])}`
    }
    const key = keyOf(flag.name)
    if (flag.argument !== '') {
      const value = inline ?? argv[++at]
      if (value === undefined) return `flag needs an argument: -${name}`
      given.set(key, value)
    } else if (FALSE.test(inline ?? 'true')) given.set(key, 'false')
    else if (TRUE.test(inline ?? 'true')) given.set(key, 'true')
    else return `invalid boolean value ${JSON.stringify(inline)} for -${name}: parse error`
  }
  return { given, rest: [] }
}

/** As `scanFlags`, for a command whose flags and words may have any order. `rest`: the words. */
export function scanMixed(argv: readonly string[], flags: readonly Flag[]): Flags | string {
  const given = new Map<string, string>()
  const words: string[] = []
  for (let rest = argv; rest.length > 0; ) {
    const found = scanFlags(rest, flags)
    if (typeof found === 'string') return found
    for (const [key, value] of found.given) given.set(key, value)
    words.push(...found.rest.slice(0, 1))
    rest = found.rest.slice(1)
  }
  return { given, rest: words }
}

/** Returns the error of a command that accepts no words; undefined = `words` is empty. */
export function refuseWords(words: readonly string[]): string | undefined {
  return words.length === 0 ? undefined : `extra command line arguments: [${words.join(' ')}]`
}

/** `-dns.port N`, `-p N`. */
export function formsOf({ name, aliases, argument }: Flag): string[] {
  const separator = name.startsWith('+') ? '=' : ' '
  return [name, ...aliases].map((one) => (argument === '' ? one : `${one}${separator}${argument}`))
}

/** What a flag does, and its default. */
export function textOf({ help, value, otherwise }: Flag): string {
  const without = value || otherwise
  return without === '' ? help : `${help}; default: ${without}`
}

const FORM_COLUMNS = 26
const TEXT_COLUMNS = 84

/** The lines of `sextant COMMAND --help`. */
export function helpLines(help: string, { usage, flags }: CommandArgs): string[] {
  const forms = linesOf(usage).map((line) => `  sextant ${line}`)
  return [
    ...forms,
    '',
    `  ${help}`,
    ...(flags.length === 0 ? [] : ['']),
    ...flags.flatMap(flagLines),
  ]
}

function flagLines(flag: Flag): string[] {
  const lines = wrap(textOf(flag))
  const head = formsOf(flag).join(', ')
  if (head.length > FORM_COLUMNS - 2) lines.unshift('')
  return lines.map((line, i) =>
    `      ${(i === 0 ? head : '').padEnd(FORM_COLUMNS)}${line}`.trimEnd(),
  )
}

function wrap(text: string): string[] {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1)!
    if (line !== '' && line.length + word.length >= TEXT_COLUMNS) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines
}

/** The usage of a command, and the rows of the table of its flags, as lines of Markdown for the reference pages. */
export function pageLines({ usage, flags }: CommandArgs): { forms: string[]; rows: string[] } {
  const forms = linesOf(usage).map((line) => `    sextant ${line}`)
  const code = (text: string): string => (text === '' ? '' : `\`${text.replaceAll('|', '\\|')}\``)
  const rows = flags.map((flag) => {
    const without = flag.value === '' ? flag.otherwise : code(flag.value)
    return `| ${formsOf(flag).map(code).join(', ')} |${without && ` ${without}`} | ${flag.help.replaceAll('|', '\\|')} |`
  })
  return { forms, rows }
}
