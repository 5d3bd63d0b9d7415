import { resolve } from 'node:path'
import { scanDuration } from '../../base/duration.ts'
import type { Position } from '../../base/errors.ts'
import { didYouMean } from '../../base/nearest.ts'
import { DELAY_MAX_MS } from '../../base/timers.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import type { ClusterPlace } from '../../kube/cluster-access.ts'
import { labelSelectorFault } from '../../kube/label-selector.ts'
import type { EndpointFiles } from '../../kube/open-endpoint.ts'
import { scanClusterTtl, scanClusterZones } from '../../plugin/arguments/cluster-zones.ts'
import {
  type Fallthrough,
  NO_FALLTHROUGH,
  scanFallthrough,
} from '../../plugin/arguments/fallthrough.ts'
import { scanKubeconfig } from '../../plugin/arguments/kubeconfig.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import type { BlockConfig } from '../../plugin/directive.ts'

const TTL_SECONDS_DEFAULT = 5
const STARTUP_MS_DEFAULT = 5000

type PodMode = 'disabled' | 'insecure' | 'verified'

const POD_MODES: readonly string[] = ['disabled', 'insecure', 'verified'] satisfies PodMode[]

export interface KubernetesOptions extends ClusterPlace {
  /** Lower-case wire form; at least one is not reverse. */
  zones: readonly Uint8Array[]
  position: Position
  kubeconfig: string
  context: string
  endpoint: string
  tls: EndpointFiles | undefined
  namespaces: readonly string[]
  namespaceLabels: string
  labels: string
  pods: PodMode
  podNames: boolean
  ttlSeconds: number
  readsEndpoints: boolean
  ignoresEmpty: boolean
  startupMs: number
  fallthrough: Fallthrough
}

/** Properties of CoreDNS that this server does not have, and what to do instead. */
const UNSUPPORTED: ReadonlyMap<string, string> = new Map([
  ['multicluster', 'remove it; ServiceImports are not read'],
  ['zonal', 'remove it; names of topology zones are not served'],
])

/** Properties of CoreDNS that limit its client of the API. They have no effect here. */
const WITHOUT_EFFECT = new Set(['apiserver_qps', 'apiserver_burst', 'apiserver_max_inflight'])

/** Reads `kubernetes [ZONES...] { … }`. Throws InputError with all faults. */
export function scanOptions(d: Dispenser, block: BlockConfig): KubernetesOptions {
  const options: KubernetesOptions = {
    directive: 'kubernetes',
    zones: [],
    position: d.position(),
    kubeconfig: '',
    context: '',
    endpoint: '',
    tls: undefined,
    namespaces: [],
    namespaceLabels: '',
    labels: '',
    pods: 'disabled',
    podNames: false,
    ttlSeconds: TTL_SECONDS_DEFAULT,
    readsEndpoints: true,
    ignoresEmpty: false,
    startupMs: STARTUP_MS_DEFAULT,
    fallthrough: NO_FALLTHROUGH,
  }
  for (let i = 0; nextOnce(d, i); i++) {
    options.position = d.position()
    options.zones = scanClusterZones(d, block)
    d.eachProperty(() => scanProperty(d, options, block))
    if (options.namespaces.length > 0 && options.namespaceLabels !== '')
      throw d.error('namespaces and namespace_labels cannot both be set')
  }
  return options
}

const KNOWN_PROPERTIES = [
  'kubeconfig',
  'endpoint',
  'tls',
  'namespaces',
  'namespace_labels',
  'labels',
  'noendpoints',
  'ignore',
  'fallthrough',
  'pods',
  'endpoint_pod_names',
  'ttl',
  'startup_timeout',
]

function scanProperty(d: Dispenser, options: KubernetesOptions, block: BlockConfig): void {
  const property = d.value()
  if (scanPlace(d, options, block) || scanSelection(d, options)) return
  switch (property) {
    case 'fallthrough':
      options.fallthrough = scanFallthrough(d)
      return
    case 'pods':
      options.pods = scanPods(d)
      return
    case 'endpoint_pod_names':
      d.noArgs()
      options.podNames = true
      return
    case 'ttl':
      options.ttlSeconds = scanClusterTtl(d)
      return
    case 'startup_timeout':
      options.startupMs = scanStartup(d)
      return
    default: {
      if (WITHOUT_EFFECT.has(property)) {
        d.onlyArg()
        return
      }
      const advice = UNSUPPORTED.get(property)
      if (advice !== undefined) throw d.error(`${property} is not supported: ${advice}`)
      throw d.unknownProperty(property, KNOWN_PROPERTIES)
    }
  }
}

/** Reads a property that names the cluster; false = it is another property. */
function scanPlace(d: Dispenser, options: KubernetesOptions, block: BlockConfig): boolean {
  switch (d.value()) {
    case 'kubeconfig':
      Object.assign(options, scanKubeconfig(d, block.root))
      return true
    case 'endpoint':
      // CoreDNS uses only the first of several, too.
      options.endpoint = d.remainingArgs(1, 100)[0]!
      if (!URL.canParse(options.endpoint)) throw d.error('endpoint must be a URL')
      return true
    case 'tls': {
      const files = d.remainingArgs(3, 3).map((file) => resolve(block.root, file))
      options.tls = { certificate: files[0]!, key: files[1]!, authority: files[2]! }
      return true
    }
    default:
      return false
  }
}

/** Reads a property that selects objects; false = it is another property. */
function scanSelection(d: Dispenser, options: KubernetesOptions): boolean {
  switch (d.value()) {
    case 'namespaces':
      options.namespaces = [...new Set([...options.namespaces, ...d.remainingArgs(1)])]
      return true
    case 'namespace_labels':
      options.namespaceLabels = scanSelector(d)
      return true
    case 'labels':
      options.labels = scanSelector(d)
      return true
    case 'noendpoints':
      d.noArgs()
      options.readsEndpoints = false
      return true
    case 'ignore':
      if (d.onlyArg() !== 'empty_service')
        throw d.error(`unable to parse ignore value: '${d.value()}'`)
      options.ignoresEmpty = true
      return true
    default:
      return false
  }
}

function scanSelector(d: Dispenser): string {
  const property = d.value()
  const text = d.remainingArgs(1, 1000).join(' ')
  const fault = labelSelectorFault(text)
  if (fault === '') return text
  throw d.error(`${property}: unable to parse label selector value: '${text}': ${fault}`)
}

function scanPods(d: Dispenser): PodMode {
  const mode = d.onlyArg()
  if (isPodMode(mode)) return mode
  const hint = didYouMean(mode, ['disabled', 'verified', 'insecure'])
  throw d.error(
    `wrong value for pods: ${mode},  must be one of: disabled, verified, insecure${hint}`,
  )
}

function isPodMode(mode: string): mode is PodMode {
  return POD_MODES.includes(mode)
}

function scanStartup(d: Dispenser): number {
  const text = d.onlyArg()
  const startupMs = scanDuration(text)
  if (startupMs !== undefined && startupMs >= 0) return Math.min(startupMs, DELAY_MAX_MS)
  throw d.error(`failed to parse startup_timeout: ${text}; write it as 5s`)
}
