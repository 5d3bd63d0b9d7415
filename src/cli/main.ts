import { didYouMean } from '../base/nearest.ts'
import { type Output, processOutput } from './output.ts'

const USAGE = `Sextant is an authoritative DNS server. It chooses answers by client location and weight.

  sextant serve -conf FILE      serve the Corefile FILE; default ./Corefile
      -dns.port N, -p N         port of server blocks without a port; default 53
      -cookie-secrets FILE      secrets of DNS cookies that several servers share; default: a random one
      -pidfile FILE             write the process id to FILE
      -plugins                  list the directives and exit
      -quiet                    do not print start-up lines
      -takeover                 serve the addresses of a running server too; stop that server afterwards
      -version                  print the version and exit
  sextant check -conf FILE      validate FILE and the files that it names, without listening;
                                the exit code is 1 for errors and 0 for warnings only
      --manifests DIR           also validate the DNSRecords in DIR
      --offline                 do not contact a cluster (for checks in CI)
      --strict                  exit with 1 for warnings too
  sextant geo ADDR              print the location of an address, from the bundled database
      -conf FILE                from the databases of FILE, with the GEO class of each server block
      --records FILE            with the DNSRecords in FILE, which kubectl wrote; - is standard input
      -o json                   as JSON
  sextant what-if -conf FILE    compare the answers of FILE with those after a change: which names change, and
                                for which part of the addresses of each country
      --manifests DIR           after the change, the DNSRecords are those in DIR
      --records FILE            ... those in FILE, which kubectl wrote; - is standard input
      --new-conf FILE           ... the Corefile is FILE
      --mmdb FILE               ... the location database is FILE
      --old-records FILE        before the change, the DNSRecords are those in FILE
      --max-share N%            exit with 1 if a name changes for more than N% of the addresses
      -o json                   as JSON
  sextant operator              publish the DNSRecords of a Kubernetes cluster, merged with those of other clusters
      -h                        list the flags and exit
  sextant node                  enforce egress policies by name for the Pods of this node
      -h                        list the flags and exit
  sextant fqdn cache list       list what the clients of this node learned
      -e ID, -p PATTERN, -s SOURCE, -o json
                                of one client, of names, from lookup or connection; as JSON
  sextant fqdn cache clean      remove names, and what they allow; asks first
      -f, -p PATTERN            do not ask; only these names
  sextant fqdn names            list the selectors of the policies
      --socket PATH             the socket of the node agent; default /run/sextant/node.sock
  sextant query NAME [TYPE] [@SERVER] [-p PORT] [+tcp] [+dnssec] [+subnet=CIDR]
                                query a server and print the answer as dig does; AXFR transfers a zone
      -y [ALGORITHM:]NAME:SECRET
                                sign queries with this TSIG key
  sextant explain NAME [TYPE] --client ADDR | --subnet CIDR
                                print why a client gets an answer, from a Corefile and its records
      @SERVER                   from a running server with the directive admin; flags as for status
      -conf FILE                default ./Corefile
      --records FILE            with the DNSRecords in FILE, which kubectl wrote; - is standard input
      --seed N                  seed of the random numbers; default 1
      -o json                   as JSON
  sextant status [@SERVER]      print the zones, endpoints, peers and drops of a server with the directive admin
      -conf FILE                without @SERVER: its Corefile; default ./Corefile
      --token-file FILE         send the token in FILE
      --ca FILE                 accept certificates of these authorities
      -o json                   as JSON
  sextant drain SELECTOR... [--until TIME|DURATION] [--reason TEXT] [--actor NAME]
                                take endpoints out of service: site:NAME, host:NAME, zone:NAME, id:TEXT,
                                address:ADDRESS, geo:CODE, record:NAMESPACE/NAME; \`*\` stands for any text
      -conf FILE, --file FILE   the Corefile that names the drain file; the drain file itself
      --allow-empty             also if the selector selects no endpoint of the manifests
      @SERVER                   on a running server with the directive admin; flags as for status
  sextant undrain SELECTOR...|ID
                                end a drain; accepts -conf and --file, or @SERVER
  sextant drains [-o json]      list the drains; accepts -conf and --file, or @SERVER
  sextant demo                  run two sites on loopback that merge each other's records

Without a command, sextant accepts the flags of serve, as CoreDNS does.`

