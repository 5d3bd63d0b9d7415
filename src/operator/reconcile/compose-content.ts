import type { HealthObservation } from '../../health/address-health.ts'
import { chooseEndpoints } from '../../peering/merge/choose-endpoints.ts'
import { chooseOthers } from '../../peering/merge/choose-site-states.ts'
import { describeLeftOut, type LeftOut } from '../../peering/merge/cut-to-fit.ts'
import { findHealthDisputes } from '../../peering/merge/health-disputes.ts'
import { withoutDrains } from '../../peering/merge/without-drains.ts'
import { type PeerEndpoint, printTargets, type SiteState } from '../../peering/peer-endpoint.ts'
import { bareHost } from '../../peering/peer-status.ts'
import { majorityOf } from '../../peering/quorum/decide.ts'
import type { SiteObservation } from '../../peering/quorum/observation-codec.ts'
import { RecordSet } from '../../peering/record-set.ts'
import { type SiteClocks, undateStates } from '../../peering/site-clocks.ts'
import { buildSiteRecords } from '../../peering/site-records.ts'
import { printProbed, sortUnique } from '../../peering/to-peer-endpoint.ts'
import {
  type OwnNames,
  type Refused,
  screenSiteStates,
} from '../../peering/trust/screen-site-states.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import type { RecordConflicts } from '../conflicts/record-conflicts.ts'
import type { Membership } from '../groups/membership.ts'
import type { HealthFacts, PeerDecisions } from '../peers/peer-health.ts'
import type { KnownPeer } from '../peers/peer-state-store.ts'
import type { Publishing } from '../plan/decide.ts'
import { localHostOf, roomForOthers } from '../plan/desired.ts'
import { composeOwn, type OwnHealth } from '../plan/own.ts'
import { joinNotes } from '../plan/plan.ts'
import type { Content } from '../plan/plan-publish.ts'
import type { ServedElsewhere } from '../plan/served-elsewhere.ts'
import { composeServed } from '../plan/served-endpoints.ts'
import { composeSiteParts } from '../plan/site-parts.ts'
import { printSpecEndpoint } from '../record/endpoint-text.ts'
import { listIgnored, noteIgnored } from '../record/ignored-parts.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import {
  acceptedCondition,
  degradedCondition,
  type PeerHearing,
  type SiteFaultTexts,
} from '../status/conditions.ts'
import { countEndpoints, listOwnTargets, type TargetCounts } from '../status/endpoint-counts.ts'
import { type PeersForm, printPeers } from '../status/peer-status.ts'
import { recordHealth } from '../status/record-health.ts'
import type { ZoneState } from '../zones/zone-state.ts'
import { siteAt } from './record-deaths.ts'
import { findClockFaults, type NameFaults } from './site-faults.ts'

/** How long a site must have found the same before its observation counts as part of a dispute. */
const SETTLED_MS = 60_000

/** What of several sites is not served, or in dispute, with the reasons; one line each. */
export interface Troubles {
  readonly conflicts: readonly string[]
  /** Endpoints that do not fit; `conflicts` lists them too. */
  readonly leftOut: readonly LeftOut[]
  /**
   * Reports of peers that are not valid endpoints, or that the peer may not send; one line each.
   */
  readonly refused: readonly string[]
  /** Addresses that some sites report as up and others as down; one line each. */
  readonly disputed: readonly string[]
  /** Conflicts with other records of this cluster, one line each. */
  readonly records: readonly string[]
  /** Parts of the record that nothing reads, one line each. */
  readonly ignored: readonly string[]
  /** Names that belong to other namespaces, one line each. */
  readonly notOwned: readonly string[]
  /** Other sites with the name of ours, and sites with another clock. */
  readonly sites: SiteFaultTexts
}

export const NO_TROUBLES: Troubles = {
  conflicts: [],
  leftOut: [],
  refused: [],
  disputed: [],
  records: [],
  ignored: [],
  notOwned: [],
  sites: { names: [], clocks: [] },
}

/** What the content of a record is composed of. */
interface ContentInputs {
  readonly site: string
  readonly health: OwnHealth
  /** Finds the conflicts of the record with others of this cluster, and with these of other sites. */
  readonly conflictsWith: (foreign: readonly StoredRecord[]) => RecordConflicts
  /** Names that were left out of the record because they belong to other namespaces, one line each. */
  readonly notOwned: readonly string[]
  /** Whether a nameserver serves the zone. */
  readonly zone: ZoneState
  readonly nameFaults: NameFaults
  /** What other records of this cluster have. */
  readonly elsewhere: ServedElsewhere
  /** False = this operator executes no health checks. */
  readonly isProbing: boolean
  /** Undefined = this cluster belongs to no group. */
  readonly membership: Membership | undefined
  /** The current `local-<name>`. */
  readonly local: DnsRecordView | undefined
  /** Peers in the order of the provider's nameservers. */
  readonly addresses: readonly string[]
  /** States of the peers by address. */
  readonly peers: ReadonlyMap<string, KnownPeer>
  readonly clocks: SiteClocks
  /** True = the clock of our API server is wrong. */
  readonly isUndated: boolean
  readonly names: OwnNames
  readonly peersForm: PeersForm
  /** Whether the installed definition has the fields of `TargetCounts`. */
  readonly hasCounts: boolean
  /** How long a silent site keeps its addresses that no check finds up. */
  readonly silentMs: number
  /** Decides about the addresses that sites other than ours report. */
  readonly decideHealth: (facts: Pick<HealthFacts, 'own' | 'siteStates'>) => PeerDecisions
  /** Time of day. */
  readonly timeMs: number
  /** Monotonic time. */
  readonly nowMs: number
}

