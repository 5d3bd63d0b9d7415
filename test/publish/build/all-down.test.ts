import fc from 'fast-check'
import t from 'tap'
import { RRType } from '../../../src/dns/iana/types.ts'
import { Response } from '../../../src/dns/message/response.ts'
import { composeSoa } from '../../../src/publish/zone/soa.ts'
import type { StoredRecord } from '../../../src/records/record-source.ts'
import { VersionView } from '../../../src/xfr/journal/version-view.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { ZoneAnswerer } from '../../../src/zone/lookup/answer.ts'
import { runs } from '../../support/runs.ts'
import { question } from '../../support/zone-names.ts'
import { printView } from '../../support/zone-version.ts'
import { APEX, added, type Given, record, zone } from '../record-zone-stage.ts'

const X = 'x.k.example.com. A'
const BOTH = ['x.k.example.com A 192.0.2.1 id=a weight=5', 'x.k.example.com A 192.0.2.2 id=b']
const allDown = (policy: string) => ({ annotations: { 'sextant.io/all-down': policy } })

interface Case {
  readonly name: string
  readonly given: Given
  readonly zone?: string
  readonly down: readonly string[]
  /** Targets of `x A`; undefined = the set is missing. */
  readonly want: string | undefined
  /** What is reported. */
  readonly says?: string
}

const DOWN = ['192.0.2.1', '192.0.2.2']
const CASES: readonly Case[] = [
  {
    name: 'open ignores health',
    given: { endpoints: BOTH },
    down: DOWN,
    want: '192.0.2.1,192.0.2.2',
    says: 'open',
  },
  {
    name: 'closed serves what is up',
    given: { endpoints: BOTH, ...allDown('closed') },
    down: ['192.0.2.1'],
    want: '192.0.2.2',
  },
  {
    name: 'closed removes the set',
    given: { endpoints: BOTH, ...allDown('closed') },
    down: DOWN,
    want: undefined,
    says: 'closed',
  },
  {
    name: 'the zone closes it',
    zone: 'closed',
    given: { endpoints: BOTH },
    down: DOWN,
    want: undefined,
    says: 'closed',
  },
  {
    name: 'a record is open in a zone that closes',
    zone: 'closed',
    given: { endpoints: BOTH, ...allDown('open') },
    down: DOWN,
    want: '192.0.2.1,192.0.2.2',
    says: 'open',
  },
  {
    name: 'the fallback endpoint serves',
    given: { endpoints: BOTH, ...allDown('b') },
    down: DOWN,
    want: '192.0.2.2',
    says: 'b',
  },
  {
    name: 'a fallback that no endpoint is leaves it open',
    given: { endpoints: BOTH, ...allDown('c') },
    down: DOWN,
    want: '192.0.2.1,192.0.2.2',
    says: 'open without c',
  },
]

t.test('what serves when all endpoints are down', async (t) => {
  for (const { name, given, zone: policy, down, want, says } of CASES) {
    const settings =
      policy === undefined ? {} : { settings: { allDown: policy, sticky: undefined } }
    const { records, sink, health } = zone(settings)
    const [change] = added(given)
    records.apply([change!])
    t.strictSame([...sink.declared], [], name)
    health.put('n/app', down)
    records.apply([{ before: change!.after, after: change!.after }])
    t.equal(sink.targets(X)?.join(), want, name)
    t.strictSame([...sink.declared], want === undefined ? ['x.k.example.com.'] : [], name)
    const got = records.out.allDown.map(({ set, allDown }) => {
      const missing = allDown.missing === undefined ? '' : ` without ${allDown.missing}`
      return `${set}: ${allDown.policy}${missing}`
    })
    t.strictSame(got, says === undefined ? [] : [`${X}: ${says}`], name)
    health.put('n/app')
    records.apply([{ before: change!.after, after: change!.after }])
    t.equal(sink.targets(X)?.join(), '192.0.2.1,192.0.2.2', `${name}, then up`)
    t.strictSame([...sink.declared], [])
    t.strictSame(records.out.allDown, [])
  }
})

t.test('a drained endpoint returns only if the policy is open', async (t) => {
  const table: readonly (readonly [policy: string, want: string | undefined])[] = [
    ['open', '192.0.2.1,192.0.2.2'],
    ['closed', undefined],
    ['a', undefined],
  ]
  for (const [policy, want] of table) {
    const { records, sink, health } = zone()
    const [change] = added({ endpoints: BOTH, ...allDown(policy) })
    const apply = (down: readonly string[], drains: readonly string[]) => {
      health.put('n/app', down)
      health.drains = drains
      records.apply([{ before: change!.after, after: change!.after }])
      return sink.targets(X)?.join()
    }
    records.apply([change!])
    t.equal(apply([], ['id:a']), '192.0.2.2', `${policy}: one is left`)
    t.equal(apply(['192.0.2.2'], ['id:a']), want, `${policy}: one is drained and one is down`)
    t.equal(records.out.drainedCount, 1)
    t.equal(apply([], ['host:x.k.example.com']), want, `${policy}: both are drained`)
    t.equal(records.out.drainedCount, 2)
    t.equal(apply([], []), '192.0.2.1,192.0.2.2', `${policy}: both are back`)
  }
})

