import t from 'tap'
import { decide, type Statement } from '../../../src/peering/quorum/decide.ts'
import {
  type DecisionContext,
  explainDecision,
  isNoted,
} from '../../../src/peering/quorum/explain-decision.ts'

const NOW_MS = Date.parse('2026-01-01T12:01:03Z')
const CONTEXT: DecisionContext = {
  site: 'a',
  ...{
    sites: 3,
    quorum: 0,
    holdDownMs: 0,
    heardMs: 8000,
    isIsolated: false,
    isProbing: true,
    heard: 2,
  },
  nowMs: NOW_MS,
}

function said(site: string, health: 'up' | 'down', ageS: number, silentS = 0): Statement {
  return { site, health, ageMs: ageS * 1000, silentMs: silentS * 1000 }
}

interface Case {
  readonly name: string
  readonly home: readonly Statement[]
  readonly observers: readonly Statement[]
  readonly wasDown?: boolean
  readonly context?: Partial<DecisionContext>
  readonly reason: string
  readonly isDown?: boolean
  readonly until?: string
  readonly isNoted?: boolean
}

const CASES: readonly Case[] = [
  {
    name: 'its own site reports it up',
    home: [said('c', 'up', 500)],
    observers: [said('a', 'up', 500)],
    reason: 'up: a, c find it up',
    isNoted: false,
  },
  {
    name: 'its own site reports it down',
    home: [said('c', 'down', 5)],
    observers: [said('a', 'down', 5)],
    reason: 'down: its site c reports it',
    isDown: true,
  },
  {
    name: 'its own site reported it down and is silent',
    home: [said('c', 'down', 500, 25)],
    observers: [],
    reason: 'down: its site c reported it and is silent',
    isDown: true,
    isNoted: false,
  },
  {
    name: 'two sites: this site does not reach it',
    home: [said('c', 'up', 500)],
    observers: [said('a', 'down', 5)],
    context: { sites: 2 },
    reason: 'down: this site does not reach it',
    isDown: true,
  },
  {
    name: 'two sites: this site reaches it',
    home: [said('c', 'up', 500, 90)],
    observers: [said('a', 'up', 5)],
    context: { sites: 2 },
    reason: 'up: this site reaches it',
    isNoted: false,
  },
  {
    name: 'another site reaches it',
    home: [said('c', 'up', 500, 90)],
    observers: [said('a', 'down', 70), said('b', 'up', 70)],
    reason: 'not down: 1 of 2 needed sites (a) find it down',
  },
  {
    name: 'all sites that are heard reach it',
    home: [said('c', 'up', 500, 90)],
    observers: [said('a', 'up', 70), said('b', 'up', 70)],
    reason: 'up: a, b find it up',
    isNoted: false,
  },
  {
    name: 'no site knows it',
    home: [said('c', 'up', 500, 90)],
    observers: [],
    reason: 'not down: no site that is heard knows its health',
    isNoted: false,
  },
  {
    name: 'a majority finds it down',
    home: [said('c', 'up', 500, 90)],
    observers: [said('b', 'down', 60), said('a', 'down', 500)],
    reason: 'down: 2 of 2 sites (a, b) find it down since 2026-01-01T12:00:03Z',
    isDown: true,
  },
  {
    name: 'a number of sites finds it down, but not for long enough',
    home: [said('c', 'up', 500, 90)],
    observers: [said('b', 'down', 10), said('a', 'down', 500)],
    context: { quorum: 2, holdDownMs: 60_000 },
    reason:
      'not down: 2 of 2 needed sites (a, b) find it down; hold-down until 2026-01-01T12:01:53Z',
    until: '2026-01-01T12:01:53Z',
  },
  {
    name: 'a number is set, and this site is isolated',
    home: [said('c', 'up', 500, 90)],
    observers: [said('a', 'down', 500)],
    context: { quorum: 2, isIsolated: true, heard: 1 },
    reason: 'not down: this site is isolated, 1 of 3 sites heard, 2 needed',
  },
  {
    name: 'this site decided before it became isolated',
    home: [said('c', 'up', 500, 90)],
    observers: [said('a', 'down', 500)],
    wasDown: true,
    context: { quorum: 2, isIsolated: true, heard: 1 },
    reason: 'down: a quorum found it down before this site became isolated',
    isDown: true,
  },
]

for (const { name, home, observers, wasDown = false, ...want } of CASES) {
  t.test(name, async (t) => {
    const context = { ...CONTEXT, ...want.context }
    const statements = { home, observers }
    const decision = decide(statements, wasDown, context)
    const decided = { host: 'app.k', address: '192.0.2.1', statements, decision }
    const found = explainDecision(decided, context)
    t.equal(found.reason, want.reason)
    t.equal(found.isDown, want.isDown ?? false)
    t.equal(found.holdDownUntil, want.until ?? null)
    t.equal(isNoted(decided), want.isNoted ?? true)
    t.strictSame(found.sites, ['c'])
  })
}
