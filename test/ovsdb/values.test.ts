import t from 'tap'
import { changeRow, printMap, printSet, readColumns, readRow } from '../../src/ovsdb/datum.ts'
import { printRemote, scanRemotes } from '../../src/ovsdb/remote.ts'
import { TableCache } from '../../src/ovsdb/table-cache.ts'

const KINDS = { name: 'atom', addresses: 'set', ids: 'map' } as const

t.test('reads remotes as Open vSwitch writes them', async (t) => {
  const all =
    'tcp:192.0.2.1:6641,ssl:[2001:db8::1]:6641,unix:/run/ovn/ovnnb_db.sock,tcp:nb.ovn.svc:1'
  t.equal(scanRemotes(all)?.map(printRemote).join(), all)
  const bad = ['', 'tcp:', 'tcp:192.0.2.1', 'tcp:192.0.2.1:0', 'tcp:192.0.2.1:65536', 'udp:a:1']
  for (const text of [...bad, 'tcp:2001:db8::1:6641', 'unix:', `${all},`, 'tcp:a/b:1', 'ptcp:1']) {
    t.equal(scanRemotes(text), undefined, text)
  }
})

t.test('reads and writes sets, maps and UUIDs', async (t) => {
  t.strictSame(printSet(['a', 'b']), ['set', ['a', 'b']])
  t.strictSame(printMap({ a: '1' }), ['map', [['a', '1']]])
  const row = { name: ['uuid', 'u1'], addresses: '192.0.2.1', ids: printMap({ a: '1' }), other: 1 }
  t.strictSame(readRow(row, KINDS), {
    name: 'u1',
    addresses: new Set(['192.0.2.1']),
    ids: new Map([['a', '1']]),
  })
  t.strictSame(readRow({}, KINDS), { addresses: new Set(), ids: new Map() })
  t.strictSame(readColumns({}, KINDS), {})
})

t.test('refuses values of other types', async (t) => {
  const bad = [
    ...[null, 1, [], { name: null }, { name: ['set', ['a']] }, { addresses: ['set', 1] }],
    ...[{ addresses: ['set', [{}]] }, { addresses: ['uuid', 1] }, { ids: 'a' }],
    ...[{ ids: ['map', [['a']]] }, { ids: ['map', ['a']] }, { ids: ['map', [['a', null]]] }],
  ]
  for (const json of bad) t.equal(readRow(json, KINDS), undefined, JSON.stringify(json))
})

t.test('applies differences', async (t) => {
  const before = {
    name: 'a',
    addresses: new Set(['1', '2']),
    ids: new Map([
      ['a', '1'],
      ['b', '2'],
    ]),
  }
  const change = {
    name: 'b',
    addresses: new Set(['2', '3']),
    ids: new Map([
      ['a', '1'],
      ['b', '3'],
      ['c', '4'],
    ]),
  }
  t.strictSame(changeRow(before, change), {
    name: 'b',
    addresses: new Set(['1', '3']),
    ids: new Map([
      ['b', '3'],
      ['c', '4'],
    ]),
  })
  t.strictSame(before.addresses, new Set(['1', '2']))
})

t.test('keeps the rows of a table', async (t) => {
  const seen: string[] = []
  const cache = new TableCache(KINDS, (before, after) => {
    seen.push(`${before?.name} -> ${after?.name}`)
  })
  const names = () => [...cache.rows.values()].map(({ name }) => name)
  t.equal(cache.apply({ u1: { initial: { name: 'a' } } }, true), '')
  t.equal(cache.apply({ u2: { insert: { name: 'b' } }, u1: { modify: { name: 'c' } } }, false), '')
  t.equal(cache.apply({ u1: { delete: null } }, false), '')
  t.strictSame(seen, ['undefined -> b', 'a -> c', 'c -> undefined'])
  t.equal(cache.apply(undefined, false), '')
  t.strictSame(names(), ['b'])
  for (const bad of [1, [], { u: 1 }, { u: {} }, { u: { modify: {} } }, { u2: { modify: 1 } }]) {
    t.not(cache.apply(bad, false), '', JSON.stringify(bad))
  }
  t.equal(cache.apply(undefined, true), '')
  t.strictSame(names(), [])
})
