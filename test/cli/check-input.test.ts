import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { check } from '../../src/cli/check.ts'
import { recordManifest } from '../support/manifest.ts'
import { recordOutput } from '../support/recorded-output.ts'

/** `sextant check --manifests` of a directory with these files. */
async function run(
  t: Test,
  files: Record<string, string>,
  args: readonly string[] = [],
): Promise<{ code: number; printed: string[]; errors: string[] }> {
  const directory = t.testdir(files)
  const { output, printed, errors } = recordOutput(directory)
  const code = await check(['--manifests', directory, ...args], output)
  const short = (line: string) => line.replace(directory, 'DIR')
  return { code, printed: printed.map(short), errors }
}

const RECORD = recordManifest('a', '192.0.2.1')
const PROBE = `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSHealthCheckProbe
metadata: {name: p, ownerReferences: [{kind: DNSRecord, name: a}]}
spec: {address: 192.0.2.1}
status: {healthy: true}
`
const CHECK = `  healthCheck:\n    path: /\n    interval: 1m\n    failureThreshold: 3\n`
/** Of an endpoint; the last ones are for other programs. */
const PROPERTIES = `
    providerSpecific:
    - {name: weight, value: "1"}
    - {name: geo-code, value: IE}
    - {name: aws/evaluate-target-health, value: "true"}
    - {name: aws/weight, value: "1"}
`

/** Each changes `was` of a valid manifest to `is`. */
const TYPOS: readonly (readonly [was: string, is: string, line: RegExp])[] = [
  [
    'kind: DNSRecord',
    'kind: DNSRecrod',
    /^\[WARNING\] a\.yaml:3: DNSRecrod a: .*did you mean DNSRecord\?$/,
  ],
  ['kind: DNSRecord', 'kind: DNSRecords', /^\[WARNING\] a\.yaml:3: .*did you mean DNSRecord\?$/],
  [
    'kuadrant.io/',
    'kuadrant.oi/',
    /^\[WARNING\] a\.yaml:2: .*did you mean kuadrant\.io\/v1alpha1\?$/,
  ],
  ['kind: DNSRecord\n', '', /^\[WARNING\] a\.yaml:2: .*the kind is missing/],
  [
    '  endpoints:',
    '  endpoint:',
    /^a\.yaml:\d+: default\/a: "endpoint" .*did you mean endpoints\?$/,
  ],
  ['  healthCheck:', '  healthcheck:', /"healthcheck" .*did you mean healthCheck\?$/],
  ['failureThreshold', 'failureTreshold', /did you mean failureThreshold\?$/],
  ['interval:', 'intervall:', /did you mean interval\?$/],
  ['rootHost:', 'rootHosts:', /"rootHosts" .*did you mean rootHost\?$/],
  ['  name: a', '  nmae: a', /"nmae" is not a field of metadata .*did you mean name\?$/],
  [
    'healthy: true',
    'healty: true',
    /DNSHealthCheckProbe default\/p: "healty" .*did you mean healthy\?$/,
  ],
  ['kind: DNSHealthCheckProbe', 'kind: DNSHealthCheckProb', /did you mean DNSHealthCheckProbe\?$/],
  ['recordType: A', 'recordType: a', /did you mean A\?$/],
  ['recordType: A', 'recordType: CNMAE', /did you mean CNAME\?$/],
  ['name: weight', 'name: wieght', /^a\.yaml:20: default\/a: property "wieght" .*mean weight\?$/],
  ['name: geo-code', 'name: geoCode', /property "geoCode" .*did you mean geo-code\?$/],
  ['name: weight', 'name: sextant.io/weight', /property "sextant\.io\/weight" is unknown/],
  ['name: weight', 'name: priority', /^\[WARNING\] .*property "priority" is unknown/],
  [
    'sextant.io/drain:',
    'sextant.io/drian:',
    /^a\.yaml:6: default\/a: annotation "sextant\.io\/drian" .*mean sextant\.io\/drain\?$/,
  ],
  ['sextant.io/drain:', 'sextnat.io/drain:', /^a\.yaml:6: .*did you mean sextant\.io\/drain\?$/],
  ['annotations:', 'labels:', /^a\.yaml:6: .*label "sextant\.io\/drain" is ignored; write it as/],
  ['sextant.io/drain:', 'sextant.io/maintenance:', /^a\.yaml:6: .*is unknown and is ignored/],
]

