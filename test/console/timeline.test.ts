import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import {
  DAY_MS,
  describeSpans,
  placeOf,
  spansOf,
} from '../../src/api/console/client/views/health/timeline.ts'

const NOW_MS = Date.parse('2026-01-02T00:00:00Z')
const STATES = ['down', 'drained', 'partly down', 'slow start', 'shifted', 'up', 'removed'] as const

function transition(state: (typeof STATES)[number], atMs: number) {
  const actor = { kind: 'probe', name: 'default/www' } as const
  return { time: new Date(atMs).toISOString(), state, reason: `is ${state}`, actor }
}

t.test('spans are the states between the transitions, and cover the day', async () => {
  const times = fc.array(fc.integer({ min: -DAY_MS / 2, max: DAY_MS - 1 }), { maxLength: 20 })
  const property = fc.property(
    times,
    fc.infiniteStream(fc.constantFrom(...STATES)),
    (ages, states) => {
      const noteMs = NOW_MS - DAY_MS / 2
      const sorted = [...ages].map((age) => NOW_MS - Math.abs(age) / 2).sort((a, b) => a - b)
      const transitions = sorted.map((atMs) => transition(states.next().value!, atMs))
      const state = transitions.at(-1)?.state ?? 'up'
      const spans = spansOf({ state, before: 'up', transitions }, noteMs, NOW_MS)
      assert.equal(spans[0]?.fromMs, NOW_MS - DAY_MS)
      assert.equal(spans[0]?.state, 'unknown')
      assert.equal(spans.at(-1)?.toMs, NOW_MS)
      assert.equal(spans.at(-1)?.state, state)
      for (const [i, span] of spans.entries()) {
        if (i > 0) assert.equal(span.fromMs, spans[i - 1]?.toMs)
        const { x, width } = placeOf(span, NOW_MS)
        assert.ok(x >= 0 && width > 0 && x + width <= 100.01, `${x} ${width}`)
      }
      // Transitions of the same millisecond are one span.
      const distinct = transitions.filter(({ time }, i) => time !== transitions[i + 1]?.time)
      const want = distinct.map((one) => one.state)
      assert.deepEqual(
        spans
          .slice(-want.length || spans.length)
          .map((one) => one.state)
          .slice(0, want.length),
        want,
      )
    },
  )
  fc.assert(property, { numRuns: 300, seed: 2 })
})

t.test('the state before the first transition', async (t) => {
  const at = NOW_MS - 3600_000
  const noteMs = NOW_MS - DAY_MS
  const of = (before: '' | 'down', ages: readonly number[]) => {
    const transitions = ages.map((ms) => transition('up', ms))
    return spansOf({ state: 'up', before, transitions }, noteMs, NOW_MS).map(({ state }) => state)
  }
  t.strictSame(of('', []), ['up'], 'nothing changed')
  t.strictSame(of('', [at]), ['unknown', 'up'])
  t.strictSame(of('down', [at]), ['down', 'up'])
  t.strictSame(of('down', [noteMs - 1]), ['up'], 'a transition before the day')
})

t.test('a picture in words', async (t) => {
  const transitions = [transition('down', NOW_MS - 3000), transition('up', NOW_MS - 1000)]
  const spans = spansOf({ state: 'up', before: 'up', transitions }, NOW_MS - 4000, NOW_MS)
  const text = describeSpans(spans.slice(1), (seconds) => `${seconds} s`)
  t.equal(text, 'up 2 s, down 2 s')
})
