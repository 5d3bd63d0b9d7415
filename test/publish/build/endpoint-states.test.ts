import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { EndpointHistory } from '../../../src/base/telemetry/endpoint-history.ts'
import { AnswerEvents, type OtherSites } from '../../../src/publish/build/answer-events.ts'
import { EndpointStates } from '../../../src/publish/build/endpoint-states.ts'
import type { RecordChange } from '../../../src/records/record-source.ts'
import { FakeClock } from '../../support/setup.ts'
import { TestHealth } from '../../support/test-health.ts'
import { added, type Given, zone } from '../record-zone-stage.ts'

const ZONE = 'k.example.com.'
const OWNER = 'k.example.com.'

/** Zones with one history, as of two instances of a reload. */
class Stage {
  readonly clock = new FakeClock()
  readonly history = new EndpointHistory(this.clock)
  readonly health = new TestHealth()

  open(others?: OtherSites) {
    const states = new EndpointStates({
      place: 'block',
      downReasons: (_, address) => `${address} refuses`,
      find: () => this.history,
    })
    const events = new AnswerEvents({ source: 'records', others, find: () => undefined, states })
    const onStates = (change: Parameters<typeof events.noteStates>[1]) =>
      events.noteStates(ZONE, change)
    const { records } = zone({ onStates }, this.health)
    const load = (changes: readonly RecordChange[]) => {
      this.clock.pass(1000)
      records.apply(changes)
      events.noteLoad([])
    }
    return {
      records,
      load,
      apply: (changes: readonly RecordChange[]) => {
        this.clock.pass(1000)
        records.apply(changes)
        events.flush(() => 1)
      },
    }
  }

  /** `id`: of an endpoint of the record. */
  find(id: string, record = 'n/app') {
    const [owner] = [...this.#owners()]
    return owner === undefined ? undefined : this.history.find(owner, `1 ${record} ${id}`)
  }

  *#owners(): Generator<string> {
    const key = `block ${ZONE} \u0001k\u0007example\u0003com\u0000`
    if (this.history.has(key)) yield key
  }

  print(id: string, record?: string): string[] {
    const { before, transitions = [] } = this.find(id, record) ?? {}
    const lines = transitions.map(({ state, reason, actor }) => {
      return `${state} ${actor.kind} ${actor.name}${reason === '' ? '' : `: ${reason}`}`
    })
    return before === undefined ? [] : [before, ...lines]
  }
}

const again = ({ after }: RecordChange): RecordChange => ({ before: after, after })

const WEB: Given = {
  endpoints: [
    `${OWNER.slice(0, -1)} A 192.0.2.1 id=eu weight=5`,
    `${OWNER.slice(0, -1)} A 192.0.2.2,192.0.2.3 id=us weight=5`,
  ],
}

t.test('a timeline has states, reasons and actors', async (t) => {
  const stage = new Stage()
  const { health } = stage
  const { apply } = stage.open()
  const [first] = added(WEB)
  apply([first!])
  t.strictSame(stage.print('eu'), [], 'up from the start')
  health.put('n/app', ['192.0.2.1', '192.0.2.2'])
  apply([again(first!)])
  health.put('n/app')
  health.slowStarts.set('n/app', [{ address: '192.0.2.1', units: 1 }])
  apply([again(first!)])
  health.slowStarts.set('n/app', [{ address: '192.0.2.1', units: 9 }])
  apply([again(first!)])
  health.slowStarts.clear()
  apply([again(first!)])
  health.drains = ['address:192.0.2.1 by=ops reason=racks']
  apply([again(first!)])
  const [only] = added({ endpoints: WEB.endpoints.slice(1) })
  apply([{ before: first!.after, after: only!.after }])
  t.strictSame(stage.print('eu'), [
    'up',
    'down probe n/app: 192.0.2.1 refuses',
    'slow start probe n/app: 5 % of its weight',
    'up slow-start n/app',
    'drained drain ops: address:192.0.2.1 by ops: racks',
    'removed record n/app',
  ])
  t.strictSame(stage.print('us'), [
    'up',
    'partly down probe n/app: out: 192.0.2.2; 192.0.2.2 refuses',
    'up probe n/app',
  ])
})

