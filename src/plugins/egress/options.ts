import { resolve } from 'node:path'
import { scanDuration } from '../../base/duration.ts'
import type { Position } from '../../base/errors.ts'
import { DELAY_MAX_MS } from '../../base/timers.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { Rcode } from '../../dns/iana/index.ts'
import { type Cidr, scanAddress, scanCidr } from '../../dns/text/address.ts'
import type { ClusterPlace } from '../../kube/cluster-access.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import type { BlockConfig } from '../../plugin/directive.ts'
import type { ConcurrencyLimits } from './concurrency.ts'
import type { EgressOptions } from './egress.ts'

const TABLE_DEFAULT = 'sextant'
const API_DEFAULT = '/run/sextant/node.sock'
const MAX_DELAY_MS_DEFAULT = 100
/** A stub resolver asks again after 5 s. */
const MAX_DELAY_MS_MAX = 4000
const MIN_TTL_SECONDS_DEFAULT = 5
const MIN_TTL_SECONDS_MAX = 7 * 24 * 3600
const ADDRESSES_PER_NAME_DEFAULT = 1000
const ZOMBIES_DEFAULT = 10_000
const CONCURRENCY_DEFAULT: ConcurrencyLimits = { total: 4096, perClient: 512 }
const STARTUP_MS_DEFAULT = 5000
const COUNT_MAX = 10_000_000
const PORT_MAX = 65535
/** sockaddr_un.sun_path has 108 octets with a final zero, and a temporary name is longer. */
const SOCKET_PATH_MAX = 96

/** How `matchPattern` of Cilium is read. */
export type PatternDialect = 'cilium-1.16' | 'cilium-1.19'

/** `egress { … }`, as in the Corefile. */
export interface EgressConfig extends EgressOptions, ClusterPlace {
  position: Position
  kubeconfig: string
  context: string
  endpoint: string
  /** The name of this node; '' = that of NODE_NAME. Undefined = without Kubernetes. */
  node: string | undefined
  /** A file or a folder of manifests; '' = none. */
  policies: string
  /** Name of the table of nftables; undefined = a dry run. */
  table: string | undefined
  /** Where DNS queries of clients are redirected to. */
  port: number
  /** At most one of each family; empty = the addresses from which this node sends to the Internet. */
  dnsAddresses: readonly string[]
  /** Networks of the cluster, which are left to others. */
  cluster: readonly Cidr[]
  /** Networks of Pods in which an unknown one may only connect to `cluster`. */
  closed: readonly Cidr[]
  /** Networks whose addresses may be allowed although they are special or in the cluster. */
  allowed: readonly Cidr[]
  dialect: PatternDialect
  maxDelayMs: number
  minTtlSeconds: number
  addressesPerName: number
  zombies: number
  idleGraceMs: number
  cutsConnections: boolean
  concurrency: ConcurrencyLimits
  /** '' = none. */
  stateFile: string
  /** Path of the socket of the API; '' = none. */
  api: string
  logsDecisions: boolean
  /** Metrics have the label `endpoint`. */
  countsEndpoints: boolean
  startupMs: number
}

type Draft = { -readonly [Key in keyof EgressConfig]: EgressConfig[Key] }

/** Reads `egress { … }`. Throws InputError with all faults. */
export function scanConfig(d: Dispenser, block: BlockConfig): EgressConfig {
  const draft: Draft = defaults(d.position(), block)
  for (let uses = 0; nextOnce(d, uses); uses++) {
    draft.position = d.position()
    if (d.remainingArgs().length > 0) throw d.argError()
    const seen = new Set<string>()
    d.eachProperty(() => {
      seen.add(d.value())
      scanProperty(d, draft, block)
    })
    if (seen.has('nftables') && seen.has('dry_run')) {
      throw d.error('nftables and dry_run exclude each other; remove one')
    }
  }
  if (draft.node === undefined && draft.policies === '') {
    throw d.error(
      'egress needs policies: add `kubernetes`, or `policies` with a folder of manifests',
    )
  }
  if (draft.node !== undefined && draft.policies !== '') {
    throw d.error('kubernetes and policies exclude each other; remove one')
  }
  if (draft.cutsConnections && draft.zombies === 0) {
    throw d.error(
      'cut_connections needs the names of open connections: remove `zombies 0` or cut_connections',
    )
  }
  if (draft.table !== undefined && draft.port === 0) {
    throw d.error('port is missing: name the port that DNS queries of clients are redirected to')
  }
  return draft
}

