import fc from 'fast-check'
import t from 'tap'
import {
  decide,
  majorityOf,
  type QuorumRules,
  type Statement,
} from '../../../src/peering/quorum/decide.ts'

/** Site a decides about an address of site c. */
const RULES: QuorumRules = {
  site: 'a',
  sites: 3,
  quorum: 0,
  holdDownMs: 0,
  heardMs: 8000,
  isIsolated: false,
  isProbing: true,
}
const TWO = { sites: 2 }
const OLD_MS = 100_000

const say = (
  site: string,
  health: Statement['health'],
  more: Partial<Statement> = {},
): Statement => ({ site, health, ageMs: OLD_MS, silentMs: 0, ...more })

const NEW = { ageMs: 0 }
const SILENT = { silentMs: 8000 }

interface Case {
  readonly name: string
  readonly home: Statement | readonly Statement[]
  readonly observers: readonly Statement[]
  readonly want: string
  readonly wasDown?: boolean
  readonly rules?: Partial<QuorumRules>
}

const CASES: readonly Case[] = [
  {
    name: 'its home site is heard, and its failure counts against all successes',
    home: say('c', 'down', NEW),
    observers: [say('a', 'up'), say('b', 'up')],
    want: 'down by home in 60000',
  },
  {
    name: 'another site that has the address, too, is not believed alone',
    home: [say('c', 'unknown'), say('d', 'down')],
    observers: [say('a', 'up')],
    want: 'up by sites disputed',
  },
  {
    name: 'nor is it if the first one is silent',
    home: [say('c', 'up', SILENT), say('d', 'down')],
    observers: [],
    want: 'unknown by sites disputed',
  },
  {
    name: 'if all that have the address report it down, they are believed',
    home: [say('c', 'down'), say('d', 'down')],
    observers: [say('a', 'up')],
    want: 'down by home disputed',
  },
  {
    name: 'two sites: our own failure decides, although the other site finds the address up',
    home: say('c', 'up'),
    observers: [say('a', 'down', NEW)],
    rules: TWO,
    want: 'down by this site in 60000',
  },
  {
    name: 'two sites: the contradiction is reported after a minute',
    home: say('c', 'up'),
    observers: [say('a', 'down')],
    rules: TWO,
    want: 'down by this site disputed',
  },
  {
    name: 'two sites: our own success decides while the other site is silent',
    home: say('c', 'down', SILENT),
    observers: [say('a', 'up')],
    rules: TWO,
    want: 'up by this site',
  },
  {
    name: 'two sites: without a finding of ours, the other site decides',
    home: say('c', 'up'),
    observers: [],
    rules: TWO,
    want: 'up by home',
  },
  {
    name: 'two sites: without any finding, the last report stays in force',
    home: say('c', 'down', SILENT),
    observers: [],
    rules: TWO,
    want: 'down by home',
  },
  {
    name: 'two sites: a silent site that last reported up has no finding',
    home: say('c', 'up', SILENT),
    observers: [],
    rules: TWO,
    want: 'unknown by nothing',
  },
  {
    name: 'three sites: two of three find the address down, although its own site does not',
    home: say('c', 'up', NEW),
    observers: [say('a', 'down', NEW), say('b', 'down', NEW)],
    want: 'down by sites in 60000',
  },
  {
    name: 'three sites: one of three is no majority',
    home: say('c', 'up'),
    observers: [say('a', 'down'), say('b', 'up')],
    want: 'up by sites disputed',
  },
  {
    name: 'three sites: the silent home does not count',
    home: say('c', 'up', SILENT),
    observers: [say('a', 'down'), say('b', 'down')],
    want: 'down by sites',
  },
  {
    name: 'three sites: half of those that are heard is no majority',
    home: say('c', 'up', SILENT),
    observers: [say('a', 'down'), say('b', 'up')],
    want: 'up by sites disputed',
  },
  {
    name: 'three sites: a site that hears no other one decides alone',
    home: say('c', 'up', SILENT),
    observers: [say('a', 'down'), say('b', 'up', SILENT)],
    want: 'down by sites',
  },
  {
    name: 'three sites: one peer alone takes nothing out while we do not know',
    home: say('c', 'up', SILENT),
    observers: [say('b', 'down')],
    want: 'unknown by sites',
  },
  {
    name: 'four sites: two peers do, although we do not know',
    home: say('c', 'up', SILENT),
    observers: [say('b', 'down'), say('d', 'down')],
    rules: { sites: 4 },
    want: 'down by sites',
  },
  {
    name: 'without any finding the address is served',
    home: say('c', 'unknown'),
    observers: [],
    want: 'unknown by nothing',
  },
  {
    name: 'a hold-down delays a failure',
    home: say('c', 'up', SILENT),
    observers: [say('a', 'down', { ageMs: 500 }), say('b', 'down')],
    rules: { holdDownMs: 10_000 },
    want: 'unknown by sites in 9500',
  },
  {
    name: 'a number that is set counts in place of a majority',
    home: say('c', 'up'),
    observers: [say('a', 'down'), say('b', 'up')],
    rules: { quorum: 1 },
    want: 'down by sites disputed',
  },
  {
    name: 'a site without a record of the host: the others decide about a silent site',
    home: say('c', 'up', SILENT),
    observers: [say('b', 'down')],
    rules: { isProbing: false },
    want: 'down by sites',
  },
  {
    name: 'a site without a record of the host: one other site alone takes out nothing of a site that is heard',
    home: say('c', 'unknown'),
    observers: [say('b', 'down')],
    rules: { isProbing: false },
    want: 'unknown by sites',
  },
  {
    name: 'a site that probes, and does not know yet: one other site alone takes out nothing',
    home: say('c', 'up', SILENT),
    observers: [say('b', 'down')],
    want: 'unknown by sites',
  },
  {
    name: 'two sites with a number that is set: both must find it down',
    home: say('c', 'up', SILENT),
    observers: [say('a', 'down')],
    rules: { ...TWO, quorum: 2 },
    want: 'unknown by sites',
  },
  {
    name: 'a number that is set, and fewer sites are heard: the last decision is kept',
    home: say('c', 'up', SILENT),
    observers: [say('a', 'up')],
    rules: { quorum: 2, isIsolated: true },
    wasDown: true,
    want: 'down by before',
  },
]