interface MergedContent {
  readonly content: Content
  readonly troubles: Omit<Troubles, 'notOwned'>
  /** What peers report, after the checks of what they may report. */
  readonly siteStates: readonly SiteState[]
  /** Monotonic time at which age alone changes the content; undefined = never. */
  readonly nextMs: number | undefined
}

/** Merges the own endpoints of a record with those that its peers report. */
export function composeContent(publishing: Publishing, inputs: ContentInputs): MergedContent {
  const { site, health, isUndated, membership, local, addresses, peers, names, peersForm } = inputs
  const { record, rootHost, provider } = publishing
  const context = { isElsewhere: inputs.elsewhere.has, before: local, nowMs: inputs.timeMs }
  const own = composeOwn(publishing, { site, health, isUndated, membership, ...context })
  const screened = screenSiteStates(
    [...peers.values()].flatMap(({ state }) => state?.siteStates ?? []),
    { names, own: own.shared, rulesOf: () => provider.rules },
  )
  const down = printProbed(health.down)
  const others = chooseForeign(publishing, own.shared, screened.siteStates, inputs)
  const { roomOctets, siteStates, reported, leftOut, foreign } = others
  const found = inputs.conflictsWith(foreign.map((one) => one.record))
  const conflicts = [...found.ofSites, ...leftOut.map((one) => describeLeftOut(rootHost, one))]
  const decided = inputs.decideHealth({ own: own.shared, siteStates })
  const foreignDown = new Set([...decided.down.keys(), ...down])
  const out = { down: health.down, foreignDown, drain: own.drain, timeMs: inputs.timeMs }
  const served = composeServed(publishing, { site, isUndated, foreign, ...out })
  const refused = listRefused(peers, screened.refused)
  const disputes = [...conflicts, ...refused]
  const isPartial = addresses.some((address) => peers.get(address)?.state === undefined)
  const ignored = listUnread(publishing, isPartial ? [] : found.provisional)
  const observed = settledObservations(site, peers, decided.observed, inputs.timeMs)
  const disputed = findHealthDisputes(
    { endpoints: own.shared, down },
    screened.siteStates.map(withoutDrains),
    observed.settled,
  )
  const ours = { site, health, isUndated, drain: own.drain }
  const sources = { ...ours, reported, isPartial, down: decided.down }
  const clockFaults = findClockFaults(peers, inputs)
  const sites = { names: inputs.nameFaults.names, clocks: clockFaults.clocks }
  const content = {
    local: own.composeLocal(decided.exported),
    merged: served.map(printSpecEndpoint),
    facts: { site, parts: composeSiteParts(publishing, sources) },
    peers:
      peersForm === 'none'
        ? undefined
        : printPeers(addresses, peers, { form: peersForm, roomOctets }),
    counts: inputs.hasCounts
      ? composeCounts(publishing, { health, conflicts: found }, [reported, decided.down], served)
      : undefined,
    healthy: recordHealth(record, health.probes, inputs.isProbing),
    membership,
    accepted: acceptedCondition(disputes, conflicts.length > 0),
    degraded: degradedCondition(hearingOf(addresses, peers), disputed, sites),
    conflicts: { ...found, texts: [...inputs.notOwned, ...found.texts] },
    zoneFault: inputs.zone.fault,
    note: joinNotes(
      noteSilence(addresses, peers),
      noteLeftOut(leftOut),
      inputs.zone.note,
      localHostOf(rootHost) === undefined ? '' : noteUnexportable(own.unexportable),
      own.failoverFault,
      noteIgnored(ignored),
    ),
  }
  const drainEndsMs = Math.min(own.drainEndsMs ?? Infinity, inputs.elsewhere.drainEndsMs())
  const leftMs = Math.min(observed.nextMs, clockFaults.nextMs, drainEndsMs - inputs.timeMs)
  const atMs = Math.min(inputs.nameFaults.nextMs, inputs.nowMs + leftMs)
  const nextMs = Math.min(decided.nextMs ?? Infinity, atMs)
  return {
    content,
    troubles: { conflicts, leftOut, refused, disputed, records: found.texts, ignored, sites },
    siteStates: screened.siteStates,
    nextMs: nextMs === Infinity ? undefined : nextMs,
  }
}

/** Returns the parts of the record that nothing reads, and what its failover list names in vain; one line each. */
function listUnread(
  { record, content }: Publishing,
  unknown: readonly string[],
): readonly string[] {
  return [...listIgnored(record, content), ...unknown]
}

