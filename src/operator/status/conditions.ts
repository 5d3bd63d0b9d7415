import { printTime } from '../../base/rfc3339.ts'
import { escapeControls } from '../../base/telemetry/log.ts'
import { type ApiObject, textOf } from '../../kube/api.ts'
import { isPassive, type Membership } from '../groups/membership.ts'

/** Reasons of Kuadrant's operator, so that clients that wait for one of them still find it. */
export const REASONS = {
  ready: 'ProviderSuccess',
  providerError: 'ProviderError',
  dnsProviderError: 'DNSProviderError',
  invalid: 'ValidationError',
  awaiting: 'AwaitingValidation',
  removing: 'ProviderEndpointsDeletion',
  removed: 'ProviderEndpointsRemoved',
  allHealthy: 'AllChecksPassed',
  someHealthy: 'SomeChecksPassed',
  noneHealthy: 'HealthChecksFailed',
  notProbed: 'NotProbed',
  probesDisabled: 'ProbesDisabled',
  activeGroup: 'MemberOfActiveGroup',
  notActiveGroup: 'NotMemberOfActiveGroup',
  inactiveGroup: 'MemberOfInactiveGroup',
  held: 'FinalizersSet',
  accepted: 'AllAccepted',
  conflict: 'EndpointConflict',
  refused: 'EndpointRefused',
  recordConflict: 'RecordConflict',
  heard: 'AllHeard',
  silent: 'PeersSilent',
  isolated: 'SiteIsolated',
  disputed: 'HealthDisputed',
  siteNameConflict: 'SiteNameConflict',
  zoneNotServed: 'ZoneNotServed',
  clockDiffers: 'ClockDiffers',
} as const

export type ConditionType =
  | 'Ready'
  | 'Healthy'
  | 'Active'
  | 'ReadyForDelegation'
  | 'EndpointsServed'
  | 'PeersAccepted'
  | 'PeersDegraded'

/** A desired condition. */
export interface Condition<Type = ConditionType> {
  readonly type: Type
  readonly isTrue: boolean
  /** The status is Unknown, and `isTrue` is false; missing = it is not. */
  readonly isUnknown?: true
  readonly reason: string
  readonly message: string
}

/**
 * Longest message in characters. The definition allows 32768, which is more than a person reads.
 */
const MESSAGE_CHARACTERS_MAX = 2000
/** Lines about rejected endpoints or disputed addresses that a condition shows. */
const DISPUTES_SHOWN = 5
/** The syntax that the API allows for the reason of a condition. */
const REASON = /^[A-Za-z]([A-Za-z0-9_,:]{0,1022}[A-Za-z0-9_])?$/

export function readyCondition(note = ''): Condition {
  const message = `Provider ensured the dns record${note === '' ? '' : `; ${note}`}`
  return { type: 'Ready', isTrue: true, reason: REASONS.ready, message }
}

/** Of a published record. `zoneFault`: why no nameserver serves its zone; '' = one does, or it is not known. */
export function publishedCondition(
  { isPassive, zoneFault }: { readonly isPassive: boolean; readonly zoneFault: string },
  note: string,
): Condition {
  if (!isPassive)
    return zoneFault === '' ? readyCondition(note) : unservedCondition(zoneFault, note)
  return inactiveCondition([zoneFault, note].filter((text) => text !== '').join('; '))
}

/** How the message of a record whose zone is not served begins. */
export const UNSERVED_START = 'Published, but '

function unservedCondition(fault: string, note = ''): Condition {
  const message = `${UNSERVED_START}${fault}${note === '' ? '' : `; ${note}`}`
  return notReady(REASONS.zoneNotServed, message)
}

/** The record is complete, but its cluster belongs to a group that is not active. */
export function inactiveCondition(note = ''): Condition {
  const message = 'No further actions to take while in inactive group'
  return notReady(REASONS.inactiveGroup, note === '' ? message : `${message}; ${note}`)
}

/** Whether the group of the record's cluster is active. */
export function activeCondition(membership: Membership): Condition {
  const type = 'Active'
  if (isPassive(membership)) {
    const message = 'Group is not included in active groups'
    return { type, isTrue: false, reason: REASONS.notActiveGroup, message }
  }
  const message =
    membership.active === undefined
      ? 'The active groups are not known; the group counts as active'
      : 'Group is included in active groups'
  return { type, isTrue: true, reason: REASONS.activeGroup, message }
}

