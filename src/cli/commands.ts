import type { CommandArgs } from './args.ts'
import type { Output } from './output.ts'

/** A command of `sextant`. Its modules are loaded only when they are necessary. */
interface Command {
  readonly name: string
  /** What it does. */
  readonly help: string
  readonly args: () => Promise<CommandArgs>
  /** Resolves to the exit code. */
  readonly run: (rest: readonly string[], output: Output) => Promise<number>
  /** True if it runs until it is stopped. */
  readonly isServer?: true
}

/** In the order of `--help`. */
export const COMMANDS: readonly Command[] = [
  {
    name: 'serve',
    help: 'serve a Corefile until a signal stops it',
    args: async () => (await import('./serve-args.ts')).SERVE,
    run: async (rest, output) => (await import('./serve.ts')).serve(rest, output),
    isServer: true,
  },
  {
    name: 'check',
    help: 'validate a Corefile, the files that it names, and DNSRecords, without listening',
    args: async () => (await import('./check-args.ts')).CHECK,
    run: async (rest, output) => (await import('./check.ts')).check(rest, output),
  },
  {
    name: 'geo',
    help: 'print the location of an address',
    args: async () => (await import('./geo-args.ts')).GEO,
    run: async (rest, output) => (await import('./geo.ts')).runGeo(rest, output),
  },
  {
    name: 'what-if',
    help: 'compare the answers of two configurations',
    args: async () => (await import('./what-if-args.ts')).WHAT_IF,
    run: async (rest, output) => (await import('./what-if.ts')).runWhatIf(rest, output),
  },
  {
    name: 'import',
    help: 'make DNSRecords from zone files and from the records of other servers and services',
    args: async () => (await import('./import-args.ts')).IMPORT,
    run: async (rest, output) => (await import('./import.ts')).runImport(rest, output),
  },
  {
    name: 'operator',
    help: 'publish the DNSRecords of a Kubernetes cluster, merged with those of other clusters',
    args: async () => (await import('./operator-args.ts')).OPERATOR,
    run: async (rest, output) => (await import('./operator.ts')).runOperator(rest, output),
    isServer: true,
  },
  {
    name: 'webhook',
    help: 'store the endpoints of external-dns as DNSRecords: its webhook provider',
    args: async () => (await import('./webhook-args.ts')).WEBHOOK,
    run: async (rest, output) => (await import('./webhook.ts')).runWebhook(rest, output),
    isServer: true,
  },
  {
    name: 'node',
    help: 'enforce egress policies by name for the Pods of a node',
    args: async () => (await import('./node-args.ts')).NODE,
    run: async (rest, output) => (await import('./node.ts')).runNode(rest, output),
    isServer: true,
  },
  {
    name: 'fqdn',
    help: 'list and remove what the Pods of a node learned from DNS',
    args: async () => (await import('./fqdn-args.ts')).FQDN,
    run: async (rest, output) => (await import('./fqdn.ts')).runFqdn(rest, output),
  },
  {
    name: 'query',
    help: 'send a DNS query, or transfer a zone, and print the answer as dig does',
    args: async () => (await import('./query-args.ts')).QUERY,
    run: async (rest, output) =>
      (await import('./query.ts')).runQuery(rest, output.print, output.printError),
  },
  {
    name: 'explain',
    help: 'print why a client gets an answer',
    args: async () => (await import('./explain-args.ts')).EXPLAIN,
    run: async (rest, output) => (await import('./explain.ts')).runExplain(rest, output),
  },
  {
    name: 'status',
    help: 'print the state of a running server with the directive admin',
    args: async () => (await import('./status-args.ts')).STATUS,
    run: async (rest, output) => (await import('./status.ts')).runStatus(rest, output),
  },
  {
    name: 'peers',
    help: 'print the state of the peers of a running server with the directive admin',
    args: async () => (await import('./status-args.ts')).PEERS,
    run: async (rest, output) => (await import('./status.ts')).runPeers(rest, output),
  },
  {
    name: 'health',
    help: 'request the health page of a server; exit with 0 if it is alive',
    args: async () => (await import('./health-args.ts')).HEALTH,
    run: async (rest, output) => (await import('./health.ts')).runHealth(rest, output),
  },
  {
    name: 'drain',
    help: 'take endpoints out of service',
    args: async () => (await import('./drain-args.ts')).DRAIN,
    run: async (rest, output) => (await import('./drain.ts')).runDrain(rest, output),
  },
  {
    name: 'undrain',
    help: 'end drains',
    args: async () => (await import('./drain-args.ts')).UNDRAIN,
    run: async (rest, output) => (await import('./drain.ts')).runUndrain(rest, output),
  },
  {
    name: 'drains',
    help: 'list the drains',
    args: async () => (await import('./drain-args.ts')).DRAINS,
    run: async (rest, output) => (await import('./drain.ts')).runDrains(rest, output),
  },
  {
    name: 'keys',
    help: 'list, make, import, export, roll and retire DNSSEC keys, and print the DS of a zone',
    args: async () => (await import('./keys-args.ts')).KEYS,
    run: async (rest, output) => (await import('./keys.ts')).runKeys(rest, output),
  },
  {
    name: 'demo',
    help: "run two sites on loopback that merge each other's records",
    args: async () => ({ usage: 'demo', flags: [] }),
    run: async (_, output) => (await import('./demo.ts')).demo(output),
    isServer: true,
  },
  {
    name: 'kubectl',
    help: 'run a command for the servers of a Kubernetes cluster, as kubectl sextant does',
    args: async () => (await import('./kubectl-args.ts')).KUBECTL,
    run: async (rest, output) => (await import('./kubectl.ts')).runKubectl(rest, output),
  },
  {
    name: 'completion',
    help: 'print a script that completes command lines in a shell',
    args: async () => (await import('./completion-args.ts')).COMPLETION,
    run: async (rest, output) => (await import('./completion.ts')).runCompletion(rest, output),
  },
]
