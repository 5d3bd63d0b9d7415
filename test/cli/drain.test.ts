import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { runDrain, runDrains, runUndrain } from '../../src/cli/drain.ts'
import { scanDrains } from '../../src/health/drain/drain-text.ts'
import { recordManifest } from '../support/manifest.ts'
import { recordOutput } from '../support/recorded-output.ts'

const COREFILE = `k.example.com:5300 {
  root {DIR}
  kuadrant {
    manifests records
    site dublin
    drain drains
  }
}
`
const RECORDS = {
  'a.yaml': recordManifest('a', '192.0.2.1'),
  'b.yaml': recordManifest('b', '192.0.2.2'),
}

function stage(t: Test, files: Record<string, string> = {}, corefile = COREFILE) {
  const directory = t.testdir({ records: RECORDS, ...files, Corefile: '' })
  const path = join(directory, 'drains')
  const run = async (command: typeof runDrain, ...args: string[]) => {
    const { output, printed, errors } = recordOutput(directory)
    writeFileSync(join(directory, 'Corefile'), corefile.replace('{DIR}', directory))
    const given = args.map((arg) => arg.replace('{DIR}', directory))
    const place = args.includes('--file') ? [] : ['-conf', join(directory, 'Corefile')]
    return { code: await command([...given, ...place], output), printed, errors }
  }
  const drains = () => scanDrains(readFileSync(path, 'utf8'), path).drains.map((d) => d.drain)
  return { run, drains, path }
}

