import type { ExplainQuestion } from '../plugin/answer-explainer.ts'
import { ADMIN_FLAGS, type AdminArgs, isServer, scanAdminArgs } from './admin-target.ts'
import { COREFILE_FLAGS, scanCorefileFlags, scanFlags } from './args.ts'

/** Arguments of `sextant explain`. */
export interface ExplainArgs {
  readonly question: ExplainQuestion
  readonly isJson: boolean
  readonly conf: string | undefined
  readonly dnsPort: number
  /** The dump that has the DNSRecords, as written; undefined = they are those of the Corefile. */
  readonly records: string | undefined
  /** The running server to ask; undefined = explain the Corefile in this process. */
  readonly admin: AdminArgs | undefined
}

const FLAGS = ['client', 'subnet', 'records', 'seed', 'o']
const USAGE =
  'usage: sextant explain NAME [TYPE] --client ADDR | --subnet CIDR [@SERVER] [-conf FILE] [--records FILE] [--seed N] [-o json]'

/** Reads the arguments of `sextant explain`. Returns a string if they are invalid: the reason. */
export function scanExplainArgs(argv: readonly string[]): ExplainArgs | string {
  const split = splitArgs(argv)
  if (typeof split === 'string') return split
  const { words, servers, values } = split
  const corefile = scanCorefileFlags({ set: new Set(), values, rest: [] })
  if (typeof corefile === 'string') return corefile
  const question = scanQuestion(words, values)
  if (typeof question === 'string') return question
  const output = values.get('o') ?? 'text'
  if (output !== 'json' && output !== 'text') return `-o must be json or text, got "${output}"`
  const admin = scanAdminArgs(servers, values)
  if (typeof admin === 'string') return admin
  const records = values.get('records')
  if (records !== undefined && admin !== undefined)
    return '--records is not possible with @SERVER, which has its own records: remove one of them'
  return { ...corefile, question, records, admin, isJson: output === 'json' }
}

interface SplitArgs {
  readonly words: readonly string[]
  /** With their `@`. */
  readonly servers: readonly string[]
  readonly values: ReadonlyMap<string, string>
}

/** Splits the arguments into words and flags, in any order. */
function splitArgs(argv: readonly string[]): SplitArgs | string {
  const words: string[] = []
  const values = new Map<string, string>()
  const known = [...new Set([...COREFILE_FLAGS, ...ADMIN_FLAGS, ...FLAGS])]
  let rest = argv
  while (rest.length > 0) {
    const flags = scanFlags(rest, [], known)
    if (typeof flags === 'string') return flags
    for (const [name, value] of flags.values) values.set(name, value)
    const [word, ...others] = flags.rest
    if (word !== undefined) words.push(word)
    rest = others
  }
  return {
    words: words.filter((word) => !isServer(word)),
    servers: words.filter(isServer),
    values,
  }
}

function scanQuestion(
  words: readonly string[],
  values: ReadonlyMap<string, string>,
): ExplainQuestion | string {
  const [name, type, ...extra] = words
  if (name === undefined) return USAGE
  if (extra.length > 0) return `extra command line arguments: [${extra.join(' ')}]`
  const client = values.get('client')
  const subnet = values.get('subnet')
  if (client === undefined && subnet === undefined) {
    return `a client is missing: add --client ADDR (source address) or --subnet CIDR (client subnet)`
  }
  const seed = values.get('seed')
  if (seed !== undefined && !/^\d{1,10}$/.test(seed)) return `--seed is not a number: "${seed}"`
  return {
    name,
    ...(type === undefined ? {} : { type }),
    ...(client === undefined ? {} : { client }),
    ...(subnet === undefined ? {} : { subnet }),
    ...(seed === undefined ? {} : { seed: Number(seed) }),
  }
}