function defaults(position: Position, block: BlockConfig): Draft {
  return {
    directive: 'egress',
    position,
    kubeconfig: '',
    context: '',
    endpoint: '',
    tls: undefined,
    node: undefined,
    policies: '',
    table: TABLE_DEFAULT,
    port: block.keys[0]?.port ?? 0,
    dnsAddresses: boundAddresses(block),
    cluster: [],
    closed: [],
    allowed: [],
    dialect: 'cilium-1.19',
    denyRcode: Rcode.REFUSED,
    onTimeout: 'release',
    maxDelayMs: MAX_DELAY_MS_DEFAULT,
    minTtlSeconds: MIN_TTL_SECONDS_DEFAULT,
    addressesPerName: ADDRESSES_PER_NAME_DEFAULT,
    zombies: ZOMBIES_DEFAULT,
    idleGraceMs: 0,
    cutsConnections: false,
    concurrency: CONCURRENCY_DEFAULT,
    stateFile: '',
    api: API_DEFAULT,
    logsDecisions: false,
    countsEndpoints: false,
    startupMs: STARTUP_MS_DEFAULT,
  }
}

/** The first address of each family that the block listens on alone. */
function boundAddresses({ listenHosts }: BlockConfig): readonly string[] {
  const bound = listenHosts.filter((host) => {
    return scanAddress(host)?.bytes.some((octet) => octet !== 0) === true
  })
  const firstOf = (isIPv6: boolean) => bound.find((host) => host.includes(':') === isIPv6)
  return [firstOf(false), firstOf(true)].filter((host) => host !== undefined)
}

type Scan = (d: Dispenser, draft: Draft, block: BlockConfig) => void

const PROPERTIES: Readonly<Record<string, Scan>> = {
  kubernetes: (d, draft) => {
    draft.node = scanArgs(d, 0, 1)[0] ?? ''
  },
  kubeconfig: (d, draft, { root }) => {
    const [file, context = ''] = scanArgs(d, 1, 2)
    draft.kubeconfig = resolve(root, file!)
    draft.context = context
  },
  endpoint: (d, draft) => {
    draft.endpoint = scanArgs(d, 1, 1)[0]!
    if (!URL.canParse(draft.endpoint)) throw d.error('endpoint must be a URL')
  },
  policies: (d, draft, { root }) => {
    if (draft.policies !== '') throw d.error('policies names one file or folder')
    draft.policies = resolve(root, scanArgs(d, 1, 1)[0]!)
  },
  nftables: (d, draft) => {
    draft.table = scanTable(d)
  },
  dry_run: (d, draft) => {
    scanArgs(d, 0, 0)
    draft.table = undefined
  },
  port: (d, draft) => {
    draft.port = scanCount(d, 1, PORT_MAX)
  },
  address: (d, draft) => {
    draft.dnsAddresses = scanAddresses(d)
  },
  cluster: (d, draft) => {
    draft.cluster = [...draft.cluster, ...scanNetworks(d)]
  },
  closed: (d, draft) => {
    draft.closed = [...draft.closed, ...scanNetworks(d)]
  },
  allow: (d, draft) => {
    draft.allowed = [...draft.allowed, ...scanNetworks(d)]
  },
  dialect: (d, draft) => {
    draft.dialect = scanChoice(d, ['cilium-1.16', 'cilium-1.19'])
  },
  deny_rcode: (d, draft) => {
    draft.denyRcode = Rcode[scanChoice(d, ['REFUSED', 'NXDOMAIN'])]
  },
  max_delay: (d, draft) => {
    draft.maxDelayMs = scanMs(d, 1, MAX_DELAY_MS_MAX)
  },
  on_timeout: (d, draft) => {
    draft.onTimeout = scanChoice(d, ['release', 'servfail'])
  },
  min_ttl: (d, draft) => {
    draft.minTtlSeconds = Math.ceil(scanMs(d, 0, MIN_TTL_SECONDS_MAX * 1000) / 1000)
  },
  addresses_per_name: (d, draft) => {
    draft.addressesPerName = scanCount(d, 1, COUNT_MAX)
  },
  zombies: (d, draft) => {
    draft.zombies = scanCount(d, 0, COUNT_MAX)
  },
  idle_grace: (d, draft) => {
    draft.idleGraceMs = scanMs(d, 0, MIN_TTL_SECONDS_MAX * 1000)
  },
  cut_connections: (d, draft) => {
    scanArgs(d, 0, 0)
    draft.cutsConnections = true
  },
  concurrency: (d, draft) => {
    draft.concurrency = scanConcurrency(d)
  },
  state: (d, draft, { root }) => {
    draft.stateFile = resolve(root, scanArgs(d, 1, 1)[0]!)
  },
  api: (d, draft, { root }) => {
    const text = scanArgs(d, 1, 1)[0]!
    draft.api = text === 'off' ? '' : resolve(root, text)
    if (Buffer.byteLength(draft.api) > SOCKET_PATH_MAX) {
      throw d.error(`the path of a socket has at most ${SOCKET_PATH_MAX} octets: ${draft.api}`)
    }
  },
  decisions: (d, draft) => {
    scanArgs(d, 0, 0)
    draft.logsDecisions = true
  },
  endpoint_label: (d, draft) => {
    scanArgs(d, 0, 0)
    draft.countsEndpoints = true
  },
  startup_timeout: (d, draft) => {
    draft.startupMs = Math.min(scanMs(d, 0, Number.MAX_SAFE_INTEGER), DELAY_MAX_MS)
  },
}

