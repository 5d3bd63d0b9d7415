import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  FAILS,
  HANGS,
  KILLED,
  logOf,
  makeTree,
  type Outcome,
  OWN,
  once,
  PASSES,
  root,
  SKIPS,
  spawn,
  THROWS,
  type Tree,
} from './tree.ts'

// Own process: it starts many others, one after the other.
// Long: it runs groups of tests one after the other.

type Run = Tree & { readonly folder: string; readonly status: number }
/** Runs all tests of a tree, as `.ci/run` does. */
function runTests(tree: Tree, name: string, ...options: readonly string[]): Run {
  const folder = join(tree.path, name)
  const outputs = [`--output-file=${folder}/report`, `--output-dir=${folder}/files`]
  const args = ['test/run.mjs', '--reporter=silent', ...outputs, ...options]
  return { ...tree, folder, status: spawn(tree.path, args).status ?? 1 }
}

function decide(...runs: readonly Run[]): Outcome {
  const args = runs.flatMap(({ folder, status, bin, path }) => [folder, `${status}`, bin, path])
  return spawn(root, ['.ci/reruns.mjs', ...args])
}

const CASES = [
  {
    name: 'two files fail once, one of them in a group',
    files: {
      ...{ 'x/a.test.ts': PASSES, 'x/b.test.ts': once(FAILS), 'x/c.test.ts': PASSES },
      'e2e/d.test.ts': once(FAILS),
    },
    want: 'flaky: test/x/b.test.ts\nflaky: test/e2e/d.test.ts\n8 passed, 0 failed',
    again: 'x/b.test.ts e2e/d.test.ts ',
    messages: ['run: test/x/b.test.ts:     not ok 1 - one and one'],
  },
  {
    name: 'a file fails twice, and another one once',
    files: { 'x/a.test.ts': PASSES, 'x/b.test.ts': FAILS, 'e2e/d.test.ts': once(FAILS) },
    want: 'flaky: test/e2e/d.test.ts\n5 passed, 1 failed',
    again: 'x/b.test.ts e2e/d.test.ts ',
    messages: [
      'run: test/x/b.test.ts:     not ok 1 - one and one',
      'run again: test/x/b.test.ts:     not ok 1 - one and one',
      'failed: test/x/b.test.ts',
    ],
  },
  {
    name: 'three files fail once',
    files: { 'x/a.test.ts': once(FAILS), 'x/b.test.ts': once(FAILS), 'e2e/d.test.ts': once(FAILS) },
    want: '3 passed, 3 failed',
    again: '',
    messages: [
      'failed: test/x/a.test.ts',
      'failed: test/x/b.test.ts',
      'failed: test/e2e/d.test.ts',
    ],
  },
  {
    name: 'a test is skipped, at first or in the repeat',
    files: {
      ...{ 'x/a.test.ts': PASSES, 'x/b.test.ts': SKIPS },
      'x/c.test.ts': `if (isFirst) ${FAILS}\nelse ${SKIPS}`,
      'e2e/d.test.ts': once(FAILS),
    },
    want: 'flaky: test/e2e/d.test.ts\n5 passed, 2 failed',
    again: 'x/c.test.ts e2e/d.test.ts ',
    messages: [
      'run: test/x/b.test.ts: ok 2 - skips # SKIP no dig',
      'run again: test/x/c.test.ts: ok 1 - skips # SKIP no dig',
    ],
  },
  {
    name: 'two groups end early once, and a file of one of them fails before that',
    files: {
      ...{ 'x/a.test.ts': PASSES, 'x/b.test.ts': once(KILLED), 'x/c.test.ts': PASSES },
      ...{ 'y/a.test.ts': PASSES, 'y/b.test.ts': once(FAILS), 'y/c.test.ts': once(KILLED) },
    },
    want: 'flaky: test/x\nflaky: test/y/b.test.ts\n12 passed, 0 failed',
    again: 'x/a.test.ts x/b.test.ts x/c.test.ts y/b.test.ts y/a.test.ts y/b.test.ts y/c.test.ts ',
    messages: ['signal: SIGKILL', 'run: test/y/b.test.ts:     not ok 1 - one and one'],
  },
  {
    name: 'two groups end early each time',
    files: {
      ...{ 'x/a.test.ts': PASSES, 'x/b.test.ts': THROWS },
      ...{ 'y/a.test.ts': PASSES, 'y/b.test.ts': 'process.exit(0)', 'y/c.test.ts': PASSES },
    },
    want: '5 passed, 2 failed',
    again: 'x/a.test.ts x/b.test.ts y/a.test.ts y/b.test.ts ',
    messages: ['Error: late', 'failed: test/x\n', 'failed: test/y\n'],
  },
  {
    name: 'a file does not load once, and another one hangs once: tap may lose the last result',
    files: {
      'e2e/d.test.ts': `if (isFirst) throw new Error('early')\n${PASSES}`,
      'x/a.test.ts': OWN + once(HANGS),
      'x/b.test.ts': OWN + PASSES,
    },
    options: ['--timeout=20'],
    // Whether tap has the results of the other files depends on when it kills the one that hangs.
    want: '(flaky: test/e2e/d.test.ts\n)?flaky: test/x/a.test.ts\n6 passed, 0 failed',
    again: 'e2e/d.test.ts x/a.test.ts (x/b.test.ts )?',
    messages: ['run: test/x/a.test.ts:     not ok 1 - timeout!'],
  },
]