t.test('a fallback endpoint serves if it is down, but not if it is drained', async (t) => {
  const endpoints = [
    'x.k.example.com A 192.0.2.1 id=a',
    'x.k.example.com A 192.0.2.2,192.0.2.3 id=b',
    'y.k.example.com A 192.0.2.4 id=b',
  ]
  const table: readonly (readonly [drains: string, want: string | undefined, policy: object])[] = [
    ['', '192.0.2.2,192.0.2.3', { policy: 'b' }],
    ['id:a', '192.0.2.2,192.0.2.3', { policy: 'b' }],
    ['address:192.0.2.3', '192.0.2.2', { policy: 'b' }],
    ['id:b', undefined, { policy: 'b', isDrained: true }],
  ]
  for (const merged of [false, true]) {
    for (const [drains, want, policy] of table) {
      const { records, sink, health } = zone()
      const out = ['192.0.2.1', '192.0.2.2', '192.0.2.3']
      const given = merged ? ['app', 'other'] : ['app']
      for (const name of given) health.put(`n/${name}`, out)
      health.drains = drains === '' ? [] : [drains]
      records.apply(added(...given.map((name) => ({ name, endpoints, ...allDown('b') }))))
      t.equal(sink.targets(X)?.join(), want, `${drains} ${merged}`)
      t.strictSame(records.out.allDown[0]?.allDown, policy)
    }
  }
})

t.test('the fallback endpoint serves all clients alike', async (t) => {
  const endpoints = [
    'x.k.example.com A 192.0.2.1 id=a geo=GEO-EU',
    'x.k.example.com A 192.0.2.2,192.0.2.3 id=b geo=GEO-NA weight=0',
  ]
  const { records, sink, health } = zone()
  health.put('n/app', [...DOWN, '192.0.2.3'])
  records.apply(added({ endpoints, ...allDown('b') }))
  t.strictSame(sink.sets.get(X)?.candidates, [
    {
      ...{ code: undefined, isDefault: false, weight: undefined, ttlSeconds: 60, seed: undefined },
      rdataIndexes: [0, 1],
    },
  ])
})

t.test('the setting of the oldest record holds, and a contradiction is a conflict', async (t) => {
  const { records, sink, health, conflicts } = zone()
  health.put('n/a', ['192.0.2.1'])
  health.put('n/b', ['192.0.2.2'])
  const [a, b] = ['a', 'b'].map((id, i) => `x.k.example.com A 192.0.2.${i + 1} id=${id}`)
  records.apply(
    added(
      { name: 'a', created: '2026-02-02T00:00:00Z', endpoints: [a!], ...allDown('open') },
      { name: 'b', created: '2026-01-01T00:00:00Z', endpoints: [b!], ...allDown('closed') },
    ),
  )
  t.equal(sink.targets(X), undefined)
  t.strictSame(conflicts, [
    'x.k.example.com.: all-down "closed" (n/b) and "open" (n/a): the first applies; set the same in both',
  ])
})

t.test('an edit of the annotation alone reaches the answers', async (t) => {
  const { records, sink, health, ignored } = zone()
  health.put('n/app', DOWN)
  let before: StoredRecord | undefined
  const set = (annotations: Given['annotations']) => {
    const after = record({ endpoints: BOTH, ...(annotations && { annotations }) })
    records.apply([{ before, after }])
    before = after
    return [sink.targets(X)?.join(), ignored.splice(0).join()]
  }
  t.strictSame(set(undefined), ['192.0.2.1,192.0.2.2', `${X} true`])
  t.strictSame(set({ 'sextant.io/all-down': 'closed' }), [undefined, `${X} true`])
  t.strictSame(set({ 'sextant.io/all-down': 'a' }), ['192.0.2.1', `${X} true`])
  t.strictSame(set({ 'sextant.io/all-down': 'a', other: 'x' }), ['192.0.2.1', ''])
  t.strictSame(set(undefined), ['192.0.2.1,192.0.2.2', `${X} true`])
})

const NAMES = ['a', '*.a', 'b.a', '*', 'c.d', 'd'] as const
const ASKED = ['a', 'x.a', 'b.a', 'y.b.a', 'x', 'c.d', 'd', 'x.d', 'x.c.d']

