import { resolve } from 'node:path'
import { scanDuration } from '../../base/duration.ts'
import { InputError, type Position } from '../../base/errors.ts'
import { plural } from '../../base/plural.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { lowerName, ROOT_NAME, scanName } from '../../dns/name/name.ts'
import { type Cidr, scanAddress } from '../../dns/text/address.ts'
import {
  type Fallthrough,
  NO_FALLTHROUGH,
  scanFallthrough,
} from '../../plugin/arguments/fallthrough.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import { scanAnsweredZones } from '../../plugin/arguments/zones.ts'
import type { BlockConfig, SetupContext } from '../../plugin/directive.ts'
import { reachableAddresses } from '../../publish/build/default-server.ts'
import { NO_HEALTH } from '../../publish/health-options.ts'
import {
  NO_ALIAS,
  NO_PEERING,
  type PublishOptions,
  type SnapshotOptions,
  type ZoneNameserver,
} from '../../publish/options.ts'
import { isLocalZone } from '../../records/local-zone.ts'
import { abilitiesOf, type SourcePlace } from '../../sources/source-place.ts'
import { scanAliasAllow, scanAliasResolver } from './alias-options.ts'
import {
  completeHealth,
  HEALTH_PROPERTIES,
  scanHealthProperty,
  scanNetworks,
} from './health-options.ts'
import { type RightsLine, scanAllowNamespaces, scanShareHosts } from './namespace-rights.ts'
import { scanNamespaces } from './namespaces.ts'
import {
  type PeeringDraft,
  readSilentSite,
  scanGroup,
  scanHoldDown,
  scanKeyPlace,
  scanPeerCache,
  scanPeers,
  scanProbePeers,
  scanQuorum,
  scanSite,
} from './peering-options.ts'
import { scanSources, sourceWith } from './source-kinds.ts'
import { type SettingsDraft, scanAllDown, scanAnswers, scanSticky } from './steering-options.ts'

/** Options of a `kuadrant` block. */
export interface KuadrantOptions extends PublishOptions {
  readonly serialsPosition: Position
  readonly rnamePosition: Position
  /** The lines of `allowedNamespaces` and `shares`. */
  readonly rights: readonly RightsLine[]
  readonly allDownPosition: Position
  readonly fallthrough: Fallthrough
  /** Networks whose clients may ask for explanations over DNS; empty = none. */
  readonly explainFor: readonly Cidr[]
}

const SNAPSHOT_MS_DEFAULT = 60_000
const SNAPSHOT_MS_MIN = 1000
const SNAPSHOT_MS_MAX = 24 * 3600 * 1000

const ENDPOINT_METRICS_DEFAULT = 1000
const ENDPOINT_METRICS_MAX = 100_000

/** The service account of the server's pod. */
const IN_CLUSTER = { kind: 'kubernetes', kubeconfig: '', context: '' } as const

/** Options during the scan. After a fault they contain the valid properties. */
export type DraftOptions = {
  -readonly [K in Exclude<keyof KuadrantOptions, 'peering' | 'settings'>]: KuadrantOptions[K]
} & {
  /** A line has named the source. */
  hasSource: boolean
  /** The kinds of objects that are read; undefined = not given. */
  kinds: readonly string[] | undefined
  peering: PeeringDraft
  settings: SettingsDraft
}

/** Returns the defaults. `namespaces`: the value of WATCH_NAMESPACES. Throws InputError. */
export function draftOptions(
  d: Dispenser,
  namespaces = process.env.WATCH_NAMESPACES ?? '',
): DraftOptions {
  return {
    zones: [],
    source: { ...IN_CLUSTER, namespaces: scanNamespaces(namespaces) },
    hasSource: false,
    kinds: undefined,
    position: d.position(),
    serials: '',
    serialsPosition: d.position(),
    snapshot: undefined,
    rname: '',
    rnamePosition: d.position(),
    nameservers: [],
    ownAddresses: undefined,
    allowedNamespaces: undefined,
    shares: [],
    rights: [],
    allDownPosition: d.position(),
    fallthrough: NO_FALLTHROUGH,
    explainFor: [],
    site: '',
    group: undefined,
    peering: { ...NO_PEERING },
    health: NO_HEALTH,
    settings: {},
    alias: undefined,
    endpointMetrics: undefined,
    endpointHistory: undefined,
    signed: undefined,
  }
}

