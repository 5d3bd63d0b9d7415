import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { checkManifests } from '../../../src/publish/offline/check-manifests.ts'
import { recordManifest } from '../../support/manifest.ts'
import { until } from '../../support/until.ts'
import { open } from './stage.ts'

t.test('an edit is found in every form of a file', async (t) => {
  const one = (address: string) => ({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'a' },
    spec: {
      rootHost: 'a.k.example.com',
      endpoints: [{ dnsName: 'a.k.example.com', recordType: 'A', targets: [address] }],
    },
  })
  const listOf = (address: string) => ({ apiVersion: 'v1', kind: 'List', items: [one(address)] })
  const block = (address: string) => recordManifest('a', address)
  const item = (address: string) => block(address).slice(4).trimEnd().replaceAll('\n', '\n  ')
  const forms: Readonly<Record<string, (address: string) => string>> = {
    'object.json': (address) => JSON.stringify(one(address)),
    'indented.json': (address) => JSON.stringify(one(address), null, 2),
    'list.json': (address) => JSON.stringify(listOf(address)),
    'indented-list.json': (address) => JSON.stringify(listOf(address), null, 2),
    'block.yaml': block,
    'unmarked.yaml': (address) => block(address).slice(4),
    'flow.yaml': (address) => JSON.stringify(one(address)),
    'list.yaml': (address) => `apiVersion: v1\nkind: List\nitems:\n- ${item(address)}\n`,
    'indented-list.yaml': (address) =>
      `apiVersion: v1\nkind: List\nitems:\n  - ${item(address).replaceAll('\n', '\n  ')}\n`,
    'directive.yaml': (address) => `%YAML 1.2\n${block(address)}`,
    'anchor.yaml': (address) => block(address).replace('name: a\n', 'name: &n a\n'),
    'comment.yaml': (address) => `# one\n${block(address)}...\n`,
  }
  const root = t.testdir(
    Object.fromEntries(
      Object.entries(forms).map(([file, print]) => [`${file}.d`, { [file]: print('192.0.2.1') }]),
    ),
  )
  // All forms run at the same time, because each mostly waits.
  const edits = Object.entries(forms).map(async ([file, print]) => {
    const directory = join(root, `${file}.d`)
    const { source, address, becomes } = await open(t, directory)
    t.equal(address('a'), '192.0.2.1', file)
    for (const target of ['192.0.2.2', '192.0.2.33', '192.0.2.4']) {
      writeFileSync(join(directory, '.new'), print(target))
      renameSync(join(directory, '.new'), join(directory, file))
      await becomes('a', target)
    }
    t.strictSame(source.problems(), [], file)
    source.close()
  })
  await Promise.all(edits)
})

t.test('an edited record is found, and only its file is read', async (t) => {
  const directory = t.testdir({
    'a.yaml': recordManifest('a', '192.0.2.1') + recordManifest('b', '192.0.2.2'),
    sub: { 'c.yml': recordManifest('c', '192.0.2.3') },
    'notes.txt': 'not a manifest',
    '.hidden.yaml': recordManifest('h', '192.0.2.9'),
  })
  const { source, address, becomes } = await open(t, directory)
  t.strictSame(['a', 'b', 'c', 'h'].map(address), [
    '192.0.2.1',
    '192.0.2.2',
    '192.0.2.3',
    undefined,
  ])
  const changed: string[] = []
  source.subscribe((changes) => changed.push(...changes.map((c) => c.after?.key ?? '')))
  const before = source.find('default/b')
  await source.settled()
  const { filesRead } = source
  writeFileSync(
    join(directory, 'a.yaml'),
    `# moved\n${recordManifest('a', '192.0.2.7')}${recordManifest('b', '192.0.2.2')}`,
  )
  await becomes('a', '192.0.2.7')
  await source.settled()
  t.equal(source.find('default/b'), before, 'the other record of the file is untouched')
  t.strictSame(new Set(changed), new Set(['default/a']))
  t.ok(source.filesRead - filesRead <= 2, 'no other file was read')
})

