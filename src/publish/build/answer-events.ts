import type { AnswerChange, EventActor, EventLog } from '../../base/telemetry/event-log.ts'
import { printType } from '../../dns/iana/types.ts'
import { printName } from '../../dns/name/name.ts'
import { slowStartWeight } from '../../health/slow-start-units.ts'
import { printTarget } from '../../records/print-endpoint.ts'
import type { EndpointStates, OwnerStates } from './endpoint-states.ts'
import type { Member, OwnerSet } from './owner-set.ts'

/** The change of one RRset, and what caused it. */
export interface SetChange {
  readonly owner: Uint8Array
  readonly type: number
  /** Undefined = the RRset did not exist before the change, or does not exist after it. */
  readonly before: OwnerSet | undefined
  readonly after: OwnerSet | undefined
  readonly actor: EventActor
}

/** RRsets of one batch that get an event each. */
const LOGGED_MAX = 20
/** Endpoints of an RRset that an event lists. */
const ENDPOINTS_MAX = 20

const NOT_LISTED = 'a property that events do not list changed, such as a failover list'

interface AnswerEventsOptions {
  /** Where records are read from. */
  readonly source: string
  /** Records of other sites; undefined = there are no peers. */
  readonly others: OtherSites | undefined
  /** Returns the log while events are wanted. */
  readonly find: () => EventLog | undefined
  /** Missing = states of endpoints are not noted. */
  readonly states?: EndpointStates | undefined
}

export interface OtherSites {
  /** Returns the host of a record of another site by its key; '' = it is not such a record. */
  readonly hostOf: (recordKey: string) => string
  /** Returns the decisions of sites that last changed the health of addresses of the host; '' = none did. */
  readonly decisionOf: (recordKey: string) => string
}

interface ZoneChange extends SetChange {
  readonly zone: string
}

/** The changes of one batch, until it is published. */
export class AnswerEvents {
  readonly #options: AnswerEventsOptions
  #changes: ZoneChange[] = []
  /** By zone: changes above LOGGED_MAX, and what caused the first one. */
  #more = new Map<string, { actor: EventActor; count: number }>()

  constructor(options: AnswerEventsOptions) {
    this.#options = options
  }

  note(zone: string, change: SetChange): void {
    if (this.#options.find() === undefined) return
    if (this.#changes.length < LOGGED_MAX) {
      this.#changes.push({ ...change, zone })
      return
    }
    const known = this.#more.get(zone)
    if (known === undefined) this.#more.set(zone, { actor: change.actor, count: 1 })
    else known.count++
  }

  noteStates(zone: string, change: OwnerStates): void {
    this.#options.states?.note(zone, change)
  }

  /** Notes the states of endpoints, which may have changed without a change of answers. */
  flushStates(): void {
    this.#options.states?.flush((actor) => this.#causeOf(actor))
  }

  /** Drops the changes so far: the zones are loaded, which is one event per zone. */
  noteLoad(zones: readonly { zone: string; serial: number; text: string }[]): void {
    this.#take()
    const { source, find } = this.#options
    const actor = { kind: 'load', name: source } as const
    this.#options.states?.flush(() => ({ actor }))
    for (const zone of zones) find()?.add({ actor, ...zone })
  }

  /** Logs the changes, which are published with these serials. */
  flush(serialOf: (zone: string) => number): void {
    this.flushStates()
    if (this.#changes.length === 0) return
    const { changes, more } = this.#take()
    const log = this.#options.find()
    if (log === undefined) return
    for (const { actor, zone, owner, type, before, after } of changes) {
      const name = printName(owner)
      const set = { zone, serial: serialOf(zone), name, type: printType(type) }
      const difference = printDifference(before, after)
      const { text, ...cause } = this.#causeOf(actor)
      const texts = [text, difference.text].filter((one) => one !== undefined)
      log.add({
        ...cause,
        ...set,
        ...difference.endpoints,
        ...(texts.length === 0 ? {} : { text: texts.join('; ') }),
      })
    }
    for (const [zone, { actor, count }] of more) {
      const text = `${count} more RRsets changed`
      log.add({ actor: { kind: actor.kind, name: '' }, zone, serial: serialOf(zone), text })
    }
  }

  /** Other sites, or decisions about the health of their addresses, change the records of these sites. */
  #causeOf(actor: EventActor): Pick<AnswerChange, 'actor' | 'text'> {
    const { others } = this.#options
    const host = others?.hostOf(actor.name) ?? ''
    if (host === '' || (actor.kind !== 'record' && actor.kind !== 'probe')) return { actor }
    const text = actor.kind === 'probe' ? (others?.decisionOf(actor.name) ?? '') : ''
    if (text === '') return { actor: { kind: 'peer', name: host } }
    return { actor: { kind: 'quorum', name: host }, text }
  }

  #take() {
    const [changes, more] = [this.#changes, this.#more]
    this.#changes = []
    this.#more = new Map()
    return { changes, more }
  }
}

interface Difference {
  readonly endpoints: Required<Pick<AnswerChange, 'before' | 'after'>>
  /** What the endpoints do not show; undefined = nothing. */
  readonly text: string | undefined
}

function printDifference(before: OwnerSet | undefined, after: OwnerSet | undefined): Difference {
  const [old, next] = [printEndpoints(before), printEndpoints(after)]
  const endpoints = { before: shorten(old, next), after: shorten(next, old) }
  if (before === undefined || after === undefined) return { endpoints, text: undefined }
  if (before.ttlSeconds !== after.ttlSeconds) {
    const text = `TTL ${after.ttlSeconds} s, before ${before.ttlSeconds} s`
    return { endpoints, text }
  }
  const isListed = old.length !== next.length || old.some((line, i) => line !== next[i])
  return { endpoints, text: isListed ? undefined : NOT_LISTED }
}

/** Returns a line per endpoint: `192.0.2.1,192.0.2.2 weight 120 geo NA,US`. */
function printEndpoints(set: OwnerSet | undefined): string[] {
  if (set === undefined) return []
  const served = set.endpoints.filter(({ candidates }) => candidates.length > 0)
  return served.map((member) => printMember(set, member))
}

/** Returns at most `ENDPOINTS_MAX` lines and the number of others. If some are left out, changed lines come first. */
function shorten(lines: readonly string[], others: readonly string[]): readonly string[] {
  if (lines.length <= ENDPOINTS_MAX) return lines
  const known = new Set(others)
  const isChanged = (line: string): boolean => !known.has(line)
  const ordered = [...lines.filter(isChanged), ...lines.filter((line) => !isChanged(line))]
  return [...ordered.slice(0, ENDPOINTS_MAX), `and ${lines.length - ENDPOINTS_MAX} more`]
}

function printMember({ type, rdata }: OwnerSet, { endpoint, candidates, units }: Member): string {
  const { rdataIndexes, weight, shift, point } = candidates[0]!
  const targets = rdataIndexes.slice(0, ENDPOINTS_MAX).map((i) => printTarget(type, rdata[i]!))
  const parts = [targets.join()]
  if (weight !== undefined) parts.push(`weight ${slowStartWeight(endpoint.weight, units)}`)
  if (shift?.isTarget === true) parts.push(`shift ${shift.percent} %`)
  const codes = candidates.flatMap(({ code, isDefault }) => {
    return [...(code === undefined ? [] : [code.text]), ...(isDefault ? ['*'] : [])]
  })
  if (codes.length > 0) parts.push(`geo ${codes.join()}`)
  if (point !== undefined) parts.push(`at ${point.text}`)
  return parts.join(' ')
}