t.test('drain, list and undrain', async (t) => {
  const { run, drains, path } = stage(t)
  const startMs = Date.now()
  const got = await run(runDrain, 'host:a.*', '--until', '2h', 'site:dublin', '--reason', 'a "b"')
  t.equal(got.code, 0, got.errors.join())
  t.match(got.printed, [
    /^drained [0-9a-f]{8} host:a\.\* site:dublin by .+ until .+Z: a "b"$/,
    'selected in the manifests: 1 endpoint of 1 record',
  ])
  const [drain] = drains()
  t.equal(drain?.reason, 'a "b"')
  t.not(drain?.actor, '')
  t.ok(drain!.untilMs! >= startMs + 7_199_000 && drain!.untilMs! < Date.now() + 7_201_000)
  const again = await run(runDrain, 'site:dublin', 'host:a.*', '--actor', 'ops')
  t.equal(again.code, 0)
  t.equal(drains().length, 1, 'the same selector has one drain')
  t.match(drains()[0], { actor: 'ops', untilMs: undefined })
  t.equal((await run(runDrain, 'record:default/b', '--reason', 'two\nlines')).code, 0)
  const { printed } = await run(runDrains)
  t.match(printed, [
    /^ID {8}SELECTOR {14}UNTIL {2}BY +REASON$/,
    /^[0-9a-f]{8} {2}host:a\.\* site:dublin {2}- {6}ops$/,
    /^[0-9a-f]{8} {2}record:default\/b {6}- .*two\\x0alines$/,
  ])
  const listed = await run(runDrains, '-o', 'json')
  const json = JSON.parse(listed.printed.join('\n'))
  t.match(json[1], { selector: 'record:default/b', reason: 'two\nlines' })
  t.equal((await run(runUndrain, json[1].id)).code, 0)
  const ended = await run(runUndrain, 'host:a.*', 'site:dublin')
  t.match(ended.printed[0], /^undrained [0-9a-f]{8} host:a\.\* site:dublin by ops$/)
  t.strictSame(drains(), [])
  t.match(readFileSync(path, 'utf8'), /^# Drains, one per line/)
  t.strictSame((await run(runDrains)).printed, ['nothing is drained'])
})

t.test(
  'lines that a command does not concern are kept, except drains that have ended',
  async (t) => {
    const text = '# ours\n\nsite:x until=2020-01-01T00:00:00Z\nsite:y  by=ops # why\r\nsite:z'
    const { run, path } = stage(t, { drains: text })
    t.equal((await run(runDrain, 'site:dublin', '--actor', 'me')).code, 0)
    t.match(
      readFileSync(path, 'utf8'),
      /^# ours\n\nsite:y {2}by=ops # why\r\nsite:z\nsite:dublin by=me created=\S+\n$/,
    )
  },
)

for (const [name, command, args, want] of [
  [
    'a selector that matches nothing',
    runDrain,
    ['site:boston'],
    /^site:boston selects no endpoint of the manifests; to drain it anyway, use --allow-empty$/,
  ],
  ['no selector', runDrain, [], /^the selector is missing; write it as site:dublin/],
  ['an invalid selector', runDrain, ['dublin'], /^"dublin" is not a selector/],
  [
    'an expired drain',
    runDrain,
    ['site:dublin', '--until', '2020-01-01T00:00:00Z'],
    /^--until 2020.* is in the past/,
  ],
  ['a duration that is not positive', runDrain, ['site:dublin', '--until', '-1h'], /in the past/],
  [
    'an invalid time',
    runDrain,
    ['site:dublin', '--until', 'noon'],
    /^--until "noon" is neither a duration/,
  ],
  [
    'an unknown flag',
    runDrain,
    ['site:dublin', '--for', '1h'],
    /^flag provided but not defined: -for$/,
  ],
  [
    'a reason that is too long',
    runDrain,
    ['site:dublin', '--reason', 'x'.repeat(1001)],
    /^drain file drains: reason is longer/,
  ],
  [
    'an id that is not drained',
    runUndrain,
    ['01234567'],
    /^no drain in force has the id or selector 01234567; the drains are: none$/,
  ],
  [
    'a selector that is not drained',
    runUndrain,
    ['site:b'],
    /^no drain in force has the id or selector site:b;/,
  ],
  ['undrain without a selector', runUndrain, [], /^the selector or the id is missing/],
  ['drains with a selector', runDrains, ['site:b'], /^drains takes no selector: site:b$/],
  [
    'an unknown output',
    runDrains,
    ['-o', 'yml'],
    /^invalid value yml for -o: must be table, wide, json or yaml; did you mean yaml\?$/,
  ],
] as const) {
  t.test(`refused: ${name}`, async (t) => {
    const got = await stage(t).run(command, ...args)
    t.equal(got.code, 1)
    t.equal(got.errors.length, 1)
    t.match(got.errors[0], want)
    t.strictSame(got.printed, [])
  })
}

t.test('a drain that has ended cannot be ended again', async (t) => {
  const { run } = stage(t, { drains: 'site:a until=2020-01-01T00:00:00Z\nsite:b\n' })
  t.match(await run(runUndrain, 'site:a'), {
    code: 1,
    errors: [
      /^no drain in force has the id or selector site:a; the drains are: [0-9a-f]{8} site:b$/,
    ],
  })
  t.equal((await run(runUndrain, 'site:b')).code, 0)
})

t.test('an invalid drain file is not changed', async (t) => {
  const { run, path } = stage(t, { drains: 'site:a\nnonsense\n' })
  for (const got of [await run(runDrain, 'site:dublin'), await run(runDrains)]) {
    t.equal(got.code, 1)
    t.match(got.errors, [/^drains:2: "nonsense" is not a selector/])
  }
  t.equal(readFileSync(path, 'utf8'), 'site:a\nnonsense\n')
})

t.test('an unknown site can be drained with --allow-empty', async (t) => {
  const { run, drains } = stage(t)
  t.equal((await run(runDrain, 'site:boston', '--allow-empty')).code, 0)
  t.equal(drains().length, 1)
})

t.test('without a Corefile, --file is enough', async (t) => {
  const { run, drains } = stage(t)
  const got = await run(runDrain, 'site:boston', '--file', '{DIR}/drains')
  t.equal(got.code, 0)
  t.equal(got.printed[1], 'the selector was not checked: no Corefile with this drain file was read')
  t.equal(drains().length, 1)
})

t.test('a Corefile without a drain file, and one with faults', async (t) => {
  const without = stage(t, {}, COREFILE.replace('drain drains', ''))
  t.match((await without.run(runDrain, 'site:a')).errors, [/^the Corefile names no drain file/])
  const faulty = stage(t, {}, COREFILE.replace('site dublin', 'sites dublin'))
  const got = await faulty.run(runDrain, 'site:a')
  t.equal(got.code, 1)
  t.match(got.errors, [/^Corefile:5: .*unknown property 'sites'/])
})