/**
 * Reads `kuadrant [ZONES...] { kubeconfig FILE [CONTEXT] | sources KIND... | rname EMAIL | manifests DIR | serials
 * FILE | snapshot FILE [INTERVAL] | nameserver NAME ADDR... | allow-namespaces NS...
 * | share-hosts HOST NS... | probe [FILE]
 * | probe-allow CIDR... | probe-exec NAME COMMAND... | slow-start DURATION | drain FILE | namespace-drains
 * | cluster-drains NAMESPACE/NAME
 * | shift FILE | explain CIDR... | fallthrough [ZONES...] | site NAME
 * | group NAME [ADDR...] | peer ADDR... [{ allow RULE }]
 * | tsig NAME FILE | silent-site keep|remove DURATION | peer-cache FILE | all-down open|closed|ID
 * | alias-resolver ADDR... | alias-allow CIDR... | sticky [IPV4_BITS IPV6_BITS] | answers N
 * | endpoint-metrics [MAX | off] }` into `draft`. Throws InputError with all faults.
 */
export function scanOptions(
  c: Pick<SetupContext, 'dispenser' | 'block' | 'warn'>,
  draft: DraftOptions,
): KuadrantOptions {
  const { dispenser: d, block } = c
  for (let i = 0; nextOnce(d, i); i++) {
    draft.position = d.position()
    draft.zones = scanAnsweredZones(d, d.remainingArgs(), c)
    draft.ownAddresses = reachableAddresses(block.listenHosts)
    d.eachProperty(() => scanProperty(d, draft, block))
    checkPeering(d, draft)
  }
  const resolves = (draft.alias ?? NO_ALIAS).servers.length > 0
  draft.health = completeHealth(d, draft.health ?? NO_HEALTH, draft.source, resolves)
  checkGroup(d, draft)
  checkAlias(d, draft)
  return { ...draft, endpointMetrics: endpointMetricsOf(draft, block) }
}

/** Where metrics are read, they say by default who gets how much traffic. */
function endpointMetricsOf(
  { endpointMetrics }: DraftOptions,
  block: BlockConfig,
): number | undefined {
  const isDefault = endpointMetrics === undefined && block.directives.includes('prometheus')
  return isDefault ? ENDPOINT_METRICS_DEFAULT : endpointMetrics || undefined
}

function checkAlias(d: Dispenser, { alias = NO_ALIAS }: DraftOptions): void {
  if (alias.allowed.length === 0 || alias.servers.length > 0) return
  throw d.error('alias-allow needs alias-resolver')
}

function checkGroup(d: Dispenser, { group, site, source }: DraftOptions): void {
  if (group === undefined) return
  if (!abilitiesOf(source).isOurs) throw d.error('group needs manifests')
  if (site === '') throw d.error('group needs `site NAME`: the endpoints of this site are drained')
}

type ScanProperty = (d: Dispenser, draft: DraftOptions, block: BlockConfig) => void

