import { didYouMean } from '../base/nearest.ts'
import { type CommandArgs, flagsOf, isOn, keyOf, refuseWords, scanFlags } from './args.ts'
import { type DataFormat, FORMAT_FLAG, scanFormat } from './data-format.ts'

/** The arguments of `sextant fqdn`. */
export interface FqdnArgs {
  readonly action: 'list' | 'clean' | 'names'
  /** Path of the socket of the node agent. */
  readonly socket: string
  /** A client, `namespace/name` or `namespace/name/uid`; '' = all. */
  readonly endpoint: string
  /** '' = all names. */
  readonly pattern: string
  /** `lookup` or `connection`; '' = both. */
  readonly source: string
  readonly format: DataFormat
  /** Ask no question. */
  readonly isForced: boolean
}

export const SOCKET_DEFAULT = '/run/sextant/node.sock'
export const FQDN: CommandArgs = {
  usage: `
    fqdn cache list [-e ID] [-p PATTERN] [-s SOURCE] [-o FORMAT]
    fqdn cache clean [-f] [-p PATTERN]
    fqdn names [-o FORMAT]
  `,
  flags: [
    ...flagsOf(`
    -e, --endpoint ID | (all clients) | only what this client learned: namespace/name or namespace/name/uid
    -p, --matchpattern PATTERN | (all names) | only names that this pattern of Cilium selects
    -s, --source SOURCE | (both) | lookup = answers; connection = addresses whose TTL has ended and that open connections keep
    -f, --force | | do not ask before names are removed
    --socket PATH | ${SOCKET_DEFAULT} | socket of the node agent
  `),
    ...FORMAT_FLAG,
  ],
}
const USAGE = `use: ${FQDN.usage.trim().replaceAll(/^ */gm, 'sextant ').replaceAll('\n', ', ')}`

/** The flags of each action, by key. */
const ACTIONS: Readonly<Record<string, readonly [FqdnArgs['action'], readonly string[]]>> = {
  'cache list': ['list', ['e', 'p', 's', 'o', 'socket']],
  'cache clean': ['clean', ['f', 'p', 'socket']],
  names: ['names', ['o', 'socket']],
}

/** Reads the arguments. Returns a string if they are invalid: the reason. */
export function scanFqdnArgs(argv: readonly string[]): FqdnArgs | string {
  const words = argv[0] === 'names' ? 1 : 2
  const name = argv.slice(0, words).join(' ')
  const found = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
  if (found === undefined) return `${USAGE}${didYouMean(name, Object.keys(ACTIONS))}`
  const [action, keys] = found
  const known = FQDN.flags.filter((flag) => keys.includes(keyOf(flag.name)))
  const flags = scanFlags(argv.slice(words), known)
  if (typeof flags === 'string') return `${flags}; ${USAGE}`
  const fault = refuseWords(flags.rest)
  if (fault !== undefined) return `${fault}; ${USAGE}`
  const textOf = (key: string): string => flags.given.get(key) ?? ''
  const source = textOf('s')
  if (!['', 'lookup', 'connection'].includes(source)) {
    return `-s must be lookup or connection: ${source}`
  }
  const format = scanFormat(flags.given)
  if (typeof format !== 'string') return format.fault
  return {
    action,
    socket: textOf('socket') || SOCKET_DEFAULT,
    endpoint: textOf('e'),
    pattern: textOf('p'),
    source,
    format,
    isForced: isOn(flags, 'f'),
  }
}
