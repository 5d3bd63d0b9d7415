import t from 'tap'
import { packRecord, unpackRecord, unpackSettings } from '../../../src/records/pack.ts'
import type { RecordSettings } from '../../../src/records/settings.ts'
import { validateResource } from '../../../src/records/validate/resource.ts'
import { printSettings, scanSettingTexts } from '../../../src/records/validate/settings.ts'
import type { YamlValue } from '../../../src/yaml/scan-block-yaml.ts'

const ENDPOINT = {
  dnsName: 'k.example.com',
  recordType: 'A',
  setIdentifier: 'eu-2',
  targets: ['192.0.2.1'],
}

function resource(annotations: YamlValue): YamlValue {
  return {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'r', namespace: 'n', annotations },
    spec: { rootHost: 'k.example.com', endpoints: [ENDPOINT] },
  }
}

const VALID: readonly { name: string; value: string; want: RecordSettings }[] = [
  { name: 'all-down', value: 'closed', want: { allDown: 'closed' } },
  { name: 'all-down', value: 'spare site', want: { allDown: 'spare site' } },
  { name: 'sticky', value: 'true', want: { sticky: { ipv4Bits: 24, ipv6Bits: 56 } } },
  { name: 'sticky', value: 'false', want: { sticky: 'off' } },
  { name: 'answers', value: '1', want: { answers: 1 } },
  { name: 'answers', value: '64', want: { answers: 64 } },
  { name: 'answers', value: 'off', want: { answers: 'off' } },
  {
    name: 'shift',
    value: ' bake=1s to=eu-2  steps=0.5%,25%,100% ',
    want: { shift: { to: 'eu-2', steps: [0.5, 25, 100], bakeMs: 1000 } },
  },
  { name: 'sticky', value: ' 32  64 ', want: { sticky: { ipv4Bits: 32, ipv6Bits: 64 } } },
  {
    name: 'failover',
    value: '# first Europe\ngeo-eu: GEO-NA , spare é\n\n*: GEO-EU,*\n',
    want: {
      failover: [
        { code: 'GEO-EU', entries: ['GEO-NA', 'spare é'] },
        { code: '*', entries: ['GEO-EU', '*'] },
      ],
    },
  },
]

t.test('settings are read from annotations, and survive packing', async (t) => {
  for (const { name, value, want } of VALID) {
    const read = validateResource(resource({ [`sextant.io/${name}`]: value, other: 'x' }))
    if (read.kind !== 'record') return t.fail(`${name} ${value}: ${JSON.stringify(read)}`)
    t.strictSame(read.record.settings, want, `${name}: ${value}`)
    const content = unpackRecord(packRecord(read.record))
    t.strictSame(content.settings, want, `${name}: ${value}, packed`)
    t.strictSame(content.endpoints, read.record.endpoints)
  }
})

