import { scanCidr } from '../dns/text/address.ts'
import { scanFlags } from './args.ts'
import { SOCKET_DEFAULT } from './fqdn-args.ts'

/** The arguments of `sextant node`. */
interface NodeArgs {
  /** Serve this Corefile; undefined = compose one from the other flags. */
  readonly conf: string | undefined
  /** The composed Corefile. */
  readonly corefile: string
  /** Print it and exit. */
  readonly printsConf: boolean
  readonly takesOver: boolean
  readonly quiet: boolean
  readonly pidfile: string | undefined
  /** As in `ServeArgs`. */
  readonly cookieSecrets: string | undefined
}

const BOOLEANS = ['dry-run', 'decisions', 'cut-connections', 'print-conf', 'takeover', 'quiet']

/** Flags with a value, and their defaults. */
const DEFAULTS: Readonly<Record<string, string>> = {
  conf: '',
  pidfile: '',
  'cookie-secrets': '',
  'node-name': '',
  policies: '',
  kubeconfig: '',
  upstream: '/etc/resolv.conf',
  listen: ':10053',
  cluster: '',
  allow: '',
  closed: '',
  dialect: '',
  'deny-rcode': '',
  'on-timeout': '',
  state: '/var/lib/sextant/node.state',
  api: SOCKET_DEFAULT,
  metrics: ':9963',
  health: '127.0.0.1:9964',
  ready: '127.0.0.1:9965',
}

export const NODE_USAGE = `sextant node enforces egress policies by name for the Pods of this node.

  sextant node [flags]
      --conf FILE               serve this Corefile; the flags below then have no effect
      --print-conf              print the Corefile that the flags make, and exit
      --node-name NAME          name of the Node; default: the environment variable NODE_NAME
      --kubeconfig FILE         the cluster and its credentials; default: the Pod's service account
      --policies PATH           read Pods and policies from this file or folder, not from Kubernetes
      --cluster CIDR,...        networks of Pods, Services and nodes, which are left to the CNI; required.
                                Only these networks and this node may use the server
      --allow CIDR,...          networks whose addresses may be allowed although they are special or in --cluster
      --closed CIDR,...         networks of Pods: one that the agent does not know yet connects only to --cluster
      --upstream SERVER,...     servers that answer, or a file such as resolv.conf; default /etc/resolv.conf
      --listen [HOST]:PORT      where DNS queries of clients are redirected to; default :10053
      --dialect DIALECT         how patterns of Cilium are read: cilium-1.16 or cilium-1.19, the default
      --deny-rcode RCODE        the reply to a denied query: REFUSED, the default, or NXDOMAIN
      --on-timeout ACTION       if addresses are not in force in time: release, the default, or servfail
      --cut-connections         end open connections that a change of the policies no longer allows
      --decisions               log each answer of a client, and what it allows
      --dry-run                 enforce nothing, and log what would be enforced
      --state FILE              what a restart needs; default /var/lib/sextant/node.state, '' = none
      --api PATH                the socket of sextant fqdn; default ${SOCKET_DEFAULT}, off = none
      --metrics ADDRESS         default :9963, '' = none
      --health ADDRESS          default 127.0.0.1:9964, '' = none
      --ready ADDRESS           default 127.0.0.1:9965, '' = none
      --takeover                serve the addresses of a running agent too; stop that agent afterwards
      --quiet, --pidfile FILE, --cookie-secrets FILE
                                as for sextant serve`

/** Reads the arguments. Returns a string if they are invalid: the reason. */
export function scanNodeArgs(argv: readonly string[]): NodeArgs | string {
  const flags = scanFlags(argv, BOOLEANS, Object.keys(DEFAULTS))
  if (typeof flags === 'string') return flags
  if (flags.rest.length > 0) return `extra command line arguments: [${flags.rest.join(' ')}]`
  const { set } = flags
  const value = (name: string): string => flags.values.get(name) ?? DEFAULTS[name]!
  const bad = Object.keys(DEFAULTS).find((name) => /[\s"{}]/.test(value(name)))
  if (bad !== undefined) return `invalid value for flag -${bad}: it has a space, a quote or a brace`
  if (value('policies') !== '' && (value('node-name') !== '' || value('kubeconfig') !== '')) {
    return '-policies reads no cluster: remove -node-name and -kubeconfig'
  }
  const fault = value('conf') === '' ? faultOfCluster(value('cluster')) : ''
  if (fault !== '') return fault
  const corefile = composeCorefile(value, (name) => set.has(name))
  if (typeof corefile !== 'string') return corefile.fault
  return {
    conf: value('conf') || undefined,
    corefile,
    printsConf: set.has('print-conf'),
    takesOver: set.has('takeover'),
    quiet: set.has('quiet'),
    pidfile: value('pidfile') || undefined,
    cookieSecrets: value('cookie-secrets') || undefined,
  }
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
