import t from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { nameKey, scanName } from '../../../src/dns/name/name.ts'
import { ServedNameLists } from '../../../src/plugins/admin/names.ts'
import type { RecordZoneIndex } from '../../../src/publish/record-zone-index.ts'

/** `owners`: names of the zone, by zone. */
function listsOf(owners: Readonly<Record<string, readonly string[]>>): ServedNameLists {
  const zones = Object.entries(owners).map(([text, names]) => ({
    apex: scanName(text)!,
    text,
    records: {
      holders: { keys: () => names.map((name) => nameKey(scanName(name)!)) },
      setsOf: ([key]: readonly string[]) => {
        return [[key, [RRType.AAAA, RRType.A].map((type) => ({ type, endpoints: [{}] }))]]
      },
    },
  }))
  return new ServedNameLists(() => ({ zones }) as unknown as RecordZoneIndex, systemClock)
}

t.test('names by their start', async (t) => {
  const lists = listsOf({
    'example.org.': ['www.example.org.', '*.example.org.', 'api.eu.example.org.'],
    'kdrnt.': ['www.example.org.kdrnt.'],
    'example.net.': ['web.example.net.'],
  })
  for (const [prefix, names] of [
    ['', ['*.example.org.', 'api.eu.example.org.', 'web.example.net.', 'www.example.org.']],
    ['W', ['web.example.net.', 'www.example.org.']],
    ['www', ['www.example.org.']],
    ['www.', ['www.example.org.']],
    ['WWW.Example', ['www.example.org.']],
    ['www.example.org.', ['www.example.org.']],
    ['www.example.org.x', []],
    ['ww.', []],
    ['*', ['*.example.org.']],
    ['api.eu.', ['api.eu.example.org.']],
    ['example', []],
    ['..', []],
    ['\\119', []],
    ['\u{1f600}', []],
  ] as const) {
    const found = await lists.list({ prefix, limit: 10 })
    t.strictSame(
      found?.names.map(({ name }) => name),
      names,
      prefix,
    )
    t.equal(found?.isComplete, true)
  }
  const first = await lists.list({ prefix: 'www', limit: 1 })
  t.strictSame(first?.names, [
    { name: 'www.example.org.', zone: 'example.org.', types: ['A', 'AAAA'] },
  ])
})

t.test('a limit leaves names out', async (t) => {
  const names = Array.from({ length: 20 }, (_, i) => `n${i}.example.org.`)
  const lists = listsOf({ 'example.org.': names })
  const found = await lists.list({ prefix: 'n', limit: 5 })
  t.equal(found?.names.length, 5)
  t.equal(found?.isComplete, false)
  t.equal((await lists.list({ prefix: 'n', limit: 20 }))?.isComplete, true)
})

t.test('nothing before the start', async (t) => {
  const lists = new ServedNameLists(() => undefined, systemClock)
  t.strictSame(await lists.list({ prefix: '', limit: 1 }), { names: [], isComplete: true })
})
