import { keyName, tagText } from './key-text.ts'
import type { RollKey, RollState, TimelineName } from './roll-state.ts'
import { isSafe } from './safety.ts'
import { equalIds, liveVersions, moveTo } from './timeline.ts'

interface Moved {
  readonly state: RollState
  readonly steps: readonly string[]
}

/** Each round changes one set; a roll has fewer changes at once. */
const ROUNDS_MAX = 20

/**
 * Changes the DNSKEY RRset, the keys that sign the zone, and the DS records that the parent should have, as far as
 * caches allow now. The order of a roll follows from what is safe:
 *
 * - ZSK: pre-publish (RFC 7583 section 3.2.1).
 * - KSK: the DNSKEY, then both DS records in the parent (double-DS), then the new DS alone, then the new DNSKEY alone.
 *   The DNSKEY comes first, because registries refuse a DS that no DNSKEY matches.
 * - CSK: both at the same time.
 * - Algorithm: signatures, DNSKEY, DS, and back in the opposite order (RFC 6781 section 4.1.4, conservative approach).
 * - First keys: DNSKEY and signatures, then the DS.
 */
export function move(start: RollState, nowSeconds: number): Moved {
  let state = start
  const steps: string[] = []
  for (let round = 0; round < ROUNDS_MAX; round++) {
    const next = nextMove(state)
    if (next === undefined) break
    steps.push(...printMove(state, next))
    const { name, keys } = next
    const askedSeconds = name === 'ds' ? Infinity : state.askedSeconds
    state = { ...state, askedSeconds, [name]: moveTo(state[name], keys, nowSeconds) }
  }
  return { state, steps }
}

interface Move {
  readonly name: TimelineName
  readonly keys: readonly string[]
}

function nextMove(state: RollState): Move | undefined {
  const candidates: readonly Move[] = [
    ...signerCandidates(state).map((keys) => ({ name: 'signers', keys }) as const),
    ...dsCandidates(state).map((keys) => ({ name: 'ds', keys }) as const),
    ...dnskeyCandidates(state).map((keys) => ({ name: 'dnskey', keys }) as const),
  ]
  // The candidates of a set are in the order of preference: the first safe one counts, even if it is no change.
  const decided = new Set<TimelineName>()
  for (const { name, keys } of candidates) {
    if (decided.has(name)) continue
    const sorted = [...new Set(keys)].sort()
    if (!isSafe(state, name, sorted)) continue
    if (!equalIds(sorted, state[name].keys)) return { name, keys: sorted }
    decided.add(name)
  }
  return undefined
}

function idsOf(keys: readonly RollKey[]): readonly string[] {
  return keys.map(({ id }) => id)
}

/** One signature per algorithm and RRset, except while an algorithm changes. */
function signerCandidates({ keys, signers }: RollState): readonly (readonly string[])[] {
  const wanted = keys.filter(({ isWanted, role }) => isWanted && role !== 'ksk')
  const current = keys.filter(({ id }) => signers.keys.includes(id))
  const leaving = current.filter((key) => !hasAlgorithm(wanted, key))
  const added = wanted.filter((key) => !hasAlgorithm(current, key))
  return [idsOf(wanted), idsOf([...wanted, ...leaving]), idsOf([...current, ...added])]
}

function hasAlgorithm(keys: readonly RollKey[], { algorithm }: RollKey): boolean {
  return keys.some((key) => key.algorithm === algorithm)
}

/** A key whose DS the parent, or a cache, has stays in the DNSKEY RRset. */
function dnskeyCandidates({ keys, dnskey, ds }: RollState): readonly (readonly string[])[] {
  const wanted = idsOf(keys.filter(({ isWanted }) => isWanted))
  const trusted = liveVersions(ds).flat()
  const needed = [...wanted, ...dnskey.keys.filter((id) => trusted.includes(id))]
  return [needed, [...wanted, ...dnskey.keys]]
}

function dsCandidates(state: RollState): readonly (readonly string[])[] {
  const { keys, dnskey, ds, isSigned } = state
  if (!isSigned) return [[]]
  const wanted = idsOf(keys.filter(({ isWanted, role }) => isWanted && role !== 'zsk'))
  const isEverywhere = liveVersions(dnskey).every((live) => includesAll(live, wanted))
  if (!isEverywhere) return []
  const isTrusted = liveVersions(ds).every((live) => includesAll(live, wanted))
  return isTrusted || ds.keys.length === 0 ? [wanted] : [[...ds.keys, ...wanted]]
}

function includesAll(ids: readonly string[], wanted: readonly string[]): boolean {
  return wanted.every((id) => ids.includes(id))
}

function printMove(state: RollState, { name, keys }: Move): readonly string[] {
  const before = state[name].keys
  const added = keys.filter((id) => !before.includes(id))
  const removed = before.filter((id) => !keys.includes(id))
  const list = (ids: readonly string[]): string => ids.map((id) => nameOf(state, id)).join(' and ')
  if (name === 'signers') {
    if (added.length === 0) return [`stop signing with ${list(removed)}`]
    const instead = removed.length === 0 ? '' : ` instead of ${list(removed)}`
    return [`sign with ${list(added)}${instead}`]
  }
  const [toAdd, toRemove] =
    name === 'dnskey'
      ? ['publish the DNSKEY of', 'remove the DNSKEY of']
      : ['ask the parent for the DS of', 'ask the parent to remove the DS of']
  const steps: string[] = []
  if (added.length > 0) steps.push(`${toAdd} ${list(added)}`)
  if (removed.length > 0) steps.push(`${toRemove} ${list(removed)}`)
  return steps
}

function nameOf({ keys }: RollState, id: string): string {
  const key = keys.find((one) => one.id === id)
  return key === undefined ? tagText(id) : keyName(key)
}
