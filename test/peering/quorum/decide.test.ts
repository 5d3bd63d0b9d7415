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
  readonly owner: Statement
  readonly observers: readonly Statement[]
  readonly want: string
  readonly wasDown?: boolean
  readonly rules?: Partial<QuorumRules>
}

const CASES: readonly Case[] = [
  {
    name: 'the owner is heard: its success counts against all failures',
    owner: say('c', 'up'),
    observers: [say('a', 'down'), say('b', 'down')],
    want: 'own disputed',
  },
  {
    name: 'the owner is heard: its failure counts against a success',
    owner: say('c', 'down'),
    observers: [say('a', 'up')],
    want: 'own disputed',
  },
  {
    name: 'the owner is heard and does not know',
    owner: say('c', 'unknown'),
    observers: [say('a', 'down'), say('b', 'down')],
    want: 'down',
  },
  {
    name: 'the owner is silent, and a quorum finds the address down',
    owner: SILENT,
    observers: [say('a', 'down'), say('b', 'down')],
    want: 'down',
  },
  {
    name: 'the owner is silent for less than the hold-down',
    owner: say('c', 'up', { silentMs: 59_999 }),
    observers: [say('a', 'down'), say('b', 'down')],
    want: 'own disputed',
  },
  {
    name: 'one site alone is no quorum',
    owner: SILENT,
    observers: [say('a', 'down')],
    want: 'unknown',
  },
  {
    name: 'a failure of a silent site does not count',
    owner: SILENT,
    observers: [say('a', 'down'), say('b', 'down', { silentMs: 20_000 })],
    want: 'unknown',
  },
  {
    name: 'a new failure does not count yet',
    owner: SILENT,
    observers: [say('a', 'down'), say('b', 'down', { ageMs: 59_000 })],
    want: 'unknown in 1000',
  },
  {
    name: 'one success counts against all failures',
    owner: SILENT,
    observers: [say('a', 'down'), say('b', 'down'), say('d', 'up')],
    want: 'up disputed',
  },
  {
    name: 'a success counts until its site is silent for the hold-down',
    owner: SILENT,
    observers: [say('a', 'down'), say('b', 'down'), say('d', 'up', { silentMs: 60_000 })],
    want: 'down',
  },
  {
    name: 'an isolated site takes nothing out',
    owner: SILENT,
    observers: [say('a', 'down'), say('b', 'down')],
    rules: { isIsolated: true },
    want: 'unknown',
  },
  {
    name: 'an isolated site keeps its last decision',
    owner: SILENT,
    observers: [say('a', 'down')],
    wasDown: true,
    rules: { isIsolated: true },
    want: 'down',
  },
  {
    name: 'an isolated site that reaches the address serves it again',
    owner: SILENT,
    observers: [say('a', 'up')],
    wasDown: true,
    rules: { isIsolated: true },
    want: 'up',
  },
  {
    name: 'without isolation, the last decision does not count',
    owner: SILENT,
    observers: [say('a', 'down')],
    wasDown: true,
    want: 'unknown',
  },
]

for (const { name, owner, observers, want, wasDown = false, rules = {} } of CASES) {
  t.test(name, async (t) => {
    const decision = decide({ owners: [owner], observers }, wasDown, { ...RULES, ...rules })
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
    (owner, found, wasDown, isIsolated, seed) => {
      const rules = { ...RULES, isIsolated, quorum: 1 + (Math.abs(seed) % 3) }
      const one = decide({ owners: [owner], observers: found }, wasDown, rules)
      const other = decide({ owners: [owner], observers: [...found].reverse() }, wasDown, rules)
      return JSON.stringify(one) === JSON.stringify(other)
    },
  )
  fc.assert(property, { seed: 15, numRuns: 2000 })
})

t.test('down needs a quorum of failures, and no success', async () => {
  const property = fc.property(statement('c'), observers, (owner, found) => {
    const { outcome } = decide({ owners: [owner], observers: found }, false, RULES)
    if (outcome !== 'down') return true
    const failures = found.filter((s) => s.health === 'down' && s.silentMs < RULES.heardMs)
    const successes = [owner, ...found].filter(
      (s) => s.health === 'up' && s.silentMs < RULES.holdDownMs,
    )
    return failures.length >= RULES.quorum && successes.length === 0
  })
  fc.assert(property, { seed: 16, numRuns: 2000 })
})

t.test('one more success never takes an address out', async () => {
  const property = fc.property(statement('c'), observers, (owner, found) => {
    const more = [...found, say('z', 'up')]
    return decide({ owners: [owner], observers: more }, false, RULES).outcome !== 'down'
  })
  fc.assert(property, { seed: 17, numRuns: 1000 })
})

t.test('a majority', async (t) => {
  t.strictSame([1, 2, 3, 4, 5].map(majorityOf), [1, 2, 2, 3, 3])
})
