import fc from 'fast-check'
import t from 'tap'
import type { StoredRecord } from '../../src/records/record-source.ts'
import { HostClaims } from '../../src/sources/host-claims.ts'
import { runs } from '../support/runs.ts'
import { record, Stage } from './records-with-rights.ts'

const HOSTS = ['@', 'a', 'b.a', 'c.b.a', '*.a', 'd', '*', '_c', '_c.a']
const given = fc.record({
  namespace: fc.constantFrom('n1', 'n2', 'n3'),
  name: fc.constantFrom('r', 's'),
  created: fc.constantFrom(undefined, 1, 2, 3),
  host: fc.constantFrom(...HOSTS),
  extra: fc.subarray(['a', 'b.a', 'NS a', 'NS @', 'd', 'x.d', '*.a', '*', 'x._c']),
})
const arbitraryRecord = given.map(({ extra, host, ...rest }) => {
  const base = host.replace(/^\*\.?/, '') || '@'
  const inside = extra.filter((text) => {
    const name = text.replace('NS ', '')
    return base === '@' || name === base || name.endsWith(`.${base}`)
  })
  return record({ ...rest, host, names: [...new Set([host, ...inside])] })
})
type Step =
  | { readonly put: readonly StoredRecord[] }
  | { readonly remove: number }
  | { readonly zones: true }
const steps = fc.array<Step>(
  fc.oneof(
    fc.record({ put: fc.array(arbitraryRecord, { minLength: 1, maxLength: 3 }) }),
    fc.record({ remove: fc.nat(5) }),
    fc.record({ zones: fc.constant(true as const) }),
  ),
  { maxLength: 14 },
)

const zones = fc.constantFrom([], ['a'], ['b.a', 'a'])

t.test('any order of changes gives the same names', async () => {
  fc.assert(
    fc.property(steps, fc.infiniteStream(fc.nat()), zones, (all, order, zones) => {
      const stage = new Stage([], zones)
      const present = new Map<string, StoredRecord>()
      for (const step of all) {
        if ('put' in step) {
          const unique = new Map(step.put.map((one) => [one.key, one]))
          for (const one of unique.values()) present.set(one.key, one)
          stage.put(...unique.values())
        } else if ('zones' in step) stage.decideAgain()
        else if (present.size > 0) {
          const key = [...present.keys()][step.remove % present.size]!
          present.delete(key)
          stage.remove(key)
        }
        const shuffled = [...present.values()]
          .map((one) => ({ one, at: order.next().value as number }))
          .sort((a, b) => a.at - b.at)
        const other = new Stage([], zones)
        for (const { one } of shuffled) other.put(one)
        // The index is not complete after each change.
        if ((order.next().value as number) % 2 === 0) {
          stage.readIndex((order.next().value as number) % 4)
          continue
        }
        const [is, wanted] = [stage.served.join('; '), other.served.join('; ')]
        if (is !== wanted) throw new Error(`${is}\nnot ${wanted}`)
        const loaded = Stage.load(present.values(), zones).served.join('; ')
        if (loaded !== wanted) throw new Error(`at the start ${loaded}\nnot ${wanted}`)
      }
    }),
    { numRuns: runs(300) },
  )
})

t.test('a name has one namespace', async () => {
  fc.assert(
    fc.property(fc.uniqueArray(arbitraryRecord, { selector: ({ key }) => key }), (all) => {
      const owners = new Map<string, string>()
      for (const line of new Stage().put(...all).served) {
        const [key = '', names = ''] = line.split(': ')
        const [namespace = ''] = key.split('/')
        for (const name of names.replaceAll('NS ', '').split(' ')) {
          if ((owners.get(name) ?? namespace) !== namespace) throw new Error(`${name}: ${line}`)
          owners.set(name, namespace)
        }
      }
    }),
    { numRuns: runs(500) },
  )
})

const gw = { namespace: 'gw', created: 100 }
const evil = { namespace: 'evil', created: 200 }

t.test('a name is decided once for all of its records', async (t) => {
  const stage = new Stage().put(record({ ...gw, host: 'app' }))
  const { at } = HostClaims.prototype
  let reads = 0
  HostClaims.prototype.at = function (name) {
    reads++
    return at.call(this, name)
  }
  t.teardown(() => {
    HostClaims.prototype.at = at
  })
  for (let i = 0; i < 50; i++) {
    reads = 0
    stage.put(record({ ...evil, name: `r${i}`, host: 'app' }))
    t.ok(reads < 5, `${reads} reads`)
  }
  t.same(stage.served, ['gw/r: app'])
})

