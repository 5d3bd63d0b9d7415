import { InputError } from '../../base/errors.ts'
import type { EventLog } from '../../base/telemetry/event-log.ts'
import { printType, RRType } from '../../dns/iana/types.ts'
import { printName, ROOT_NAME, scanName } from '../../dns/name/name.ts'
import { scanAddress } from '../../dns/text/address.ts'
import { scanGeoCode } from '../../geo/code.ts'
import { scanPoint } from '../../geo/point.ts'
import type { MapAnswer } from '../../plugin/admin-map.ts'
import type { Candidate } from '../../steering/candidate.ts'
import { sortIntoTiers } from '../../steering/tiers.ts'
import { reportTiers } from '../reported-tiers.ts'
import type { MapPreview } from './map-preview.ts'
import { emptySet, type MapSet } from './map-set.ts'

const EVENTS_MAX = 10_000

type LoggedEvent = ReturnType<EventLog['after']>[number]

/** An endpoint as an event prints it. */
interface PrintedEndpoint {
  readonly targets: readonly string[]
  readonly weight: number | undefined
  readonly percent: number | undefined
  readonly codes: readonly string[]
  readonly point: string
}

/**
 * Returns the answers after the events up to an id; one less than that of the first event means before it. Throws
 * InputError if the log does not reach there.
 */
export function openEventPreview(id: number, log: EventLog | undefined): MapPreview {
  const events = log?.after(0, EVENTS_MAX) ?? []
  const [first] = events
  // Other events, as those of acts, do not change answers.
  const changes = events.filter(({ before }) => before !== undefined)
  const event = changes.findLast((one) => one.id <= id)
  const isKnown = first !== undefined && id >= first.id - 1 && id <= events.at(-1)!.id
  if (!isKnown) {
    throw new InputError(undefined, `the event log has no event ${id}, or no longer`)
  }
  const notes = new Set<string>()
  return {
    text:
      event === undefined
        ? `before the event at ${(changes[0] ?? first).time}`
        : `after the event at ${event.time}`,
    notes,
    isPast: true,
    setOf: (_name, _type, served) => {
      const lines = linesAt(events, id, served)
      return lines === undefined ? served : pastSet(served, lines, notes)
    },
  }
}

/** Returns the endpoints of an RRset after an event; undefined = it has not changed since. */
function linesAt(
  events: readonly LoggedEvent[],
  id: number,
  { owner, type }: MapSet,
): readonly string[] | undefined {
  const [name, typeText] = [printName(owner), printType(type)]
  const own = events.filter((one) => {
    return one.name === name && one.type === typeText && one.before !== undefined
  })
  const next = own.find((one) => one.id > id)
  // Without a later change, the RRset is as it was then.
  return next?.before
}

function pastSet(served: MapSet, lines: readonly string[], notes: Set<string>): MapSet {
  const { owner, type, zones, built, answers } = served
  const name = printName(owner)
  const printed = lines.flatMap((line) => {
    const endpoint = scanLine(line)
    const isKnown = endpoint.targets.every((target) => rdataOf(type, target) !== undefined)
    if (!isKnown) notes.add(`${name}: the event does not list all endpoints`)
    return isKnown ? [endpoint] : []
  })
  if (printed.length === 0) return emptySet(owner, type, zones, undefined)
  if (built?.set?.failover !== undefined) {
    notes.add(`${name}: events do not list failover lists, so the map is without them`)
  }
  const percent = printed.find((one) => one.percent !== undefined)?.percent
  const rdata: Uint8Array[] = []
  const indexOf = new Map<readonly number[], number>()
  const candidates = printed.flatMap((endpoint, i) => {
    const rdataIndexes = endpoint.targets.map((target) => rdata.push(rdataOf(type, target)!) - 1)
    indexOf.set(rdataIndexes, i)
    return candidatesOf(endpoint, rdataIndexes, percent)
  })
  const rules = { answers }
  const { keys, tiers } = sortIntoTiers(candidates, type, rules)
  const { outcomes } = reportTiers(candidates, type, rules)
  const members = tiers.map((_, number) => {
    const groups = outcomes.get(number) ?? []
    return groups.map((group) => group.map((one) => indexOf.get(one.rdataIndexes)!))
  })
  const labels = printed.map((endpoint) => labelOf(name, endpoint, served))
  const base = { owner, type, zones, rdata, tiers, answers, keys, members, labels }
  return { ...base, policy: undefined, built: undefined }
}

function candidatesOf(
  { codes, weight, point, percent: own }: PrintedEndpoint,
  rdataIndexes: readonly number[],
  percent: number | undefined,
): Candidate[] {
  const shift = percent === undefined ? undefined : { isTarget: own !== undefined, percent }
  const common = { point: scanPoint(point), weight, ttlSeconds: 0, rdataIndexes, shift }
  const geo = codes.flatMap((text) => (text === '*' ? [] : (scanGeoCode(text) ?? [])))
  const isDefault = codes.includes('*')
  const placed = geo.map((code): Candidate => ({ ...common, code, isDefault: false }))
  if (geo.length > 0 && !isDefault) return placed
  return [...placed, { ...common, code: undefined, isDefault }]
}

/** The endpoint of now with the same targets has a name. */
function labelOf(
  name: string,
  { targets, weight }: PrintedEndpoint,
  { built, type }: MapSet,
): MapAnswer {
  const own = built?.endpoints.find(({ contribution: { endpoint } }) => {
    const texts = new Set(endpoint.rdata.map((rdata) => Buffer.from(rdata).toString('latin1')))
    return targets.every((target) =>
      texts.has(Buffer.from(rdataOf(type, target)!).toString('latin1')),
    )
  })
  const { key = '', endpoint } = own?.contribution ?? {}
  return {
    name,
    targets,
    setIdentifier: endpoint?.setIdentifier ?? '',
    record: key.includes('/') ? key : '',
    weight: weight ?? null,
    state: 'served',
    detail: '',
  }
}

/** `192.0.2.1,192.0.2.2 weight 120 shift 10 % geo NA,* at 52.52,13.40`. */
function scanLine(line: string): PrintedEndpoint {
  const words = line.split(' ')
  const take = (name: string): string => {
    if (words.length < 3 || words.at(-2) !== name) return ''
    return words.splice(-2)[1]!
  }
  const point = take('at')
  const codes = take('geo')
  let percent: number | undefined
  if (words.at(-1) === '%' && words.at(-3) === 'shift') percent = Number(words.splice(-3)[1])
  const weight = take('weight')
  return {
    targets: words.join(' ').split(','),
    weight: weight === '' ? undefined : Number(weight),
    percent,
    codes: codes === '' ? [] : codes.split(','),
    point,
  }
}

/** Undefined = not a target of that type. */
function rdataOf(type: number, target: string): Uint8Array | undefined {
  if (type === RRType.A || type === RRType.AAAA) return scanAddress(target)?.bytes
  return type === RRType.CNAME ? scanName(target, ROOT_NAME) : undefined
}