export function invalidCondition(problem: string): Condition {
  return notReady(REASONS.invalid, `validation of DNSRecord failed: ${problem}`)
}

export function noProviderCondition(problem: string): Condition {
  return notReady(REASONS.dnsProviderError, `The dns provider could not be loaded: ${problem}`)
}

export function noZoneCondition(problem: string): Condition {
  return notReady(REASONS.dnsProviderError, `Unable to find suitable zone in provider: ${problem}`)
}

export function failedCondition(problem: string): Condition {
  return notReady(REASONS.providerError, `The DNS provider failed to ensure the record: ${problem}`)
}

/** `note`: additional information for the reader; '' = none. */
export function removedCondition(note = ''): Condition {
  const message = `DNS records removed from provider${note === '' ? '' : `; ${note}`}`
  return notReady(REASONS.removed, message)
}

export function removingCondition(note: string): Condition {
  return notReady(REASONS.removing, `DNS records are being deleted from provider; ${note}`)
}

export function awaitingCondition(note: string): Condition {
  return notReady(REASONS.awaiting, `Awaiting validation: ${note}`)
}

/** `rival`: an older record with the same owner id. */
export function rivalCondition(ownerId: string, rival: string): Condition {
  const text = `owner conflict, owner id '${ownerId}' is that of the older record ${rival}`
  return failedCondition(text)
}

/** The condition that another cluster reports, with its reason and message. */
export function foreignCondition(reason: string, message: string): Condition {
  return notReady(REASON.test(reason) ? reason : REASONS.providerError, message)
}

/**
 * The record is held: other clusters may copy its endpoints into their authoritative records, and
 * its deletion waits until they have removed them.
 */
export function heldCondition(): Condition {
  return { type: 'ReadyForDelegation', isTrue: true, reason: REASONS.held, message: '' }
}

/**
 * Whether all endpoints that peers report for a record are served. `disputes`: why some are not,
 * one line each.
 */
export function acceptedCondition(disputes: readonly string[], hasConflict: boolean): Condition {
  const type = 'PeersAccepted'
  if (disputes.length === 0) {
    const message = 'All that peers report is served'
    return { type, isTrue: true, reason: REASONS.accepted, message }
  }
  const reason = hasConflict ? REASONS.conflict : REASONS.refused
  return { type, isTrue: false, reason, message: shorten(disputes) }
}

/** Whether other records of this cluster keep endpoints from being served. `texts`: one line each. */
export function endpointsServedCondition(texts: readonly string[]): Condition {
  const type = 'EndpointsServed'
  if (texts.length > 0) {
    return { type, isTrue: false, reason: REASONS.recordConflict, message: shorten(texts) }
  }
  const message = 'No other record is in conflict with this one'
  return { type, isTrue: true, reason: REASONS.accepted, message }
}

/** What is wrong with the names and the clocks of sites; one line each. */
export interface SiteFaultTexts {
  readonly names: readonly string[]
  readonly clocks: readonly string[]
}

/** What this site hears of the others. */
export interface PeerHearing {
  /** Addresses of silent nameservers. */
  readonly silent: readonly string[]
  readonly nameservers: number
  /** This site hears fewer than a majority of the sites, itself included. */
  readonly isIsolated: boolean
}

/**
 * Whether data of other sites is missing or contradictory. `disputed`: addresses whose health
 * differs between sites, one line each. `faults`: of site names and clocks, one line each.
 */
export function degradedCondition(
  { silent, nameservers, isIsolated }: PeerHearing,
  disputed: readonly string[],
  faults: SiteFaultTexts = { names: [], clocks: [] },
): Condition {
  const type = 'PeersDegraded'
  if (faults.names.length > 0) {
    const message = shorten(faults.names)
    return { type, isTrue: true, reason: REASONS.siteNameConflict, message }
  }
  const verb = silent.length === 1 ? 'is' : 'are'
  const list = silent.join(', ')
  const silence = `${silent.length} of ${nameservers} nameservers ${verb} silent: ${list}`
  if (isIsolated) {
    const message = `This site hears less than a majority of the sites; ${silence}`
    return { type, isTrue: true, reason: REASONS.isolated, message }
  }
  if (silent.length > 0) return { type, isTrue: true, reason: REASONS.silent, message: silence }
  if (faults.clocks.length > 0) {
    const message = shorten(faults.clocks)
    return { type, isTrue: true, reason: REASONS.clockDiffers, message }
  }
  if (disputed.length > 0) {
    const message = shorten(disputed)
    return { type, isTrue: true, reason: REASONS.disputed, message }
  }
  const message = 'All nameservers of other sites answer, and agree on health'
  return { type, isTrue: false, reason: REASONS.heard, message }
}