/** The properties of the block, without those about health. */
const PROPERTIES: ReadonlyMap<string, ScanProperty> = new Map(
  Object.entries<ScanProperty>({
    fallthrough(d, draft) {
      draft.fallthrough = scanFallthrough(d)
    },
    kubeconfig: scanKubeconfig,
    rname(d, draft) {
      draft.rname = d.onlyArg()
      draft.rnamePosition = d.position()
    },
    manifests(d, draft, block) {
      setSource(d, draft, { kind: 'manifests', directory: resolve(block.root, d.onlyArg()) })
    },
    sources(d, draft) {
      if (draft.kinds !== undefined) throw d.error('sources appears twice')
      draft.kinds = scanSources(d)
      draft.source = sourceWith(draft.kinds, draft.source, d)
    },
    serials(d, draft, block) {
      draft.serials = resolve(block.root, d.onlyArg())
      draft.serialsPosition = d.position()
    },
    snapshot(d, draft, block) {
      if (draft.snapshot !== undefined) throw d.error('snapshot appears twice')
      draft.snapshot = scanSnapshot(d, block)
    },
    nameserver(d, draft) {
      draft.nameservers = [...draft.nameservers, scanNameserver(d)]
    },
    'allow-namespaces'(d, draft) {
      const line = scanAllowNamespaces(d)
      const { namespaces = [] } = line.share
      draft.rights = [...draft.rights, line]
      draft.allowedNamespaces = new Set([...(draft.allowedNamespaces ?? []), ...namespaces])
    },
    'share-hosts'(d, draft) {
      const line = scanShareHosts(d)
      draft.rights = [...draft.rights, line]
      draft.shares = [...(draft.shares ?? []), line.share]
    },
    site(d, draft) {
      if (draft.site !== '') throw d.error('site appears twice')
      draft.site = scanSite(d)
    },
    group(d, draft) {
      if (draft.group !== undefined) throw d.error('group appears twice')
      draft.group = scanGroup(d)
    },
    peer(d, { peering }) {
      scanPeers(d, peering)
    },
    tsig(d, { peering }, block) {
      if (peering.key !== undefined) throw d.error('tsig appears twice')
      peering.key = scanKeyPlace(d, block)
    },
    'peer-cache'(d, { peering }, block) {
      if (peering.peerCache !== undefined) throw d.error('peer-cache appears twice')
      peering.peerCache = scanPeerCache(d, block)
    },
    'silent-site'(d, { peering }) {
      peering.expiryMs = readSilentSite(d)
    },
    'all-down'(d, draft) {
      draft.settings.allDown = scanAllDown(d, draft.settings)
      draft.allDownPosition = d.position()
    },
    sticky(d, { settings }) {
      settings.sticky = scanSticky(d, settings)
    },
    answers(d, { settings }) {
      settings.answers = scanAnswers(d, settings)
    },
    'endpoint-metrics'(d, draft) {
      if (draft.endpointMetrics !== undefined) throw d.error('endpoint-metrics appears twice')
      draft.endpointMetrics = scanEndpointMetrics(d)
    },
    'alias-resolver'(d, draft, block) {
      draft.alias = scanAliasResolver(d, draft.alias, block)
    },
    'alias-allow'(d, draft) {
      draft.alias = scanAliasAllow(d, draft.alias)
    },
    explain(d, draft) {
      draft.explainFor = [...draft.explainFor, ...scanNetworks(d, 'explain')]
    },
    'probe-peers'(d, { peering }) {
      scanProbePeers(d, peering)
    },
    quorum(d, { peering }) {
      peering.quorum = scanQuorum(d)
      peering.quorumPosition = d.position()
    },
    'hold-down'(d, { peering }) {
      peering.holdDownMs = scanHoldDown(d)
    },
  }),
)

const KNOWN_PROPERTIES: readonly string[] = [...PROPERTIES.keys(), ...HEALTH_PROPERTIES]

function scanProperty(d: Dispenser, draft: DraftOptions, block: BlockConfig): void {
  const property = d.value()
  const scan = PROPERTIES.get(property)
  if (scan !== undefined) {
    scan(d, draft, block)
    return
  }
  const health = scanHealthProperty(d, property, draft.health ?? NO_HEALTH, block)
  if (health === undefined) throw d.unknownProperty(property, KNOWN_PROPERTIES)
  draft.health = health
}

function checkPeering(d: Dispenser, draft: DraftOptions): void {
  const { peering, site, source, zones } = draft
  const { peers, key, peerCache } = peering
  checkQuorum(d, draft)
  if (peers.length === 0) {
    if (key !== undefined) throw d.error('tsig needs peers; add `peer ADDR...`')
    if (peerCache !== undefined) throw d.error('peer-cache needs peers; add `peer ADDR...`')
    return
  }
  if (!abilitiesOf(source).isOurs) {
    throw d.error('peer needs manifests; in a cluster the operator asks peers')
  }
  if (site === '') throw d.error('peer needs `site NAME`, the name of this site at its peers')
  if (!zones.some(isLocalZone)) return
  throw d.error('peers query the zone kdrnt: serve it in a server block of its own, without peer')
}

/**
 * Completes the options about the health of peers. A site with peers probes its own addresses and those of the peers,
 * because no other setting notices that a site is dead.
 */
