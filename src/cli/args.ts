import { didYouMean } from '../base/nearest.ts'

/** The arguments of `sextant serve`. The flags are CoreDNS's. */
export interface ServeArgs {
  /** Path of the Corefile, or `stdin`; undefined = ./Corefile if there is one. */
  readonly conf: string | undefined
  /** Port of server blocks without a port. */
  readonly dnsPort: number
  readonly pidfile: string | undefined
  /** File with the secrets of server cookies; undefined = a random one that changes. */
  readonly cookieSecrets: string | undefined
  readonly plugins: boolean
  readonly quiet: boolean
  /** Another process, which will soon be ended, serves the addresses. */
  readonly takesOver: boolean
  readonly version: boolean
  /** Prints queries to try once the server runs: set by `npm start`, for the shipped example only. */
  readonly examples: boolean
}

const DNS_PORT = 53

/** Flags without a value, and flags with a value, by their names without dashes. */
const BOOLEAN_FLAGS = ['plugins', 'quiet', 'takeover', 'version', 'windows-service', 'examples']
/** Booleans as Go's strconv.ParseBool accepts them. */
export const TRUE = /^(1|t|T|true|TRUE|True)$/
export const FALSE = /^(0|f|F|false|FALSE|False)$/
export const COREFILE_FLAGS = ['conf', 'dns.port', 'p']

/** Reads the arguments of `sextant serve`. Returns a string if they are invalid: the reason. */
export function scanServeArgs(argv: readonly string[]): ServeArgs | string {
  const flags = scanFlags(argv, BOOLEAN_FLAGS, [...COREFILE_FLAGS, 'pidfile', 'cookie-secrets'])
  if (typeof flags === 'string') return flags
  const corefile = scanCorefileFlags(flags)
  if (typeof corefile === 'string') return corefile
  return {
    ...corefile,
    pidfile: flags.values.get('pidfile') || undefined,
    cookieSecrets: flags.values.get('cookie-secrets') || undefined,
    plugins: flags.set.has('plugins'),
    quiet: flags.set.has('quiet'),
    takesOver: flags.set.has('takeover'),
    version: flags.set.has('version'),
    examples: flags.set.has('examples'),
  }
}

/** The arguments of `sextant check`. */
export interface CheckArgs {
  readonly conf: string | undefined
  readonly dnsPort: number
  /** Check this directory of DNSRecord manifests too. */
  readonly manifests: string | undefined
  /** Send nothing to a cluster. */
  readonly offline: boolean
  /** Exit with 1 for warnings too. */
  readonly strict: boolean
}

/** Reads the arguments of `sextant check`. Returns a string if they are invalid: the reason. */
export function scanCheckArgs(argv: readonly string[]): CheckArgs | string {
  const flags = scanFlags(argv, ['offline', 'strict'], [...COREFILE_FLAGS, 'manifests'])
  if (typeof flags === 'string') return flags
  const corefile = scanCorefileFlags(flags)
  if (typeof corefile === 'string') return corefile
  return {
    ...corefile,
    manifests: flags.values.get('manifests') || undefined,
    offline: flags.set.has('offline'),
    strict: flags.set.has('strict'),
  }
}

/** The flags that select the Corefile, for both commands. */
export function scanCorefileFlags(
  flags: Flags,
): { conf: string | undefined; dnsPort: number } | string {
  if (flags.rest.length > 0) return `extra command line arguments: [${flags.rest.join(' ')}]`
  const port = flags.values.get('dns.port') ?? String(DNS_PORT)
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65535) {
    return `invalid value "${port}" for flag -dns.port: must be a port from 0 to 65535`
  }
  return { conf: flags.values.get('conf') || undefined, dnsPort: Number(port) }
}

/** Flags of a command line, not yet interpreted. */
export interface Flags {
  readonly set: ReadonlySet<string>
  readonly values: ReadonlyMap<string, string>
  /** The arguments after the flags. */
  readonly rest: readonly string[]
}

/**
 * Splits arguments as Go's flag package does: one dash or two, `-flag value` or `-flag=value`,
 * `-flag=false` for booleans. `--` or the first argument without a dash ends the flags.
 */
export function scanFlags(
  argv: readonly string[],
  booleans: readonly string[],
  withValue: readonly string[],
): Flags | string {
  const set = new Set<string>()
  const values = new Map<string, string>()
  for (let at = 0; at < argv.length; at++) {
    const arg = argv[at]!
    if (arg === '--') return { set, values, rest: argv.slice(at + 1) }
    const match = /^--?([^-=][^=]*)(?:=(.*))?$/s.exec(arg)
    if (match === null) {
      if (arg.startsWith('--') || arg.startsWith('-=')) return `bad flag syntax: ${arg}`
      return { set, values, rest: argv.slice(at) }
    }
    const [, name = '', inline] = match
    if (withValue.includes(name)) {
      const value = inline ?? argv[++at]
      if (value === undefined) return `flag needs an argument: -${name}`
      // `-p` and `-dns.port` are one flag; the last one given counts.
      values.set(name === 'p' ? 'dns.port' : name, value)
    } else if (!booleans.includes(name)) {
      const hint = didYouMean(name, [...booleans, ...withValue])
      return `flag provided but not defined: -${name}${hint}`
    } else if (FALSE.test(inline ?? 'true')) set.delete(name)
    else if (TRUE.test(inline ?? 'true')) set.add(name)
    else return `invalid boolean value ${JSON.stringify(inline)} for -${name}: parse error`
  }
  return { set, values, rest: [] }
}
