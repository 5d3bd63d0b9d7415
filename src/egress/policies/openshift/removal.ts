import type { Observation } from '../../../client/resolver/observation.ts'
import { type AddressFamily, printAddress, scanAddress } from '../../../dns/text/address.ts'
import { REMOVAL_GRACE_MS } from './lookup-time.ts'
import { DEFAULT_LIMITS } from './resolved-names.ts'

const { minTtlSeconds, failureThreshold } = DEFAULT_LIMITS
/**
 * Time from the end of the TTL to the removal while no server has answered since: as long as failed
 * lookups keep an address that a server reports.
 */
const SILENCE_MS = failureThreshold * minTtlSeconds * 1000 + REMOVAL_GRACE_MS
/**
 * Part of this time for which lookups must have failed: the process may have stood still, or its clock
 * may have been set.
 */
const SEEN_SILENCE_MS = 20_000
/** Bounds of the time between two lookups of a name. */
const LOOKUP_MS_MIN = minTtlSeconds * 1000
const LOOKUP_MS_MAX = 30 * 60_000
/** Times of the API are cut to seconds: until then, a cache may still have the old answer. */
const AFTER_TTL_MS = 1000

/** An address in a status, and the end of its TTL. All times are milliseconds since 1970. */
export interface StatusAddress {
  /** As written. */
  readonly ip: string
  readonly endMs: number
}

/** A name in a status. */
export interface StatusName {
  readonly dnsName: string
  readonly addresses: readonly StatusAddress[]
}

/** What the controller's own lookups of a name found. */
export interface LookupState {
  /** When the first reply of the last lookup came; -Infinity = there was no lookup. */
  readonly askedMs: number
  /** When the last answer came, or the last NODATA, by family. */
  readonly answeredMs: Readonly<Record<AddressFamily, number>>
  /** When the lookups without an answer began, by family; Infinity = the last one had an answer. */
  readonly silentMs: Readonly<Record<AddressFamily, number>>
  /** End of the TTL of each address in these answers, by its canonical text. */
  readonly ends: ReadonlyMap<string, number>
  /** Consecutive lookups whose replies were all errors. Silence does not count. */
  readonly failures: number
  /** Consecutive lookups before which the status still lacked an address of an earlier answer. */
  readonly unseen: number
}

/** The state of a name before its first lookup. */
export const NEVER_ASKED: LookupState = {
  askedMs: Number.NEGATIVE_INFINITY,
  answeredMs: { 1: Number.NEGATIVE_INFINITY, 2: Number.NEGATIVE_INFINITY },
  silentMs: { 1: Number.POSITIVE_INFINITY, 2: Number.POSITIVE_INFINITY },
  ends: new Map(),
  failures: 0,
  unseen: 0,
}

/** The state of an invalid name: no lookup will say whether its addresses are dead. */
export const NOT_ASKED: LookupState = {
  ...NEVER_ASKED,
  silentMs: { 1: Number.NEGATIVE_INFINITY, 2: Number.NEGATIVE_INFINITY },
}

/**
 * The state after a lookup. `addresses`: of the name in all objects; `offsetMs`: wall clock minus monotonic clock.
 */
export function noteLookup(
  state: LookupState,
  found: readonly Observation[],
  addresses: Iterable<StatusAddress>,
  { nowMs, offsetMs }: { readonly nowMs: number; readonly offsetMs: number },
): LookupState {
  const answeredMs = { ...state.answeredMs }
  const askedMs = Math.min(nowMs, ...found.map(({ atMs }) => offsetMs + atMs))
  const ends = new Map([...state.ends].filter(([, endMs]) => endMs > nowMs - SILENCE_MS))
  let [isAnswered, isRefused] = [false, false]
  for (const observation of found) {
    if (observation.kind === 'failed') {
      isRefused ||= observation.isReply
      continue
    }
    isAnswered = true
    answeredMs[observation.family] = offsetMs + observation.atMs
    if (observation.kind === 'nodata') continue
    for (const { address, ttlSeconds } of observation.facts) {
      const endMs = offsetMs + observation.atMs + (ttlSeconds || minTtlSeconds) * 1000
      ends.set(address, Math.max(endMs, ends.get(address) ?? 0))
    }
  }
  const silentMs = {
    1: silenceOf(1, state, found, askedMs),
    2: silenceOf(2, state, found, askedMs),
  }
  const failures = isAnswered ? 0 : state.failures + (isRefused ? 1 : 0)
  const unseen = lacksAnswer(addresses, state) ? state.unseen + 1 : 0
  return { askedMs, answeredMs, silentMs, ends, failures, unseen }
}

/** True if the status lacks an address of an answer whose TTL had not ended at the last lookup. */
function lacksAnswer(addresses: Iterable<StatusAddress>, { ends, askedMs }: LookupState): boolean {
  const shown = new Set([...addresses].map(({ ip }) => canonical(ip)))
  return [...ends].some(([address, endMs]) => endMs > askedMs && !shown.has(address))
}

