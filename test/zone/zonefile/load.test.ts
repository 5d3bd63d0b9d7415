import fs, { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { test } from 'tap'
import { runWhole } from '../../../src/base/slices.ts'
import { fillImage } from '../../../src/zone/zonefile/fill.ts'
import { haveChanged, loadZone, loadZoneText } from '../../../src/zone/zonefile/load.ts'
import { printZone } from '../../support/print-zone.ts'
import { listRRsets, listZones } from '../../support/zone-contents.ts'
import { loadText, wire } from '../../support/zone-text.ts'

const SOA = '@ 60 SOA ns host 7 2 3 4 5\n'
const APEX = `${SOA}@ 60 NS ns.example.net.\n`

/** Errors, warnings and, as text, what would be served. */
function outcome(text: string, apex = 'example.org.') {
  const load = loadText(text, {}, apex)
  if (load.kind === 'failed') return { errors: load.errors.map((error) => error.print()) }
  if (load.kind !== 'loaded') return { kind: load.kind }
  const image = runWhole(fillImage(load.records, wire(apex)))
  const reader = image.reader()
  reader.refresh()
  const zone = [...listZones(reader)][0]!
  const lines = [...printZone(listRRsets(reader, zone.id))].map((line) =>
    line.replaceAll('\t', ' '),
  )
  return { warnings: load.warnings.map((warning) => warning.print()), lines: lines.sort() }
}

const faults: { name: string; given: string; want: RegExp[] }[] = [
  {
    name: 'no SOA',
    given: '@ 1 NS ns\n',
    want: [/^db\.test:1: file "db\.test" has no SOA record for origin example\.org\.; add one/],
  },
  { name: 'an empty file', given: '', want: [/has no SOA record/] },
  {
    name: 'a second, different SOA',
    given: `${APEX}\n@ 60 SOA ns host 8 2 3 4 5\n`,
    want: [/^db\.test:4: a second SOA for example\.org\., the first is at db\.test:1; remove one/],
  },
  {
    name: 'an SOA below the apex',
    given: `${APEX}sub 60 SOA ns host 8 2 3 4 5\n`,
    want: [/^db\.test:3: SOA at sub\.example\.org\. is not at the apex/],
  },
  {
    name: 'CNAME beside other data, both lines named',
    given: `${APEX}a 60 A 192.0.2.1\n\na 60 CNAME b\n`,
    want: [/^db\.test:5: a\.example\.org\. has a CNAME \(db\.test:5\) beside A \(db\.test:3\)/],
  },
  {
    name: 'CNAME at the apex',
    given: `${APEX}@ 60 CNAME b\n`,
    want: [/^db\.test:3: example\.org\. has a CNAME/],
  },
  {
    name: 'two CNAMEs',
    given: `${APEX}a 60 CNAME b\na 60 CNAME c\n`,
    want: [/^db\.test:4: a second CNAME for a\.example\.org\., the first is at db\.test:3/],
  },
  {
    name: 'two DNAMEs',
    given: `${APEX}a 60 DNAME b\na 60 DNAME c\n`,
    want: [/a second DNAME for a\.example\.org\./],
  },
  {
    name: 'NSEC3 with too many iterations, once for all of them,',
    given: `${APEX}@ 0 NSEC3PARAM 1 0 150 -\n@ 0 NSEC3PARAM 1 0 151 -\n@ 0 NSEC3PARAM 1 0 999 -\n`,
    want: [/^db\.test:4: NSEC3 with 151 iterations; at most 150 are accepted: sign/],
  },
  {
    name: 'NSEC3 with few iterations that a long salt makes costly',
    given: `${APEX}@ 0 NSEC3PARAM 1 0 150 ${'ab'.repeat(35)}\n@ 0 NSEC3PARAM 1 0 30 ${'ab'.repeat(255)}\n@ 0 NSEC3PARAM 1 0 31 ${'ab'.repeat(255)}\n`,
    want: [
      /^db\.test:5: NSEC3 with 31 iterations and a salt of 255 octets; at most 30 are accepted/,
    ],
  },
  {
    name: 'every fault of the whole zone',
    given: `${SOA}a 60 CNAME b\na 60 A 192.0.2.1\nb 60 CNAME c\nb 60 CNAME d\n`,
    want: [/a\.example\.org\. has a CNAME/, /a second CNAME for b\.example\.org\./],
  },
]

for (const { name, given, want } of faults) {
  test(`zone check: ${name} keeps the zone from being served`, async (t) => {
    const { errors } = outcome(given)
    t.match(errors, want)
    t.equal(errors?.length, want.length, String(errors))
  })
}

const mended: { name: string; given: string; warnings: RegExp[]; lines: string[] }[] = [
  {
    name: 'duplicates are served once, with one warning',
    given: `${APEX}a 60 A 192.0.2.1\na 60 A 192.0.2.2\nA 60 A 192.0.2.1\na 60 A 192.0.2.2\n`,
    warnings: [/^db\.test:5: 2 record\(s\) written twice, the first for a\.example\.org\./],
    lines: ['a.example.org. 60 IN A 192.0.2.1', 'a.example.org. 60 IN A 192.0.2.2'],
  },
  {
    name: 'the SOA written twice is one SOA',
    given: `${APEX}${SOA}`,
    warnings: [/1 record\(s\) written twice/],
    lines: [],
  },
  {
    name: 'TTLs that differ in a set become the lowest, with a warning',
    given: `${APEX}a 90 A 192.0.2.1\na 30 A 192.0.2.2\na 90 TXT x\n`,
    warnings: [
      /^db\.test:4: TTLs differ in the A records of a\.example\.org\.; all get the lowest, 30/,
    ],
    lines: [
      'a.example.org. 30 IN A 192.0.2.1',
      'a.example.org. 30 IN A 192.0.2.2',
      'a.example.org. 90 IN TXT "x"',
    ],
  },
  {
    name: 'TTLs of more than 31 bits count as 0, with one warning',
    given: `${APEX}a 2147483648 A 192.0.2.1\n$TTL 4294967295\nb A 192.0.2.2\nc 2147483647 A 192.0.2.3\n`,
    warnings: [/^db\.test:3: TTL 2147483648 has more than 31 bits: it counts as 0/],
    lines: [
      'a.example.org. 0 IN A 192.0.2.1',
      'b.example.org. 0 IN A 192.0.2.2',
      'c.example.org. 2147483647 IN A 192.0.2.3',
    ],
  },
  {
    name: 'a name outside of the zone, and the next record of that name, are ignored with a warning',
    given: `${APEX}www.example.net. 60 A 192.0.2.1\n 60 A 192.0.2.2\na 60 A 192.0.2.3\n`,
    warnings: [
      /^db\.test:3: ignored 2 records of names outside of zone example\.org\., the first is www\.example\.net\.; move them/,
    ],
    lines: ['a.example.org. 60 IN A 192.0.2.3'],
  },
  {
    name: 'a name that only ends like the zone is outside of it',
    given: `${APEX}notexample.org. 60 A 192.0.2.1\norg. 60 A 192.0.2.1\n. 60 A 192.0.2.1\n`,
    warnings: [/^db\.test:3: ignored 3 records .*, the first is notexample\.org\./],
    lines: [],
  },
  {
    name: 'a relative name under an origin outside of the zone is outside of it',
    given: `${APEX}$ORIGIN example.net.\nwww 60 A 192.0.2.1\nwww.example.org. 60 A 192.0.2.2\n`,
    warnings: [/^db\.test:4: ignored 1 record .*, the first is www\.example\.net\.; move it/],
    lines: ['www.example.org. 60 IN A 192.0.2.2'],
  },
  {
    name: '$GENERATE outside of the zone is counted, not reported for each step',
    given: `${APEX}$GENERATE 1-9 a$.example.net. 60 A 192.0.2.$\n@ 60 TXT x\n`,
    warnings: [/^db\.test:3: ignored 9 records/],
    lines: ['example.org. 60 IN TXT "x"'],
  },
  {
    name: 'an SOA outside of the zone is not the SOA of the zone',
    given: `example.net. 60 SOA ns host 9 2 3 4 5\n${APEX}`,
    warnings: [/^db\.test:1: ignored 1 record/],
    lines: [],
  },
  {
    name: 'a digest of a wrong length is served',
    given: `${APEX}a 60 DS 1 8 2 abcd\nb 60 DS 1 8 9 abcd\n@ 60 CDS 1 8 1 ab\n`,
    warnings: [
      /^db\.test:5: CDS of example\.org\.: a digest of type 1 has 20 octets, not 1; BIND rejects replies that contain it; copy/,
      /^db\.test:3: DS of a\.example\.org\.: a digest of type 2 has 32 octets, not 2;/,
    ],
    lines: [
      'a.example.org. 60 IN DS 1 8 2 ABCD',
      'b.example.org. 60 IN DS 1 8 9 ABCD',
      'example.org. 60 IN CDS 1 8 1 AB',
    ],
  },
  {
    name: 'targets that repeat the zone lack the final dot, unless they exist',
    given: `${APEX}a 60 CNAME b.example.org\n@ 60 MX 5 MX.example.org\nc 60 CNAME d.example.org\nd.example.org 60 TXT x\n`,
    warnings: [
      /^db\.test:4: MX of example\.org\. leads to MX\.example\.org\.example\.org\., which is not in the file; if MX\.example\.org\. is meant, write the final dot$/,
      /^db\.test:3: CNAME of a\.example\.org\. leads to b\.example\.org\.example\.org\.,/,
    ],
    lines: [
      'a.example.org. 60 IN CNAME b.example.org.example.org.',
      'c.example.org. 60 IN CNAME d.example.org.example.org.',
      'd.example.org.example.org. 60 IN TXT "x"',
      'example.org. 60 IN MX 5 MX.example.org.example.org.',
    ],
  },
  {
    name: 'records of one owner may stand apart',
    given: `${APEX}a 60 A 192.0.2.1\nb 60 A 192.0.2.9\na 60 A 192.0.2.2\n`,
    warnings: [],
    lines: [
      'a.example.org. 60 IN A 192.0.2.1',
      'a.example.org. 60 IN A 192.0.2.2',
      'b.example.org. 60 IN A 192.0.2.9',
    ],
  },
]

for (const { name, given, warnings, lines } of mended) {
  test(`zone check: ${name}`, async (t) => {
    const found = outcome(given)
    t.match(found.warnings, warnings)
    t.equal(found.warnings?.length, warnings.length)
    const apex = ['example.org. 60 IN NS ns.example.net.', `example.org. 60 IN SOA ${SOA_TEXT}`]
    t.same(found.lines, [...lines, ...apex].sort())
  })
}

const SOA_TEXT = 'ns.example.org. host.example.org. 7 2 3 4 5'

// Everything is below the root.
test('zone check: no target repeats the root zone', async (t) => {
  const { warnings } = outcome(
    `. 60 SOA ${SOA_TEXT}\n. 60 NS ns.example.org.\nfr. 60 NS d.nic.fr.\nmail. 60 MX 5 mx.example.org.\n`,
    '.',
  )
  t.match(warnings, [
    /^db\.test:2: .*ns\.example\.org\. has no/,
    /^db\.test:3: .*d\.nic\.fr\. has no/,
  ])
  t.equal(warnings?.length, 2)
})

test('zone check: a zone without apex NS is served with a warning', async (t) => {
  const { warnings } = outcome(SOA)
  t.match(warnings, [/^db\.test:1: zone example\.org\. has no NS records at its apex/])
})

test('zone check: duplicates in a large set are found too', async (t) => {
  const lines = Array.from({ length: 200 }, (_, i) => `a 60 A 10.0.0.${i % 100}\n`).join('')
  t.equal(outcome(APEX + lines).lines?.length, 102)
})

test('zone check: more types at a name than an image holds are an error', async (t) => {
  const lines = Array.from({ length: 256 }, (_, i) => `a 60 TYPE${60000 + i} \\# 0\n`).join('')
  t.match(outcome(APEX + lines).errors, [/a\.example\.org\. has more than 255 types/])
})

test('load: the serial is the SOA record\u2019s, and loading stops where it is known', async (t) => {
  const load = loadText(`@ 60 SOA ns host 4294967295 2 3 4 5\n@ 60 NS ns\n`)
  t.equal(load.kind === 'loaded' && load.serial, 4294967295)
  t.equal(loadText(`${APEX}broken`, { unlessSerial: 7 }).kind, 'unchanged')
  t.equal(loadText(`${APEX}`, { unlessSerial: 8 }).kind, 'loaded')
})

test('load: files that include each other', async (t) => {
  const dir = t.testdir({
    'db.example.org': [
      APEX,
      '$ORIGIN deep.example.org.',
      'www 1 A 192.0.2.1',
      '$INCLUDE parts/hosts hosts.example.org.',
      ' 1 A 192.0.2.2',
      '$INCLUDE "parts/plain"',
    ].join('\n'),
    parts: {
      hosts: '@ 1 A 192.0.2.3\n$ORIGIN x.example.org.\na 1 A 192.0.2.4\n$TTL 9\n$INCLUDE inner\n',
      inner: 'i A 192.0.2.5\n',
      plain: 'p A 192.0.2.6\n',
    },
  })
  const load = runWhole(loadZone(join(dir, 'db.example.org'), wire('example.org.')))
  if (load.kind !== 'loaded') throw new Error(String(load.kind))
  const { records } = load
  const find = (name: string) => records.find(wire(name), wire(name).length)
  t.not(find('hosts.example.org.'), -1, 'the origin of the directive')
  t.not(find('a.x.example.org.'), -1, 'the origin inside the file')
  t.not(find('i.x.example.org.'), -1, 'relative to the including file, origin handed down')
  const www = records.firstRecord[find('www.deep.example.org.')]!
  t.not(records.nextRecord[www], -1, 'the owner holds again after an include')
  const p = records.firstRecord[find('p.deep.example.org.')]!
  t.equal(records.ttlSeconds[p], 9, '$TTL of an include holds afterwards (RFC 2308 section 4)')
  t.same(load.files.length, 4)
  t.notOk(haveChanged(load.files))
  writeFileSync(join(dir, 'parts/inner'), 'changed A 192.0.2.5\n')
  t.ok(haveChanged(load.files), 'an included file counts')
})

test('load: names outside of the zone have one warning per file', async (t) => {
  const dir = t.testdir({
    main: `${APEX}a.net. 1 A 192.0.2.1\n$INCLUDE sub\nb.net. 1 A 192.0.2.1\n$INCLUDE sub\n`,
    sub: 'a 1 A 192.0.2.2\nc.net. 1 A 192.0.2.1\n',
  })
  const load = runWhole(loadZone(join(dir, 'main'), wire('example.org.')))
  if (load.kind !== 'loaded') throw new Error(String(load.kind))
  const places = load.warnings.map(({ position }) => position)
  t.same(places.slice(0, 2), [
    { file: join(dir, 'main'), line: 3 },
    { file: join(dir, 'sub'), line: 2 },
  ])
  t.match(load.warnings[0]?.message, /ignored 2 records .* first is a\.net\./)
  t.match(load.warnings[1]?.message, /ignored 2 records .* first is c\.net\./)
})

test('load: a file of another zone is refused, and the errors say which names it has', async (t) => {
  const load = loadText('example.net. 60 SOA ns host 7 2 3 4 5\nexample.net. 60 NS ns\n')
  const errors = load.kind === 'failed' ? load.errors : []
  t.match(errors, [
    /has no SOA record for origin example\.org\./,
    /ignored 2 records of names outside of zone example\.org\., the first is example\.net\./,
  ])
})

test('load: a fault in a record outside of the zone is a fault', async (t) => {
  const load = loadText(`${APEX}a.net. 60 A 192.0.2.256\n`)
  t.match(load.kind === 'failed' ? load.errors : [], [
    /expected an IPv4 address, found "192\.0\.2\.256"/,
  ])
})

test('load: a fault in an included file names that file and its line', async (t) => {
  const dir = t.testdir({ main: `${APEX}$INCLUDE sub\n`, sub: '; x\na 1 A nonsense\n' })
  const load = runWhole(loadZone(join(dir, 'main'), wire('example.org.')))
  t.equal(load.kind, 'failed')
  const errors = load.kind === 'failed' ? load.errors : []
  t.equal(errors.length, 1)
  t.same(errors[0]?.position, { file: join(dir, 'sub'), line: 2 })
})

test('load: a file that includes itself ends at depth 7', async (t) => {
  const dir = t.testdir({ main: `${APEX}$INCLUDE main\n` })
  const load = runWhole(loadZone(join(dir, 'main'), wire('example.org.')))
  const errors = load.kind === 'failed' ? load.errors : []
  t.equal(errors.length, 1)
  t.match(errors[0]?.message, /nested deeper than 7/)
  t.equal(load.files.length, 8)
})

test('load: includes count towards the size of the zone', async (t) => {
  const dir = t.testdir({ main: `${APEX}$INCLUDE big\n$INCLUDE big\n`, big: ';'.repeat(1000) })
  const load = runWhole(loadZone(join(dir, 'main'), wire('example.org.'), { octetsMax: 1500 }))
  t.match(load.kind === 'failed' ? load.errors : [], [/larger than the \d+ octets left/])
})

test('load: text of files that are included again is bounded', async (t) => {
  const dir = t.testdir({
    main: `${APEX}${'$INCLUDE big\n'.repeat(100_000)}`,
    big: `a 1 A 192.0.2.1\n${';'.repeat(1000)}`,
  })
  const path = join(dir, 'main')
  const load = runWhole(loadZone(path, wire('example.org.'), { expandedOctetsMax: 2500 }))
  const errors = load.kind === 'failed' ? load.errors : []
  t.equal(errors.length, 1)
  t.match(errors[0]?.message, /big is included again, for more than 2500 octets of text in all/)
  const { line } = errors[0]?.position ?? {}
  t.equal(line, APEX.split('\n').length + 3, 'the fourth include')
})

test('load: a tree of includes ends with a few faults', async (t) => {
  const names = Array.from({ length: 8 }, (_, i) => `f${i}`)
  const files = names.map((name, i) => [name, `$INCLUDE f${i + 1}\n`.repeat(40)])
  const dir = t.testdir({ ...Object.fromEntries(files), main: `${APEX}$INCLUDE f0\n`, f7: '' })
  const load = runWhole(loadZone(join(dir, 'main'), wire('example.org.')))
  const errors = load.kind === 'failed' ? load.errors : []
  t.equal(errors.length, 100)
  t.ok(load.files.length <= 10_000)
})

test('load: an owner with more records than can be sorted in one turn is a fault', async (t) => {
  const sets = ['$GENERATE 1-65535 a TXT "$"', '$GENERATE 1-65535 b A 192.0.2.1', 'a 1 MX 1 x']
  const text = `${APEX}${sets.join('\n')}\n`
  const source = { file: 'db', text: Buffer.from(text), stamp: '' }
  const load = runWhole(loadZoneText(source, wire('example.org.')))
  const errors = load.kind === 'failed' ? load.errors : []
  t.equal(errors.length, 1)
  t.match(errors[0]?.message, /^a\.example\.org\. has more than 65535 records; spread them/)
  t.equal(errors[0]?.position?.line, text.split('\n').length - 1)
})

test('load: a missing include is watched for', async (t) => {
  const dir = t.testdir({ main: `${APEX}$INCLUDE later\n` })
  const load = runWhole(loadZone(join(dir, 'main'), wire('example.org.')))
  t.equal(load.kind, 'failed')
  t.notOk(haveChanged(load.files))
  writeFileSync(join(dir, 'later'), '')
  t.ok(haveChanged(load.files))
})

test('load: what is no readable file is unreadable, with a reason', async (t) => {
  const dir = t.testdir({ file: SOA })
  mkdirSync(join(dir, 'directory'))
  for (const [path, why] of [
    [join(dir, 'nowhere'), /no such file or directory/],
    [join(dir, 'directory'), /not a regular file/],
    ['/dev/zero', /not a regular file/],
  ] as const) {
    const load = runWhole(loadZone(path, wire('example.org.')))
    t.equal(load.kind, 'unreadable')
    t.match(load.kind === 'unreadable' ? load.error.message : '', why)
  }
  const load = runWhole(loadZone(join(dir, 'file'), wire('example.org.'), { octetsMax: 3 }))
  t.equal(load.kind, 'unreadable')
})

test('a flood of comments and empty lines does not keep the thread', (t) => {
  for (const line of ['; c\n', '\n', ' ;\n', '\r\n']) {
    const text = Buffer.from(line.repeat(100_000) + APEX)
    const loading = loadZoneText({ file: 'z', stamp: '', text }, wire('example.org.'))
    let pauses = 0
    let step = loading.next()
    for (; step.done !== true; step = loading.next()) pauses++
    t.equal(step.value.kind, 'loaded')
    t.ok(pauses >= 20, `${JSON.stringify(line)}: ${pauses} pauses`)
  }
  t.end()
})

test('a file that needs more memory than is left', async (t) => {
  const path = join(t.testdir({}), 'db')
  // 80 000 records of 80 octets with 1.4 MiB of text.
  writeFileSync(path, APEX + 'www 60 A 192.0.2.1\n'.repeat(80_000))
  const load = (memoryMax: number) => runWhole(loadZone(path, wire('example.org.'), { memoryMax }))
  const refused = load(6 * 2 ** 20)
  t.equal(
    refused.kind === 'failed' && refused.errors.map((error) => error.print()).join(),
    `${path}:1: loading the zone needs about 8 MiB of memory, and 6 MiB are left; give the server more, or split the zone`,
  )
  t.strictSame(refused.files, [], 'the next reload tries again')
  t.match(load(30 * 2 ** 20), { kind: 'failed', errors: [{ message: /more than 65535 records/ }] })
})

test('empty lines and comments need no memory but that of their text', async (t) => {
  const path = join(t.testdir({}), 'db')
  writeFileSync(path, APEX + ';\n\n'.repeat(400_000))
  const load = runWhole(loadZone(path, wire('example.org.'), { memoryMax: 10 * 2 ** 20 }))
  t.equal(load.kind, 'loaded')
})

test('load: a file that changes while it is read is read again, and refused if it does not stop', (t) => {
  const path = join(t.testdir({}), 'db')
  const whole = `${APEX}a 60 A 192.0.2.1\nb 60 A 192.0.2.2\n`
  const half = whole.slice(0, whole.indexOf('b 60'))
  const { readSync } = fs
  let changesLeft = 0
  const writing = (...args: unknown[]): number => {
    const octets = Reflect.apply(readSync, fs, args) as number
    if (changesLeft-- > 0)
      appendFileSync(path, changesLeft === 0 ? whole.slice(half.length) : '; a\n')
    return octets
  }
  fs.readSync = writing as typeof readSync
  syncBuiltinESMExports()
  t.teardown(() => {
    fs.readSync = readSync
    syncBuiltinESMExports()
  })
  const load = (changes: number) => {
    writeFileSync(path, half)
    changesLeft = changes
    return runWhole(loadZone(path, wire('example.org.')))
  }
  for (const [changes, records] of [
    [0, 3],
    [1, 4],
    [2, 4],
  ] as const) {
    const loaded = load(changes)
    if (loaded.kind !== 'loaded') return t.fail(loaded.kind)
    t.equal(loaded.records.recordCount, records, `${changes} changes`)
    t.notOk(haveChanged(loaded.files))
  }
  const refused = load(100)
  if (refused.kind !== 'unreadable') return t.fail(refused.kind)
  t.equal(
    refused.error.print(),
    `${path}:1: ${path} changes while it is read; write a new file and rename it`,
  )
  t.end()
})