/** What is used of other sites: states, endpoints and records; and what has no room. */
function chooseForeign(
  { record, rootHost }: Publishing,
  own: readonly PeerEndpoint[],
  known: readonly SiteState[],
  inputs: Pick<ContentInputs, 'site' | 'silentMs' | 'clocks' | 'nameFaults' | 'nowMs'>,
) {
  const roomOctets = roomForOthers(record, own)
  const { site, silentMs, clocks, nowMs, nameFaults } = inputs
  const chosen = chooseOthers(site, known, silentMs)
  const rules = { namesakes: nameFaults.namesakes, nowMs, silentMs }
  const siteStates = undateStates(chosen, own, clocks, rules)
  const { endpoints: reported, leftOut } = chooseEndpoints(own, siteStates, roomOctets)
  const foreign = buildSiteRecords(bareHost(rootHost), reported, '', RecordSet.EMPTY)
  return { roomOctets, siteStates, reported, leftOut, foreign }
}

function composeCounts(
  publishing: Publishing,
  { health, conflicts }: Pick<ContentInputs, 'health'> & Pick<Content, 'conflicts'>,
  [reported, down]: readonly [readonly PeerEndpoint[], ReadonlyMap<string, string>],
  served: readonly PeerEndpoint[],
): TargetCounts {
  const theirs = reported.flatMap(({ endpoint }) => {
    const one = printTargets(endpoint)
    const targets = one.targets.filter((target) => down.has(target))
    return [
      { ...one, health: 'unknown' as const },
      { ...one, targets, health: 'down' as const },
    ]
  })
  const isServed = (one: PeerEndpoint): boolean => conflicts.isServed(printSpecEndpoint(one))
  return countEndpoints(
    [...listOwnTargets(publishing, health.down), ...theirs],
    served.filter(isServed).map(({ endpoint, health }) => ({ ...printTargets(endpoint), health })),
  )
}

/**
 * Returns what this site and those that answer observed, if they found the same for SETTLED_MS. Else the probes of
 * several sites that find a change one after the other would be a dispute. `nextMs`: until more observations count.
 */
function settledObservations(
  site: string,
  peers: ReadonlyMap<string, KnownPeer>,
  ours: readonly HealthObservation[],
  timeMs: number,
): { readonly settled: readonly SiteObservation[]; readonly nextMs: number } {
  const heard = [...peers.values()].filter(({ reason }) => reason === '')
  const all = heard.flatMap(({ state }) => state?.observations ?? [])
  const theirs = [
    ...all.filter((one) => one.site !== site),
    ...ours.map((one) => ({ ...one, site: 'this site' })),
  ]
  const leftMs = (one: SiteObservation): number => one.sinceSeconds * 1000 + SETTLED_MS - timeMs
  const coming = theirs.map(leftMs).filter((ms) => ms > 0)
  return {
    settled: theirs.filter((one) => leftMs(one) <= 0),
    nextMs: coming.reduce((least, ms) => Math.min(least, ms), Infinity),
  }
}

/** A nameserver whose site is not known counts as a site of its own. */
function hearingOf(
  addresses: readonly string[],
  peers: ReadonlyMap<string, KnownPeer>,
): PeerHearing {
  const sites = new Set<string>()
  const heard = new Set<string>()
  const silent: string[] = []
  for (const address of addresses) {
    const { reason = '' } = peers.get(address) ?? {}
    const site = siteAt(address, peers)
    sites.add(site)
    if (reason === '') heard.add(site)
    else silent.push(address)
  }
  const isIsolated = silent.length > 0 && heard.size + 1 < majorityOf(sites.size + 1)
  return { silent, nameservers: addresses.length, isIsolated }
}

/** `1 of 3 nameservers is silent: 192.0.2.1:53`; '' = none is silent. */
function noteSilence(addresses: readonly string[], peers: ReadonlyMap<string, KnownPeer>): string {
  const silent = addresses.filter((address) => (peers.get(address)?.reason ?? '') !== '')
  if (silent.length === 0) return ''
  const verb = silent.length === 1 ? 'is' : 'are'
  return `${silent.length} of ${addresses.length} nameservers ${verb} silent: ${silent.join(', ')}`
}

/** Without numbers: values that change by themselves cause writes. */
function noteLeftOut(leftOut: readonly LeftOut[]): string {
  if (leftOut.length === 0) return ''
  const sites = sortUnique(leftOut.map(({ site }) => site))
  return `the record has no room for all endpoints of ${sites.join(', ')}`
}

function noteUnexportable(count: number): string {
  if (count === 0) return ''
  return `${count} endpoints are not exported in full to other sites: they or the host are too long`
}

function listRefused(peers: ReadonlyMap<string, KnownPeer>, refused: readonly Refused[]): string[] {
  const invalid = [...peers].flatMap(([address, { state }]) =>
    (state?.problems ?? []).map((problem) => `peer ${address}: ${problem}`),
  )
  return [...invalid, ...refused.map(({ peer, text }) => `peer ${peer}: refused: ${text}`)]
}
