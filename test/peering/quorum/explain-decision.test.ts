import t from 'tap'
import { decide, type Statement } from '../../../src/peering/quorum/decide.ts'
import {
  type DecisionContext,
  explainDecision,
  isNoted,
} from '../../../src/peering/quorum/explain-decision.ts'

const NOW_MS = Date.parse('2026-01-01T12:01:03Z')
const CONTEXT: DecisionContext = {
  ...{ quorum: 2, holdDownMs: 60_000, heardMs: 20_000, isIsolated: false, heard: 2, sites: 3 },
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
    reason: 'up: its site c reports it',
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
    name: 'its own site is silent, but not for long enough',
    home: [said('c', 'up', 500, 25)],
    observers: [said('a', 'down', 70), said('b', 'down', 70)],
    reason:
      'not down: its site c reported it up and is silent; hold-down until 2026-01-01T12:01:38Z',
    until: '2026-01-01T12:01:38Z',
  },
  {
    name: 'another site reaches it',
    home: [said('c', 'up', 500, 90)],
    observers: [said('a', 'down', 70), said('b', 'up', 70)],
    reason: 'not down: b finds it up',
  },
  {
    name: 'another site reached it and is silent',
    home: [said('c', 'up', 500, 90)],
    observers: [said('a', 'down', 70), said('b', 'up', 70, 30)],
    reason: 'not down: b finds it up; hold-down until 2026-01-01T12:01:33Z',
    until: '2026-01-01T12:01:33Z',
  },
  {
    name: 'a quorum finds it down',
    home: [said('c', 'up', 500, 90)],
    observers: [said('b', 'down', 60), said('a', 'down', 500)],
    reason: 'down: 2 of 3 sites (a, b) find it down since 2026-01-01T12:00:03Z',
    isDown: true,
  },
  {
    name: 'a quorum finds it down, but not for long enough',
    home: [said('c', 'up', 500, 90)],
    observers: [said('b', 'down', 10), said('a', 'down', 500)],
    reason:
      'not down: 2 of 2 needed sites (a, b) find it down; hold-down until 2026-01-01T12:01:53Z',
    until: '2026-01-01T12:01:53Z',
  },
  {
    name: 'too few sites find it down',
    home: [said('c', 'up', 500, 90)],
    observers: [said('a', 'down', 500), said('b', 'down', 500, 25)],
    reason: 'not down: 1 of 2 needed sites (a) find it down',
  },
  {
    name: 'this site is isolated',
    home: [said('c', 'up', 500, 90)],
    observers: [said('a', 'down', 500)],
    context: { isIsolated: true, heard: 1 },
    reason: 'not down: this site is isolated, 1 of 3 sites heard, 2 needed',
  },
  {
    name: 'this site decided before it became isolated',
    home: [said('c', 'up', 500, 90)],
    observers: [said('a', 'down', 500)],
    wasDown: true,
    context: { isIsolated: true, heard: 1 },
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
