import type { OutTargets } from '../health/drain/drained-targets.ts'
import type { DnsRecord } from '../records/dns-record.ts'
import type { DrainSetting, RecordSettings } from '../records/settings.ts'
import { printSettings } from '../records/validate/settings.ts'

/**
 * Each exported endpoint repeats the settings of its record. These bounds keep the endpoints of a record within what
 * readers and the API server accept.
 */
const FAILOVER_OCTETS_MAX = 256 * 1024
const REASON_OCTETS_MAX = 240

type Settable = Pick<DnsRecord, 'endpoints' | 'settings'>

/**
 * Returns the settings that an endpoint of the record is exported with; undefined = none. `drain`: the endpoint is
 * drained. An annotation that drains the record does not count, because it may have ended.
 */
export function exportSettings(record: Settable, drain?: DrainSetting): RecordSettings | undefined {
  const { allDown, sticky, answers, failover, shift } = record.settings ?? {}
  // In the order in which settings are read, so that equal settings have equal text.
  const settings = {
    ...(allDown === undefined ? {} : { allDown }),
    ...(sticky === undefined ? {} : { sticky }),
    ...(answers === undefined ? {} : { answers }),
    ...(failover === undefined || findUnexportedFailover(record) !== '' ? {} : { failover }),
    ...(drain === undefined ? {} : { drain }),
    ...(shift === undefined ? {} : { shift }),
  }
  return Object.keys(settings).length === 0 ? undefined : settings
}

/** Returns why the failover list of a record is not exported; '' = the list is exported, or the record has no list. */
export function findUnexportedFailover({ endpoints, settings }: Settable): string {
  const { failover } = settings ?? {}
  if (failover === undefined) return ''
  const [[, text]] = printSettings({ failover }) as [[string, string]]
  const octets = Buffer.byteLength(text) * endpoints.length
  if (octets <= FAILOVER_OCTETS_MAX) return ''
  return `its failover list is not exported to other sites: ${endpoints.length} endpoints with it would have ${octets} octets, at most ${FAILOVER_OCTETS_MAX} are exported; shorten the list or split the record`
}

/**
 * Returns the drain that takes an endpoint out of service. All targets of the endpoint are out of service. Undefined =
 * they are out because they failed. If an endpoint has several drains, the first gives the reason, and the last to end
 * gives the end.
 */
export function exportDrain(
  { down, drained }: OutTargets,
  index: number,
  targets: number,
): DrainSetting | undefined {
  const drains = [...(drained?.[index]?.values() ?? [])]
  const [first] = drains
  // Without the drains, it would be in service, or all its targets are drained, failed or not.
  const isDrained = down[index]!.size < targets || drains.length === targets
  if (first === undefined || !isDrained) return undefined
  const untilMs = Math.max(...drains.map((one) => one.untilMs ?? Infinity))
  const reason = cutReason(first.reason)
  return untilMs === Infinity ? { reason } : { reason, untilMs }
}

/** Cuts between characters. */
function cutReason(reason: string): string {
  if (Buffer.byteLength(reason) <= REASON_OCTETS_MAX) return reason
  let kept = ''
  let octets = Buffer.byteLength('…')
  for (const character of reason) {
    octets += Buffer.byteLength(character)
    if (octets > REASON_OCTETS_MAX) break
    kept += character
  }
  return `${kept}…`
}
