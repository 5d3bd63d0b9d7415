import { InputError } from '../base/errors.ts'
import { didYouMean } from '../base/nearest.ts'
import { type CommandArgs, type Flag, flagsOf, keyOf, TRUE } from './args.ts'

/** The commands that `kubectl sextant` has. */
const KUBECTL_COMMANDS = [
  'status',
  'peers',
  'explain',
  'drains',
  'drain',
  'undrain',
  'what-if',
] as const

type KubectlCommand = (typeof KUBECTL_COMMANDS)[number]

/** The arguments of `kubectl sextant`. */
export interface KubectlArgs {
  readonly command: KubectlCommand
  /** The arguments of the command. */
  readonly rest: readonly string[]
  /** '' = as kubectl: KUBECONFIG, or the file in the home directory. */
  readonly kubeconfig: string
  /** '' = the current context. */
  readonly context: string
  readonly namespace: string
  /** '' = the first Pod that is ready. */
  readonly pod: string
  readonly all: boolean
  readonly port: number
  /** The ConfigMap with the drains. */
  readonly drains: string
}

const PORT = '9154'
const DRAINS = 'sextant-drains'
const NAMESPACE = 'sextant-system'

export const KUBECTL: CommandArgs = {
  usage: `
    kubectl ${KUBECTL_COMMANDS.join('|')} [FLAG]... [ARGUMENT]...
  `,
  flags: flagsOf(`
    --kubeconfig FILE | (KUBECONFIG, or ~/.kube/config) | the configuration of kubectl
    --context NAME | (the current context) | context of the configuration
    -n, --namespace NAME | ${NAMESPACE} | namespace of the servers
    --pod NAME | (the first Pod that is ready) | the Pod to ask
    --all | | ask each Pod of the servers
    --port N | ${PORT} | port of the directive admin in the Pod
    --drains NAME | ${DRAINS} | the ConfigMap of cluster-drains
    ARGUMENT... | | arguments of the command without @SERVER
  `),
}

/** Separates the flags of KUBECTL from the arguments of its command. Throws InputError. */
export function scanKubectlArgs(argv: readonly string[]): KubectlArgs {
  const { given, others } = separate(argv)
  const [word = '', ...rest] = others
  const command = KUBECTL_COMMANDS.find((one) => one === word)
  if (command === undefined) {
    const hint = word === '' ? '' : didYouMean(word, KUBECTL_COMMANDS)
    throw fault(`the commands of kubectl sextant are ${KUBECTL_COMMANDS.join(', ')}${hint}`)
  }
  const server = rest.find((one) => one.startsWith('@'))
  if (server !== undefined)
    throw fault(`${server} is not possible: the server is a Pod; remove it, or use --pod NAME`)
  const textOf = (name: string, otherwise = ''): string => given.get(name) ?? otherwise
  return {
    command,
    rest,
    kubeconfig: textOf('kubeconfig'),
    context: textOf('context'),
    namespace: textOf('n', NAMESPACE),
    pod: textOf('pod'),
    all: TRUE.test(textOf('all')),
    port: scanPort(textOf('port', PORT)),
    drains: textOf('drains', DRAINS),
  }
}

/** Returns the values of the flags of KUBECTL by key, and all other words. Throws InputError. */
function separate(argv: readonly string[]) {
  const byName = new Map<string, Flag>()
  for (const flag of KUBECTL.flags) {
    for (const name of [flag.name, ...flag.aliases]) byName.set(keyOf(name), flag)
  }
  const given = new Map<string, string>()
  const others: string[] = []
  for (let at = 0; at < argv.length; at++) {
    const arg = argv[at]!
    const [, name = '', inline] = /^--?([^-=][^=]*)(?:=(.*))?$/s.exec(arg) ?? []
    const flag = byName.get(name)
    if (flag === undefined && others.length === 0 && arg.startsWith('-'))
      throw fault(`flag provided but not defined: ${arg}${didYouMean(name, [...byName.keys()])}`)
    if (flag === undefined) others.push(arg)
    else if (flag.argument === '') given.set(keyOf(flag.name), inline ?? 'true')
    else {
      const value = inline ?? argv[++at]
      if (value === undefined || value === '') throw fault(`flag needs an argument: ${arg}`)
      given.set(keyOf(flag.name), value)
    }
  }
  return { given, others }
}

function scanPort(text: string): number {
  const port = Number(text)
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port
  throw fault(`invalid value ${text} for --port: must be from 1 to 65535`)
}

function fault(message: string): InputError {
  return new InputError(undefined, message)
}