/** The text that `LookupState.ends` has; an invalid address as written. */
function canonical(ip: string): string {
  const address = scanAddress(ip)
  return address === undefined ? ip : printAddress(address.bytes, address.family)
}

function silenceOf(
  family: AddressFamily,
  { silentMs }: LookupState,
  found: readonly Observation[],
  askedMs: number,
): number {
  const isAnswered = found.some((one) => one.family === family && one.kind !== 'failed')
  return isAnswered ? Number.POSITIVE_INFINITY : Math.min(silentMs[family], askedMs)
}

/** What an object loses, and when this must be decided again. */
export interface StatusRemoval {
  /** Dead addresses as written, by name. Names without any are left out. */
  readonly addresses: ReadonlyMap<string, ReadonlySet<string>>
  /** Names that are removed with all that they have. */
  readonly names: ReadonlySet<string>
  /** Number of addresses that no server had answered for since the end of their TTL. */
  readonly unanswered: number
  /** Infinity = not before the object or a state changes. */
  readonly nextMs: number
}

/**
 * Decides what is removed from a status. An address dies REMOVAL_GRACE_MS after the end of its TTL;
 * without an answer since then, SILENCE_MS after it, or after `startMs`, when the process started, and
 * not before lookups have failed for SEEN_SILENCE_MS. A name without addresses dies after too many
 * failed lookups.
 */
export function planRemoval(
  names: readonly StatusName[],
  stateOf: (dnsName: string) => LookupState,
  nowMs: number,
  startMs: number,
): StatusRemoval {
  const dead = new Map<string, Set<string>>()
  const gone = new Set<string>()
  let unanswered = 0
  let nextMs = Number.POSITIVE_INFINITY
  for (const { dnsName, addresses } of names) {
    const state = stateOf(dnsName)
    const ips = dead.get(dnsName) ?? new Set<string>()
    let isEmpty = true
    for (const address of addresses) {
      const { deathMs, isAnswered } = deathOf(address, state, nowMs, startMs)
      if (deathMs > nowMs) {
        nextMs = Math.min(nextMs, deathMs)
        isEmpty = false
        continue
      }
      ips.add(address.ip)
      if (!isAnswered) unanswered++
    }
    if (ips.size > 0) dead.set(dnsName, ips)
    if (isEmpty && state.failures > failureThreshold) gone.add(dnsName)
  }
  return { addresses: dead, names: gone, unanswered, nextMs }
}

function deathOf(
  address: StatusAddress,
  state: LookupState,
  nowMs: number,
  startMs: number,
): { readonly deathMs: number; readonly isAnswered: boolean } {
  const { endMs, family } = endOf(address, state)
  const isAnswered = state.answeredMs[family] >= endMs
  const isDecided = isAnswered || nowMs < endMs + REMOVAL_GRACE_MS
  if (isDecided) return { deathMs: endMs + REMOVAL_GRACE_MS, isAnswered }
  const silenceMs = Math.max(endMs, startMs) + SILENCE_MS
  return { deathMs: Math.max(silenceMs, state.silentMs[family] + SEEN_SILENCE_MS), isAnswered }
}

/** The end of the TTL of the newest answer that anyone had. */
function endOf(
  { ip, endMs }: StatusAddress,
  { ends }: LookupState,
): { readonly endMs: number; readonly family: AddressFamily } {
  const family = scanAddress(ip)?.family ?? 1
  return { endMs: Math.max(endMs, ends.get(canonical(ip)) ?? 0), family }
}

/**
 * Returns when a name is looked up: at the earliest end of a TTL that no lookup has followed, within
 * the bounds. Undefined = the name has no such TTL: its next lookup depends on the last one.
 * `addresses`: the addresses of the name in all objects.
 *
 * A server that does not know the object yet answers, but writes nothing. So while the status lacks an address of the
 * last answer, the name is looked up again, after a wait that doubles.
 */
export function lookupDue(
  addresses: readonly StatusAddress[],
  state: LookupState,
  startMs: number,
): number | undefined {
  let firstMs = Number.POSITIVE_INFINITY
  for (const address of addresses) {
    const { endMs } = endOf(address, state)
    if (endMs > state.askedMs) firstMs = Math.min(firstMs, endMs)
  }
  if (lacksAnswer(addresses, state)) {
    firstMs = Math.min(firstMs, state.askedMs + LOOKUP_MS_MIN * 2 ** state.unseen - AFTER_TTL_MS)
  }
  if (firstMs === Number.POSITIVE_INFINITY) return undefined
  const lastMs = Math.max(state.askedMs, startMs)
  return Math.min(
    Math.max(firstMs + AFTER_TTL_MS, state.askedMs + LOOKUP_MS_MIN),
    lastMs + LOOKUP_MS_MAX,
  )
}
