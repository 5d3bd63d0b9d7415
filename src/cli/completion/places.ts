import { COMMON_FLAGS, type Flag, flagsOf, linesOf } from '../args.ts'
import { COMMANDS } from '../commands.ts'

/** What can follow some words of a command line. */
export interface Place {
  /** The words, such as `sextant fqdn cache`. */
  readonly words: string
  /** The words that can come next, each with its help. */
  readonly next: ReadonlyMap<string, string>
  /** Without words such as `@SERVER`. */
  readonly flags: readonly Flag[]
}

/** The values of a flag: one of a list, or any. */
export type Values = 'files' | 'folders' | 'any' | readonly string[]

const OF_EVERY_COMMAND = [...COMMON_FLAGS, ...flagsOf('-h, --help | | print the flags')]
/** A word of the usage that is given as it is written; `a|b` = one of them, if no such word follows. */
const WORD = /^[a-z][-a-z]*(\|[a-z][-a-z]*)*$/

/** Returns all places; one that continues another comes after it. */
export async function placesOf(): Promise<readonly Place[]> {
  const commands = COMMANDS.map(({ name, help }): [string, string] => [name, help])
  const { flags } = await COMMANDS[0]!.args()
  const next = new Map([...commands, ['help', 'list the commands, or the flags of a command']])
  const places = [placeOf('sextant', next, flags), placeOf('sextant help', new Map(commands), [])]
  for (const { args } of COMMANDS) {
    const { usage, flags } = await args()
    for (const [words, next] of nextWords(usage)) {
      places.push(placeOf(words, new Map([...next].map((word) => [word, ''])), flags))
    }
  }
  return places
}

function placeOf(words: string, next: Place['next'], flags: readonly Flag[]): Place {
  return {
    words,
    next,
    flags: [...flags.filter(({ name }) => /^[-+]/.test(name)), ...OF_EVERY_COMMAND],
  }
}

/** For each beginning of the lines of a usage, from the command on: the words that continue it. */
function nextWords(usage: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  for (const line of linesOf(usage)) {
    let before = 'sextant'
    for (const word of line.split(' ')) {
      if (!WORD.test(word)) break
      const choices = word.split('|')
      for (const choice of choices) {
        found.get(before)?.add(choice)
        const words = `${before} ${choice}`
        if (!found.has(words)) found.set(words, new Set())
      }
      before = `${before} ${choices[0]}`
    }
  }
  return found
}

/** The forms of a flag before its value: `-dns.port`, `+subnet=`. */
export function namesOf({ name, aliases, argument }: Flag): string[] {
  return [name, ...aliases].map((one) => (one.startsWith('+') && argument !== '' ? `${one}=` : one))
}

/** Returns undefined for a flag without a value. */
export function valuesOf({ argument }: Flag): Values | undefined {
  if (argument === '') return undefined
  if (argument === 'FILE' || argument === 'PATH') return 'files'
  if (argument === 'DIR') return 'folders'
  return /^[a-z|]+$/.test(argument) ? argument.split('|') : 'any'
}

/** The words of all places but the first, as the alternatives of a `case` of a shell. */
export function wordsPattern(places: readonly Place[]): string {
  return places
    .slice(1)
    .map(({ words }) => `'${words}'`)
    .join(' | ')
}

/** Groups `WORDS FLAG` of all flags that have values, by these values. */
export function flagsByValues(places: readonly Place[]): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const { words, flags } of places) {
    for (const flag of flags) {
      const values = valuesOf(flag)
      if (values === undefined) continue
      const key = typeof values === 'string' ? values : values.join(' ')
      const group = found.get(key) ?? []
      found.set(key, group)
      group.push(...[flag.name, ...flag.aliases].map((name) => `'${words} ${name}'`))
    }
  }
  return found
}
