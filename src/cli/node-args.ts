import { scanCidr } from '../dns/text/address.ts'
import {
  type CommandArgs,
  defaultsOf,
  type Flags,
  flagsOf,
  isOn,
  keyOf,
  refuseWords,
  scanFlags,
} from './args.ts'
import { SOCKET_DEFAULT } from './fqdn-args.ts'
import { PROCESS_FLAGS, type ProcessArgs, scanProcessFlags } from './serve-args.ts'

/** The arguments of `sextant node`. */
interface NodeArgs extends ProcessArgs {
  /** Serve this Corefile; undefined = compose one from the other flags. */
  readonly conf: string | undefined
  /** The composed Corefile. */
  readonly corefile: string
  /** Print it and exit. */
  readonly printsConf: boolean
}

export const NODE: CommandArgs = {
  usage: 'node --cluster CIDR,... [FLAG]...',
  flags: [
    ...flagsOf(`
      --conf FILE | | serve this Corefile; of the flags below, only --cookie-secrets, --pidfile, --quiet and --takeover are then allowed
      --print-conf | | print the Corefile that the flags make, and exit
      --node-name NAME | (the environment variable NODE_NAME) | name of the Node
      --kubeconfig FILE | (the Pod's service account) | the cluster and its credentials
      --policies PATH | | read Pods and policies from this file or folder, not from Kubernetes
      --cluster CIDR,... | | required: networks of Pods, Services and nodes; connections to them are left to the CNI, and only they and this node may query the server
      --allow CIDR,... | | networks that names may allow although they are special or in --cluster
      --closed CIDR,... | | networks of Pods: a Pod that the agent does not know yet connects only to --cluster
      --upstream SERVER,... | /etc/resolv.conf | servers to forward queries to, or a file that names them
      --listen [HOST]:PORT | :10053 | address that DNS queries of clients are redirected to
      --dialect DIALECT | (cilium-1.19) | how patterns of Cilium are read: cilium-1.16 or cilium-1.19
      --deny-rcode RCODE | (REFUSED) | the reply to a denied query: REFUSED or NXDOMAIN
      --on-timeout ACTION | (release) | what happens to a reply whose addresses are not in force in time: release or servfail
      --cut-connections | | end open connections that a change of the policies no longer allows
      --decisions | | log each answer with addresses and what it allows, and each denied query
      --dry-run | | enforce nothing, and log what would be enforced
      --state FILE | /var/lib/sextant/node.state | file that keeps what clients learned over a restart; empty = none
      --api PATH | ${SOCKET_DEFAULT} | socket of sextant fqdn; off = none
      --metrics ADDRESS | :9963 | address of the metrics; empty = none
      --health ADDRESS | 127.0.0.1:9964 | address of the health page; empty = none
      --ready ADDRESS | 127.0.0.1:9965 | address of the readiness page; empty = none
    `),
    ...PROCESS_FLAGS.map((flag) => ({ ...flag, name: `-${flag.name}` })),
  ],
}

/** Reads the arguments. Returns a string if they are invalid: the reason. */
export function scanNodeArgs(argv: readonly string[]): NodeArgs | string {
  const flags = scanFlags(argv, NODE.flags)
  if (typeof flags === 'string') return flags
  const extra = refuseWords(flags.rest)
  if (extra !== undefined) return extra
  const values = new Map([...defaultsOf(NODE.flags), ...flags.given])
  const value = (name: string): string => values.get(name)!
  const bad = [...values.keys()].find((name) => /[\s"{}]/.test(value(name)))
  if (bad !== undefined) return `invalid value for flag -${bad}: it has a space, a quote or a brace`
  if (value('policies') !== '' && (value('node-name') !== '' || value('kubeconfig') !== '')) {
    return '-policies reads no cluster: remove -node-name and -kubeconfig'
  }
  const fault = value('conf') === '' ? faultOfCluster(value('cluster')) : faultOfConf(flags)
  if (fault !== '') return fault
  const corefile = composeCorefile(value, (name) => isOn(flags, name))
  if (typeof corefile !== 'string') return corefile.fault
  const ofProcess = scanProcessFlags(flags)
  if (typeof ofProcess === 'string') return ofProcess
  return {
    conf: value('conf') || undefined,
    corefile,
    printsConf: isOn(flags, 'print-conf'),
    ...ofProcess,
  }
}

/** The other flags make a Corefile, or print it. */
function faultOfConf({ given }: Flags): string {
  const allowed = ['conf', ...PROCESS_FLAGS.map(({ name }) => keyOf(name))]
  const others = [...given.keys()].filter((key) => !allowed.includes(key))
  if (others.length === 0) return ''
  return `-conf serves a file as it is: remove ${others.map((key) => `-${key}`).join(', ')}`
}

/** Without the networks, the server would answer everyone, and clients could reach no Pod and no Service. */
function faultOfCluster(text: string): string {
  const example = 'the networks of Pods, Services and nodes, such as 10.244.0.0/16,10.96.0.0/12'
  const networks = text.split(',').filter(Boolean)
  if (networks.length === 0) return `-cluster is missing: set it to ${example}`
  const bad = networks.find((network) => scanCidr(network) === undefined)
  return bad === undefined ? '' : `-cluster must be ${example}; not a network: ${bad}`
}

function composeCorefile(
  value: (name: string) => string,
  isSet: (name: string) => boolean,
): string | { readonly fault: string } {
  const [, host = '', port = ''] = /^(.*):(\d{1,5})$/.exec(value('listen')) ?? []
  if (port === '') return { fault: `-listen must be [HOST]:PORT: ${value('listen')}` }
  const list = (name: string): string => value(name).split(',').filter(Boolean).join(' ')
  /** A line, unless its value is empty. */
  const line = (name: string, text: string): readonly string[] =>
    text === '' ? [] : [`${name} ${text}`]
  const properties = [
    value('policies') === ''
      ? `kubernetes ${value('node-name')}`.trimEnd()
      : `policies ${value('policies')}`,
    ...line('kubeconfig', value('kubeconfig')),
    isSet('dry-run') ? 'dry_run' : 'nftables',
    `cluster ${list('cluster')}`,
    ...line('closed', list('closed')),
    ...line('allow', list('allow')),
    ...line('dialect', value('dialect')),
    ...line('deny_rcode', value('deny-rcode')),
    ...line('on_timeout', value('on-timeout')),
    ...line('state', value('state')),
    ...line('api', value('api')),
    ...(isSet('cut-connections') ? ['cut_connections'] : []),
    ...(isSet('decisions') ? ['decisions'] : []),
  ]
  const directives = [
    ...line('bind', host.replace(/^\[(.*)\]$/, '$1')),
    'errors',
    ...line('health', value('health')),
    ...line('ready', value('ready')),
    ...line('prometheus', value('metrics')),
    block('egress', properties),
    // No others may use this server.
    block('acl', [`allow net 127.0.0.0/8 ::1/128 ${list('cluster')}`, 'block']),
    'cache 30',
    `forward . ${list('upstream')}`,
  ]
  return `${block(`.:${port}`, directives)}\n`
}

function block(name: string, lines: readonly string[]): string {
  const indented = lines.join('\n').replaceAll(/^/gm, '    ')
  return `${name} {\n${indented}\n}`
}
