import t from 'tap'
import { scanName } from '../../src/dns/name/name.ts'
import { type HostShare, ROOT_KEY } from '../../src/records/host-share.ts'
import { StoredRecord } from '../../src/records/record-source.ts'
import { lowerNameKey } from '../../src/records/validate/names.ts'
import { printRefused } from '../../src/sources/record-rights.ts'
import { type Given, record, Stage } from './records-with-rights.ts'

const gw = { namespace: 'gw', created: 100 }
const evil = { namespace: 'evil', created: 200 }

/** `served`: of the record `evil/r`; missing = nothing. */
const CASES: readonly {
  readonly what: string
  readonly records: readonly Given[]
  readonly served?: string
}[] = [
  {
    what: 'a host of another namespace',
    records: [
      { ...gw, host: 'app' },
      { ...evil, host: 'app' },
    ],
  },
  {
    what: 'a name below it',
    records: [
      { ...gw, host: 'app' },
      { ...evil, host: '_acme-challenge.app' },
    ],
  },
  {
    what: 'a name of it in a record of a host above',
    records: [
      { ...gw, host: 'app.shop' },
      { ...evil, host: 'shop', names: ['shop', 'app.shop'] },
    ],
    served: 'shop',
  },
  {
    what: 'a delegation above it',
    records: [
      { ...gw, host: 'app.shop' },
      { ...evil, host: 'shop', names: ['NS shop'] },
    ],
  },
  {
    what: 'a delegation above it, outside of the own host',
    records: [
      { ...gw, host: 'app.shop' },
      { ...evil, created: 50, host: 'x', names: ['x', 'NS shop'] },
    ],
    served: 'x',
  },
  {
    what: 'a delegation of the zone, outside of the own host',
    records: [
      { ...gw, host: 'app.shop' },
      { ...evil, created: 50, host: 'x', names: ['x', 'NS @'] },
    ],
    served: 'x',
  },
  {
    what: 'a delegation of a free name, outside of the own host',
    records: [
      { ...gw, host: 'app.shop' },
      { ...evil, host: 'x', names: ['x', 'NS free'] },
    ],
    served: 'x NS free',
  },
  {
    what: 'a delegation of the zone',
    records: [
      { ...gw, host: 'app' },
      { ...evil, host: '@', names: ['NS @', '@'] },
    ],
    served: '@',
  },
  {
    what: 'a name of it in a record of the zone',
    records: [
      { ...gw, host: 'app' },
      { ...evil, host: '@', names: ['app', 'free'] },
    ],
    served: 'free',
  },
  {
    what: 'a name below its wildcard',
    records: [
      { ...gw, host: '*.app', names: ['*.app'] },
      { ...evil, host: 'x.app' },
    ],
  },
  {
    what: 'the wildcard below it',
    records: [
      { ...gw, host: 'app' },
      { ...evil, host: '*.app', names: ['*.app'] },
    ],
  },
  {
    what: 'an older record with the zone as host takes nothing but its names',
    records: [
      { ...gw, host: '@', names: ['@', '*', 'www'] },
      { ...evil, host: 'app' },
    ],
    served: 'app',
  },
  {
    what: 'an older record of the owner of the apex keeps its names',
    records: [
      { ...gw, host: '@', names: ['@', 'www'] },
      { ...evil, host: 'x.www' },
    ],
  },
  {
    what: 'an old record with the zone as host that gets a host of another namespace',
    records: [
      { ...gw, host: 'app' },
      { ...evil, created: 50, host: '@', names: ['app', 'free'] },
    ],
    served: 'free',
  },
  {
    what: 'the same, where another namespace owns the apex',
    records: [
      { ...gw, host: 'app' },
      { namespace: 'edge', created: 10, host: '@' },
      { ...evil, created: 50, host: '@', names: ['app', 'free', '@'] },
    ],
    served: 'free',
  },
  {
    what: 'a name that speaks for the apex',
    records: [
      { ...gw, host: '@' },
      { ...evil, host: '_acme-challenge' },
    ],
  },
  {
    what: 'a host that it had first',
    records: [
      { ...gw, host: 'app' },
      { ...evil, host: 'app', created: 50 },
    ],
    served: 'app',
  },
  {
    what: 'a name below a younger host',
    records: [
      { ...gw, host: 'shop' },
      { ...evil, host: 'app.shop', created: 50 },
    ],
    served: 'app.shop',
  },
  {
    what: 'records of one second: the first namespace has it',
    records: [
      { ...gw, host: 'app' },
      { ...evil, host: 'app', created: 100 },
    ],
    served: 'app',
  },
  {
    what: 'without a time, the first namespace has it',
    records: [
      { namespace: 'gw', host: 'app' },
      { namespace: 'evil', host: 'app' },
    ],
    served: 'app',
  },
  {
    what: 'without a time it is the younger one',
    records: [
      { ...gw, host: 'app' },
      { namespace: 'evil', host: 'app' },
    ],
  },
  {
    what: 'v2 metadata of a host of another namespace',
    records: [
      { ...gw, host: 'app' },
      {
        ...evil,
        zone: 'kdrnt',
        host: 'app.k.example.com.kdrnt',
        names: ['TXT v2.app.k.example.com.kdrnt'],
      },
    ],
  },
  {
    what: 'v2 metadata beside another root host',
    records: [
      { ...gw, host: 'app' },
      { ...evil, name: 'own', host: 'own' },
      {
        ...evil,
        zone: 'kdrnt',
        host: 'own.k.example.com.kdrnt',
        names: ['TXT v2.app.k.example.com.kdrnt'],
      },
    ],
  },
  {
    what: 'metadata that no operator wrote',
    records: [
      { ...gw, host: 'app' },
      {
        ...evil,
        zone: 'kdrnt',
        host: 'new.k.example.com.kdrnt',
        names: ['TXT v2.new.k.example.com.kdrnt'],
      },
    ],
  },
  {
    what: 'the local form of its own record',
    records: [
      { ...gw, host: 'app' },
      { ...evil, name: 'own', host: '*.own', names: ['*.own'] },
      {
        ...{ ...evil, zone: 'kdrnt', host: 'own.k.example.com.kdrnt' },
        names: [
          'own.k.example.com.kdrnt',
          'TXT v2.own.k.example.com.kdrnt',
          'TXT w.wildcard.own.k.example.com.kdrnt',
          'TXT w.wildcardown.k.example.com.kdrnt',
        ],
      },
    ],
    served:
      'own.k.example.com.kdrnt v2.own.k.example.com.kdrnt w.wildcard.own.k.example.com.kdrnt w.wildcardown.k.example.com.kdrnt',
  },
  {
    what: 'v1 metadata of its own wildcard at a host of another namespace',
    records: [
      { ...gw, host: 'wildcardown' },
      { ...evil, name: 'own', host: '*.own', names: ['*.own'] },
      {
        ...{ ...evil, zone: 'kdrnt', host: 'own.k.example.com.kdrnt' },
        names: [
          'TXT w.own.k.example.com.kdrnt',
          'TXT w.wildcard.own.k.example.com.kdrnt',
          'TXT w.wildcardown.k.example.com.kdrnt',
        ],
      },
    ],
    served: 'w.own.k.example.com.kdrnt w.wildcard.own.k.example.com.kdrnt',
  },
]

