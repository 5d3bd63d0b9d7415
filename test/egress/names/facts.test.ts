import fc from 'fast-check'
import t from 'tap'
import {
  type AddressFact,
  countFailure,
  type FamilyOutcome,
  mergeAddress,
  mergeOutcomes,
  NO_OUTCOME,
} from '../../../src/egress/names/facts.ts'

const ms = fc.nat(8)
const fact: fc.Arbitrary<AddressFact> = fc
  .record({
    firstSeenMs: ms,
    lastSeenMs: ms,
    ttlSeconds: ms,
    chainTtlSeconds: ms,
    endMs: ms,
    chainEndMs: ms,
    server: fc.constantFrom('', 'a', 'b'),
    chain: fc.constantFrom([], ['x.'], ['x.', 'y.']),
  })
  .map((fields) => ({ family: 1, address: '192.0.2.1', ...fields }))

const outcome: fc.Arbitrary<FamilyOutcome> = fc
  .record({
    answeredMs: fc.oneof(ms, fc.constant(Number.NEGATIVE_INFINITY)),
    failures: fc.option(
      fc.record({
        count: fc.integer({ min: 1, max: 4 }),
        firstMs: ms,
        lastMs: ms,
        gapMs: ms,
        reason: fc.constantFrom('NXDOMAIN', 'SERVFAIL'),
      }),
      { nil: undefined },
    ),
  })
  // A merge with nothing makes it a value that can be: failures come after the answer.
  .map((outcome) => mergeOutcomes(outcome, NO_OUTCOME))

function laws<T>(t: Tap, values: fc.Arbitrary<T>, merge: (a: T, b: T) => T): void {
  fc.assert(
    fc.property(values, values, values, (a, b, c) => {
      t.strictSame(merge(a, b), merge(b, a), 'commutative')
      t.strictSame(merge(merge(a, b), c), merge(a, merge(b, c)), 'associative')
      t.strictSame(merge(a, a), a, 'idempotent')
      t.strictSame(merge(merge(a, b), b), merge(a, b), 'the same facts twice change nothing')
    }),
    { numRuns: 1000 },
  )
}

interface Tap {
  strictSame(found: unknown, wanted: unknown, message: string): boolean
}

/** Throws on a difference, because thousands of passed assertions would be printed. */
const strict: Tap = {
  strictSame(found, wanted, message) {
    if (JSON.stringify(sorted(found)) === JSON.stringify(sorted(wanted))) return true
    throw new Error(`${message}: ${JSON.stringify(found)} is not ${JSON.stringify(wanted)}`)
  },
}

function sorted(value: unknown): unknown {
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => [key, sorted(item)])
}

t.test('the merge of two facts about an address is a join', async () => {
  laws(strict, fact, mergeAddress)
})

t.test('the merge of two outcomes is a join', async () => {
  laws(strict, outcome, mergeOutcomes)
})

t.test('the newest answer, the first sight and the latest end are kept', async (t) => {
  const old = {
    family: 1 as const,
    address: '192.0.2.1',
    firstSeenMs: 0,
    lastSeenMs: 0,
    ttlSeconds: 300,
    chainTtlSeconds: 60,
    server: 'a',
    chain: [],
    endMs: 300_000,
    chainEndMs: 60_000,
  }
  const next = {
    ...old,
    firstSeenMs: 10_000,
    lastSeenMs: 10_000,
    ttlSeconds: 5,
    server: 'b',
    endMs: 15_000,
    chainEndMs: 70_000,
  }
  const want = { ...next, firstSeenMs: 0, endMs: 300_000 }
  t.strictSame(mergeAddress(old, next), want)
})

t.test('failures count from the last answer', async (t) => {
  let outcome: FamilyOutcome = { answeredMs: 100, failures: undefined }
  outcome = countFailure(outcome, 90, 'SERVFAIL')
  t.equal(outcome.failures, undefined, 'a failure before the answer')
  for (const atMs of [110, 120, 150]) outcome = countFailure(outcome, atMs, 'SERVFAIL')
  outcome = countFailure(outcome, 140, 'NXDOMAIN')
  const failures = { count: 4, firstMs: 110, lastMs: 150, gapMs: 30, reason: 'SERVFAIL' }
  t.strictSame(outcome.failures, failures)
  const answered = mergeOutcomes(outcome, { answeredMs: 160, failures: undefined })
  t.strictSame(answered, { answeredMs: 160, failures: undefined })
})
