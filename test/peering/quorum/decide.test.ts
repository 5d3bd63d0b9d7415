import fc from 'fast-check'
import t from 'tap'
import {
  decide,
  majorityOf,
  type QuorumRules,
  type Statement,
} from '../../../src/peering/quorum/decide.ts'

const RULES: QuorumRules = { quorum: 2, holdDownMs: 60_000, heardMs: 20_000, isIsolated: false }
const OLD_MS = 100_000

const say = (
  site: string,
  health: Statement['health'],
  more: Partial<Statement> = {},
): Statement => ({ site, health, ageMs: OLD_MS, silentMs: 0, ...more })

const SILENT = say('c', 'up', { silentMs: OLD_MS })

interface Case {
  readonly name: string
  readonly home: Statement
  readonly observers: readonly Statement[]
  readonly want: string
  readonly wasDown?: boolean
  readonly rules?: Partial<QuorumRules>
}

const CASES: readonly Case[] = [
  {
    name: 'its home site is heard: its success counts against all failures',
    home: say('c', 'up'),
    observers: [say('a', 'down'), say('b', 'down')],
    want: 'home disputed',
  },
  {
    name: 'its home site is heard: its failure counts against a success',
    home: say('c', 'down'),
    observers: [say('a', 'up')],
    want: 'home disputed',
  },
  {
    name: 'its home site is heard and does not know',
    home: say('c', 'unknown'),
    observers: [say('a', 'down'), say('b', 'down')],
    want: 'down',
  },
  {
    name: 'its home site is silent, and a quorum finds the address down',
    home: SILENT,
    observers: [say('a', 'down'), say('b', 'down')],
    want: 'down',
  },
  {
    name: 'its home site is silent for less than the hold-down',
    home: say('c', 'up', { silentMs: 59_999 }),
    observers: [say('a', 'down'), say('b', 'down')],
    want: 'home disputed',
  },
  {
    name: 'one site alone is no quorum',
    home: SILENT,
    observers: [say('a', 'down')],
    want: 'unknown',
  },
  {
    name: 'a failure of a silent site does not count',
    home: SILENT,
    observers: [say('a', 'down'), say('b', 'down', { silentMs: 20_000 })],
    want: 'unknown',
  },
  {
    name: 'a new failure does not count yet',
    home: SILENT,
    observers: [say('a', 'down'), say('b', 'down', { ageMs: 59_000 })],
    want: 'unknown in 1000',
  },
  {
    name: 'one success counts against all failures',
    home: SILENT,
    observers: [say('a', 'down'), say('b', 'down'), say('d', 'up')],
    want: 'up disputed',
  },
  {
    name: 'a success counts until its site is silent for the hold-down',
    home: SILENT,
    observers: [say('a', 'down'), say('b', 'down'), say('d', 'up', { silentMs: 60_000 })],
    want: 'down',
  },
  {
    name: 'an isolated site takes nothing out',
    home: SILENT,
    observers: [say('a', 'down'), say('b', 'down')],
    rules: { isIsolated: true },
    want: 'unknown',
  },
  {
    name: 'an isolated site keeps its last decision',
    home: SILENT,
    observers: [say('a', 'down')],
    wasDown: true,
    rules: { isIsolated: true },
    want: 'down',
  },
  {
    name: 'an isolated site that reaches the address serves it again',
    home: SILENT,
    observers: [say('a', 'up')],
    wasDown: true,
    rules: { isIsolated: true },
    want: 'up',
  },
  {
    name: 'without isolation, the last decision does not count',
    home: SILENT,
    observers: [say('a', 'down')],
    wasDown: true,
    want: 'unknown',
  },
]

for (const { name, home, observers, want, wasDown = false, rules = {} } of CASES) {
  t.test(name, async (t) => {
    const decision = decide({ home: [home], observers }, wasDown, { ...RULES, ...rules })
    const { outcome, isDisputed, nextMs } = decision
    const due = nextMs === undefined ? '' : ` in ${nextMs}`
    t.equal(`${outcome}${isDisputed ? ' disputed' : ''}${due}`, want)
  })
}

const milliseconds = fc.constantFrom(0, 10_000, 30_000, 59_999, 60_000, 200_000)
const statement = (site: string): fc.Arbitrary<Statement> =>
  fc.record({
    site: fc.constant(site),
    health: fc.constantFrom('up', 'down', 'unknown'),
    ageMs: milliseconds,
    silentMs: milliseconds,
  })
const observers = fc
  .subarray(['a', 'b', 'd', 'e', 'f'])
  .chain((sites) => fc.tuple(...sites.map(statement)))

t.test('the order of statements has no effect', async () => {
  const property = fc.property(
    statement('c'),
    observers,
    fc.boolean(),
    fc.boolean(),
    fc.integer(),
    (home, found, wasDown, isIsolated, seed) => {
      const rules = { ...RULES, isIsolated, quorum: 1 + (Math.abs(seed) % 3) }
      const one = decide({ home: [home], observers: found }, wasDown, rules)
      const other = decide({ home: [home], observers: [...found].reverse() }, wasDown, rules)
      return JSON.stringify(one) === JSON.stringify(other)
    },
  )
  fc.assert(property, { seed: 15, numRuns: 2000 })
})

t.test('down needs a quorum of failures, and no success', async () => {
  const property = fc.property(statement('c'), observers, (home, found) => {
    const { outcome } = decide({ home: [home], observers: found }, false, RULES)
    if (outcome !== 'down') return true
    const failures = found.filter((s) => s.health === 'down' && s.silentMs < RULES.heardMs)
    const successes = [home, ...found].filter(
      (s) => s.health === 'up' && s.silentMs < RULES.holdDownMs,
    )
    return failures.length >= RULES.quorum && successes.length === 0
  })
  fc.assert(property, { seed: 16, numRuns: 2000 })
})

t.test('one more success never takes an address out', async () => {
  const property = fc.property(statement('c'), observers, (home, found) => {
    const more = [...found, say('z', 'up')]
    return decide({ home: [home], observers: more }, false, RULES).outcome !== 'down'
  })
  fc.assert(property, { seed: 17, numRuns: 1000 })
})

t.test('a majority', async (t) => {
  t.strictSame([1, 2, 3, 4, 5].map(majorityOf), [1, 2, 2, 3, 3])
})