for (const { what, records, served } of CASES) {
  t.test(what, async (t) => {
    const all = records.map(record)
    const together = new Stage().put(...all)
    const expected = served === undefined ? [] : [`evil/r: ${served}`]
    t.same(
      together.served.filter((line) => line.startsWith('evil/r:')),
      expected,
    )
    const one = new Stage()
    for (const each of all.toReversed()) one.put(each)
    t.same(one.served, together.served, 'in another order')
    t.same(Stage.load(all, []).served, together.served, 'at the start')
  })
}

t.test('records of one namespace are not judged', async (t) => {
  const stage = new Stage().put(
    record({ ...gw, host: 'app' }),
    record({ ...gw, name: 'b', created: 3, host: '@', names: ['NS @', 'app', 'x.app'] }),
  )
  t.same(stage.served, ['gw/b: NS @ app x.app', 'gw/r: app'])
})

t.test('the refusal names the line that allows the host, and the line does', async (t) => {
  const records = [record({ ...gw, host: 'app' }), record({ ...evil, host: 'x.app' })]
  const [refused] = new Stage().put(...records).refused
  t.equal(
    printRefused(refused!),
    'DNSRecord evil/r: x.app.k.example.com: not served: namespace gw had app.k.example.com first; to serve it, add `share-hosts app.k.example.com evil` in kuadrant',
  )
  const app = lowerNameKey(scanName('app.k.example.com.')!)
  const share = (host: string, namespaces?: readonly string[]): HostShare => {
    return { host, namespaces: namespaces && new Set(namespaces) }
  }
  for (const shares of [[share(app, ['evil'])], [share(app)], [share(ROOT_KEY, ['evil'])]]) {
    t.same(new Stage(shares).put(...records).served, ['evil/r: x.app', 'gw/r: app'])
  }
  t.same(new Stage([share(app, ['other'])]).put(...records).served, ['gw/r: app'])
})

t.test('an author cannot write the age that counts', async (t) => {
  const forged = record({ ...evil, name: 'merged-app', created: 1, host: 'app' })
  const held = new StoredRecord(forged.key, forged.packed, { site: 'x', id: '' }, undefined, 200)
  t.same(new Stage().put(record({ ...gw, host: 'app' }), held).served, ['gw/r: app'])
})

t.test(
  'a name outside of the root host of a record belongs to the namespace that claims it',
  (t) => {
    const app = record({ namespace: 'a', host: 'app', created: 2 })
    const thief = (names: readonly string[]): StoredRecord => {
      return record({ namespace: 'b', host: 'own', created: 1, names })
    }
    const outside = ['own', 'app', 'www.app', 'free']
    const want = ['a/r: app', 'b/r: own free']
    t.strictSame(new Stage().put(app, thief(outside)).served, want, 'together')
    t.strictSame(new Stage().put(app).put(thief(outside)).served, want, 'after the claim')
    const stage = new Stage().put(thief(outside)).put(app)
    t.strictSame(
      stage.served,
      want,
      'before the claim: an older record may get such names at any time',
    )
    stage.put(thief(['own'])).put(thief(outside))
    t.strictSame(stage.served, want, 'by an edit')
    t.strictSame(stage.remove('a/r').served, ['b/r: own app www.app free'])
    // In manifests, a root host can change.
    stage.put(record({ namespace: 'b', host: 'app', created: 1, names: outside })).put(app)
    t.strictSame(stage.served, ['b/r: own app www.app free'])
    stage.put(thief(outside))
    t.strictSame(stage.served, want)
    t.end()
  },
)
