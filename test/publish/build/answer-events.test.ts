import t from 'tap'
import { EventLog } from '../../../src/base/telemetry/event-log.ts'
import {
  AnswerEvents,
  type OtherSites,
  type SetChange,
} from '../../../src/publish/build/answer-events.ts'
import { NO_SETTINGS } from '../../../src/publish/build/owner-settings.ts'
import { FakeClock } from '../../support/setup.ts'
import { TestHealth } from '../../support/test-health.ts'
import { added, record, zone } from '../record-zone-stage.ts'

function stage(others?: OtherSites) {
  const log = new EventLog(new FakeClock())
  const events = new AnswerEvents({ source: 'records', others, find: () => log })
  const health = new TestHealth()
  const { records } = zone({}, health, (change) => events.note('k.example.com.', change))
  return { log, events, health, records, flush: () => events.flush(() => 7) }
}

const WEB = {
  endpoints: [
    'k.example.com A 192.0.2.1 id=eu geo=GEO-EU weight=5',
    'k.example.com A 192.0.2.2,192.0.2.3 id=us geo=US+CA default=true weight=0',
  ],
}

t.test('endpoints have their targets, weights and geo codes', async (t) => {
  const { log, events, records, flush } = stage()
  events.noteLoad([{ zone: 'k.example.com.', serial: 6, text: '0 records' }])
  records.apply(added(WEB))
  flush()
  t.match(log.after(0, 10), [
    { actor: { kind: 'load', name: 'records' }, zone: 'k.example.com.', serial: 6 },
    {
      actor: { kind: 'record', name: 'n/app' },
      zone: 'k.example.com.',
      serial: 7,
      name: 'k.example.com.',
      type: 'A',
      before: [],
      after: ['192.0.2.1 weight 5 geo GEO-EU', '192.0.2.2,192.0.2.3 weight 0 geo US,CA,*'],
    },
  ])
})

t.test('an event of a drain names the author of the drain that began or ended', async (t) => {
  const { log, records, health, flush } = stage()
  const app = record(WEB)
  records.apply([{ before: undefined, after: app }])
  flush()
  const [ops, team] = ['address:192.0.2.1 by=ops', 'address:192.0.2.2 by=team']
  for (const [drains, name] of [
    [[ops], 'ops'],
    [[ops, team], 'team'],
    [[team], 'ops'],
    [[], 'team'],
  ] as const) {
    const { lastId } = log
    health.drains = [...drains]
    records.apply([{ before: app, after: app }])
    flush()
    t.match(log.after(lastId, 10), [{ actor: { kind: 'drain', name } }], drains.join(' and '))
  }
})

t.test('the change of an address is an event of its probe', async (t) => {
  const { log, records, health, flush } = stage()
  const before = record(WEB)
  records.apply([{ before: undefined, after: before }])
  flush()
  const { lastId } = log
  health.put('n/app', ['192.0.2.1'])
  records.apply([{ before, after: before }])
  flush()
  t.match(log.after(lastId, 10), [
    {
      actor: { kind: 'probe', name: 'n/app' },
      before: [/^192\.0\.2\.1/, /./],
      after: [/^192\.0\.2\.2/],
    },
  ])
})

t.test('in slow start, a weight is the part that counts', async (t) => {
  const { log, records, health, flush } = stage()
  const two = [
    'k.example.com A 192.0.2.1 id=a weight=100',
    'k.example.com A 192.0.2.2 id=b weight=50',
  ]
  const before = record({ endpoints: two })
  records.apply([{ before: undefined, after: before }])
  health.slowStarts.set('n/app', [{ address: '192.0.2.2', units: 3 }])
  records.apply([{ before, after: before }])
  flush()
  t.match(log.after(0, 10).at(-1), {
    before: ['192.0.2.1 weight 100', '192.0.2.2 weight 50'],
    after: ['192.0.2.1 weight 100', '192.0.2.2 weight 7.5'],
  })
})

const hostOf = (key: string): string => (key === 'n/theirs' ? 'host.example.com' : '')

t.test('a record of another site is an event of its host', async (t) => {
  const { log, records, flush } = stage({ hostOf, decisionOf: () => 'something' })
  records.apply(added({ ...WEB, name: 'theirs' }))
  flush()
  t.match(log.after(0, 10).at(-1)?.actor, { kind: 'peer', name: 'host.example.com' })
})

t.test('a decision of sites about an address is an event of the quorum', async (t) => {
  const text = '192.0.2.1 is taken out: paris down'
  const decisionOf = (key: string): string => (key === 'n/theirs' ? text : '')
  const { log, records, flush, health } = stage({ hostOf, decisionOf })
  const after = added({ ...WEB, name: 'theirs' })[0]!.after!
  records.apply([{ before: undefined, after }])
  health.put('n/theirs', ['192.0.2.1'])
  records.apply([{ before: after, after }])
  flush()
  const event = log.after(0, 10).at(-1)
  t.match(event, { actor: { kind: 'quorum', name: 'host.example.com' }, text, serial: 7 })
  t.equal(event?.after?.length, 1)
})

