import type { Clock } from '../../base/clock.ts'
import { collectProblems } from '../../base/telemetry/problems.ts'
import type { PluginNote, ServerStatus, StatusPart } from '../../base/telemetry/status.ts'
import { VERSION } from '../../base/version.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import { type Losses, SERVER_COUNTERS } from '../../plugin/server-counters.ts'

/** When the process was started, in milliseconds since the epoch. */
const STARTED_MS = performance.timeOrigin
/** Shifts that a status lists. */
const SHIFTS_MAX = 1000

/** Least time between two statuses, as a multiple of the time that the first one took. */
const PAUSE_RATIO = 10

/**
 * Returns what composes the status. With many endpoints out of service this holds the thread, and each console asks
 * for it all the time: until the pause is over, the last status is returned.
 */
export function statusSource(clock: Clock, compose: () => ServerStatus): () => ServerStatus {
  let last: ServerStatus | undefined
  let nextMs = 0
  return () => {
    const startMs = clock.monotonic()
    if (last !== undefined && startMs < nextMs) return last
    last = compose()
    const endMs = clock.monotonic()
    nextMs = endMs + (endMs - startMs) * PAUSE_RATIO
    return last
  }
}

/** Returns the status of the server. `loadedMs`: when the Corefile was loaded. */
export function composeStatus(c: SetupContext, loadedMs: number): ServerStatus {
  const { corefile, clock, reports } = c
  const serverCounters = c.shared.find(SERVER_COUNTERS)!
  const parts = reports.status.map((report) => report())
  const notReady: PluginNote[] = []
  const notes: PluginNote[] = []
  for (const { name, check, note } of reports.readiness) {
    const reason = check()
    if (reason !== '') notReady.push({ plugin: name, text: reason })
    const text = note?.() ?? ''
    if (text !== '') notes.push({ plugin: name, text })
  }
  const problems = collectProblems(reports.problems)
  return {
    version: VERSION,
    pid: process.pid,
    started: printTime(STARTED_MS),
    now: printTime(clock.now()),
    threads: serverCounters.threads,
    corefile: { path: corefile.path, loaded: printTime(loadedMs) },
    notReady,
    notes,
    problems: problems.listed,
    problemCounts: Object.fromEntries(problems.counts),
    ...join(parts),
    drops: dropsOf(serverCounters.losses),
  }
}

/** Parts that blocks share are listed once. */
function join(
  parts: readonly StatusPart[],
): Required<StatusPart> & Pick<ServerStatus, 'shiftsOmitted'> {
  const shifts = distinct(parts.flatMap(({ shifts = [] }) => shifts))
  return {
    zones: parts.flatMap(({ zones = [] }) => zones),
    signing: parts.flatMap(({ signing = [] }) => signing),
    keys: parts.flatMap(({ keys = [] }) => keys),
    endpoints: parts.flatMap(({ endpoints = [] }) => endpoints),
    endpointsOmitted: parts.reduce((sum, { endpointsOmitted = 0 }) => sum + endpointsOmitted, 0),
    peers: distinct(parts.flatMap(({ peers = [] }) => peers)),
    quorums: parts.flatMap(({ quorums = [] }) => quorums),
    shifts: shifts.slice(0, SHIFTS_MAX),
    shiftsOmitted: Math.max(0, shifts.length - SHIFTS_MAX),
    databases: distinct(parts.flatMap(({ databases = [] }) => databases)),
    snapshots: distinct(parts.flatMap(({ snapshots = [] }) => snapshots)),
  }
}

function distinct<T>(all: readonly T[]): T[] {
  return [...new Map(all.map((one) => [JSON.stringify(one), one])).values()]
}

function dropsOf(losses: Losses): Record<string, number> {
  return Object.fromEntries(Object.entries(losses).filter(([, count]) => count > 0))
}

function printTime(ms: number): string {
  return new Date(ms).toISOString()
}
