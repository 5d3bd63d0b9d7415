import type { Clock } from '../../base/clock.ts'
import { recallMoment, writeMoment } from '../../base/moment.ts'
import { scanName } from '../../dns/name/name.ts'
import { type AddressFamily, printAddress, scanAddress } from '../../dns/text/address.ts'
import type { StateKind } from '../../persist/state-file.ts'
import {
  type AddressFact,
  type FailureFact,
  type FamilyOutcome,
  mergeOutcomes,
  type NameFacts,
  NO_OUTCOME,
  type Outcomes,
} from './facts.ts'
import { TTL_SECONDS_MAX } from './observation.ts'

const NONE = '-'
const SPAN_MS_MAX = TTL_SECONDS_MAX * 1000

/** Facts of an earlier process, with the wire form of the name. */
export interface StoredName {
  readonly facts: NameFacts
  readonly wire: Uint8Array
}

/**
 * A file with the learned addresses of names:
 *
 *     name NAME
 *     asked FAMILY ANSWERED [COUNT FIRST LAST GAP REASON]
 *     address ADDRESS FIRST LAST TTL CHAIN_TTL END CHAIN_END SERVER TARGET...
 *
 * FAMILY is 4 or 6. Moments are milliseconds since the epoch; GAP is in milliseconds, and so are END
 * and CHAIN_END, counted from LAST. `-` stands for a missing value; spaces in REASON are `_`. The
 * monotonic times of a process are computed from these moments once, when it reads the file.
 */
export function storedNames(clock: Clock): StateKind<readonly StoredName[]> {
  return {
    what: 'names',
    version: '1',
    octetsMax: 256 * 1024 * 1024,
    mode: 0o600,
    gapMs: 10_000,
    isLarge: true,
    contents: 'learned addresses',
    loss: 'each name is resolved again',
    scan: (lines) => scanNames(lines, clock),
  }
}

/** Yields the lines of such a file, one name at a time. */
export function* printNames(names: Iterable<NameFacts>, clock: Clock): Generator<string> {
  for (const facts of names) yield printFacts(facts, clock)
}

function printFacts({ name, addresses, outcomes }: NameFacts, clock: Clock): string {
  let text = `name ${name}\n`
  for (const family of [1, 2] as const) {
    const { answeredMs, failures } = outcomes[family]
    if (answeredMs === Number.NEGATIVE_INFINITY && failures === undefined) continue
    const answered =
      answeredMs === Number.NEGATIVE_INFINITY ? NONE : String(printMoment(answeredMs, clock))
    text += `asked ${family === 1 ? 4 : 6} ${answered}`
    if (failures !== undefined) {
      const { count, firstMs, lastMs, gapMs, reason } = failures
      const [first, last] = [printMoment(firstMs, clock), printMoment(lastMs, clock)]
      const word = reason.replaceAll(' ', '_').replaceAll('\n', '_')
      text += ` ${count} ${first} ${last} ${Math.round(gapMs)} ${word || NONE}`
    }
    text += '\n'
  }
  for (const fact of addresses.values()) {
    const { lastSeenMs, server, chain } = fact
    const moments = `${printMoment(fact.firstSeenMs, clock)} ${printMoment(lastSeenMs, clock)}`
    const ends = [fact.endMs, fact.chainEndMs].map((ms) => Math.round(ms - lastSeenMs)).join(' ')
    const ttls = `${fact.ttlSeconds} ${fact.chainTtlSeconds}`
    const words = [fact.address, moments, ttls, ends, server || NONE, ...chain]
    text += `address ${words.join(' ')}\n`
  }
  return text
}

function printMoment(ms: number, clock: Clock): number {
  return Math.max(0, writeMoment(ms, clock))
}

interface Draft {
  readonly facts: {
    readonly name: string
    readonly addresses: Map<string, AddressFact>
    outcomes: Outcomes
  }
  readonly wire: Uint8Array
}

