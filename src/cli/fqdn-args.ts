import { scanFlags } from './args.ts'

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
  readonly isJson: boolean
  /** Ask no question. */
  readonly isForced: boolean
}

export const SOCKET_DEFAULT = '/run/sextant/node.sock'
const USAGE =
  'use: sextant fqdn cache list [-e ID] [-p PATTERN] [-s SOURCE] [-o json], sextant fqdn cache clean [-f] [-p PATTERN], or sextant fqdn names'

interface Action {
  readonly action: FqdnArgs['action']
  readonly booleans: readonly string[]
  readonly values: readonly string[]
}

const ACTIONS: Readonly<Record<string, Action>> = {
  'cache list': {
    action: 'list',
    booleans: [],
    values: ['e', 'endpoint', 'p', 'matchpattern', 's', 'source', 'o', 'output'],
  },
  'cache clean': { action: 'clean', booleans: ['f', 'force'], values: ['p', 'matchpattern'] },
  names: { action: 'names', booleans: [], values: ['o', 'output'] },
}

/** Reads the arguments. Returns a string if they are invalid: the reason. */
export function scanFqdnArgs(argv: readonly string[]): FqdnArgs | string {
  const words = argv[0] === 'names' ? 1 : 2
  const name = argv.slice(0, words).join(' ')
  const found = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
  if (found === undefined) return USAGE
  const flags = scanFlags(argv.slice(words), found.booleans, [...found.values, 'socket'])
  if (typeof flags === 'string') return `${flags}; ${USAGE}`
  if (flags.rest.length > 0)
    return `extra command line arguments: [${flags.rest.join(' ')}]; ${USAGE}`
  const { values, set } = flags
  const textOf = (...names: readonly string[]): string =>
    names.map((one) => values.get(one) ?? '').find((value) => value !== '') ?? ''
  const source = textOf('s', 'source')
  if (!['', 'lookup', 'connection'].includes(source)) {
    return `-s must be lookup or connection: ${source}`
  }
  const form = textOf('o', 'output')
  if (!['', 'json'].includes(form)) return `-o must be json: ${form}`
  return {
    action: found.action,
    socket: textOf('socket') || SOCKET_DEFAULT,
    endpoint: textOf('e', 'endpoint'),
    // `scanFlags` reads -p as CoreDNS does: the port of `serve`.
    pattern: textOf('dns.port', 'matchpattern'),
    source,
    isJson: form === 'json',
    isForced: ['f', 'force'].some((one) => set.has(one)),
  }
}
