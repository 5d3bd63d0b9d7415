import { yieldMsOf } from './merge/choose-site-states.ts'
import type { PeerEndpoint, SiteState } from './peer-endpoint.ts'

/** If clocks of sites differ by more, this is reported, and their times are not compared. */
export const CLOCK_DIFFERS_MS = 10_000

/** A nameserver, and by how much its clock is ahead of ours. */
export interface TimedPeer {
  readonly address: string
  /** '' = several sites, or not known. */
  readonly ownSite: string
  /** In milliseconds; undefined = not known. */
  readonly clockAheadMs: number | undefined
  /** As in PeerStatus. */
  readonly lastSeenMs: number
}

/** The clock of a nameserver, as far as it is known. */
export interface SiteClock {
  readonly address: string
  /** By how much it is ahead of ours, in milliseconds. */
  readonly aheadMs: number
  /** When the nameserver was last heard, in monotonic milliseconds. */
  readonly seenMs: number
}

/** The clocks of the nameservers of each site. */
export type SiteClocks = ReadonlyMap<string, readonly SiteClock[]>

export function findSiteClocks(peers: readonly TimedPeer[]): SiteClocks {
  const clocks = new Map<string, readonly SiteClock[]>()
  for (const { address, ownSite, clockAheadMs: aheadMs, lastSeenMs: seenMs } of peers) {
    if (ownSite === '' || aheadMs === undefined) continue
    clocks.set(ownSite, [...(clocks.get(ownSite) ?? []), { address, aheadMs, seenMs }])
  }
  return clocks
}

/**
 * Returns the clocks of a site that count, as `chooseOthers` selects its data: a silent nameserver does not count
 * beside one that is heard. If the whole site is silent, its clocks count on. Its records are still served, or decide
 * conflicts, and if its clock was wrong their ages are wrong too. `heardMs`: when the site was heard, if not by these.
 */
export function currentClocks(
  clocks: readonly SiteClock[],
  silentMs: number,
  heardMs = Number.NEGATIVE_INFINITY,
): readonly SiteClock[] {
  const newestMs = clocks.reduce((newest, { seenMs }) => Math.max(newest, seenMs), heardMs)
  return clocks.filter(({ seenMs }) => newestMs - seenMs <= yieldMsOf(silentMs))
}

/** Which clocks count. */
interface ClockRules {
  /** Addresses of peers that have the name of our site and are not its nameservers: their clocks do not count. */
  readonly namesakes: ReadonlySet<string>
  /** Monotonic time: our site is heard. */
  readonly nowMs: number
  /** How long a silent site keeps its addresses. */
  readonly silentMs: number
}

/** Returns the clocks of the other nameservers of our site that count. `site`: ours. */
export function ownClocks(
  site: string,
  clocks: SiteClocks,
  { namesakes, nowMs, silentMs }: ClockRules,
): readonly SiteClock[] {
  const ours = (clocks.get(site) ?? []).filter(({ address }) => !namesakes.has(address))
  return currentClocks(ours, silentMs, nowMs)
}

/**
 * Returns the states of a host. If the clocks of its sites differ, its records are `isUndated`. It does not matter
 * which clock is wrong, so all nameservers order the records of the host alike. `own`: our endpoints of it.
 */
export function undateStates(
  states: readonly SiteState[],
  own: readonly PeerEndpoint[],
  clocks: SiteClocks,
  rules: ClockRules,
): readonly SiteState[] {
  const { silentMs } = rules
  const others = states.filter(({ endpoints }) => endpoints.length > 0).map(({ site }) => site)
  const known = [...new Set(others)].flatMap((site) =>
    currentClocks(clocks.get(site) ?? [], silentMs),
  )
  const all = known.map(({ aheadMs }) => aheadMs)
  if (own.length > 0) {
    const ours = ownClocks(own[0]!.site, clocks, rules)
    all.push(0, ...ours.map(({ aheadMs }) => aheadMs))
  }
  if (Math.max(...all) - Math.min(...all) <= CLOCK_DIFFERS_MS) return states
  return states.map((state) => {
    const endpoints = state.endpoints.map((one) => ({ ...one, isUndated: true }))
    return { ...state, endpoints }
  })
}

/** The time of a site state that is furthest in our future, in milliseconds from now; 0 = none is. */
export function aheadMs(times: Iterable<{ readonly sinceSeconds: number }>, nowMs: number): number {
  let most = 0
  for (const { sinceSeconds } of times) most = Math.max(most, sinceSeconds * 1000 - nowMs)
  return most
}

const CLOCK_FIX = 'its clock is ahead, or ours is behind; synchronise the clocks'

/** The clock that dates changes may be that of an operator, not that of the nameserver. */
export function printClockAhead(site: string): string {
  return /* warning */ `site ${site} dates changes in our future: ${CLOCK_FIX}`
}

/** Names another nameserver of our site, as the argument `whose` of `printClockFault`. */
export function clockOfOurs(address: string, site: string): string {
  return `peer ${address} of this site, ${site},`
}

/** Returns what is wrong with the clock of a site or a peer; '' = nothing. `whose`: for example `site paris`. */
export function printClockFault(whose: string, aheadMs: number): string {
  if (Math.abs(aheadMs) <= CLOCK_DIFFERS_MS) return ''
  const side = aheadMs > 0 ? 'ahead of' : 'behind'
  return /* warning */ `the clock of ${whose} is ${side} ours: synchronise the clocks; until then, site names decide conflicts, not ages of records`
}
