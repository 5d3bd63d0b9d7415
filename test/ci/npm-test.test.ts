import t from 'tap'
import { FAILS, logOf, makeTree, PASSES, runNpmTest } from './tree.ts'

// Own process: it starts many others, one after the other.
// Long: it runs groups of tests one after the other.

const LONG = '// Long: the case needs one.\n'
const SKIPS = `t.test('asks', { skip: 'not installed: dig (Debian: bind9-dnsutils)' }, async () => {})
t.test('mounts', { skip: 'only root can' }, async () => {})`

t.test('programs that a test starts print no colors, also on a terminal', async (t) => {
  const prints = "execFileSync(process.execPath, ['-e', 'console.log(1)'], { encoding: 'utf8' })"
  const tree = makeTree(t, {
    'x/a.test.ts': `import { execFileSync } from 'node:child_process'\nt.equal(${prints}, '1\\n')`,
  })
  const { stdout } = runNpmTest(tree)
  t.match(stdout, /^1 passed, 0 failed, 0 skipped$/m)
})

for (const { name, args, ran, want, status } of [
  {
    name: 'the long files are left out, and named',
    args: [],
    ran: 'x/a.test.ts e2e/d.test.ts ',
    want: [/2 long test files did not run: npm run test:all\n/, /^2 passed, 0 failed, 2 skipped$/m],
    status: 0,
  },
  {
    name: '--all',
    args: ['--all'],
    ran: 'cluster/c.test.ts x/a.test.ts x/long.test.ts e2e/d.test.ts ',
    want: [/not ok 1 - one and one/, /^\d+ passed, 1 failed, 2 skipped$/m],
    status: 1,
  },
  {
    name: '--long',
    args: ['--long', '--without=test/cluster'],
    ran: 'x/long.test.ts ',
    want: [/^1 passed, 1 failed, 0 skipped$/m],
    status: 1,
  },
  {
    name: 'a long file by name',
    args: ['test/x/long.test.ts'],
    ran: 'x/long.test.ts ',
    want: [/^1 passed, 1 failed, 0 skipped$/m],
    status: 1,
  },
]) {
  t.test(`npm test: ${name}`, async (t) => {
    const tree = makeTree(t, {
      ...{ 'x/a.test.ts': PASSES, 'x/long.test.ts': LONG + FAILS, 'e2e/d.test.ts': SKIPS },
      'cluster/c.test.ts': PASSES,
    })
    const got = runNpmTest(tree, ...args)
    t.equal(got.status, status, got.stdout + got.stderr)
    t.strictSame(logOf(tree).split(' ').sort(), ran.split(' ').sort())
    for (const text of want) t.match(got.stdout, text)
    if (ran.includes('e2e/d')) {
      t.match(got.stdout, /^ +1 {2}dig \(Debian: bind9-dnsutils\)\n/m)
      t.match(got.stdout, /^ +1 {2}only root can\n/m)
      t.match(got.stdout, '  apt-get install bind9-dnsutils\n')
    }
  })
}
