import { scanTime } from '../../base/rfc3339.ts'
import type { FleetPeer, FleetReport, FleetZone } from '../../plugin/admin-fleet.ts'

/** Longer texts are cut: a page shows those of many servers. */
const TEXT_MAX = 500
const ZONES_MAX = 200
const PEERS_MAX = 100
const DRAINS_MAX = 20
const REASONS_MAX = 20
const KINDS_MAX = 100

type Members = Readonly<Record<string, unknown>>

/**
 * Returns the summary of the replies of a server; undefined = `status` is not that of an admin API. Members that are
 * missing or have another type are unknown: the server may be of another version. `drains`, `traffic`: undefined =
 * not known.
 */
export function readFleetReport(
  status: unknown,
  drains: unknown,
  traffic: unknown,
): FleetReport | undefined {
  if (!isMembers(status) || typeof status.version !== 'string') return undefined
  const zones = membersOf(status.zones).map(readZone).sort(byZone)
  const peers = membersOf(status.peers)
  const { drains: listed, drainsOmitted } = isMembers(drains) ? drains : {}
  const selectors = Array.isArray(listed) ? membersOf(listed) : undefined
  return {
    version: textOf(status.version),
    uptimeSeconds: uptimeOf(status),
    notReady: membersOf(status.notReady)
      .slice(0, REASONS_MAX)
      .map(({ plugin, text }) => `${textOf(plugin)}: ${textOf(text)}`),
    problemCounts: countsOf(status.problemCounts),
    queriesPerSecond: rateOf(traffic),
    zones: zones.slice(0, ZONES_MAX),
    zonesOmitted: Math.max(0, zones.length - ZONES_MAX),
    peers: peers.slice(0, PEERS_MAX).map(readPeer),
    peersOmitted: Math.max(0, peers.length - PEERS_MAX),
    drains: selectors?.slice(0, DRAINS_MAX).map(({ selector }) => textOf(selector)) ?? null,
    drainsOmitted: Math.max(0, (selectors?.length ?? 0) - DRAINS_MAX) + countOf(drainsOmitted),
  }
}

/** Identifies the process that sent a status. */
export function processOf(status: unknown): string {
  if (!isMembers(status)) return ''
  // Members of another server: an object may not be printable.
  return `${numberOf(status.pid)} ${textOf(status.started)}`
}

/** Returns a text that is short enough for a page of many servers. */
export function textOf(value: unknown): string {
  if (typeof value !== 'string') return ''
  return value.length <= TEXT_MAX ? value : `${value.slice(0, TEXT_MAX)}…`
}

function readZone({ zone, directive, serial }: Members): FleetZone {
  const known = numberOf(serial)
  const isSerial = Number.isInteger(known) && known! < 2 ** 32
  return { zone: textOf(zone), directive: textOf(directive), serial: isSerial ? known! : null }
}

function byZone(a: FleetZone, b: FleetZone): number {
  return a.zone < b.zone ? -1 : a.zone > b.zone ? 1 : 0
}

function readPeer({ peer, site, isUp, ageSeconds }: Members): FleetPeer {
  return {
    peer: textOf(peer),
    site: textOf(site),
    isUp: isUp === true,
    ageSeconds: numberOf(ageSeconds) ?? null,
  }
}

/** Of the last step. */
function rateOf(traffic: unknown): number | null {
  const rates = isMembers(traffic) && Array.isArray(traffic.queries) ? traffic.queries : []
  return numberOf(rates.at(-1)) ?? null
}

function uptimeOf({ started, now }: Members): number | null {
  const [startedMs, nowMs] = [started, now].map((time) => scanTime(textOf(time)))
  if (startedMs === undefined || nowMs === undefined) return null
  return Math.max(0, Math.floor((nowMs - startedMs) / 1000))
}

function countsOf(value: unknown): Record<string, number> {
  const counts = Object.entries(isMembers(value) ? value : {}).slice(0, KINDS_MAX)
  return Object.fromEntries(counts.map(([kind, count]) => [textOf(kind), countOf(count)]))
}

function countOf(value: unknown): number {
  return Math.floor(numberOf(value) ?? 0)
}

/** Undefined unless it is finite and not negative. */
function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined
}

function membersOf(value: unknown): Members[] {
  return Array.isArray(value) ? value.filter(isMembers) : []
}

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