t.test('a change judges only the records that it may concern', async (t) => {
  const RECORDS = 1000
  const many = Array.from({ length: RECORDS }, (_, i) => {
    return record({ ...(i % 2 === 0 ? gw : evil), name: `r${i}`, host: `h${i}` })
  })
  const young = { namespace: 'other', created: 300 }
  const work = (stage: Stage, change: () => void): number => {
    stage.finds = 0
    change()
    return stage.finds
  }
  const stage = new Stage().put(...many)
  t.equal(stage.served.length, RECORDS)
  const challenge = record({ ...young, name: 'challenge', host: '_acme-challenge' })
  stage.put(challenge)
  for (const [what, change] of [
    ['the apex gets an owner', () => stage.put(record({ ...gw, host: '@' }))],
    ['and another record', () => stage.put(record({ ...evil, host: '@' }))],
    [
      'its owner changes the names',
      () => stage.put(record({ ...gw, host: '@', names: ['@', 'x'] })),
    ],
    ['its owner changes', () => stage.remove('gw/r')],
    ['it is free again', () => stage.remove('evil/r')],
  ] as const) {
    const finds = work(stage, change)
    t.ok(finds <= 3, `${what}: ${finds} records`)
    const isFree = what === 'it is free again'
    t.equal(stage.served.includes('other/challenge: _acme-challenge'), isFree, what)
  }
  t.ok(work(stage, () => stage.put(record({ ...gw, host: 'new' }))) <= 1)
})

t.test('the owner of the apex decides about names in records of other hosts', async (t) => {
  const stage = new Stage().put(
    record({ namespace: 'a', created: 3, host: '@', names: ['@', 'x.app'] }),
    record({ namespace: 'b', created: 4, host: 'app', names: ['app', 'x.app'] }),
  )
  t.same(stage.served, ['a/r: @ x.app', 'b/r: app'])
  const edge = stage.put(record({ namespace: 'edge', created: 1, host: '@' }))
  t.same(edge.served, ['b/r: app x.app', 'edge/r: @'])
  t.same(edge.remove('edge/r').served, ['a/r: @ x.app', 'b/r: app'])
})

t.test('a local form is refused once its record is gone', async (t) => {
  const local = 'own.k.example.com.kdrnt'
  const stage = new Stage().put(
    record({ ...gw, host: 'app' }),
    record({ ...evil, name: 'own', host: 'own' }),
    record({ ...evil, zone: 'kdrnt', host: local, names: [local] }),
  )
  t.same(stage.served, ['evil/own: own', `evil/r: ${local}`, 'gw/r: app'])
  t.same(stage.remove('evil/own').served, ['gw/r: app'])
})

t.test('metadata of a wildcard is refused once another namespace has the host there', async (t) => {
  const metadata = 'w.wildcardown.k.example.com.kdrnt'
  const host = 'own.k.example.com.kdrnt'
  const stage = new Stage().put(
    record({ ...gw, host: 'app' }),
    record({ ...evil, name: 'own', host: '*.own', names: ['*.own'] }),
    record({ ...evil, zone: 'kdrnt', host, names: [`TXT ${metadata}`] }),
  )
  t.same(stage.served, ['evil/own: *.own', `evil/r: ${metadata}`, 'gw/r: app'])
  stage.put(record({ ...gw, name: 'beside', host: 'wildcardown' }))
  t.same(stage.served, ['evil/own: *.own', 'gw/beside: wildcardown', 'gw/r: app'])
})

t.test('records of the first namespace are served while the index is read', async (t) => {
  const stage = new Stage().put(
    ...Array.from({ length: 9 }, (_, i) => record({ ...gw, name: `r${i}`, host: `h${i}` })),
  )
  stage.finds = 0
  stage.put(record({ ...evil, host: 'h3' }), record({ ...evil, name: 's', host: 'free' }))
  t.equal(stage.finds, 0, 'a second namespace reads no record at once')
  stage.readIndex(4).put(record({ ...gw, name: 'late', host: 'late' }))
  stage.put(record({ ...evil, name: 't', host: 'late' }))
  const own = stage.served.filter((line) => line.startsWith('evil/'))
  t.same(own, ['evil/s: free'])
  for (const key of ['evil/r', 'evil/s', 'evil/t']) stage.remove(key)
  stage.put(record({ ...evil, host: 'h3', created: 1 })).readIndex(2)
  for (let i = 0; i < 9; i++) stage.remove(`gw/r${i}`)
  stage.remove('gw/late')
  t.same(stage.served, ['evil/r: h3'], 'one namespace is left before the end')
})
