import t, { type Test } from 'tap'
import { Random } from '../../src/base/random.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { EventRecorder } from '../../src/kube/event-recorder.ts'
import type { EventDetails, EventSubject } from '../../src/kube/event-series.ts'
import { ApiDouble, type Asked, missingBody, statusBody, turns } from '../support/api-double.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'

const SUBJECT: EventSubject = {
  apiVersion: 'kuadrant.io/v1alpha1',
  kind: 'DNSRecord',
  namespace: 'team',
  name: 'a',
  uid: 'u',
}
const DETAILS: EventDetails = {
  type: 'Warning',
  reason: 'ProviderError',
  action: 'Publish',
  note: 'no zone fits',
}

class Stage {
  readonly api = new ApiDouble()
  readonly clock = new FakeClock()
  readonly timers = new FakeTimers()
  readonly lines: string[] = []
  readonly recorder: EventRecorder
  reply = (asked: Asked): void => asked.reply(200, {})

  constructor(t: Test) {
    this.recorder = new EventRecorder({
      api: this.api,
      controller: 'kuadrant.io/sextant-operator',
      instance: 'pod-1',
      clock: this.clock,
      timers: this.timers,
      random: new Random(1),
      log: createLogger(
        '',
        (line) => this.lines.push(line),
        () => false,
      ),
    })
    t.teardown(() => this.recorder.close())
  }

  /** What was asked meanwhile; all of it is answered by `reply`. */
  async advance(milliseconds: number): Promise<Asked[]> {
    const all: Asked[] = []
    for (let at = 0; at < milliseconds; at += 500) {
      this.clock.nowMs += 500
      this.clock.monotonicMs += 500
      await this.timers.advance(500)
      await turns(2)
      for (;;) {
        const asked = this.api.asked.shift()
        if (asked === undefined) break
        all.push(asked)
        this.reply(asked)
        await turns(2)
      }
    }
    return all
  }

  written(): Promise<Asked[]> {
    return this.advance(1000)
  }
}

t.test('a report becomes an Event of the object', async (t) => {
  const stage = new Stage(t)
  stage.clock.nowMs = 1_700_000_000_000
  stage.recorder.record(SUBJECT, DETAILS)
  t.equal(stage.api.asked.length, 0, 'who records does not wait')
  const [asked, ...more] = await stage.written()
  t.equal(more.length, 0)
  t.match(asked, {
    method: 'POST',
    path: '/apis/events.k8s.io/v1/namespaces/team/events',
    contentType: 'application/json',
  })
  t.strictSame(asked?.body, {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace: 'team', name: 'a.60a24181e4000' },
    eventTime: '2023-11-14T22:13:20.000000Z',
    reportingController: 'kuadrant.io/sextant-operator',
    reportingInstance: 'pod-1',
    regarding: { ...SUBJECT },
    ...DETAILS,
  })
  t.equal(stage.timers.count, 0, 'nothing more to do')
})

t.test('an object without a namespace has its Events in the default one', async (t) => {
  const stage = new Stage(t)
  stage.recorder.record({ ...SUBJECT, namespace: '', uid: '' }, DETAILS)
  const [asked] = await stage.written()
  t.equal(asked?.path, '/apis/events.k8s.io/v1/namespaces/default/events')
  t.equal('uid' in (asked?.body.regarding ?? {}), false)
})

t.test('the same time and again is one Event with a count, written now and then', async (t) => {
  const stage = new Stage(t)
  for (let i = 0; i < 3; i++) stage.recorder.record(SUBJECT, DETAILS)
  const [first] = await stage.written()
  t.match(first?.body.series, { count: 3, lastObservedTime: /Z$/ })
  const writes: Asked[] = []
  for (let second = 0; second < 150; second++) {
    stage.recorder.record(SUBJECT, DETAILS)
    writes.push(...(await stage.written()))
  }
  t.strictSame(
    writes.map(({ method }) => method),
    ['PATCH', 'PATCH'],
  )
  t.match(writes[1], {
    path: `/apis/events.k8s.io/v1/namespaces/team/events/${first?.body.metadata.name}`,
    contentType: 'application/merge-patch+json',
  })
  t.ok(writes[1]?.body.series.count > 100)
  t.match(await stage.advance(6 * 60_000), [{ method: 'PATCH' }], 'the last ones count')
  stage.recorder.record(SUBJECT, DETAILS)
  t.match(await stage.written(), [{ method: 'POST' }], 'after a quiet time it is news again')
})

t.test('different reports are different Events', async (t) => {
  const stage = new Stage(t)
  const table: readonly (readonly [EventSubject, EventDetails])[] = [
    [SUBJECT, DETAILS],
    [{ ...SUBJECT, uid: 'another' }, DETAILS],
    [{ ...SUBJECT, name: 'b' }, DETAILS],
    [{ ...SUBJECT, namespace: 'other' }, DETAILS],
    [SUBJECT, { ...DETAILS, type: 'Normal' }],
    [SUBJECT, { ...DETAILS, reason: 'Other' }],
    [SUBJECT, { ...DETAILS, action: 'Other' }],
    [SUBJECT, { ...DETAILS, note: 'other' }],
  ]
  for (const [subject, details] of table) stage.recorder.record(subject, details)
  const written = await stage.written()
  t.equal(written.length, table.length)
  const names = new Set(
    written.map(({ body }) => `${body.metadata.namespace}/${body.metadata.name}`),
  )
  t.equal(names.size, table.length, 'no two have one name')
})

