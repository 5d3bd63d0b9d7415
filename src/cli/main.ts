import { type Output, processOutput } from './output.ts'

const USAGE = `Sextant answers DNS by where the client is, then by weight.

  sextant serve -conf FILE      serve the Corefile FILE; default ./Corefile
      -dns.port N, -p N         port of server blocks that name none; default 53
      -pidfile FILE             write the process id to FILE
      -plugins                  list the directives, and exit
      -quiet                    print no start-up lines
      -takeover                 share the addresses of a running server, which is ended afterwards
      -version                  print the version, and exit
  sextant check -conf FILE      find every fault in FILE and what it names, without listening
      --manifests DIR           check the DNSRecords in DIR as well
  sextant operator              publish the DNSRecords of a Kubernetes cluster, merged with those of its peers
      -h                        list the flags
  sextant query NAME [TYPE] [@SERVER] [-p PORT] [+tcp] [+dnssec] [+subnet=CIDR]
                                ask a server, and print the answer as dig does
  sextant demo                  show two sites on loopback that merge each other

Without a command the arguments are those of serve, as on CoreDNS's command line.`

const HELP_FLAG = /^--?h(elp)?$/
const COMMAND = /^(serve|check|demo|query)$/

/** Runs a command line and ends the process with its exit code. */
export async function main(argv: readonly string[]): Promise<void> {
  const output = processOutput()
  const code = await run(argv, output)
  output.flush()
  process.exit(code)
}

/** Loads the command that is asked for, and no other: a module takes about a millisecond. */
async function run(argv: readonly string[], output: Output): Promise<number> {
  const [command, ...rest] = argv
  if (command === 'help' || asksForHelp(argv)) {
    output.print(USAGE)
    return 0
  }
  switch (command) {
    case 'check':
      return (await import('./check.ts')).check(rest, output)
    case 'operator':
      return (await import('./operator.ts')).runOperator(rest, output)
    case 'demo':
      return (await import('./demo.ts')).demo(output)
    case 'query':
      return (await import('./query.ts')).runQuery(rest, output.print, output.printError)
    default:
      return (await import('./serve.ts')).serve(command === 'serve' ? rest : argv, output)
  }
}

/** True for a request for help as the first argument, or as the first one of a command. */
function asksForHelp([first = '', second = '']: readonly string[]): boolean {
  return HELP_FLAG.test(first) || (COMMAND.test(first) && HELP_FLAG.test(second))
}
