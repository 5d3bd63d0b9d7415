import { scanDuration } from '../../base/duration.ts'
import type { Position } from '../../base/errors.ts'
import { DELAY_MAX_MS } from '../../base/timers.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { type Cidr, scanCidr } from '../../dns/text/address.ts'
import {
  DEFAULT_LIMITS,
  type UpdateLimits,
} from '../../egress/policies/openshift/resolved-names.ts'
import type { ClusterPlace } from '../../kube/cluster-access.ts'
import { scanKubeconfig } from '../../plugin/arguments/kubeconfig.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import type { BlockConfig } from '../../plugin/directive.ts'

const STARTUP_MS_DEFAULT = 5000
const GATE_MS_MAX = 5000
/** The largest number of the API's fields. */
const INT32_MAX = 2 ** 31 - 1

export interface EgressFirewallOptions extends ClusterPlace {
  position: Position
  kubeconfig: string
  context: string
  endpoint: string
  /** Empty = all. */
  namespaces: readonly string[]
  limits: UpdateLimits
  /** Longest time that a reply waits until its addresses are written; 0 = none waits. */
  gateMs: number
  /** Networks of the cluster, whose addresses are not written. */
  cluster: readonly Cidr[]
  /** Networks whose addresses are written although a rule denies them. */
  allowed: readonly Cidr[]
  startupMs: number
}

/** Reads `egressfirewall { … }`; `directive` is its name. Throws InputError with all faults. */
export function scanOptions(
  d: Dispenser,
  block: BlockConfig,
  directive: string,
): EgressFirewallOptions {
  const options: EgressFirewallOptions = {
    directive,
    position: d.position(),
    kubeconfig: '',
    context: '',
    endpoint: '',
    tls: undefined,
    namespaces: [],
    limits: DEFAULT_LIMITS,
    gateMs: 0,
    cluster: [],
    allowed: [],
    startupMs: STARTUP_MS_DEFAULT,
  }
  for (let uses = 0; nextOnce(d, uses); uses++) {
    options.position = d.position()
    d.noArgs()
    d.eachProperty(() => scanProperty(d, options, block))
  }
  return options
}

const PROPERTIES = [
  'namespaces',
  'minTTL',
  'failureThreshold',
  'kubeconfig',
  'endpoint',
  'gate',
  'cluster',
  'allow',
  'startup_timeout',
]

function scanProperty(d: Dispenser, options: EgressFirewallOptions, block: BlockConfig): void {
  const property = d.value()
  switch (property) {
    case 'namespaces':
      options.namespaces = [...new Set([...options.namespaces, ...d.remainingArgs(1)])]
      return
    case 'minTTL':
      options.limits = { ...options.limits, minTtlSeconds: scanCount(d) }
      return
    case 'failureThreshold':
      options.limits = { ...options.limits, failureThreshold: scanCount(d) }
      return
    case 'kubeconfig':
      Object.assign(options, scanKubeconfig(d, block.root))
      return
    case 'endpoint':
      options.endpoint = d.onlyArg()
      if (!URL.canParse(options.endpoint)) throw d.error('endpoint must be a URL')
      return
    case 'gate':
      options.gateMs = scanGate(d)
      return
    case 'cluster':
      options.cluster = [...options.cluster, ...scanNetworks(d)]
      return
    case 'allow':
      options.allowed = [...options.allowed, ...scanNetworks(d)]
      return
    case 'startup_timeout':
      options.startupMs = Math.min(scanMs(d), DELAY_MAX_MS)
      return
    default:
      throw d.unknownProperty(property, PROPERTIES)
  }
}

function scanCount(d: Dispenser): number {
  const property = d.value()
  const text = d.onlyArg()
  if (!/^[+-]?\d{1,15}$/.test(text)) {
    throw d.error(`value of ${property} should be an integer: ${text}`)
  }
  const count = Number(text)
  if (count <= 0) throw d.error(`value of ${property} should be greater than 0: ${text}`)
  if (count > INT32_MAX) throw d.error(`value of ${property} is above ${INT32_MAX}: ${text}`)
  return count
}

function scanGate(d: Dispenser): number {
  const ms = scanMs(d)
  if (ms > 0 && ms <= GATE_MS_MAX) return ms
  throw d.error(`gate must be above 0 and at most ${GATE_MS_MAX / 1000}s: '${d.value()}'`)
}

function scanMs(d: Dispenser): number {
  const text = d.onlyArg()
  const ms = scanDuration(text)
  if (ms !== undefined && ms >= 0) return ms
  throw d.error(`not a duration: ${JSON.stringify(text)}; write it as 50ms or 5s`)
}

function scanNetworks(d: Dispenser): readonly Cidr[] {
  return d.remainingArgs(1).map((text) => {
    const network = scanCidr(text)
    if (network === undefined) throw d.error(`not a network: '${text}'; write it as 10.128.0.0/14`)
    return network
  })
}
