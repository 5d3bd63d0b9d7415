import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { scanDuration } from '../base/duration.ts'
import { scanCollectorUrl } from '../base/telemetry/spans/collector-url.ts'
import { type HostPort, printHostPort } from '../dns/host-port.ts'
import { printAddress, scanAddress } from '../dns/text/address.ts'
import { GROUP_CHARACTERS_MAX, isGroup } from '../health/drain/active-groups.ts'
import type { DelegationRole } from '../operator/plan/decide.ts'
import type { OperatorSettings } from '../operator/settings.ts'
import { EXPIRY_DEFAULT_MS } from '../peering/expiry.ts'
import { scanSilentSite } from '../peering/silent-sites.ts'
import { isSite } from '../peering/site-name.ts'
import { type HostShare, scanShare } from '../records/host-share.ts'
import { DNSRECORD_WORD, SOURCE_WORDS } from '../sources/objects/source-words.ts'
import { type CommandArgs, defaultsOf, flagsOf, refuseWords, scanFlags } from './args.ts'
import {
  CONTROLLERS,
  EGRESS_FLAGS,
  type EgressArgs,
  NAMESPACE,
  readEgressArgs,
} from './egress-args.ts'
import { BadValue, boolean, duration, type Get, networks, wordsOf } from './flag-values.ts'
import { readZap, zapLevel } from './fqdn-flags.ts'
import { describeIdle } from './idle-flags.ts'
import type { ZapOptions } from './zap-lines.ts'

const LEVELS = ['debug', 'info', 'warning', 'error'] as const
/** `panic` of zap: no line but that of the end. */
export type Level = (typeof LEVELS)[number] | 'panic'

/** The arguments of `sextant operator`. */
export interface OperatorArgs {
  /** `host:port`; '' = no metrics are served. */
  readonly metricsAddress: string
  readonly probeAddress: string
  /** Listen addresses for NOTIFYs; a host '' = every address. Empty = none. */
  readonly notifyAddresses: readonly HostPort[]
  /** '' = the cluster in which the operator runs. */
  readonly kubeconfig: string
  /** '' = the current context. */
  readonly context: string
  /** Empty = all. */
  readonly namespaces: readonly string[]
  /** Where spans of reconciles are sent; undefined = nowhere. */
  readonly collector: URL | undefined
  readonly level: Level
  /** How lines are printed. */
  readonly zap: ZapOptions
  /** Which of CONTROLLERS run; never empty. */
  readonly controllers: ReadonlySet<string>
  /** Which of SOURCE_WORDS are published; always DNSRECORD_WORD. */
  readonly sources: readonly string[]
  readonly egress: EgressArgs
  readonly settings: OperatorSettings
}