/** Which names exist, by the rules of RFC 1034 and RFC 4592 for a set of names in the zone. */
function exists(asked: string, names: ReadonlySet<string>): boolean {
  const isThere = (name: string) =>
    name === '' || [...names].some((one) => one === name || one.endsWith(`.${name}`))
  if (isThere(asked)) return true
  let encloser = asked
  while (!isThere(encloser)) encloser = encloser.split('.').slice(1).join('.')
  return names.has(encloser === '' ? '*' : `*.${encloser}`)
}

t.test('a closed name exists: its answer is NODATA, never NXDOMAIN', async (t) => {
  const step = fc.record({
    name: fc.constantFrom(...NAMES),
    state: fc.constantFrom('up', 'down', 'gone', 'beside'),
  })
  const property = fc.property(fc.array(step, { minLength: 1, maxLength: 20 }), (steps) => {
    const image = new ZoneImage()
    const id = image.addZone(APEX)
    image.putRRset(id, APEX, {
      type: RRType.SOA,
      ttlSeconds: 60,
      rdata: [composeSoa(APEX, APEX, 1)],
    })
    const { records, sink, health } = zone({ settings: { allDown: 'closed', sticky: undefined } })
    const { put, remove, declare } = sink
    sink.put = (owner, set) => {
      put.call(sink, owner, set)
      image.putRRset(id, owner, { type: set.type, ttlSeconds: 60, rdata: set.rdata })
    }
    sink.remove = (owner, type) => {
      remove.call(sink, owner, type)
      image.removeRRset(id, owner, type)
    }
    sink.declare = (owner, isDeclared) => {
      declare.call(sink, owner, isDeclared)
      image.declareName(id, owner, isDeclared)
    }
    const states = new Map<string, string>()
    const served = new Map<string, StoredRecord>()
    const answerer = new ZoneAnswerer(image.reader())
    for (const { name, state } of steps) {
      const key = `r${NAMES.indexOf(name)}`
      const before = served.get(name)
      states.set(name, state)
      health.put(`n/${key}`, state === 'up' ? [] : ['192.0.2.1'])
      const owner = `${name}.k.example.com`
      const endpoints = [`${owner} A 192.0.2.1`]
      if (state === 'beside') endpoints.push(`${owner} TXT x`)
      const after = state === 'gone' ? undefined : record({ name: key, endpoints })
      if (after === undefined) served.delete(name)
      else served.set(name, after)
      if (before !== undefined || after !== undefined) records.apply([{ before, after }])
      image.publish()
      const names = new Set(served.keys())
      for (const asked of ASKED) {
        const query = question(`${asked}.k.example.com.`, RRType.A)
        const response = new Response()
        response.reset(query)
        answerer.answer(query, response, 0)
        const isNamed = exists(asked, names)
        const at = `${JSON.stringify([...states])}: ${asked}`
        if (response.rcode !== (isNamed ? 0 : 3)) throw new Error(`rcode ${response.rcode} ${at}`)
        const isAnswered = response.type[0] === RRType.A
        if (isAnswered !== (stateFor(asked, names, states) === 'up')) throw new Error(at)
        if (!isAnswered && response.type[0] !== RRType.SOA) throw new Error(`no SOA ${at}`)
      }
    }
    // A transfer has the records that are served, and nothing for closed names.
    const { buffer } = image.handle
    const version = { zone: APEX, serial: 1, buffer, imageVersion: image.version }
    const sent = Array.from(VersionView.open(version)!.content(), printView)
    const want = [...states].flatMap(([name, state]) => {
      const owner = `${name}.k.example.com. 60`
      if (state === 'beside') return [`${owner} TXT "x"`]
      return state === 'up' ? [`${owner} A 192.0.2.1`] : []
    })
    t.strictSame(sent.sort(), want.sort())
    // Nothing is left of the names that are gone.
    const after = [...served.values()].map((before) => ({ before, after: undefined }))
    records.apply(after)
    image.publish()
    t.equal(image.stats.names, 1)
  })
  fc.assert(property, { numRuns: runs(200), seed: 3 })
})

/** The state of the record that answers for a name; '' = none does. */
function stateFor(
  asked: string,
  names: ReadonlySet<string>,
  states: ReadonlyMap<string, string>,
): string {
  if (names.has(asked)) return states.get(asked)!
  if ([...names].some((one) => one.endsWith(`.${asked}`))) return ''
  let encloser = asked
  while (
    encloser !== '' &&
    ![...names].some((one) => one === encloser || one.endsWith(`.${encloser}`))
  ) {
    encloser = encloser.split('.').slice(1).join('.')
  }
  const wildcard = encloser === '' ? '*' : `*.${encloser}`
  return names.has(wildcard) ? states.get(wildcard)! : ''
}
