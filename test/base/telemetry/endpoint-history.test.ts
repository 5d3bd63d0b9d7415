import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import {
  EndpointHistory,
  type NotedEndpoint,
  TIMELINE_STATES,
  type TimelineState,
} from '../../../src/base/telemetry/endpoint-history.ts'
import { FakeClock } from '../../support/setup.ts'

const actor = { kind: 'probe', name: 'default/www' } as const

function noted(id: string, state: TimelineState, reason = ''): NotedEndpoint {
  const at = { zone: 'example.org.', name: 'www.example.org.', type: 'A', site: '' }
  const facts = { ...at, setIdentifier: id, targets: ['192.0.2.1'], record: 'default/www' }
  return { id, facts, state, reason, isKnown: true }
}

function statesOf(history: EndpointHistory, id: string): string[] {
  const { before = 'up', transitions = [] } = history.find('www', id) ?? {}
  return [before, ...transitions.map(({ state }) => state)]
}

t.test('a timeline is the sequence of states', async (t) => {
  const ids = ['a', 'b', 'c']
  const state = fc.constantFrom(...TIMELINE_STATES.filter((one) => one !== 'removed'))
  const step = fc.dictionary(fc.constantFrom(...ids), state)
  let long = 0
  const property = fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
    const clock = new FakeClock()
    const history = new EndpointHistory(clock)
    const want = new Map(ids.map((id) => [id, ['up']]))
    for (const states of [{}, ...steps]) {
      clock.pass(1000)
      const endpoints = Object.entries(states).map(([id, one]) => noted(id, one as TimelineState))
      history.note('www', endpoints, actor)
      for (const [id, sequence] of want) {
        const next = (states as Record<string, string>)[id] ?? 'removed'
        // Only an endpoint that was once not up has a timeline, which can end.
        const isIgnored = next === 'removed' && sequence.length === 1
        if (!isIgnored && next !== sequence.at(-1)) sequence.push(next)
      }
      for (const id of ids) assert.deepEqual(statesOf(history, id), want.get(id))
    }
    long = Math.max(long, ...[...want.values()].map(({ length }) => length))
  })
  fc.assert(property, { numRuns: 300, seed: 1 })
  t.ok(long > 20, `${long}`)
})

t.test('a later reason of a drain is a transition, one of a failure is not', async (t) => {
  const history = new EndpointHistory(new FakeClock())
  for (const state of ['drained', 'down', 'slow start'] as const) {
    for (const reason of ['one', 'two']) history.note(state, [noted('a', state, reason)], actor)
    const reasons = history.find(state, 'a')?.transitions.map((one) => one.reason)
    t.strictSame(reasons, state === 'drained' ? ['one', 'two'] : ['one'])
  }
})

t.test('the history is bounded by number', async (t) => {
  const history = new EndpointHistory(new FakeClock())
  const kept = (count: number) => {
    return Array.from({ length: count }, (_, i) => history.find(`name ${i}`, 'a')).filter(Boolean)
  }
  for (let i = 0; i < 60_000; i++) history.note(`name ${i}`, [noted('a', 'down')], actor)
  const { length } = kept(60_000)
  t.ok(length > 10_000 && length <= 50_000, `${length} endpoints`)
  t.ok(history.has('name 59999'))
  t.notOk(history.has('name 0'))
})

t.test('the history is bounded by octets', async (t) => {
  const history = new EndpointHistory(new FakeClock())
  const long = 'x'.repeat(100_000)
  for (let i = 0; i < 12_000; i++) {
    history.note(`name ${i}`, [noted(`${i}`, 'down', long)], {
      kind: 'probe',
      name: long.slice(0, 2000),
    })
  }
  let octets = 0
  for (let i = 0; i < 12_000; i++) {
    const { transitions = [] } = history.find(`name ${i}`, `${i}`) ?? {}
    for (const { reason, actor } of transitions) octets += reason.length + actor.name.length
  }
  t.ok(octets > 8 * 1024 * 1024 && octets < 16 * 1024 * 1024, `${octets} octets`)
})

t.test('an endpoint that flaps does not displace others', async (t) => {
  const history = new EndpointHistory(new FakeClock())
  history.note('other', [noted('a', 'down')], actor)
  for (let i = 0; i < 60_000; i++) {
    history.note('www', [noted('a', i % 2 === 0 ? 'down' : 'up')], actor)
  }
  t.equal(history.find('other', 'a')?.transitions.length, 1)
  const { before, transitions = [] } = history.find('www', 'a')!
  t.equal(transitions.length, 100)
  t.not(before, transitions[0]?.state)
})
