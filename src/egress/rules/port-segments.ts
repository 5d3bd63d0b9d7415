import { type Connection, includesPort } from './connection.ts'
import type { PortProtocol, PortRange } from './port-range.ts'
import type { EgressRule } from './rule.ts'

const PROTOCOLS: readonly PortProtocol[] = ['tcp', 'udp', 'sctp']
const PORTS = 65_536
/** The end of what networks allow. */
export const NEVER: number = Number.POSITIVE_INFINITY
/** The end of what nothing allows. */
export const ENDED: number = Number.NEGATIVE_INFINITY

/** A rule that matches the address, on some ports. */
export interface RuleMatch {
  readonly rule: EgressRule
  /** Until when: the end of its last name, or NEVER for a network. */
  readonly endMs: number
}

/** The rules of a tier that match the address, in order. */
interface TierMatches {
  readonly matches: RuleMatch[]
  readonly otherwise: 'deny' | 'pass'
}

/** The tiers of each list. */
export type ListMatches = readonly (readonly TierMatches[])[]

/** Ports of one protocol that are allowed for equally long. */
interface Segment {
  readonly protocol: PortProtocol
  readonly first: number
  readonly last: number
  /** Until when connections are allowed. */
  readonly endMs: number
}

/** Until when connections to a port are allowed by all lists. */
export function endOf(lists: ListMatches, protocol: Connection['protocol'], port: number): number {
  let endMs = NEVER
  for (const tiers of lists) endMs = Math.min(endMs, endOfList(tiers, protocol, port))
  return endMs
}

function endOfList(
  tiers: readonly TierMatches[],
  protocol: Connection['protocol'],
  port: number,
): number {
  let namesMs = ENDED
  for (const { matches, otherwise } of tiers) {
    let action: EgressRule['action'] = otherwise
    for (const { rule, endMs } of matches) {
      if (!includesPort(rule.ports, protocol, port)) continue
      if (endMs < NEVER) {
        // When its names have ended, the rules behind it decide.
        namesMs = Math.max(namesMs, endMs)
        continue
      }
      action = rule.action
      break
    }
    if (action === 'deny') return namesMs
    if (action === 'accept') return NEVER
  }
  return NEVER
}

/**
 * The segments of all ports, in order. Neighbours of one protocol differ in their end. It decides as `endOf`; a
 * policy may have thousands of rules with other ports, so it reads each of them once.
 */
export function segmentsOf(lists: ListMatches): readonly Segment[] {
  const segments: Segment[] = []
  for (const protocol of PROTOCOLS) {
    const starts = startsOf(lists, protocol)
    const ends = new Float64Array(starts.length).fill(NEVER)
    for (const tiers of lists) {
      for (const [i, endMs] of new ListEnds(starts, protocol).read(tiers).entries()) {
        ends[i] = Math.min(ends[i]!, endMs)
      }
    }
    for (const [i, first] of starts.entries()) {
      const last = (starts[i + 1] ?? PORTS) - 1
      const endMs = ends[i]!
      const before = segments.at(-1)
      if (before?.protocol === protocol && before.endMs === endMs) {
        segments[segments.length - 1] = { ...before, last }
      } else segments.push({ protocol, first, last, endMs })
    }
  }
  return segments
}

/** The ports at which other rules begin to match, sorted. The first is 0. */
function startsOf(lists: ListMatches, protocol: PortProtocol): readonly number[] {
  const starts = new Set([0])
  for (const { matches } of lists.flat()) {
    for (const { rule } of matches) {
      for (const range of rule.ports ?? []) {
        if (range.protocol !== protocol) continue
        starts.add(range.first)
        if (range.last + 1 < PORTS) starts.add(range.last + 1)
      }
    }
  }
  return [...starts].sort((a, b) => a - b)
}

const OPEN = 0
const PASSED = 1
const DECIDED = 2

/** Until when one list allows each of the segments that begin at `starts`. */
class ListEnds {
  readonly #starts: readonly number[]
  readonly #protocol: PortProtocol
  readonly #ends: Float64Array
  /** The last end of the names that matched before the list decides. */
  readonly #names: Float64Array
  /** OPEN, PASSED by this tier, or DECIDED. */
  readonly #states: Uint8Array

  constructor(starts: readonly number[], protocol: PortProtocol) {
    this.#starts = starts
    this.#protocol = protocol
    this.#ends = new Float64Array(starts.length).fill(NEVER)
    this.#names = new Float64Array(starts.length).fill(ENDED)
    this.#states = new Uint8Array(starts.length)
  }

  read(tiers: readonly TierMatches[]): Float64Array {
    for (const { matches, otherwise } of tiers) {
      for (const run of runsOf(matches)) this.#applyRun(run)
      for (let i = 0; i < this.#states.length; i++) {
        if (this.#states[i] === PASSED) this.#states[i] = OPEN
        else if (otherwise === 'deny') this.#decide(i, 'deny')
      }
    }
    return this.#ends
  }

  /** The order of rules with one action does not matter. */
  #applyRun(run: readonly RuleMatch[]): void {
    const byEnd = new Map<number, EgressRule[]>()
    for (const { rule, endMs } of run) {
      const rules = byEnd.get(endMs)
      if (rules === undefined) byEnd.set(endMs, [rule])
      else rules.push(rule)
    }
    for (const [endMs, rules] of byEnd) {
      const { action } = rules[0]!
      for (const { first, last } of this.#joinedPorts(rules)) {
        for (let i = this.#segmentAt(first); (this.#starts[i] ?? PORTS) <= last; i++) {
          if (endMs === NEVER) this.#decide(i, action)
          else if (this.#states[i] === OPEN) this.#names[i] = Math.max(this.#names[i]!, endMs)
        }
      }
    }
  }

  #decide(i: number, action: EgressRule['action']): void {
    if (this.#states[i] !== OPEN) return
    this.#states[i] = action === 'pass' ? PASSED : DECIDED
    if (action === 'deny') this.#ends[i] = this.#names[i]!
  }

  /** The ports of rules, none twice. */
  #joinedPorts(rules: readonly EgressRule[]): readonly Pick<PortRange, 'first' | 'last'>[] {
    if (rules.some(({ ports }) => ports === undefined)) return [{ first: 0, last: PORTS - 1 }]
    const ranges = rules.flatMap(({ ports = [] }) => ports)
    const own = ranges.filter(({ protocol }) => protocol === this.#protocol)
    const joined: { first: number; last: number }[] = []
    for (const { first, last } of own.sort((a, b) => a.first - b.first)) {
      const before = joined.at(-1)
      if (before !== undefined && first <= before.last) before.last = Math.max(before.last, last)
      else joined.push({ first, last })
    }
    return joined
  }

  /** The segment that begins at a port. */
  #segmentAt(port: number): number {
    let [low, high] = [0, this.#starts.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#starts[middle]! < port) low = middle + 1
      else high = middle
    }
    return low
  }
}

/** Neighbours with one action. */
function runsOf(matches: readonly RuleMatch[]): readonly (readonly RuleMatch[])[] {
  const runs: RuleMatch[][] = []
  for (const match of matches) {
    const run = runs.at(-1)
    if (run !== undefined && run[0]!.rule.action === match.rule.action) run.push(match)
    else runs.push([match])
  }
  return runs
}
