import { didYouMean } from '../base/nearest.ts'
import { setLogForm } from '../base/telemetry/log.ts'
import { COMMON_FLAGS, type CommandArgs, helpLines } from './args.ts'
import { COMMANDS } from './commands.ts'
import { type Output, processOutput } from './output.ts'
import { isScreen } from './tones.ts'

const HELP_FLAG = /^--?h(elp)?$/

/** Runs a command line and ends the process with its exit code. */
export async function main(argv: readonly string[]): Promise<void> {
  const { rest, format } = takeLogFormat(argv)
  if (format === 'json') setLogForm((await import('../base/telemetry/json-lines.ts')).JSON_LINES)
  // A query prints records while they arrive.
  const printsMeanwhile = rest[0] === 'query' && process.stdout.isTTY
  if (isScreen(process.stderr, process.env) && !printsMeanwhile) {
    ;(await import('./progress-bar.ts')).showProgress(process.stderr)
  }
  const output = processOutput(isServer(rest))
  const code = ['text', 'json'].includes(format)
    ? await run(rest, output)
    : refuseFormat(format, output)
  output.flush()
  // A server ends, whether or not its reader still reads.
  if (!isServer(rest)) await output.written()
  process.exit(code)
}

/** Takes `-log-format FORMAT`, which every command has, out of a command line. The last one counts. */
export function takeLogFormat(argv: readonly string[]): {
  readonly rest: readonly string[]
  readonly format: string
} {
  const rest: string[] = []
  let format = 'text'
  for (let at = 0; at < argv.length; at++) {
    const arg = argv[at]!
    if (arg === '--') return { rest: [...rest, ...argv.slice(at)], format }
    const match = /^--?log-format(?:=(.*))?$/s.exec(arg)
    if (match === null) rest.push(arg)
    else format = match[1] ?? argv[++at] ?? ''
  }
  return { rest, format }
}

/** True for a command line that runs until it is stopped, or that names no command. */
export function isServer([word]: readonly string[]): boolean {
  const command = COMMANDS.find(({ name }) => name === word)
  return command === undefined || command.isServer === true
}

/** Loads only the requested command: a module takes about a millisecond. */
async function run(argv: readonly string[], output: Output): Promise<number> {
  const [word = '', ...rest] = argv
  const command = COMMANDS.find(({ name }) => name === word)
  if (argv.length > 0 && !isKnown(word)) return refuseCommand(word, output)
  if (word === 'help' || asksForHelp(word, rest)) {
    const of = word === 'help' ? rest[0] : word
    if (of !== undefined && !isKnown(of)) return refuseCommand(of, output)
    for (const line of await helpOf(of)) output.print(line)
    return 0
  }
  // Without a command, the arguments are those of serve, which are flags.
  return command === undefined ? COMMANDS[0]!.run(argv, output) : command.run(rest, output)
}

/** True for a command and for a flag. */
function isKnown(word: string): boolean {
  return word === 'help' || word.startsWith('-') || COMMANDS.some(({ name }) => name === word)
}

/** Returns the help of a command; if `word` is no command, the list of all commands. */
async function helpOf(word: string | undefined): Promise<readonly string[]> {
  const command = COMMANDS.find(({ name }) => name === word)
  if (command !== undefined) return helpLines(command.help, withCommon(await command.args()))
  return [
    'Sextant is an authoritative DNS server. It chooses answers by client location and weight.',
    '',
    ...COMMANDS.map(({ name, help }) => `  sextant ${name.padEnd(12)}${help}`),
    '',
    'sextant COMMAND --help lists the flags of a command. Without a command, sextant accepts the flags of serve, as CoreDNS does.',
  ]
}

function withCommon(args: CommandArgs): CommandArgs {
  return { ...args, flags: [...args.flags, ...COMMON_FLAGS] }
}

/** Exit code for an invalid command line. */
const EXIT_USAGE = 1

function refuseFormat(format: string, { printError }: Output): number {
  printError(`invalid value ${JSON.stringify(format)} for flag -log-format: must be text or json`)
  return EXIT_USAGE
}

function refuseCommand(word: string, { printError }: Output): number {
  const known = [...COMMANDS.map(({ name }) => name), 'help']
  const hint =
    word === 'version' ? '; to print the version, run `sextant -version`' : didYouMean(word, known)
  printError(
    `${JSON.stringify(word)} is not a command: the commands are ${known.join(', ')}${hint}`,
  )
  return EXIT_USAGE
}

/** True if the command, its first argument or its last argument is a flag for help. */
function asksForHelp(word: string, rest: readonly string[]): boolean {
  return [word, rest[0] ?? '', rest.at(-1) ?? ''].some((arg) => HELP_FLAG.test(arg))
}
