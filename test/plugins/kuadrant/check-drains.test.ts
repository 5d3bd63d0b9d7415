import { join } from 'node:path'
import t, { type Test } from 'tap'
import { check } from '../../../src/cli/check.ts'
import { recordManifest } from '../../support/manifest.ts'
import { recordOutput } from '../../support/recorded-output.ts'

const BLOCK =
  'k.example.com {\n kuadrant {\n  manifests {DIR}/a\n  drain {DIR}/drains\n  nameserver ns.example.net\n }\n}\n'
const BESIDE = `${BLOCK}l.example.com {\n kuadrant {\n  manifests {DIR}/b\n  drain {DIR}/drains\n  nameserver ns.example.net\n }\n}\n`

async function run(
  t: Test,
  corefile: string,
  drains: string,
  a = recordManifest('a', '192.0.2.1'),
) {
  const directory = t.testdir({
    drains,
    a: { 'a.yaml': a },
    b: { 'b.yaml': recordManifest('b', '192.0.2.2', 'b.l.example.com') },
    Corefile: corefile.replaceAll('{DIR}', t.testdirName),
  })
  const { output, errors } = recordOutput(directory)
  const code = await check(['-conf', join(directory, 'Corefile')], output)
  return { code, lines: errors }
}

t.test('each invalid line of a drain file is a fault', async (t) => {
  const drains = 'record:default/a\nsite\nrecord:default/a\nid:x until=noon\n'
  const { code, lines } = await run(t, BESIDE, drains)
  t.equal(code, 1)
  t.match(lines, [
    /^drains:2: "site" is not a selector/,
    /^drains:3: line 1 has the same selector/,
    /^drains:4: until "noon" is not a time/,
  ])
})

const NONE = '[WARNING] drains:1: record:default/b selects no endpoint'
for (const [name, corefile, drains, want] of [
  ['a drain that selects nothing', BLOCK, 'record:default/b\n', [NONE]],
  ['it has ended', BLOCK, 'record:default/b until=2020-01-01T00:00:00Z\n', []],
  ['another block with the file has the record', BESIDE, 'record:default/b\n', []],
  [
    'no block with the file has it',
    BESIDE,
    'id:x\n',
    ['[WARNING] drains:1: id:x selects no endpoint'],
  ],
  [
    'the site of the block',
    BLOCK.replace('  drain', '  site dublin\n  drain'),
    'site:dublin\n',
    [],
  ],
  [
    'the block has peers',
    BLOCK.replace('  drain', '  site dublin\n  peer 192.0.2.7\n  drain'),
    'id:x\n',
    [],
  ],
] as const) {
  t.test(`warnings: ${name}`, async (t) => {
    const { code, lines } = await run(t, corefile, drains)
    t.equal(code, 0, lines.join('\n'))
    t.strictSame(
      lines.filter((line) => line.includes('drains')),
      want,
    )
  })
}

t.test('the directory of the drain file must exist', async (t) => {
  const { code, lines } = await run(t, BLOCK.replace('/drains', '/none/drains'), '')
  t.equal(code, 0)
  t.strictSame(lines, ['[WARNING] Corefile:4: plugin/kuadrant: none is not a directory'])
})

t.test('a faulty manifest may be the one that a drain selects', async (t) => {
  const { code, lines } = await run(t, BLOCK, 'id:x\n', 'kind: DNSRecord\nmetadata: {name: A}\n')
  t.equal(code, 1)
  t.strictSame(
    lines.filter((line) => line.includes('drains')),
    [],
  )
})

for (const [name, until, want] of [
  [
    'has ended',
    '2020-01-01T00:00:00Z',
    '[WARNING] a/a.yaml:5: DNSRecord default/a: sextant.io/drain has no effect: it ended at 2020-01-01T00:00:00Z; remove it and sextant.io/drain-until, or give a later time',
  ],
  ['will end', '2999-01-01T00:00:00Z', undefined],
] as const) {
  t.test(`a drain of annotations that ${name}`, async (t) => {
    const annotations = `{ sextant.io/drain: x, sextant.io/drain-until: "${until}" }`
    const record = recordManifest('a', '192.0.2.1').replace(
      'metadata:\n',
      `metadata:\n  annotations: ${annotations}\n`,
    )
    const { code, lines } = await run(t, BLOCK, '', record)
    t.equal(code, 0)
    t.strictSame(lines, want === undefined ? [] : [want])
  })
}
