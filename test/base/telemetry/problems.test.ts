import t from 'tap'
import {
  collectProblems,
  countUnlisted,
  LISTED_MAX,
  oneProblem,
  PROBLEM_KINDS,
  type ProblemGroup,
  type ProblemKind,
  type ProblemText,
} from '../../../src/base/telemetry/problems.ts'

const text = (reason: string): ProblemText => ({ place: 'a.yaml:1', object: 'ns/a', reason })
const group = (kind: ProblemKind, of: string, ...reasons: string[]): ProblemGroup => {
  return { kind, of, count: reasons.length, problems: reasons.map(text) }
}
const collect = (...groups: readonly (readonly ProblemGroup[])[]) => {
  const { listed, counts } = collectProblems(
    groups.map((one) => ({ plugin: 'kuadrant', groups: () => one })),
  )
  return { listed: listed.map(({ kind, reason }) => `${kind} ${reason}`), counts: [...counts] }
}

t.test('blocks that share what has the problems report them once, the worst first', async (t) => {
  const table: readonly { given: readonly ProblemGroup[][]; want: ReturnType<typeof collect> }[] = [
    { given: [], want: { listed: [], counts: [] } },
    { given: [[group('conflict', 'a')]], want: { listed: [], counts: [] } },
    {
      given: [
        [group('conflict', 'a', 'x'), oneProblem('corefile', '', text('y'))],
        [group('conflict', 'a', 'x'), group('conflict', 'b', 'z')],
      ],
      want: {
        listed: ['corefile y', 'conflict x', 'conflict z'],
        counts: [
          ['corefile', 1],
          ['conflict', 2],
        ],
      },
    },
  ]
  for (const { given, want } of table) t.strictSame(collect(...given), want)
})

t.test('a million problems cost as much as those that are listed', async (t) => {
  let read = 0
  function* endless(): Generator<ProblemText> {
    for (;;) yield text(`${read++}`)
  }
  const count = 1_000_000
  const reports = PROBLEM_KINDS.map((kind) => ({
    plugin: 'kuadrant',
    groups: () => [{ kind, of: 'a', count, problems: endless() }],
  }))
  const { listed, counts } = collectProblems(reports)
  t.equal(listed.length, LISTED_MAX * PROBLEM_KINDS.length)
  t.ok(read <= (LISTED_MAX + 1) * PROBLEM_KINDS.length, `${read} were read`)
  t.strictSame(
    countUnlisted(listed, counts),
    PROBLEM_KINDS.map((kind) => [kind, count - LISTED_MAX]),
  )
})

t.test('long texts are cut', async (t) => {
  const [only] = collectProblems([
    { plugin: 'file', groups: () => [oneProblem('manifest', '', text('x'.repeat(100_000)))] },
  ]).listed
  t.ok(only!.reason.length <= 600 && only!.reason.endsWith('x…'))
})