/** Returns undefined if a line has another format. */
function scanNames(lines: readonly string[], clock: Clock): readonly StoredName[] | undefined {
  const names: Draft[] = []
  for (const line of lines) {
    const [kind = '', ...words] = line.split(' ')
    const draft = names.at(-1)
    if (kind === 'name') {
      const [name = ''] = words
      const wire = scanName(name)
      if (wire === undefined) return undefined
      const outcomes = { 1: NO_OUTCOME, 2: NO_OUTCOME }
      names.push({ facts: { name, addresses: new Map(), outcomes }, wire })
    } else if (draft !== undefined && kind === 'asked') {
      const family: AddressFamily = words[0] === '4' ? 1 : 2
      const outcome = scanOutcome(words, clock)
      if (outcome === undefined) return undefined
      draft.facts.outcomes = { ...draft.facts.outcomes, [family]: outcome }
    } else if (draft !== undefined && kind === 'address') {
      const fact = scanFact(words, clock)
      if (fact === undefined) return undefined
      draft.facts.addresses.set(fact.address, fact)
    } else return undefined
  }
  return names
}

function scanOutcome(words: readonly string[], clock: Clock): FamilyOutcome | undefined {
  const [family, answered = '', ...rest] = words
  if (family !== '4' && family !== '6') return undefined
  const answeredMs = answered === NONE ? Number.NEGATIVE_INFINITY : scanMoment(answered, clock)
  if (answeredMs === undefined) return undefined
  if (rest.length === 0) return { answeredMs, failures: undefined }
  const failures = scanFailures(rest, clock)
  if (failures === undefined) return undefined
  // Restores that failures come after the answer, whatever the clock did.
  return mergeOutcomes(
    { answeredMs, failures: undefined },
    { answeredMs: Number.NEGATIVE_INFINITY, failures },
  )
}

function scanFailures(words: readonly string[], clock: Clock): FailureFact | undefined {
  const [count, gapMs] = [scanNumber(words[0]), scanNumber(words[3])]
  const [firstMs, lastMs] = [scanMoment(words[1], clock), scanMoment(words[2], clock)]
  const reason = words[4]
  if (count === undefined || gapMs === undefined || reason === undefined) return undefined
  if (firstMs === undefined || lastMs === undefined || words.length !== 5) return undefined
  const text = reason === NONE ? '' : reason.replaceAll('_', ' ')
  return { count, firstMs: Math.min(firstMs, lastMs), lastMs, gapMs, reason: text }
}

function scanFact(words: readonly string[], clock: Clock): AddressFact | undefined {
  const [text = '', first, last, ttl, chainTtl, end, chainEnd, server, ...chain] = words
  const address = scanAddress(text)
  const [firstSeenMs, lastSeenMs] = [scanMoment(first, clock), scanMoment(last, clock)]
  const ttlSeconds = scanNumber(ttl)
  const chainTtlSeconds = scanNumber(chainTtl)
  const spanMs = scanNumber(end)
  const chainSpanMs = scanNumber(chainEnd)
  if (address === undefined || server === undefined) return undefined
  if (firstSeenMs === undefined || lastSeenMs === undefined) return undefined
  if (ttlSeconds === undefined || chainTtlSeconds === undefined) return undefined
  if (spanMs === undefined || chainSpanMs === undefined) return undefined
  return {
    family: address.family,
    address: printAddress(address.bytes, address.family),
    firstSeenMs: Math.min(firstSeenMs, lastSeenMs),
    lastSeenMs,
    ttlSeconds: Math.min(ttlSeconds, TTL_SECONDS_MAX),
    chainTtlSeconds: Math.min(chainTtlSeconds, TTL_SECONDS_MAX),
    server: server === NONE ? '' : server,
    chain,
    endMs: lastSeenMs + Math.min(spanMs, SPAN_MS_MAX),
    chainEndMs: lastSeenMs + Math.min(chainSpanMs, SPAN_MS_MAX),
  }
}

function scanMoment(text: string | undefined, clock: Clock): number | undefined {
  const timeMs = scanNumber(text)
  return timeMs === undefined ? undefined : recallMoment(timeMs, clock).seenMs
}

/** A decimal number of at most 15 digits. */
function scanNumber(text = ''): number | undefined {
  if (text === '' || text.length > 15) return undefined
  for (const digit of text) if (digit < '0' || digit > '9') return undefined
  return Number(text)
}