t.test(
  'a misspelt field or kind is reported with its place and the nearest known name',
  async (t) => {
    const valid =
      RECORD.replace('  endpoints:', `${CHECK}  endpoints:`)
        .replace('metadata:\n', 'metadata:\n  annotations:\n    sextant.io/drain: work\n')
        .trimEnd() +
      PROPERTIES +
      PROBE
    t.match(await run(t, { 'a.yaml': valid }), { code: 0, errors: [] })
    for (const [was, is, line] of TYPOS) {
      t.ok(valid.includes(was), was)
      const files = { 'a.yaml': valid.replace(was, is) }
      const { code, errors } = await run(t, files)
      const own = errors.filter((error) => line.test(error))
      t.equal(own.length, 1, `${is}: ${errors.join('\n')}`)
      t.equal(
        code,
        own[0]!.startsWith('[WARNING]') && errors.every((e) => e.startsWith('[')) ? 0 : 1,
        is,
      )
      t.equal((await run(t, files, ['--strict'])).code, 1, is)
    }
  },
)

t.test('the line is that of the field', async (t) => {
  const lines = RECORD.replace('  endpoints:', '  endpoint:').split('\n')
  const { errors } = await run(t, { 'a.yaml': lines.join('\n') })
  t.match(errors[0], `a.yaml:${lines.indexOf('  endpoint:') + 1}: `)
})

t.test('a wildcard without quotes is an error with its line and the fix', async (t) => {
  const lines = RECORD.replace(/rootHost: .*/, 'rootHost: *.example.com').split('\n')
  const line = lines.indexOf('  rootHost: *.example.com') + 1
  const { code, errors } = await run(t, { 'a.yaml': lines.join('\n') })
  t.equal(code, 1)
  t.strictSame(errors, [
    `a.yaml:${line}: *.example.com without quotes is an alias of YAML, and no anchor before it has this name; write "*.example.com"`,
  ])
})

t.test('what programs write is no fault', async (t) => {
  const metadata = `metadata:
  uid: 1b4e28ba
  generation: 2
  resourceVersion: "7"
  creationTimestamp: "2026-01-01T00:00:00Z"
  managedFields:
  - manager: kubectl
    fieldsV1: {"f:spec": {}}
  fieldOfNewerVersions: x
`
  const status = 'status:\n  conditions: []\n  observedGeneration: 1\n  fieldOfNewerVersions: 1\n'
  const written = RECORD.replace('metadata:\n', metadata) + status
  t.match(await run(t, { 'a.yaml': written }), { code: 0, errors: [] })
})

t.test('objects of other kinds are counted, whatever YAML they use', async (t) => {
  const crd = readFileSync('crds/dnsrecords.yaml', 'utf8')
  const chart = 'kind: Deployment\nspec: {{ .Values.spec }}\n'
  const list = `apiVersion: v1\nkind: List\nitems:\n- kind: Service\n  spec: &a {b: [1, *a}\n`
  const other = 'apiVersion: ingress.operator.openshift.io/v1\nkind: DNSRecord\n'
  const files = {
    'a.yaml': `${RECORD}---\n${chart}---\n${other}`,
    'crd.yaml': crd,
    'list.yaml': list,
    'values.yaml': 'replicas: 1\n',
    'empty.yaml': '',
  }
  t.strictSame(await run(t, files), {
    code: 0,
    printed: [
      'read DIR: 1 DNSRecord in 5 files; ignored 5 objects of other kinds: 1 CustomResourceDefinition, 1 DNSRecord, 1 Deployment, 1 Service, 1 no kind',
      'no errors found',
    ],
    errors: [],
  })
  const faulty = await run(t, { 'a.yaml': RECORD.replace('rootHost:', 'rootHost: {{ x }}') })
  t.equal(faulty.code, 1, 'a record must be valid YAML')
})