const INVALID: readonly { name: string; value: YamlValue; want: RegExp }[] = [
  { name: 'all-down', value: '', want: /must be open, closed or the set identifier/ },
  { name: 'all-down', value: ' open', want: /got " open"/ },
  { name: 'all-down', value: true, want: /must be a string/ },
  { name: 'sticky', value: 'yes', want: /must be true, false or two prefix lengths/ },
  { name: 'sticky', value: '24', want: /got "24"/ },
  { name: 'sticky', value: '33 56', want: /got "33 56"/ },
  { name: 'sticky', value: '24 65', want: /got "24 65"/ },
  { name: 'sticky', value: '0 0', want: /got "0 0"/ },
  ...['', '0', '65', '03', '3 ', '-1', '1e1', 'all'].map((value) => {
    return { name: 'answers', value, want: /must be a number from 1 to 64, or off/ }
  }),
  { name: 'answers', value: 3, want: /must be a string/ },
  { name: 'failover', value: ' \n', want: /has no line/ },
  { name: 'failover', value: 'GEO-EU GEO-NA', want: /has no colon/ },
  { name: 'failover', value: 'EU: GEO-NA', want: /"EU" is not a geo code/ },
  { name: 'failover', value: 'GEO-EU:', want: /has an empty entry/ },
  { name: 'failover', value: 'GEO-EU: a,,b', want: /has an empty entry/ },
  { name: 'failover', value: 'GEO-EU: a, a', want: /has "a" twice/ },
  { name: 'failover', value: '*: a\n*: b', want: /has two lines for \*/ },
  { name: 'failover', value: `*: ${'x'.repeat(5000)}`, want: /up to 4096 characters/ },
  { name: 'shift', value: '', want: /must have the form "to=ID/ },
  { name: 'shift', value: 'to=eu-2 steps=5%', want: /must have the form/ },
  { name: 'shift', value: 'to=eu-2 steps=5% bake=1m bake=2m', want: /must have the form/ },
  { name: 'shift', value: 'to=eu-2 steps=5% bake=1m x=1', want: /must have the form/ },
  { name: 'shift', value: 'to=eu-3 steps=5% bake=1m', want: /shifts to "eu-3", but no endpoint/ },
  { name: 'shift', value: 'to= steps=5% bake=1m', want: /shifts to "", but no endpoint/ },
  ...['', '5', '0%', '5%,5%', '25%,5%', '101%', '5%,', '-1%', '5%, 6%', '1.234%'].map((steps) => {
    return {
      name: 'shift',
      value: `to=eu-2 steps=${steps} bake=1m`,
      want: /steps|must have the form/,
    }
  }),
  ...['', '10', '999ms', '-1m', '169h', 'x'].map((bake) => {
    return { name: 'shift', value: `to=eu-2 steps=5% bake=${bake}`, want: /from 1s to 168h0m0s/ }
  }),
]

t.test('an invalid setting refuses the record, with its place', async (t) => {
  for (const { name, value, want } of INVALID) {
    const read = validateResource(resource({ [`sextant.io/${name}`]: value }))
    if (read.kind !== 'refused') return t.fail(`${name} ${value} is accepted`)
    t.match(read.problem.message, want)
    t.strictSame(read.problem.path, ['metadata', 'annotations', `sextant.io/${name}`])
  }
})

t.test('a drain has a reason, and may have an end', async (t) => {
  const read = (annotations: YamlValue) => {
    const found = validateResource(resource(annotations))
    if (found.kind === 'refused') return found.problem
    if (found.kind !== 'record') return undefined
    return unpackSettings(packRecord(found.record))
  }
  const [DRAIN, UNTIL] = ['sextant.io/drain', 'sextant.io/drain-until']
  const until = '2026-11-24T18:00:00Z'
  t.strictSame(read({ [DRAIN]: 'racks' }), { drain: { reason: 'racks' } })
  t.strictSame(read({ [DRAIN]: '', [UNTIL]: until }), {
    drain: { reason: '', untilMs: Date.parse(until) },
  })
  const path = ['metadata', 'annotations', UNTIL]
  t.match(read({ [UNTIL]: until }), { path, message: /has no effect without sextant\.io\/drain$/ })
  t.match(read({ [DRAIN]: '', [UNTIL]: 'noon' }), { path, message: /must be a time, .* "noon"$/ })
  t.match(read({ [DRAIN]: 'x'.repeat(1001) }), { message: /a reason of up to 1000 characters/ })
  t.equal(read({}), undefined)
})

t.test('a record without settings has none', async (t) => {
  for (const annotations of [null, {}, { 'example.com/x': 'y' }, { 'sextant.io/sticky': null }]) {
    const read = validateResource(resource(annotations))
    t.equal(read.kind === 'record' && read.record.settings, undefined)
  }
})

t.test('settings are printed as they are read', async (t) => {
  const scan = (texts: ReadonlyMap<string, string>) =>
    scanSettingTexts(
      (key) => texts.get(key),
      (key, problem) => t.fail(`${key} ${problem}`),
    )
  for (const { name, value, want } of VALID) {
    const texts = printSettings(want)
    t.strictSame(
      texts.map(([key]) => key),
      [name],
    )
    t.strictSame(scan(new Map(texts)), want, value)
    t.ok(texts[0]![1].length <= value.length + 12, 'not much longer')
  }
  // Each character of a list may be needed.
  const long = `*:${Array.from({ length: 60 }, (_, i) => `${i};${'x'.repeat(60)}`).join()}`
  const annotation = long.padEnd(4096, 'y')
  const read = validateResource(resource({ 'sextant.io/failover': annotation }))
  if (read.kind !== 'record') return t.fail(JSON.stringify(read))
  const settings = read.record.settings!
  t.strictSame(scan(new Map(printSettings(settings))), settings)
})

t.test('the longest settings fit the packed form', async (t) => {
  const ids = Array.from({ length: 64 }, (_, i) => `\u0001${i}`)
  const lines = Array.from({ length: 12 }, (_, i) => `AS${i + 1}: ${ids.join()}`)
  const failover = lines
    .join('\n')
    .slice(0, 4096)
    .replace(/,[^,]*$/, '')
  const annotations = { 'sextant.io/failover': failover, 'sextant.io/all-down': 'é'.repeat(1024) }
  const read = validateResource(resource(annotations))
  if (read.kind !== 'record') return t.fail(JSON.stringify(read))
  t.strictSame(unpackRecord(packRecord(read.record)).settings, read.record.settings)
})