for (const { name, files, options = [], want, again, messages = [] } of CASES) {
  t.test(name, async (t) => {
    const tree = makeTree(t, files)
    const run = runTests(tree, 'run', ...options)
    const before = logOf(tree)
    const { status, stdout, stderr } = decide(run)
    t.match(stdout, new RegExp(`^${want}\n$`))
    t.equal(status, want.endsWith(' 0 failed') ? 0 : 1)
    t.match(logOf(tree).slice(before.length), new RegExp(`^${again}$`), 'files that run again')
    for (const message of messages) t.ok(stderr.includes(message), message, { stderr })
  })
}

t.test('a file that failed on two versions of Node.js runs again on both', async (t) => {
  const files = { 'x/a.test.ts': PASSES, 'x/b.test.ts': once(FAILS) }
  const runs = ['20', '22'].map((version) => {
    const tree = makeTree(t, files)
    const node = join(tree.path, 'node')
    writeFileSync(node, `#!/bin/sh\nVERSION=${version}: exec ${process.execPath} "$@"\n`)
    chmodSync(node, 0o755)
    return { ...runTests(tree, `node-${version}`), bin: tree.path }
  })
  const { status, stdout } = decide(...runs)
  t.equal(stdout, 'flaky: test/x/b.test.ts\n8 passed, 0 failed\n')
  t.equal(status, 0)
  const again = runs.map((run) => logOf(run).split(' ').slice(2).join(' '))
  t.strictSame(again, ['20:x/b.test.ts ', '22:x/b.test.ts '])
})

t.test('a run without a complete report fails', async (t) => {
  const run = runTests(makeTree(t, { 'x/a.test.ts': PASSES }), 'run')
  const file = join(run.folder, 'report')
  const report = readFileSync(file, 'utf8')
  const cases = [
    { report, want: '2 passed, 0 failed\n' },
    { report, status: 1, want: '2 passed, 1 failed\n' },
    { report: report.replace(/^# \{ total.*/m, ''), want: '2 passed, 1 failed\n' },
    { report: report.replace(/^ok .*/m, ''), want: '2 passed, 1 failed\n' },
    { report: `${report}Bail out!\n`, want: '2 passed, 1 failed\n' },
    { report: '', want: '2 passed, 1 failed\n' },
  ]
  for (const { report, status = 0, want } of cases) {
    writeFileSync(file, report)
    t.match(decide({ ...run, status }), {
      status: want.endsWith(' 0 failed\n') ? 0 : 1,
      stdout: want,
    })
  }
  rmSync(run.folder, { recursive: true })
  for (const runs of [[], [run]])
    t.match(decide(...runs), { status: 1, stdout: '0 passed, 1 failed\n' })
})

t.test('on a machine with only Node.js tests may be skipped, but not fail', async (t) => {
  const tree = makeTree(t, {
    ...{ 'x/a.test.ts': PASSES, 'x/b.test.ts': SKIPS, 'e2e/d.test.ts': once(FAILS) },
    'e2e/path.test.ts': "t.notOk(process.env.CI)\nt.match(process.env.PATH, 'no-tools')",
  })
  const run = runTests(tree, 'bare')
  // In the repeat, tap needs Node.js and nothing else.
  const bin = join(tree.path, 'no-tools')
  mkdirSync(bin)
  for (const [name, path] of [
    ['node', process.execPath],
    ['env', '/usr/bin/env'],
  ] as const)
    symlinkSync(path, join(bin, name))
  t.match(decide({ ...run, bin }), { stdout: /^flaky: test\/e2e\/d.test.ts$/m })
})