t.test('a directory without manifests, and files whose names end otherwise', async (t) => {
  const ending = 'not read: the name of a manifest ends with .yaml, .yml or .json'
  const none =
    '[WARNING] DIR: no file is a manifest: the name of a manifest ends with .yaml, .yml or .json'
  const cases: readonly (readonly [files: Record<string, string>, errors: readonly string[]])[] = [
    [{}, [none]],
    [{ 'README.md': '' }, [none]],
    [{ 'a.yml.txt': RECORD }, [none, `[WARNING] a.yml.txt: ${ending}`]],
    [{ 'a.yaml': RECORD, 'b.YAML': RECORD }, [`[WARNING] b.YAML: ${ending}`]],
    [{ 'a.yaml': RECORD, 'b.Json.TXT': RECORD }, [`[WARNING] b.Json.TXT: ${ending}`]],
    [{ 'a.yaml': RECORD, 'b.yaml.bak': '', 'b.txt': '', '.b.YAML': '', 'c.yaml~': '' }, []],
  ]
  for (const [files, want] of cases) {
    const { code, errors } = await run(t, files)
    const found = errors.map((line) => line.replace(/\/\S*(?=: no file)/, 'DIR'))
    t.strictSame({ code, errors: found.sort() }, { code: 0, errors: [...want].sort() })
    t.equal((await run(t, files, ['--strict'])).code, want.length === 0 ? 0 : 1)
  }
})

/** The owners and CNAME targets of a record, below k.example.com. */
const LOOPS: readonly {
  name: string
  aliases: readonly (readonly [string, string])[]
  way?: string
}[] = [
  {
    name: 'none',
    aliases: [
      ['a', 'b'],
      ['b', 'c'],
      ['d', 'c'],
    ],
  },
  { name: 'a name that leads to itself', aliases: [['a', 'a']], way: 'a to a' },
  {
    name: 'two names',
    aliases: [
      ['a', 'b'],
      ['b', 'a'],
    ],
    way: 'a to b to a',
  },
  {
    name: 'behind a chain',
    aliases: [
      ['x', 'a'],
      ['a', 'b'],
      ['b', 'a'],
    ],
    way: 'a to b to a',
  },
  { name: 'a wildcard that its own target matches', aliases: [['*.w', 'x.w']], way: '*.w to x.w' },
  {
    name: 'a wildcard whose target exists',
    aliases: [
      ['*.w', 'x.w'],
      ['x.w', 'y'],
    ],
  },
]

t.test('CNAMEs that lead in a circle are an error', async (t) => {
  for (const { name, aliases, way } of LOOPS) {
    const endpoints = aliases.map(
      ([owner, target]) =>
        `  - dnsName: "${owner}.k.example.com"\n    recordType: CNAME\n    targets: [${target}.k.example.com]\n`,
    )
    const head = 'apiVersion: kuadrant.io/v1alpha1\nkind: DNSRecord\nmetadata:\n  name: a\n'
    const text = `${head}spec:\n  rootHost: k.example.com\n  endpoints:\n${endpoints.join('')}`
    const { code, errors } = await run(t, { 'a.yaml': text })
    t.equal(code, way === undefined ? 0 : 1, name)
    const full = way?.replaceAll(/\S+(?<!to)(?= |$)/g, '$&.k.example.com.')
    const want =
      full === undefined ? [] : [`default/a: the CNAMEs lead in a circle, from ${full}: `]
    t.equal(errors.length, want.length, name)
    for (const [i, line] of want.entries()) t.ok(errors[i]?.includes(line), `${errors[i]}: ${line}`)
  }
})

t.test('without a Corefile, the text says what is checked', async (t) => {
  const directory = t.testdir({ none: {} })
  mkdirSync(join(directory, 'empty'))
  const before = process.cwd()
  process.chdir(join(directory, 'empty'))
  t.teardown(() => process.chdir(before))
  const { output, printed } = recordOutput()
  t.equal(await check([], output), 0)
  t.match(printed, [
    /^no Corefile in this directory: checked the built-in one, \.:53 \{ whoami log \}/,
    'no errors found',
  ])
})