t.test('the first changes of a batch are listed, the others counted', async (t) => {
  const { log, events, flush } = stage()
  events.noteLoad([])
  const actor = { kind: 'record', name: 'n/app' } as const
  const owner = Uint8Array.of(1, 97, 0)
  const change: SetChange = { owner, type: 1, before: undefined, after: undefined, actor }
  for (let i = 0; i < 25; i++) events.note('a.', change)
  for (let i = 0; i < 3; i++) events.note('b.', change)
  flush()
  const found = log.after(0, 100)
  t.equal(found.length, 22)
  t.match(found.slice(-2), [
    { actor: { kind: 'record', name: '' }, zone: 'a.', serial: 7, text: '5 more RRsets changed' },
    { actor: { kind: 'record', name: '' }, zone: 'b.', serial: 7, text: '3 more RRsets changed' },
  ])
  flush()
  t.equal(log.after(0, 100).length, 22, 'once')
})

t.test('nothing is stored without a log', async (t) => {
  const events = new AnswerEvents({ source: '', others: undefined, find: () => undefined })
  const { records } = zone({}, new TestHealth(), (change) => events.note('', change))
  records.apply(added(WEB))
  t.doesNotThrow(() => events.flush(() => 0))
})

t.test('an empty set is not counted, and its return is an addition', async (t) => {
  const before = record({ endpoints: ['k.example.com A 192.0.2.1'] })
  const health = new TestHealth()
  const changes: SetChange[] = []
  const settings = { ...NO_SETTINGS, allDown: 'closed' } as const
  const { records } = zone({ settings }, health, (change) => changes.push(change))
  records.apply([{ before: undefined, after: before }])
  const whole = [records.digest, records.rrsetCount, records.tally.served]
  for (const down of [['192.0.2.1'], []]) {
    health.put('n/app', down)
    records.apply([{ before, after: before }])
  }
  t.strictSame([records.digest, records.rrsetCount, records.tally.served], whole)
  t.strictSame(
    changes.slice(-2).map((change) => [change.before === undefined, change.after === undefined]),
    [
      [false, true],
      [true, false],
    ],
  )
})

t.test('the tally counts endpoints, not candidates', async (t) => {
  const { records } = stage()
  const before = record(WEB)
  records.apply([{ before: undefined, after: before }])
  t.match(records.tally, { served: 3, standby: 1 }, 'with the default NS')
  records.apply([{ before, after: undefined }])
  t.match(records.tally, { served: 1, standby: 0 })
})

/** Applies one record, then another in its place, and returns the event of the second. */
function eventOf(old: readonly string[], next: readonly string[], annotations = {}) {
  const { log, records, flush } = stage()
  const before = record({ endpoints: old })
  records.apply([{ before: undefined, after: before }])
  flush()
  records.apply([{ before, after: record({ endpoints: next, annotations }) }])
  flush()
  return log.after(0, 10).at(-1)
}

t.test('of many endpoints, those that changed are listed', async (t) => {
  const endpoint = (i: number, weight: number): string => {
    return `k.example.com A 192.0.2.${i} id=e${i} weight=${weight}`
  }
  const old = Array.from({ length: 30 }, (_, i) => endpoint(i, 5))
  const next = [...old.slice(0, 28), endpoint(28, 7)]
  const event = eventOf(old, next)
  t.equal(event?.before?.length, 21)
  t.strictSame(event?.before?.slice(0, 3), [
    '192.0.2.28 weight 5',
    '192.0.2.29 weight 5',
    '192.0.2.0 weight 5',
  ])
  t.equal(event?.before?.at(-1), 'and 10 more')
  t.strictSame(event?.after?.slice(0, 2), ['192.0.2.28 weight 7', '192.0.2.0 weight 5'])
  t.equal(event?.after?.at(-1), 'and 9 more')
  t.equal(event?.text, undefined)
})

t.test('a change that the endpoints do not show is named', async (t) => {
  const plain = 'k.example.com A 192.0.2.1 id=a weight=5'
  const ttl = eventOf([`${plain} ttl=300`], [`${plain} ttl=60`])
  t.equal(ttl?.text, 'TTL 60 s, before 300 s')
  const place = eventOf([`${plain} location=52.52,13.40`], [`${plain} location=35.68,139.69`])
  t.match(place, { before: [/at 52\.52,13\.40$/], after: [/at 35\.68,139\.69$/] })
  const sticky = eventOf([plain], [plain], { 'sextant.io/sticky': 'true' })
  t.equal(sticky?.text, 'a property that events do not list changed, such as a failover list')
})