function checkQuorum(d: Dispenser, draft: DraftOptions): void {
  const { peering } = draft
  const { peers, probing, quorum, holdDownMs } = peering
  const health = draft.health ?? NO_HEALTH
  const isOff = probing === 'off' || health.probe === 'off'
  const given = { 'probe-peers': probing, quorum, 'hold-down': holdDownMs }
  for (const [property, value] of Object.entries(given)) {
    if (value === undefined || value === 'off') continue
    if (peers.length === 0) throw d.error(`${property} needs peers; add \`peer ADDR...\``)
    const missing = property === 'probe-peers' ? 'probe' : 'probe-peers'
    if (isOff) throw d.error(`${property} needs ${missing}, which is off`)
  }
  if (peers.length === 0) return
  checkReachable(peering)
  peering.probePeers = isOff ? undefined : { quorum: quorum ?? 0, holdDownMs: holdDownMs ?? 0 }
  const position = peering.position ?? d.position()
  draft.health = { ...health, probe: health.probe ?? { file: '', position, isDefault: true } }
}

function checkReachable({ peers, quorum = 0, quorumPosition }: PeeringDraft): void {
  const sitesMax = peers.length + 1
  if (quorum <= sitesMax) return
  const most = `this site and ${plural(peers.length, 'peer')} are at most ${sitesMax} sites`
  const message = `quorum ${quorum} is never reached: ${most}; write at most ${sitesMax}`
  throw new InputError(quorumPosition, message)
}

function scanKubeconfig(d: Dispenser, draft: DraftOptions, block: BlockConfig): void {
  const [file, context = ''] = d.remainingArgs(1, 2)
  const kubeconfig = resolve(block.root, file!)
  const { namespaces = [] } = abilitiesOf(draft.source)
  setSource(d, draft, { kind: 'kubernetes', kubeconfig, context, namespaces })
}

function setSource(d: Dispenser, draft: DraftOptions, source: SourcePlace): void {
  const { property } = abilitiesOf(source)
  if (draft.hasSource && abilitiesOf(draft.source).property === property) {
    throw d.error(`${property} appears twice`)
  }
  if (draft.hasSource) throw d.error('manifests and kubeconfig exclude each other')
  draft.source = sourceWith(draft.kinds, source, d)
  draft.hasSource = true
  draft.position = d.position()
}

function scanSnapshot(d: Dispenser, block: BlockConfig): SnapshotOptions {
  const [file, interval] = d.remainingArgs(1, 2)
  const intervalMs = interval === undefined ? SNAPSHOT_MS_DEFAULT : scanDuration(interval)
  if (intervalMs === undefined) throw d.error(`snapshot interval is not a duration: ${interval}`)
  if (intervalMs < SNAPSHOT_MS_MIN || intervalMs > SNAPSHOT_MS_MAX) {
    throw d.error(`snapshot interval must be from 1s to 24h, got ${interval}`)
  }
  return { path: resolve(block.root, file!), intervalMs, position: d.position() }
}

/** Returns the largest number of series; 0 = off. */
function scanEndpointMetrics(d: Dispenser): number {
  const [text] = d.remainingArgs(0, 1)
  if (text === undefined) return ENDPOINT_METRICS_DEFAULT
  if (text === 'off') return 0
  const max = /^\d{1,6}$/.test(text) ? Number(text) : 0
  if (max >= 1 && max <= ENDPOINT_METRICS_MAX) return max
  throw d.error(`endpoint-metrics must be "off", or from 1 to ${ENDPOINT_METRICS_MAX}, got ${text}`)
}

function scanNameserver(d: Dispenser): ZoneNameserver {
  const [text, ...addressTexts] = d.remainingArgs(1)
  const name = scanName(text!, ROOT_NAME)
  if (name === undefined) throw d.error(`nameserver is not a valid domain name: ${text}`)
  const addresses = addressTexts.map((address) => {
    const scanned = scanAddress(address)
    if (scanned === undefined) throw d.error(`nameserver address is not an IP address: ${address}`)
    return scanned
  })
  return { name: lowerName(name), addresses, position: d.position() }
}
