import { didYouMean } from '../base/nearest.ts'
import { helpLines } from './args.ts'
import { COMMANDS } from './commands.ts'
import { type Output, processOutput } from './output.ts'

const HELP_FLAG = /^--?h(elp)?$/

/** Runs a command line and ends the process with its exit code. */
export async function main(argv: readonly string[]): Promise<void> {
  const output = processOutput(isServer(argv))
  const code = await run(argv, output)
  output.flush()
  // A server ends, whether or not its reader still reads.
  if (!isServer(argv)) await output.written()
  process.exit(code)
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
  const isWord = argv.length > 0 && !word.startsWith('-')
  if (isWord && command === undefined && word !== 'help') return refuseCommand(word, output)
  if (word === 'help' || asksForHelp(word, rest)) {
    for (const line of await helpOf(word === 'help' ? rest[0] : word)) output.print(line)
    return 0
  }
  // Without a command, the arguments are those of serve, which are flags.
  return command === undefined ? COMMANDS[0]!.run(argv, output) : command.run(rest, output)
}

/** Returns the help of a command; if `word` is no command, the list of all commands. */
async function helpOf(word: string | undefined): Promise<readonly string[]> {
  const command = COMMANDS.find(({ name }) => name === word)
  if (command !== undefined) return helpLines(command.help, await command.args())
  return [
    'Sextant is an authoritative DNS server. It chooses answers by client location and weight.',
    '',
    ...COMMANDS.map(({ name, help }) => `  sextant ${name.padEnd(10)}${help}`),
    '',
    'sextant COMMAND --help lists the flags of a command. Without a command, sextant accepts the flags of serve, as CoreDNS does.',
  ]
}

/** Exit code for an invalid command line. */
const EXIT_USAGE = 1

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