t.test('the text of a peer cannot reorder or hide a note', async (t) => {
  const stage = new Stage(t)
  stage.recorder.record(SUBJECT, { ...DETAILS, note: 'a\u202eb\u200bc\nd' })
  const [asked] = await stage.written()
  t.equal(asked?.body.note, 'a\\u202eb\\u200bc\\x0ad')
})

t.test('texts are cut to what the API takes', async (t) => {
  const stage = new Stage(t)
  const name = `${'n'.repeat(219)}-.${'n'.repeat(30)}`
  const long = {
    type: 'Normal',
    reason: 'r'.repeat(200),
    action: 'ä'.repeat(200),
    note: 'ü'.repeat(2000),
  } as const
  stage.recorder.record({ ...SUBJECT, name }, long)
  const [asked] = await stage.written()
  const octets = (text: string) => Buffer.byteLength(text)
  t.ok(octets(asked?.body.note) <= 1024)
  t.ok(octets(asked?.body.note) > 1000)
  t.match(asked?.body.note, /^ü+…$/)
  t.ok(octets(asked?.body.reason) <= 128)
  t.match(asked?.body.action, /^ä+…$/)
  t.match(asked?.body.metadata.name, /^n{219}\.[0-9a-f]+$/)
})

t.test('one object does not use up the rate of the others', async (t) => {
  const stage = new Stage(t)
  const note = (i: number) => ({ ...DETAILS, note: `${i}` })
  for (let i = 0; i < 60; i++) stage.recorder.record(SUBJECT, note(i))
  for (let i = 0; i < 10; i++) stage.recorder.record({ ...SUBJECT, name: `b${i}` }, note(0))
  t.equal((await stage.written()).length, 25 + 10)
  t.equal(stage.recorder.counts.dropped, 35)
  await stage.advance(5 * 60_000)
  for (let i = 100; i < 160; i++) stage.recorder.record(SUBJECT, note(i))
  t.equal((await stage.written()).length, 1, 'as time goes by there is room again')
})

t.test('many objects do not flood the API', async (t) => {
  const stage = new Stage(t)
  for (let i = 0; i < 5000; i++) stage.recorder.record({ ...SUBJECT, name: `b${i}` }, DETAILS)
  t.equal((await stage.written()).length, 100)
  t.equal(stage.recorder.counts.dropped, 4900)
})

t.test(
  'without the API no Events accumulate, and the last one is written afterwards',
  async (t) => {
    const stage = new Stage(t)
    stage.reply = (asked) => asked.reply(503, statusBody(503, 'away'))
    let refused = 0
    for (let i = 0; i < 5000; i++) {
      stage.recorder.record({ ...SUBJECT, name: `b${i}` }, DETAILS)
      if (i % 2 === 0) refused += (await stage.advance(500)).length
    }
    t.ok(refused > 50 && refused < 200, 'it is left in peace')
    t.match(stage.lines, [/events are not written: 503 away/])
    t.equal(stage.lines.length, 1)
    stage.reply = (asked) => asked.reply(200, {})
    const written = await stage.advance(20_000)
    t.equal(written.length, 2000, 'the bound')
    t.equal(written.at(-1)?.body.regarding.name, 'b4999')
    t.equal(stage.recorder.counts.dropped, 3000)
  },
)

t.test('Events that the API refuses are dropped', async (t) => {
  for (const status of [403, 404, 422]) {
    const stage = new Stage(t)
    stage.recorder.record(SUBJECT, DETAILS)
    stage.reply = (asked) => asked.reply(status, statusBody(status, 'no way'))
    t.equal((await stage.advance(60_000)).length, 1)
    t.equal(stage.recorder.counts.dropped, 1)
    t.match(stage.lines, [/no way/])
  }
})

t.test(
  'an Event that is gone is written anew, one that is there already is no fault',
  async (t) => {
    const stage = new Stage(t)
    stage.recorder.record(SUBJECT, DETAILS)
    stage.reply = (asked) => asked.reply(409, statusBody(409, 'there', 'AlreadyExists'))
    t.equal((await stage.advance(60_000)).length, 1)
    stage.recorder.record(SUBJECT, DETAILS)
    stage.reply = (asked) => {
      asked.reply(404, missingBody('events', asked.path.split('/').at(-1) ?? ''))
    }
    t.match(await stage.advance(500), [{ method: 'PATCH' }])
    stage.reply = (asked) => asked.reply(200, {})
    t.match(await stage.written(), [{ method: 'POST', body: { series: { count: 2 } } }])
    t.strictSame(stage.lines, [])
  },
)

t.test('closed, it says nothing more', async (t) => {
  const stage = new Stage(t)
  stage.recorder.record(SUBJECT, DETAILS)
  stage.reply = () => {}
  await stage.advance(1000)
  stage.recorder.close()
  stage.recorder.record({ ...SUBJECT, name: 'b' }, DETAILS)
  await turns()
  t.equal(stage.timers.count, 0)
  t.strictSame(stage.lines, [])
})
