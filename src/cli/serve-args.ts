import { type CommandArgs, type Flags, flagsOf, isOn, refuseWords, scanFlags } from './args.ts'

/** The arguments of `sextant serve`. The flags are CoreDNS's. */
export interface ServeArgs {
  /** Path of the Corefile, or `stdin`; undefined = ./Corefile if there is one. */
  readonly conf: string | undefined
  /** Port of server blocks without a port. */
  readonly dnsPort: number
  readonly pidfile: string | undefined
  /** File with the secrets of server cookies; undefined = a random one that changes. */
  readonly cookieSecrets: string | undefined
  /** UDP queries that waited longer are dropped; 0 = none is. */
  readonly maxQueryAgeMs: number
  readonly plugins: boolean
  readonly quiet: boolean
  /** Another process, which will soon be ended, serves the addresses. */
  readonly takesOver: boolean
  readonly version: boolean
  /** Prints queries to try once the server runs: set by `npm start`, for the shipped example only. */
  readonly examples: boolean
}

export const DNS_PORT = 53

/** Clients that waited so long have asked another server, or soon will: resolvers ask again after 0.2 to 2 s. */
export const MAX_QUERY_AGE_MS_DEFAULT = 200

/** The flags that select the Corefile, for several commands. */
export const COREFILE_FLAGS = flagsOf(`
  -conf FILE | (./Corefile) | the Corefile; stdin = read it from standard input
  -dns.port, -p N | ${DNS_PORT} | port of server blocks without a port, 0 to 65535
`)

/** The flags of a server process, for `sextant serve` and `sextant node`. */
export const PROCESS_FLAGS = flagsOf(`
  -cookie-secrets FILE | (a random secret, replaced every 26 hours) | secrets of DNS cookies that several servers share
  -max-query-age DURATION | (${MAX_QUERY_AGE_MS_DEFAULT}ms) | under overload, drop UDP queries that waited longer in the buffer of their socket; 0 = answer them late
  -pidfile FILE | | write the process id to FILE once the server answers queries; at the end, remove FILE if it still has this id
  -quiet | | do not print start-up lines
  -takeover | | serve the addresses of a running server too; you then stop that server
`)

export const SERVE: CommandArgs = {
  usage: 'serve [-conf FILE] [FLAG]...',
  flags: [
    ...COREFILE_FLAGS,
    ...PROCESS_FLAGS,
    ...flagsOf(`
      -plugins | | list the supported directives and exit
      -version | | print the version, the platform and the version of Node.js, and exit
      -examples | | print example queries for Corefile.example after the start
      -windows-service | | no effect
    `),
  ],
}

/** Reads the arguments of `sextant serve`. Returns a string if they are invalid: the reason. */
export function scanServeArgs(argv: readonly string[]): ServeArgs | string {
  const flags = scanFlags(argv, SERVE.flags)
  if (typeof flags === 'string') return flags
  const corefile = scanCorefileFlags(flags)
  if (typeof corefile === 'string') return corefile
  const ofProcess = scanProcessFlags(flags)
  if (typeof ofProcess === 'string') return ofProcess
  return {
    ...corefile,
    ...ofProcess,
    plugins: isOn(flags, 'plugins'),
    version: isOn(flags, 'version'),
    examples: isOn(flags, 'examples'),
  }
}

/** The values of PROCESS_FLAGS. */
export type ProcessArgs = Pick<
  ServeArgs,
  'pidfile' | 'cookieSecrets' | 'maxQueryAgeMs' | 'quiet' | 'takesOver'
>

/** Reads PROCESS_FLAGS. Returns a string if they are invalid: the reason. */
export function scanProcessFlags(flags: Flags): ProcessArgs | string {
  const age = flags.given.get('max-query-age') ?? `${MAX_QUERY_AGE_MS_DEFAULT}ms`
  const [, number, unit] = /^(\d{1,6})(ms|s)$/.exec(age === '0' ? '0s' : age) ?? []
  if (unit === undefined) {
    return `invalid value "${age}" for flag -max-query-age: must be a duration such as 200ms or 1s, or 0`
  }
  return {
    maxQueryAgeMs: Number(number) * (unit === 's' ? 1000 : 1),
    pidfile: flags.given.get('pidfile') || undefined,
    cookieSecrets: flags.given.get('cookie-secrets') || undefined,
    quiet: isOn(flags, 'quiet'),
    takesOver: isOn(flags, 'takeover'),
  }
}

/** Reads COREFILE_FLAGS, and refuses words. */
export function scanCorefileFlags({
  given,
  rest,
}: Flags): Pick<ServeArgs, 'conf' | 'dnsPort'> | string {
  const port = given.get('dns.port') ?? String(DNS_PORT)
  const fault = refuseWords(rest)
  if (fault !== undefined) return fault
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65535) {
    return `invalid value "${port}" for flag -dns.port: must be a port from 0 to 65535`
  }
  return { conf: given.get('conf') || undefined, dnsPort: Number(port) }
}