for (const { name, home, observers, want, wasDown = false, rules = {} } of CASES) {
  t.test(name, async (t) => {
    const decision = decide({ home: [home].flat(), observers }, wasDown, { ...RULES, ...rules })
    const { outcome, by, isDisputed, nextMs } = decision
    const due = nextMs === undefined ? '' : ` in ${nextMs}`
    t.equal(`${outcome} by ${by}${isDisputed ? ' disputed' : ''}${due}`, want)
  })
}

t.test('a site that has the address twice finds it up if one of both is up', async (t) => {
  const home = [say('c', 'down'), say('c', 'up')]
  t.match(decide({ home, observers: [] }, false, RULES), { outcome: 'up' })
})

const milliseconds = fc.constantFrom(0, 7999, 8000, 59_999, 60_000, 200_000)
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

t.test('down needs a failure of a site that is heard, or the last report', async () => {
  const property = fc.property(statement('c'), observers, (home, found) => {
    const { outcome, by } = decide({ home: [home], observers: found }, false, RULES)
    if (outcome !== 'down') return true
    const failures = [home, ...found].filter((s) => s.health === 'down')
    return (
      failures.length > 0 && (by === 'home' || failures.some((s) => s.silentMs < RULES.heardMs))
    )
  })
  fc.assert(property, { seed: 16, numRuns: 2000 })
})

t.test(
  'one more success never takes an address out, one more failure never returns it',
  async () => {
    const property = fc.property(statement('c'), observers, (home, found) => {
      const outcomeWith = (...more: Statement[]): string => {
        return decide({ home: [home], observers: [...found, ...more] }, false, RULES).outcome
      }
      const isDown = outcomeWith() === 'down'
      const [better, worse] = [outcomeWith(say('z', 'up')), outcomeWith(say('z', 'down'))]
      return (isDown || better !== 'down') && (!isDown || worse === 'down')
    })
    fc.assert(property, { seed: 17, numRuns: 1000 })
  },
)

t.test('sites that hear the same decide alike', async () => {
  const property = fc.property(statement('c'), observers, (home, found) => {
    const known = found.filter(({ health, silentMs }) => health !== 'unknown' && silentMs < 8000)
    const outcomes = known.map(({ site }) => {
      return decide({ home: [home], observers: known }, false, { ...RULES, site }).outcome
    })
    return new Set(outcomes).size <= 1
  })
  fc.assert(property, { seed: 18, numRuns: 2000 })
})

t.test('a majority', async (t) => {
  t.strictSame([1, 2, 3, 4, 5].map(majorityOf), [1, 2, 2, 3, 3])
})
