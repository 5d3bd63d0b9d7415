import { nearestName } from '../../base/nearest.ts'
import { type GeoCode, scanGeoCode } from '../../geo/code.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import {
  codeIn,
  DEFAULT,
  hasEffect,
  isKnown,
  type Names,
  namesOf,
} from '../../records/failover-names.ts'
import type { Candidate } from '../../steering/candidate.ts'
import {
  type Failover,
  type FailoverGroup,
  type FailoverList,
  servingGroup,
} from '../../steering/failover.ts'
import { CLOSED, type FailoverLine, OPEN } from '../../steering/rules.ts'
import { isForOthers } from '../../steering/tiers.ts'
import { type ReserveParts, reserveOf, settleAllDown } from './last-resort.ts'
import type { Contribution, Exhausted, Member } from './owner-set.ts'
import type { OwnerSettings } from './owner-settings.ts'

/**
 * Returns the failover lists of a set. `endpoints`: `built`, with candidates for fallback endpoints that
 * serve although they are down; the targets of these are appended to `rdata`.
 */
export function settleFailover(
  members: readonly Contribution[],
  built: readonly Member[],
  { failover: lines, allDown }: OwnerSettings,
  { rdata, seedOf }: ReserveParts,
): { endpoints: readonly Member[]; failover?: Failover; exhausted?: Exhausted } {
  const endpoints = built
  const lists = lines === undefined ? [] : resolveLists(lines, built)
  if (lists.length === 0) return { endpoints }
  const codes = lists.filter((list) => servingGroup(list) === undefined).map(printCode)
  const all = built.flatMap((member) => member.candidates)
  if (codes.length === 0) {
    return { endpoints, failover: { lists, exhausted: allDown === CLOSED ? [] : all } }
  }
  const policy = settleAllDown(members, allDown)
  const exhausted = { lists: codes, allDown: policy }
  if (policy.policy === OPEN) return { endpoints, failover: { lists, exhausted: all }, exhausted }
  if (policy.policy === CLOSED || policy.isDrained === true) {
    return { endpoints, failover: { lists, exhausted: [] }, exhausted }
  }
  const isFallback = ({ endpoint }: Member): boolean => endpoint.setIdentifier === policy.policy
  const inService = built.filter(isFallback).flatMap(({ candidates }) => candidates)
  if (inService.length > 0) {
    return { endpoints, failover: { lists, exhausted: inService }, exhausted }
  }
  const { ttlSeconds } = all[0]!
  const reserve = built.map((member, i) => {
    if (!isFallback(member)) return member
    return { ...member, candidates: reserveOf(members[i]!, ttlSeconds, { rdata, seedOf }) }
  })
  const serving = reserve.filter(isFallback).flatMap(({ candidates }) => candidates)
  return { endpoints: reserve, failover: { lists, exhausted: serving }, exhausted }
}

function printCode({ code }: FailoverList): string {
  return code?.text ?? DEFAULT
}

/**
 * Returns the failover lists of one set. A line has an effect if an endpoint has its code or is in
 * one of its entries, whether or not it is in service. The line `*` gives a list to each code of an
 * endpoint that has no line of its own, and to the clients that no code matches.
 */
function resolveLists(lines: readonly FailoverLine[], members: readonly Member[]): FailoverList[] {
  const names = namesOf(members.map(({ endpoint }) => endpoint))
  const effective = lines.filter((line) => hasEffect(line, names))
  const general = effective.find(({ code }) => code === DEFAULT)
  const byCode = new Map(effective.map((line) => [line.code, line]))
  if (general !== undefined) {
    for (const code of names.codes) if (!byCode.has(code)) byCode.set(code, general)
  }
  return [...byCode].map(([code, { entries }]) => ({
    code: code === DEFAULT ? undefined : codeOf(code),
    groups: [code, ...entries].map((name) => groupOf(name, names, members)),
  }))
}

/**
 * Lists the entries that no endpoint of an owner has, of any type; '' = there are none. A record may have
 * lists for some of its names only: other names are those without geo codes where no line has an effect.
 * `idle`: as `idleLines` returns them for the record, for which these names do not count.
 */
export function describeUnknown(
  lines: readonly FailoverLine[],
  endpoints: readonly Endpoint[],
  idle: readonly FailoverLine[],
): string {
  const names = namesOf(endpoints)
  const isLocated = [...names.codes].some((code) => code !== DEFAULT)
  const checked = lines.filter((line) => {
    return isLocated || idle.includes(line) || hasEffect(line, names)
  })
  const unknown = checked.flatMap(({ entries }) => entries.filter((name) => !isKnown(name, names)))
  const known = [...names.codes, ...names.identifiers]
  return [...new Set(unknown)].map((name) => suggest(name, known)).join(', ')
}

/** All geo codes resemble each other. */
function suggest(name: string, known: readonly string[]): string {
  const nearest = scanGeoCode(name) === undefined ? nearestName(name, known) : undefined
  const quoted = JSON.stringify(name)
  return nearest === undefined ? quoted : `${quoted} (did you mean ${nearest}?)`
}

function codeOf(text: string): GeoCode {
  return scanGeoCode(text)!
}

/** `name`: the code of a list, or an entry. */
function groupOf(name: string, names: Names, members: readonly Member[]): FailoverGroup {
  const code = codeIn(name, names)
  const isIdentifier = code === undefined && names.identifiers.has(name)
  const chosen = members.flatMap(({ endpoint, candidates }) => {
    if (isIdentifier) return endpoint.setIdentifier === name ? candidates : []
    return candidates.filter((candidate) => isOfCode(candidate, code, names))
  })
  return { name: code ?? name, isIdentifier, members: chosen }
}

function isOfCode(candidate: Candidate, code: string | undefined, { hasDefault }: Names): boolean {
  if (code !== DEFAULT) return code !== undefined && candidate.code?.text === code
  // Without a default endpoint, those without a code are for the clients that no code matches.
  return hasDefault ? isForOthers(candidate) : candidate.code === undefined
}