t.test('the last endpoint that goes down is noted, although it is served', async (t) => {
  const stage = new Stage()
  const { apply } = stage.open()
  const [first] = added({ endpoints: ['k.example.com A 192.0.2.1 id=eu'] })
  apply([first!])
  stage.health.put('n/app', ['192.0.2.1'])
  apply([again(first!)])
  t.match(stage.print('eu'), ['up', /^down probe/])
})

t.test('a reload continues the history', async (t) => {
  const stage = new Stage()
  const one = stage.open()
  const other = { ...WEB, name: 'other', endpoints: ['k.example.com A 192.0.2.9 id=asia'] }
  const changes = added(WEB, other)
  one.load(changes)
  stage.health.put('n/app', ['192.0.2.1'])
  stage.health.put('n/other', ['192.0.2.9'])
  one.apply(changes.map(again))
  const before = [stage.print('eu'), stage.print('asia', 'n/other')]
  t.match(before, [
    ['up', /^down/],
    ['up', /^down/],
  ])
  stage.open().load(changes)
  t.strictSame([stage.print('eu'), stage.print('asia', 'n/other')], before)
  stage.health.put('n/app')
  stage.open().load(changes)
  t.strictSame(stage.print('eu'), [...before[0]!, 'up load records'], 'it recovered meanwhile')
  stage.open().load(changes.slice(1))
  t.strictSame(stage.print('eu').at(-1), 'removed load records')
})

t.test('a quorum of sites explains the change of an address of another site', async (t) => {
  const stage = new Stage()
  const hostOf = (key: string): string => (key.startsWith('peers/') ? 'k.example.com' : '')
  const { apply } = stage.open({ hostOf, decisionOf: () => '2 of 3 sites decided' })
  const [theirs] = added({ ...WEB, site: 'dublin' })
  const { key } = theirs!.after!
  apply([theirs!])
  stage.health.put(key, ['192.0.2.1'])
  apply([again(theirs!)])
  stage.health.put(key)
  apply([again(theirs!)])
  t.strictSame(stage.print('eu', key), [
    'up',
    'down quorum k.example.com: 192.0.2.1 refuses',
    'up quorum k.example.com: 2 of 3 sites decided',
  ])
})

t.test('a timeline equals the states of the endpoint after each change', async (t) => {
  const addresses = ['192.0.2.1', '192.0.2.2', '192.0.2.3']
  const some = fc.subarray(addresses)
  const change = fc.record({ down: some, drained: some, slow: some })
  let transitions = 0
  const property = fc.property(fc.array(change, { maxLength: 25 }), (changes) => {
    const stage = new Stage()
    const { apply } = stage.open()
    const [first] = added(WEB)
    apply([first!])
    const want = { eu: ['up'], us: ['up'] }
    const targets = { eu: addresses.slice(0, 1), us: addresses.slice(1) }
    for (const { down, drained, slow } of changes) {
      stage.health.put('n/app', down)
      stage.health.drains = drained.map((address) => `address:${address}`)
      stage.health.slowStarts.set(
        'n/app',
        slow.map((address) => ({ address, units: 4 })),
      )
      apply([again(first!)])
      for (const id of ['eu', 'us'] as const) {
        const own = targets[id]
        const out = own.filter((one) => down.includes(one) || drained.includes(one))
        const isDrained = own.some((one) => drained.includes(one) && !down.includes(one))
        const working = own.filter((one) => !out.includes(one))
        let state = working.every((one) => slow.includes(one)) ? 'slow start' : 'up'
        if (out.length > 0) state = 'partly down'
        if (working.length === 0) state = isDrained || isMarked(own, drained) ? 'drained' : 'down'
        if (state !== want[id].at(-1)) want[id].push(state)
      }
      for (const id of ['eu', 'us'] as const) {
        const { before = 'up', transitions: all = [] } = stage.find(id) ?? {}
        const got = [before, ...all.map(({ state }) => state)]
        // Another reason of the same state is a transition, too.
        assert.deepEqual(
          got.filter((state, i) => state !== got[i - 1]),
          want[id],
        )
      }
    }
    transitions += want.eu.length
  })
  fc.assert(property, { numRuns: 100, seed: 3 })
  t.ok(transitions > 250, `${transitions}`)
})

/** A drained target counts as drained, even if it is down as well. */
function isMarked(own: readonly string[], drained: readonly string[]): boolean {
  return own.some((one) => drained.includes(one))
}