t.test('a deleted file takes its records along, a new one brings some', async (t) => {
  const directory = t.testdir({ 'a.yaml': recordManifest('a', '192.0.2.1') })
  const { becomes } = await open(t, directory)
  writeFileSync(join(directory, 'b.yaml'), recordManifest('b', '192.0.2.2'))
  await becomes('b', '192.0.2.2')
  unlinkSync(join(directory, 'a.yaml'))
  await becomes('a', undefined)
  mkdirSync(join(directory, 'new'))
  writeFileSync(
    join(directory, 'new', 'c.json'),
    JSON.stringify({ kind: 'List', items: [json('c')] }),
  )
  await becomes('c', '192.0.2.3')
})

function json(name: string): object {
  const endpoints = [{ dnsName: `${name}.k.example.com`, recordType: 'A', targets: ['192.0.2.3'] }]
  const spec = { rootHost: `${name}.k.example.com`, endpoints }
  return { apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord', metadata: { name }, spec }
}

t.test(
  'an invalid file keeps its last state, is logged with its line, and can recover',
  async (t) => {
    const directory = t.testdir({ 'a.yaml': recordManifest('a', '192.0.2.1') })
    const { source, lines, address, becomes } = await open(t, directory)
    t.equal(source.unreadyReason(), '')
    const path = join(directory, 'a.yaml')
    writeFileSync(path, `${recordManifest('a', '192.0.2.2')}---\nkind: [DNSRecord\n`)
    await until(() => source.unreadyReason() !== '', 'the fault to be noticed')
    t.equal(address('a'), '192.0.2.1')
    t.match(source.unreadyReason(), /a\.yaml:1[3-6]: .*its last valid content is served/)
    await until(() => lines.some((line) => line.includes('a.yaml:')), 'the line')
    writeFileSync(path, recordManifest('a', '192.0.2.3'))
    await becomes('a', '192.0.2.3')
    await until(() => source.unreadyReason() === '', 'the end of the fault')
  },
)

t.test(
  'a document that says not who it is stays a fault while others of its file change',
  async (t) => {
    const nameless = recordManifest('b', '192.0.2.2').replace('  name: b', '  labels: {}')
    const directory = t.testdir({ 'a.yaml': recordManifest('a', '192.0.2.1') + nameless })
    const { source, lines, address, becomes } = await open(t, directory)
    const path = join(directory, 'a.yaml')
    t.match(source.unreadyReason(), /a\.yaml:17: metadata\.name is required/)
    t.equal(address('a'), '192.0.2.1', 'the others are served on the first reading')
    lines.length = 0
    writeFileSync(path, recordManifest('a', '192.0.2.3') + nameless)
    await until(
      () => lines.some((line) => line.includes('a.yaml:17: ')),
      'the fault to be logged again',
    )
    t.match(
      source.unreadyReason(),
      /a\.yaml:17: metadata\.name is required; its last valid content is served/,
    )
    t.equal(address('a'), '192.0.2.1')
    writeFileSync(path, recordManifest('a', '192.0.2.3') + recordManifest('b', '192.0.2.2'))
    await becomes('a', '192.0.2.3')
    t.equal(source.unreadyReason(), '')
  },
)

t.test('a file that is YAML, but of no resource, is a bad file', async (t) => {
  const directory = t.testdir({
    'a.yaml': recordManifest('a', '192.0.2.1'),
    'empty.yaml': '---\n# none\n',
  })
  const { source, address } = await open(t, directory)
  t.equal(source.unreadyReason(), '', 'an empty document is none')
  for (const { given, want } of [
    {
      given: 'apiVers',
      want: /a\.yaml:1: a resource must be a mapping, got a single value; /,
    },
    {
      given: '# b\n- a\n',
      want: /a\.yaml:[12]: a resource must be a mapping, got a list; /,
    },
  ]) {
    writeFileSync(join(directory, 'a.yaml'), given)
    await until(() => want.test(source.unreadyReason()), `${given} on the ready page`)
    t.equal(address('a'), '192.0.2.1', given)
  }
})

t.test('a refused record keeps its last good version, the others go on', async (t) => {
  const directory = t.testdir({
    'a.yaml': recordManifest('a', '192.0.2.1') + recordManifest('b', '192.0.2.2'),
  })
  const { source, address, becomes } = await open(t, directory)
  writeFileSync(
    join(directory, 'a.yaml'),
    recordManifest('a', 'nonsense') + recordManifest('b', '192.0.2.4'),
  )
  await becomes('b', '192.0.2.4')
  t.equal(address('a'), '192.0.2.1')
  t.equal(source.refusedCount, 1)
  t.equal(source.unreadyReason(), '', 'refused records are no reason to be unready')
  const [problem] = source.problems()
  t.match(
    problem?.print(),
    /a\.yaml:12: default\/a is refused, its last valid version is served: .*nonsense/,
  )
})

t.test('the same record in two files: the first by path is served until it goes', async (t) => {
  const directory = t.testdir({
    'b.yaml': recordManifest('a', '192.0.2.2'),
    'a.yaml': recordManifest('a', '192.0.2.1'),
  })
  const { source, address, becomes } = await open(t, directory)
  t.equal(address('a'), '192.0.2.1')
  t.match(source.problems()[0]?.print(), /b\.yaml:1: DNSRecord default\/a is also in .*a\.yaml/)
  unlinkSync(join(directory, 'a.yaml'))
  await becomes('a', '192.0.2.2')
  t.strictSame(source.problems(), [])
})

t.test('a probe takes its address down and gives it back', async (t) => {
  const probe = (healthy: boolean) => `
apiVersion: kuadrant.io/v1alpha1
kind: DNSHealthCheckProbe
metadata:
  name: p
  labels:
    kuadrant.io/health-probes-owner: a
spec:
  address: 192.0.2.1
status:
  healthy: ${healthy}
`
  const directory = t.testdir({
    'a.yaml': recordManifest('a', '192.0.2.1'),
    'p.yaml': probe(false),
  })
  const { source } = await open(t, directory)
  t.strictSame(source.health.healthOf('default/a').down, ['192.0.2.1'])
  writeFileSync(join(directory, 'p.yaml'), probe(true))
  await until(() => source.health.healthOf('default/a').down.length === 0, 'the probe to be good')
  t.strictSame(source.health.healthOf('default/a').up, ['192.0.2.1'], 'for other sites to know')
})

t.test('a record and its probe that are removed together change together', async (t) => {
  const probe = `
apiVersion: kuadrant.io/v1alpha1
kind: DNSHealthCheckProbe
metadata:
  name: p
  labels:
    kuadrant.io/health-probes-owner: a
spec:
  address: 192.0.2.1
status:
  healthy: false
`
  const directory = t.testdir({ 'a.yaml': `${recordManifest('a', '192.0.2.1')}---${probe}` })
  const { source } = await open(t, directory)
  const seen: string[] = []
  const note = (event: string): void => {
    const down = source.health.healthOf('default/a').down.join()
    seen.push(`${event}: ${source.find('default/a') === undefined ? 'no record' : down}`)
  }
  source.subscribe(() => note('records'))
  source.health.subscribe(() => note('health'))
  writeFileSync(join(directory, 'a.yaml'), recordManifest('b', '192.0.2.2'))
  await until(() => seen.length === 2, 'both changes')
  t.strictSame(seen, ['records: no record', 'health: no record'], 'the address never was up')
})

t.test('check reports every fault with its line', async (t) => {
  const directory = t.testdir({
    'a.yaml': `${recordManifest('a', '192.0.2.256')}${recordManifest('b', '192.0.2.2')}---\na: b: c\n`,
    'b.json': '{\n"kind": ]\n',
    'c.json': JSON.stringify(
      { kind: 'List', items: [json('c'), { ...json('d'), spec: {} }] },
      null,
      1,
    ),
  })
  const problems = (
    await checkManifests(
      directory,
      () => {},
      () => {},
    )
  ).map((p) => p.print().slice(directory.length + 1))
  t.equal(problems.length, 4)
  t.match(
    problems[0],
    /^a\.yaml:12: default\/a is refused: endpoint a\.k\.example\.com target "192\.0\.2\.256" is not an IPv4 address/,
  )
  t.match(problems[1], /^a\.yaml:26: /)
  t.match(problems[2], /^b\.json:2: /)
  t.match(problems[3], /^c\.json:\d+: default\/d is refused: spec\.rootHost is required/)
  await t.rejects(
    checkManifests(
      join(directory, 'nowhere'),
      () => {},
      () => {},
    ),
    /cannot be listed/,
  )
})

t.test('octets that are not UTF-8 are a fault of the file, with their line', async (t) => {
  const text = (word: string) =>
    `${recordManifest('a', '192.0.2.1')}# ${word}\n${recordManifest('b', '::1')}`
  const bad = Buffer.from(text('caf\u00e9'), 'latin1')
  const directory = t.testdir({})
  for (const [name, content] of [
    ['document.yaml', bad],
    [
      'good.yaml',
      Buffer.from(recordManifest('g', '192.0.2.7').replace('name: g', 'name: g # \u00e9')),
    ],
    ['stream.yaml', Buffer.concat([Buffer.from('%YAML 1.2\n'), bad])],
    ['text.json', Buffer.from(`{\n"caf\u00e9": 1}`, 'latin1')],
    ['wide.yaml', Buffer.from(`\ufeff${recordManifest('w', '192.0.2.1')}`, 'utf16le')],
  ] as const) {
    writeFileSync(join(directory, name), content)
  }
  const problems = (
    await checkManifests(
      directory,
      () => {},
      () => {},
    )
  ).map((p) => p.print().slice(directory.length + 1))
  const reason = 'octets that are not UTF-8; save the file as UTF-8'
  t.strictSame(
    problems.filter((text) => text.includes('UTF-8')),
    [
      `document.yaml:13: ${reason}`,
      `stream.yaml:14: ${reason}`,
      `text.json:2: ${reason}`,
      `wide.yaml:1: ${reason}`,
    ],
  )
  const { source, address } = await open(t, directory)
  t.equal(address('g'), '192.0.2.7')
  const served = [...source.records()].map((record) => record.key)
  t.notOk(served.includes('default/w'))
})

t.test(
  'a property that nothing reads is logged once, by every reading that finds it first',
  async (t) => {
    const typo = (name: string, address: string) =>
      recordManifest(name, address).replace(
        '    recordType: A',
        '    recordTtl: 60\n    recordType: A',
      )
    const directory = t.testdir({ 'a.yaml': typo('a', '192.0.2.1') + typo('b', '192.0.2.2') })
    const { source, lines, becomes } = await open(t, directory)
    const ignored = () => lines.filter((line) => line.includes('recordTtl'))
    t.equal(ignored().length, 1)
    t.match(
      ignored()[0],
      /a\.yaml:10: default\/a: "recordTtl" is not a field of an endpoint and is ignored; did you mean recordTTL\?; the same in 1 more records$/,
    )
    writeFileSync(join(directory, 'a.yaml'), typo('a', '192.0.2.3') + typo('b', '192.0.2.2'))
    await becomes('a', '192.0.2.3')
    writeFileSync(join(directory, 'c.yaml'), typo('c', '192.0.2.3'))
    await becomes('c', '192.0.2.3')
    await source.settled()
    t.strictSame(ignored().length, 2, 'only of what is new')
    t.match(ignored()[1], /c\.yaml:10: default\/c: /)
  },
)

t.test('lists of records are read item by item, in YAML and JSON', async (t) => {
  const items = ['a', 'b', 'c'].map(json)
  const yaml = (name: string) =>
    `- ${recordManifest(name, '192.0.2.3').slice(4).trimEnd().replaceAll('\n', '\n  ')}\n`
  const bad = yaml('e').replace('192.0.2.3', 'nonsense')
  const directory = t.testdir({
    'a.json': JSON.stringify({ kind: 'DNSRecordList', items }, null, 1),
    'b.yaml': `apiVersion: v1\nitems:\n${yaml('d')}${bad}kind: List\nmetadata: {}\n`,
    'c.yaml': `kind: Other\nitems:\n- 1\n- x\n`,
    'd.json': `{"kind": "List",\n"items": [\n{"kind": "DNSRecord"}, \n{]]}`,
  })
  const { source, address } = await open(t, directory)
  t.strictSame(
    ['a', 'b', 'c', 'd'].map(address),
    Array.from({ length: 4 }, () => '192.0.2.3'),
  )
  const texts = source.problems().map((problem) => problem.print().slice(directory.length + 1))
  t.match(texts[0], /^b\.yaml:\d+: default\/e is refused: .*"nonsense"/)
  t.ok(
    texts.slice(1).every((text) => text.startsWith('d.json:')),
    texts.join('\n'),
  )
})

t.test('bounds of files have clear errors, and the others are served', async (t) => {
  const broken = (count: number) => '---\na: [\n'.repeat(count)
  const directory = t.testdir({
    'a.yaml': recordManifest('a', '192.0.2.1'),
    'broken.yaml': broken(1200),
    'long.yaml': `a: ${'x'.repeat(1_600_000)}\n`,
    'long.json': `{"a": "${'x'.repeat(1_600_000)}"}`,
    'refused.yaml': Array.from({ length: 1100 }, (_, i) => recordManifest(`r${i}`, 'x')).join(''),
    'anchors.yaml': `${Array.from({ length: 101 }, (_, i) => `k${i}: &a${i} 1`).join('\n')}\n`,
  })
  execFileSync('truncate', ['-s', '1G', join(directory, 'sparse.yaml')])
  execFileSync('mkfifo', [join(directory, 'pipe.yaml')])
  symlinkSync('.', join(directory, 'loop'))
  const { source, address } = await open(t, directory)
  t.equal(address('a'), '192.0.2.1')
  const texts = source.problems().map((problem) => problem.print().slice(directory.length + 1))
  const one = (start: string) => texts.filter((text) => text.startsWith(start))
  t.equal(one('broken.yaml').length, 1001)
  t.match(one('broken.yaml').join('\n'), /only the first 1000 faults of this file are reported/)
  t.match(one('long.yaml'), [/^long\.yaml:1: a document is longer than 1572864 octets: split it/])
  t.match(one('long.json'), [/^long\.json:1: a resource in JSON is longer than 1572864 octets/])
  t.equal(one('refused.yaml').length, 1001)
  t.match(one('refused.yaml').join('\n'), /1000 records of this file are refused; further ones/)
  t.match(one('anchors.yaml'), [/^anchors\.yaml:101: more than 100 anchors or aliases/])
  t.match(one('sparse.yaml'), [/^sparse\.yaml:1: file of 1073741824 octets: at most 134217728/])
  t.strictSame(one('pipe.yaml'), [], 'not a regular file')
  t.equal(source.refusedCount, 1100)
})

t.test('the place of an ignored part is its line, also after its document moved', async (t) => {
  const typo = recordManifest('a', '192.0.2.1').replace('targets:', 'targetz: []\n    targets:')
  const line = typo.split('\n').findIndex((text) => text.includes('targetz')) + 1
  const json = JSON.stringify({ kind: 'DNSRecordList', items: [{ kind: 'DNSRecrod' }] }, null, 1)
  const directory = t.testdir({
    'a.yaml': typo + typo.replace('name: a', 'name: b'),
    'c.json': json,
  })
  const { source } = await open(t, directory)
  const places = () =>
    source
      .problemGroups('here')
      .flatMap(({ problems }) =>
        [...problems].map(({ place }) => place.slice(directory.length + 1)),
      )
      .sort()
  const second = typo.split('\n').length - 1 + line
  t.strictSame(places(), [`a.yaml:${line}`, `a.yaml:${second}`, 'c.json:5'])
  writeFileSync(join(directory, 'a.yaml'), `# one\n# two\n${typo}`)
  await until(() => source.find('default/b') === undefined, 'b to be gone')
  t.strictSame(places(), [`a.yaml:${line + 2}`, 'c.json:5'])
  const many = Array.from({ length: 300 }, (_, i) => typo.replace('name: a', `name: m${i}`))
  writeFileSync(join(directory, 'a.yaml'), many.join(''))
  await until(() => source.find('default/m299') !== undefined, 'many')
  t.equal(places().length, 301)
  t.ok(places().filter((place) => place === 'a.yaml:1').length === 0, 'the listed ones have lines')
})