const HELP_FLAG = /^--?h(elp)?$/
/** The commands, in the order of messages. Each loads its module only when it runs. */
const RUNNERS: ReadonlyMap<string, RunCommand> = new Map(
  Object.entries<RunCommand>({
    serve: async (rest, output) => (await import('./serve.ts')).serve(rest, output),
    check: async (rest, output) => (await import('./check.ts')).check(rest, output),
    geo: async (rest, output) => (await import('./geo.ts')).runGeo(rest, output),
    'what-if': async (rest, output) => (await import('./what-if.ts')).runWhatIf(rest, output),
    operator: async (rest, output) => (await import('./operator.ts')).runOperator(rest, output),
    node: async (rest, output) => (await import('./node.ts')).runNode(rest, output),
    fqdn: async (rest, output) => (await import('./fqdn.ts')).runFqdn(rest, output),
    query: async (rest, output) =>
      (await import('./query.ts')).runQuery(rest, output.print, output.printError),
    explain: async (rest, output) => (await import('./explain.ts')).runExplain(rest, output),
    status: async (rest, output) => (await import('./status.ts')).runStatus(rest, output),
    drain: async (rest, output) => (await import('./drain.ts')).runDrain(rest, output),
    undrain: async (rest, output) => (await import('./drain.ts')).runUndrain(rest, output),
    drains: async (rest, output) => (await import('./drain.ts')).runDrains(rest, output),
    demo: async (_, output) => (await import('./demo.ts')).demo(output),
  }),
)
type RunCommand = (rest: readonly string[], output: Output) => Promise<number>

/** Commands that run until they are stopped. */
const SERVERS: ReadonlySet<string> = new Set(['serve', 'operator', 'node', 'demo'])
const COMMANDS = [...RUNNERS.keys(), 'help']
/** Commands without a help text of their own. */
const COMMAND = /^(serve|check|geo|what-if|demo|explain|query|status|fqdn|drains?|undrain)$/

/** Runs a command line and ends the process with its exit code. */
export async function main(argv: readonly string[]): Promise<void> {
  const isServer = SERVERS.has(argv[0] ?? '') || !RUNNERS.has(argv[0] ?? '')
  const output = processOutput(isServer)
  const code = await run(argv, output)
  output.flush()
  // A server ends, whether or not its reader still reads.
  if (!isServer) await output.written()
  process.exit(code)
}

/** Loads only the requested command: a module takes about a millisecond. */
async function run(argv: readonly string[], output: Output): Promise<number> {
  const [command, ...rest] = argv
  if (command === 'help' || asksForHelp(argv)) {
    output.print(helpOf(command === 'help' ? rest[0] : command))
    return 0
  }
  const runner = RUNNERS.get(command ?? '')
  if (runner !== undefined) return runner(rest, output)
  if (command !== undefined && !command.startsWith('-')) return refuseCommand(command, output)
  // Without a command, the arguments are those of serve, which are flags.
  return RUNNERS.get('serve')!(argv, output)
}

/** Returns the lines of USAGE about a command; the whole text without a command. */
function helpOf(command: string | undefined): string {
  const [main = ''] = USAGE.split('\n\nWithout')
  const sections = main.split(/\n(?= {2}sextant )/)
  const own = sections.filter((section) => section.startsWith(`  sextant ${command} `))
  return own.length === 0 ? USAGE : own.join('\n')
}

/** Exit code for an invalid command line. */
const EXIT_USAGE = 1

function refuseCommand(word: string, { printError }: Output): number {
  const hint =
    word === 'version'
      ? '; to print the version, run `sextant -version`'
      : didYouMean(word, COMMANDS)
  printError(
    `${JSON.stringify(word)} is not a command: the commands are ${COMMANDS.join(', ')}${hint}`,
  )
  return EXIT_USAGE
}

/** True for a request for help as the first argument, or as the first one of a command. */
function asksForHelp([first = '', second = '']: readonly string[]): boolean {
  return HELP_FLAG.test(first) || (COMMAND.test(first) && HELP_FLAG.test(second))
}
