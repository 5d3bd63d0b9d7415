import type { OldVersion, RollState, Timeline, TimelineName } from './roll-state.ts'
import { TIMELINES } from './roll-state.ts'

/** States of a key in one set of records, for validators with caches (RFC 7583 section 3.1, with BIND's names). */
type KeyPhase = 'hidden' | 'rumoured' | 'omnipresent' | 'unretentive'

/** What caches may have: the current version, and old ones. */
export function liveVersions(timeline: Timeline): readonly (readonly string[])[] {
  return [timeline.keys, ...timeline.older.map(({ keys }) => keys)]
}

export function phaseOf(timeline: Timeline, id: string): KeyPhase {
  const versions = liveVersions(timeline)
  const count = versions.filter((keys) => keys.includes(id)).length
  if (count === 0) return 'hidden'
  if (count === versions.length) return 'omnipresent'
  return timeline.keys.includes(id) ? 'rumoured' : 'unretentive'
}

export function equalIds(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((id, i) => id === b[i])
}

/** A set that is served. No cache can have another version of it. */
export function settled(keys: readonly string[], sinceSeconds: number): Timeline {
  return { keys, sinceSeconds, isKnown: true, ttlSeconds: 0, older: [] }
}

/** Makes `keys`, sorted, the current version, which is not served yet. */
export function moveTo(timeline: Timeline, keys: readonly string[], nowSeconds: number): Timeline {
  const older = timeline.older.filter((version) => !equalIds(version.keys, keys))
  const last = { keys: timeline.keys, sinceSeconds: 0, untilSeconds: Infinity }
  // An unpublished version may have been published: the process may have died before it noted that.
  return { ...timeline, keys, sinceSeconds: nowSeconds, isKnown: false, older: [...older, last] }
}

/** Notes that other versions are in caches as well, until the current one is known. */
export function alsoSeen(timeline: Timeline, keys: readonly string[]): Timeline {
  const older = timeline.older.filter((version) => !equalIds(version.keys, keys))
  const seen = { keys, sinceSeconds: 0, untilSeconds: Infinity }
  return { ...timeline, isKnown: false, older: [...older, seen] }
}

/**
 * Notes that the current version is served now, with that TTL. Caches keep an old one for `waitSeconds` and the greater
 * of both TTLs.
 */
export function confirm(
  timeline: Timeline,
  ttlSeconds: number,
  waitSeconds: number,
  nowSeconds: number,
): Timeline {
  const longest = Math.max(timeline.ttlSeconds, ttlSeconds)
  if (timeline.isKnown) {
    return longest === timeline.ttlSeconds ? timeline : { ...timeline, ttlSeconds: longest }
  }
  // Times are whole seconds, rounded down.
  const untilSeconds = nowSeconds + waitSeconds + longest + 1
  const older = timeline.older.map((version) =>
    version.untilSeconds === Infinity
      ? { keys: version.keys, sinceSeconds: nowSeconds, untilSeconds }
      : version,
  )
  return { ...timeline, sinceSeconds: nowSeconds, isKnown: true, ttlSeconds, older }
}

/** Drops the versions that no cache has any more. */
export function expire(timeline: Timeline, nowSeconds: number): Timeline {
  const older = timeline.older.filter(({ untilSeconds }) => untilSeconds > nowSeconds)
  return older.length === timeline.older.length ? timeline : { ...timeline, older }
}

/**
 * If the clock is now earlier than the begin of a wait, the whole wait begins again: how much of it is over is not
 * known.
 */
export function restartWaits(timeline: Timeline, nowSeconds: number): Timeline {
  const restart = (version: OldVersion): OldVersion => {
    const { keys, sinceSeconds, untilSeconds } = version
    if (sinceSeconds <= nowSeconds) return version
    const waitSeconds = untilSeconds - sinceSeconds
    return { keys, sinceSeconds: nowSeconds, untilSeconds: nowSeconds + waitSeconds }
  }
  const older = timeline.older.map(restart)
  return older.every((one, i) => one === timeline.older[i]) ? timeline : { ...timeline, older }
}

/** Returns the same object if no timeline changes. */
export function mapTimelines(
  state: RollState,
  change: (timeline: Timeline, name: TimelineName) => Timeline,
): RollState {
  const changed = TIMELINES.map((name) => [name, change(state[name], name)] as const)
  const isSame = changed.every(([name, timeline]) => timeline === state[name])
  return isSame ? state : { ...state, ...Object.fromEntries(changed) }
}
