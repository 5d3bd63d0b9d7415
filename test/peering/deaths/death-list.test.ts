import t from 'tap'
import { DeathList } from '../../../src/peering/deaths/death-list.ts'
import type { SiteDeath } from '../../../src/peering/deaths/if-site-dies.ts'
import { oldestAllDown } from '../../../src/peering/deaths/oldest-all-down.ts'
import { printSpan } from '../../../src/peering/deaths/span.ts'

const KINDS: readonly SiteDeath['kind'][] = ['fine', 'alone', 'slow', 'unchecked', 'setting']

t.test('lines are in order of urgency', async (t) => {
  const list = new DeathList()
  for (const kind of KINDS) list.add({ site: 'paris', host: kind, text: 'x', cause: '', kind })
  t.strictSame(
    list.lines().map(({ text, isWarning }) => `${text}${isWarning ? ' !' : ''}`),
    ['setting: x !', 'unchecked: x', 'slow: x', 'fine: x', 'alone: x'],
  )
})

t.test('hosts of one site alone are summarised', async (t) => {
  const texts = (count: number): readonly string[] => {
    const list = new DeathList()
    for (let i = 0; i < count; i++)
      list.add({ site: 'a', host: `h${i}`, text: 'x', cause: '', kind: 'alone' })
    return list.lines().map(({ text }) => text)
  }
  t.strictSame(texts(3), ['h0: x', 'h1: x', 'h2: x'])
  const rest = 'keep their addresses: no other site has an address'
  t.strictSame(texts(5), [`h0, h1, h2 and 2 more hosts ${rest}`])
  t.strictSame(texts(4), [`h0, h1, h2 and 1 more host ${rest}`])
})

t.test('a list is bounded', async (t) => {
  const list = new DeathList()
  for (let i = 0; i < 1005; i++)
    list.add({ site: 'a', host: `h${i}`, text: 'x', cause: '', kind: 'fine' })
  t.equal(list.lines().length, 1000)
  t.equal(list.more, 5)
})

for (const [milliseconds, want] of [
  [1, '1 s'],
  [60_000, '60 s'],
  [119_000, '119 s'],
  [120_000, '2 min'],
  [2_110_000, '35 min 10 s'],
  [3_600_000, '1 h'],
  [86_400_000, '24 h'],
  [90_061_000, '25 h 1 min 1 s'],
] as const) {
  t.equal(printSpan(milliseconds), want)
}

t.test('the oldest record with the setting decides', async (t) => {
  const holder = (site: string, createdSeconds: number, allDown?: string) => {
    return { site, createdSeconds, ...(allDown === undefined ? {} : { settings: { allDown } }) }
  }
  t.equal(oldestAllDown([]), undefined)
  t.equal(oldestAllDown([holder('a', 1), holder('b', 2, 'closed')]), 'closed')
  t.equal(oldestAllDown([holder('a', 2, 'open'), holder('b', 1, 'closed')]), 'closed')
  t.equal(oldestAllDown([holder('a', 0, 'open'), holder('b', 9, 'closed')]), 'closed')
  t.equal(oldestAllDown([holder('b', 1, 'open'), holder('a', 1, 'closed')]), 'closed')
})