function scanProperty(d: Dispenser, draft: Draft, block: BlockConfig): void {
  const property = d.value()
  const scan = Object.hasOwn(PROPERTIES, property) ? PROPERTIES[property] : undefined
  if (scan === undefined) throw d.unknownProperty(property, Object.keys(PROPERTIES))
  scan(d, draft, block)
}

function scanArgs(d: Dispenser, min: number, max: number): readonly string[] {
  const args = d.remainingArgs()
  if (args.length < min || args.length > max) throw d.argError()
  return args
}

/** `nftables [table NAME]` */
function scanTable(d: Dispenser): string {
  const args = scanArgs(d, 0, 2)
  if (args.length === 0) return TABLE_DEFAULT
  const [keyword, name = ''] = args
  if (keyword !== 'table' || args.length !== 2) throw d.error('write it as `nftables table NAME`')
  if (/^[a-zA-Z][a-zA-Z0-9_]{0,30}$/.test(name)) return name
  throw d.error(`not the name of a table: '${name}'; use up to 31 letters, digits and _`)
}

/** `concurrency N [per-client N]` */
function scanConcurrency(d: Dispenser): ConcurrencyLimits {
  const [total = '', keyword, perClient = String(CONCURRENCY_DEFAULT.perClient), ...rest] =
    scanArgs(d, 1, 3)
  const isComplete = keyword === undefined || (keyword === 'per-client' && rest.length === 0)
  if (!isComplete || d.value() === 'per-client') {
    throw d.error('write it as `concurrency N per-client N`')
  }
  return {
    total: scanNumber(d, total, 0, COUNT_MAX),
    perClient: scanNumber(d, perClient, 0, COUNT_MAX),
  }
}

function scanCount(d: Dispenser, min: number, max: number): number {
  return scanNumber(d, scanArgs(d, 1, 1)[0]!, min, max)
}

function scanNumber(d: Dispenser, text: string, min: number, max: number): number {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : -1
  if (number >= min && number <= max) return number
  throw d.error(`not a number from ${min} to ${max}: '${text}'`)
}

function scanChoice<Choice extends string>(d: Dispenser, choices: readonly Choice[]): Choice {
  const text = scanArgs(d, 1, 1)[0]!
  const choice = choices.find((one) => one.toLowerCase() === text.toLowerCase())
  if (choice === undefined) throw d.error(`must be ${choices.join(' or ')}: '${text}'`)
  return choice
}

function scanMs(d: Dispenser, min: number, max: number): number {
  const text = scanArgs(d, 1, 1)[0]!
  const ms = scanDuration(text)
  if (ms === undefined) {
    throw d.error(`not a duration: ${JSON.stringify(text)}; write it as 50ms or 5s`)
  }
  if (ms >= min && ms <= max) return ms
  throw d.error(`must be from ${min}ms to ${max}ms: '${text}'`)
}

/** `address IP...`: at most one of each family. */
function scanAddresses(d: Dispenser): readonly string[] {
  const texts = scanArgs(d, 1, 2)
  const families = texts.map((text) => {
    const address = scanAddress(text)
    if (address === undefined) throw d.error(`not an address: '${text}'; write it as 192.0.2.1`)
    return address.family
  })
  if (new Set(families).size === texts.length) return texts
  throw d.error('address has at most one IPv4 and one IPv6 address')
}

function scanNetworks(d: Dispenser): readonly Cidr[] {
  return scanArgs(d, 1, 10_000).map((text) => {
    const network = scanCidr(text)
    if (network === undefined) throw d.error(`not a network: '${text}'; write it as 10.128.0.0/14`)
    return network
  })
}
