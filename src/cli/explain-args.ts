import type { ExplainQuestion } from '../plugin/answer-explainer.ts'
import { ADMIN_FLAGS, type AdminArgs, isServer, scanAdminArgs } from './admin-args.ts'
import { type CommandArgs, flagsOf, refuseWords, scanMixed } from './args.ts'
import { type DataFormat, FORMAT_FLAG, scanFormat } from './data-format.ts'
import { COREFILE_FLAGS, scanCorefileFlags } from './serve-args.ts'

/** Arguments of `sextant explain`. */
export interface ExplainArgs {
  readonly question: ExplainQuestion
  readonly format: DataFormat
  readonly conf: string | undefined
  readonly dnsPort: number
  /** The dump that has the DNSRecords, as written; undefined = they are those of the Corefile. */
  readonly records: string | undefined
  /** The running server to ask; undefined = explain the Corefile in this process. */
  readonly admin: AdminArgs | undefined
}

export const EXPLAIN: CommandArgs = {
  usage:
    'explain NAME [TYPE] --client ADDR | --subnet CIDR [@SERVER] [-conf FILE] [--records FILE] [--seed N] [-o FORMAT]',
  flags: [
    ...flagsOf(`
      --client ADDR | (127.0.0.1 if --subnet is given) | source address of the query
      --subnet CIDR | | EDNS Client Subnet of the query; a single address means /32 or /128
    `),
    ...COREFILE_FLAGS,
    ...flagsOf(`
      --records FILE | (those of the Corefile) | without @SERVER: DNSRecords as kubectl get dnsrecord -A -o yaml prints them; - = standard input
      --seed N | 1 | seed of the random numbers, 0 to 4294967295; the same seed gives the same reply
    `),
    ...ADMIN_FLAGS,
    ...FORMAT_FLAG,
  ],
}

/** Reads the arguments of `sextant explain`. Returns a string if they are invalid: the reason. */
export function scanExplainArgs(argv: readonly string[]): ExplainArgs | string {
  const flags = scanMixed(argv, EXPLAIN.flags)
  if (typeof flags === 'string') return flags
  const { given, rest } = flags
  const corefile = scanCorefileFlags({ given, rest: [] })
  if (typeof corefile === 'string') return corefile
  const words = rest.filter((word) => !isServer(word))
  const question = scanQuestion(words, given)
  if (typeof question === 'string') return question
  const format = scanFormat(given)
  if (typeof format !== 'string') return format.fault
  const admin = scanAdminArgs(rest, given)
  if (typeof admin === 'string') return admin
  const records = given.get('records')
  if (records !== undefined && admin !== undefined)
    return '--records is not possible with @SERVER, which has its own records: remove one of them'
  if (given.has('dns.port') && admin !== undefined)
    return '-dns.port is not possible with @SERVER, which has its own Corefile: remove one of them'
  return { ...corefile, question, records, admin, format }
}

function scanQuestion(
  words: readonly string[],
  values: ReadonlyMap<string, string>,
): ExplainQuestion | string {
  const [name, type, ...extra] = words
  if (name === undefined) return `usage: sextant ${EXPLAIN.usage}`
  const fault = refuseWords(extra)
  if (fault !== undefined) return fault
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