/** Namespace in which Kuadrant's operator keeps cluster Secrets. */
const CLUSTER_SECRET_NAMESPACE = 'dns-operator-system'
const NOTIFY_ADDRESSES_MAX = 8
/** As in the Corefile. */
const QUORUM_MAX = 65
const HOLD_DOWN_MS_MAX = 3_600_000
/** `[prefix/]name`. */
const LABEL = /^([a-z0-9.-]{1,253}\/)?[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?$/

/** Each flag is an environment variable as well, which takes precedence. */
export const OPERATOR: CommandArgs = {
  usage: 'operator [FLAG]...',
  flags: [
    ...flagsOf(`
      --kubeconfig FILE | (the cluster that the operator runs in) | kubeconfig file
      --context NAME | (the current context) | context of the kubeconfig
      --controllers LIST | dnsrecord | comma-separated list of what the operator does: ${CONTROLLERS.join(', ')}
      --sources LIST | ${DNSRECORD_WORD} | comma-separated list of kinds whose objects are published: ${SOURCE_WORDS.join(', ')}
      --watch-namespaces LIST | (all) | comma-separated list of namespaces to watch
      --site NAME | (a hash of the UID of namespace kube-system) | name of this site, different at each peer: 1 to 63 letters, digits, ".", "_" and "-"
      --silent-site ACTION | keep ${EXPIRY_DEFAULT_MS / 3_600_000}h | "keep DURATION" or "remove DURATION", from 1s to 8760h; both have the same effect: how long a silent site keeps addresses that no health check finds up
      --probe-peers | true | also probe the addresses of peers, so that a dead site loses its traffic
      --quorum N | 0 | number of sites that must find an address of a peer down, up to ${QUORUM_MAX}; 0 = the number of sites decides
      --hold-down DURATION | 0s | how long sites must have found an address of a peer down before it is taken out of service, 0s or from 1s to 1h
      --min-requeue-time DURATION | 5s | shortest time between two reconciles of an unchanged record, and between two queries for a host
      --max-requeue-time DURATION | 15m | longest time between two reconciles of a record, and between two queries for a host
      --enable-probes | true | run the health checks of records
      --insecure-health-checks | true | accept any certificate in the health checks of records
      --nameserver-allow LIST | | comma-separated list of networks that nameservers of provider Secrets may have although they are loopback or link-local
      --probe-allow LIST | | comma-separated list of networks that may be probed although they are refused by default: private networks, loopback, link-local and similar
      --leader-elect | false | use the Lease sextant-operator, so that one of several replicas is active
      --leader-elect-namespace NAME | ($POD_NAMESPACE, else "default") | namespace of the Lease
      --delegation-role ROLE | primary | primary or secondary; other clusters publish the delegating records of a secondary
      --share-hosts LIST | | comma-separated list of "HOST NAMESPACE...": namespaces whose records may have HOST and the names below it, whichever namespace had it first
      --cluster-secret-namespace NAME | ($POD_NAMESPACE, else ${CLUSTER_SECRET_NAMESPACE}) | namespace of the Secrets with kubeconfigs of other clusters
      --cluster-secret-label LABEL | kuadrant.io/multicluster-kubeconfig | label of the Secrets with kubeconfigs of other clusters; its value must be "true"
      --cluster-leave-time DURATION | 10m | how long to serve the endpoints of a cluster after its Secret is deleted
      --remote-removal-timeout DURATION | 24h | how long the deletion of a delegating record waits for other clusters
      --group NAME | | group of this cluster, up to ${GROUP_CHARACTERS_MAX} characters: it is passive while the TXT record kuadrant-active-groups.ZONE does not name the group
      --metrics-bind-address ADDRESS | :8080 | address of /metrics; 0 disables it
      --health-probe-bind-address ADDRESS | :8081 | address of /healthz and /readyz; 0 disables them
      --notify-bind-address LIST | 0 | comma-separated list of up to ${NOTIFY_ADDRESSES_MAX} addresses IP:PORT or :PORT that receive NOTIFY from peers, UDP and TCP; 0 disables it
      --notify-allow LIST | | comma-separated list of networks of our own nameservers: an unsigned NOTIFY from them makes the operator poll all peers
      --trace-otlp ENDPOINT | | send a span of each reconcile of a DNSRecord to this collector, OTLP over HTTP in JSON: HOST:PORT, or a URL
      --log-level LEVEL | info | least severe level to log: ${LEVELS.join(', ')}
    `),
    ...EGRESS_FLAGS,
  ],
}

/**
 * Reads the arguments of `sextant operator` and its environment. Returns a string if they are
 * invalid: the reason.
 */
export function scanOperatorArgs(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
): OperatorArgs | string {
  const flags = scanFlags(argv, OPERATOR.flags)
  if (typeof flags === 'string') return flags
  const extra = refuseWords(flags.rest)
  if (extra !== undefined) return extra
  const defaults = defaultsOf(OPERATOR.flags)
  const values = new Map([...defaults, ...flags.given])
  for (const name of values.keys())
    values.set(name, env[nameInEnvironment(name)] || values.get(name)!)
  try {
    const args = collect(values, env)
    const get = (name: string): string => values.get(name) ?? ''
    return (
      describeIdle({ get, defaults, given: flags.given, controllers: args.controllers }) || args
    )
  } catch (error) {
    if (!(error instanceof BadValue)) throw error
    return error.message
  }
}

/** The environment variable of a flag: `SILENT_SITE` for `--silent-site`. */
function nameInEnvironment(name: string): string {
  return name.toUpperCase().replaceAll('-', '_')
}

function collect(values: ReadonlyMap<string, string>, env: NodeJS.ProcessEnv): OperatorArgs {
  const get = (name: string): string => values.get(name) ?? ''
  const site = get('site')
  if (site !== '' && !isSite(site)) {
    throw new BadValue('site', site, '1 to 63 of letters, digits, ".", "_" and "-"')
  }
  const [minMs, maxMs] = [duration('min-requeue-time', get), duration('max-requeue-time', get)]
  if (minMs > maxMs) {
    throw new BadValue('min-requeue-time', get('min-requeue-time'), 'at most --max-requeue-time')
  }
  const watched = namespaces('watch-namespaces', get)
  const namespace = get('leader-elect-namespace') || env.POD_NAMESPACE || 'default'
  return {
    metricsAddress: address('metrics-bind-address', get),
    probeAddress: address('health-probe-bind-address', get),
    notifyAddresses: notifyAddresses('notify-bind-address', get),
    kubeconfig: get('kubeconfig'),
    context: get('context'),
    namespaces: watched,
    collector: collector('trace-otlp', get),
    level: levelOf(get),
    zap: readZap(get),
    controllers: controllers(get),
    sources: sources(get),
    egress: readEgressArgs(get),
    settings: {
      minMs,
      maxMs,
      site,
      silentMs: silentMs(get('silent-site')),
      probesPeers: boolean('probe-peers', get),
      quorum: quorum(get('quorum')),
      holdDownMs: holdDownMs(get('hold-down')),
      probing: probing(get),
      notifyAllowed: networks('notify-allow', get),
      nameserversAllowed: networks('nameserver-allow', get),
      leaseNamespace: boolean('leader-elect', get) ? namespace : undefined,
      group: group(get('group')),
      role: role(get('delegation-role')),
      shares: shares(get('share-hosts'), watched),
      removalTimeoutMs: duration('remote-removal-timeout', get),
      remotes: {
        secretNamespace:
          get('cluster-secret-namespace') || env.POD_NAMESPACE || CLUSTER_SECRET_NAMESPACE,
        secretLabel: label('cluster-secret-label', get),
        leaveMs: duration('cluster-leave-time', get),
      },
      identity: `${env.POD_NAME || hostname()}_${randomUUID()}`,
    },
  }
}

function namespaces(name: string, get: Get): readonly string[] {
  const names = wordsOf(get(name))
  if (names.every((one) => NAMESPACE.test(one))) return names
  throw new BadValue(name, get(name), 'a comma list of names of namespaces')
}

function collector(name: string, get: Get): URL | undefined {
  if (get(name) === '') return undefined
  const url = scanCollectorUrl('otlp', get(name))
  if (url === undefined) throw new BadValue(name, get(name), 'HOST:PORT, or http(s)://HOST/PATH')
  return url
}

function controllers(get: Get): ReadonlySet<string> {
  const names = new Set(wordsOf(get('controllers')))
  const areKnown = [...names].every((name) => CONTROLLERS.some((known) => known === name))
  if (areKnown && names.size > 0) return names
  throw new BadValue('controllers', get('controllers'), `a comma list of ${CONTROLLERS.join(', ')}`)
}

function sources(get: Get): readonly string[] {
  const words = wordsOf(get('sources'))
  const areKnown = words.every((word) => SOURCE_WORDS.includes(word))
  if (areKnown && words.includes(DNSRECORD_WORD)) return words
  const want = `a comma list of ${SOURCE_WORDS.join(', ')} that has ${DNSRECORD_WORD}: the operator writes DNSRecords for the others`
  throw new BadValue('sources', get('sources'), want)
}

function silentMs(text: string): number {
  const ms = scanSilentSite(text.trim().split(/\s+/))
  if (typeof ms === 'number') return ms
  throw new BadValue('silent-site', text, '"keep DURATION" or "remove DURATION", from 1s to 8760h')
}

function quorum(text: string): number {
  const sites = /^\d{1,2}$/.test(text) ? Number(text) : -1
  if (sites >= 0 && sites <= QUORUM_MAX) return sites
  throw new BadValue('quorum', text, `from 1 to ${QUORUM_MAX} sites, or 0`)
}

function holdDownMs(text: string): number {
  const ms = scanDuration(text)
  if (ms === 0 || (ms !== undefined && ms >= 1000 && ms <= HOLD_DOWN_MS_MAX)) return ms
  throw new BadValue('hold-down', text, 'from 1s to 1h, or 0s')
}

function role(text: string): DelegationRole {
  if (text === 'primary' || text === 'secondary') return text
  throw new BadValue('delegation-role', text, 'primary or secondary')
}

/** `watched`: the namespaces whose records are read; empty = all. */
function shares(text: string, watched: readonly string[]): readonly HostShare[] {
  return wordsOf(text).map((item) => {
    const share = scanShare(item.split(/\s+/))
    if (typeof share === 'string')
      throw new BadValue('share-hosts', item, `"HOST NAMESPACE..."; ${share}`)
    const isLost = (namespace: string): boolean => !watched.includes(namespace)
    if (watched.length > 0 && [...(share.namespaces ?? [])].some(isLost))
      throw new BadValue('share-hosts', item, 'a host with namespaces of --watch-namespaces')
    return share
  })
}

function group(text: string): string {
  if (text === '' || isGroup(text)) return text
  const want = `a name of up to ${GROUP_CHARACTERS_MAX} characters without ; & , " ' and spaces`
  throw new BadValue('group', text, want)
}

function label(name: string, get: Get): string {
  if (LABEL.test(get(name))) return get(name)
  throw new BadValue(name, get(name), 'a label key, for example example.org/name')
}

function probing(get: Get): OperatorSettings['probing'] {
  if (!boolean('enable-probes', get)) return undefined
  const allowed = networks('probe-allow', get)
  return { allowsInsecureCertificates: boolean('insecure-health-checks', get), allowed }
}

/** Each address is IP:PORT or :PORT; `0` = none. */
function notifyAddresses(name: string, get: Get): readonly HostPort[] {
  const words = wordsOf(get(name))
  if (words.join() === '0') return []
  const found = new Map<string, HostPort>()
  for (const word of words) {
    const [, bracketed, plain = bracketed ?? '', port = ''] =
      /^(?:\[([^\]]*)\]|([^:[\]]*)):(\d{1,5})$/.exec(word) ?? []
    const address = scanAddress(plain)
    const isGood = port !== '' && Number(port) <= 65_535 && (plain === '' || address !== undefined)
    if (!isGood || found.size >= NOTIFY_ADDRESSES_MAX) {
      throw new BadValue(
        name,
        get(name),
        '0, or a comma list of up to 8 addresses of the form IP:PORT or :PORT',
      )
    }
    const host = address === undefined ? '' : printAddress(address.bytes, address.family)
    const endpoint = { host, port: Number(port) }
    found.set(printHostPort(endpoint), endpoint)
  }
  return [...found.values()]
}

function address(name: string, get: Get): string {
  const text = get(name)
  if (text === '0') return ''
  const port = /^(?:[^:]*|\[[^\]]*\]):(\d{1,5})$/.exec(text)?.[1]
  if (port === undefined || Number(port) > 65_535) {
    throw new BadValue(name, text, 'HOST:PORT, :PORT or 0')
  }
  return text
}

function levelOf(get: Get): Level {
  const ofZap = zapLevel(get)
  if (ofZap === 'panic') return ofZap
  const text = ofZap || get('log-level')
  const found = LEVELS.find((one) => one === text.toLowerCase())
  if (found === undefined) throw new BadValue('log-level', text, `one of ${LEVELS.join(', ')}`)
  return found
}