/** The health of one address of a record, for its condition. */
export interface AddressProbe {
  readonly address: string
  readonly health: 'up' | 'down' | 'unknown'
  /** Why the last attempt to probe it was not made; missing = it was made, or is not due yet. */
  readonly notProbed?: string
  /** Why it is down; missing or '' = not known. */
  readonly reason?: string
}

/** The combined health of a record's own addresses; undefined = it has no probes. */
export function healthyCondition(probes: readonly AddressProbe[]): Condition | undefined {
  const type = 'Healthy'
  if (probes.length === 0) return undefined
  const ofHealth = (health: string): AddressProbe[] =>
    probes.filter((probe) => probe.health === health)
  const isSomeUp = ofHealth('up').length > 0
  const down = listAddresses(ofHealth('down'))
  const served = listSkipped(ofHealth('unknown'))
  if (down !== '') {
    const note = served === '' ? '' : `; addresses that cannot be probed are served: ${served}`
    const reason = isSomeUp ? REASONS.someHealthy : REASONS.noneHealthy
    return { type, isTrue: false, reason, message: `Not healthy addresses: [${down}]${note}` }
  }
  if (served !== '') return unknownHealth(`Addresses that cannot be probed are served: ${served}`)
  const unknown = listAddresses(ofHealth('unknown'))
  if (unknown !== '') {
    const message = isSomeUp ? `Probes are creating: [${unknown}]` : 'Probes are creating'
    const reason = isSomeUp ? REASONS.someHealthy : REASONS.noneHealthy
    return { type, isTrue: false, reason, message }
  }
  const late = listSkipped(probes)
  const message = `All healthchecks succeeded${late === '' ? '' : `; last attempt not made: ${late}`}`
  return { type, isTrue: true, reason: REASONS.allHealthy, message }
}

/** The health of some addresses is not known, so they are served. */
export function unknownHealth(message: string, reason: string = REASONS.notProbed): Condition {
  return { type: 'Healthy', isTrue: false, isUnknown: true, reason, message }
}

function listAddresses(probes: readonly AddressProbe[]): string {
  return [...new Set(probes.map(({ address }) => address))].sort().join(' ')
}

/** The addresses whose last attempt was not made, with the reasons; '' = none. */
function listSkipped(probes: readonly AddressProbe[]): string {
  const lines = probes
    .filter(({ notProbed = '' }) => notProbed !== '')
    .map(({ address, notProbed }) => `${address}: ${notProbed}`)
  return shorten([...new Set(lines)].sort())
}

/**
 * `wanted` as the API stores conditions. A condition whose status is the same in `present` keeps
 * its transition time.
 */
export function printConditions(
  wanted: readonly Condition<string>[],
  present: readonly ApiObject[],
  observedGeneration: number,
  nowMs: number,
): readonly ApiObject[] {
  return wanted.map(({ type, isTrue, isUnknown, reason, message }) => {
    const status = isUnknown ? 'Unknown' : isTrue ? 'True' : 'False'
    const before = present.find((one) => one.type === type && one.status === status)
    const lastTransitionTime = textOf(before, 'lastTransitionTime') || printTime(nowMs)
    const printed = printMessage(message)
    return { type, status, reason, message: printed, observedGeneration, lastTransitionTime }
  })
}

function shorten(lines: readonly string[]): string {
  const more = lines.length - DISPUTES_SHOWN
  const shown = lines.slice(0, DISPUTES_SHOWN)
  if (more > 0) shown.push(`and ${more} more`)
  return shown.join('; ')
}

/** A message as the API stores it: on one line and clipped, because it may have the text of a peer. */
export function printMessage(message: string): string {
  const text = escapeControls(message)
  return text.length <= MESSAGE_CHARACTERS_MAX
    ? text
    : `${text.slice(0, MESSAGE_CHARACTERS_MAX - 1)}…`
}

function notReady(reason: string, message: string): Condition {
  return { type: 'Ready', isTrue: false, reason, message }
}
