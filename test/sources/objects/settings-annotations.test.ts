import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import { type FieldProblem, RefusedError } from '../../../src/records/validate/fields.ts'
import { ExternalDnsAnnotations } from '../../../src/sources/objects/external-dns-annotations.ts'
import {
  type ObjectSettings,
  readObjectSettings,
} from '../../../src/sources/objects/settings-annotations.ts'

function read(
  annotations: ApiObject,
  identifiers: readonly string[] = [],
): { settings?: ObjectSettings; refused?: FieldProblem; problems: FieldProblem[] } {
  const object = { metadata: { namespace: 'shop', name: 'front', annotations } }
  const problems: FieldProblem[] = []
  try {
    const externalDns = new ExternalDnsAnnotations(object)
    const report = (problem: FieldProblem) => problems.push(problem)
    return { settings: readObjectSettings(object, externalDns, report, identifiers), problems }
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    return { refused: error.problem, problems }
  }
}

const NONE = { setIdentifier: '', properties: [], annotations: {}, healthCheck: undefined }

t.test('settings of an object are read from its annotations', async (t) => {
  t.strictSame(read({}).settings, NONE)
  t.strictSame(read({ 'sextant.io/weight': '10', 'sextant.io/geo-code': 'GEO-EU' }).settings, {
    ...NONE,
    setIdentifier: 'shop/front',
    properties: [
      { name: 'weight', value: '10', annotation: 'sextant.io/weight' },
      { name: 'geo-code', value: 'GEO-EU', annotation: 'sextant.io/geo-code' },
    ],
  })
  const record = {
    'sextant.io/failover': 'GEO-EU: GEO-NA',
    'sextant.io/sticky': 'true',
    'sextant.io/all-down': 'closed',
    'sextant.io/drain': 'upgrade',
    'sextant.io/drain-until': '2026-12-01T00:00:00Z',
    'sextant.io/answers': '3',
  }
  t.strictSame(read({ ...record, other: 'x' }).settings, { ...NONE, annotations: record })
  const check = 'protocol: HTTP\nport: 8080\npath: /ready\nadditionalHeadersRef: {name: headers}\n'
  t.strictSame(read({ 'sextant.io/health-check': check }).settings, {
    ...NONE,
    healthCheck: {
      protocol: 'HTTP',
      port: 8080,
      path: '/ready',
      additionalHeadersRef: { name: 'headers' },
    },
  })
})

t.test(
  'a set identifier is that of external-dns, or is derived where a property needs one',
  async (t) => {
    const NEW = 'external-dns.kubernetes.io/'
    const OLD = 'external-dns.alpha.kubernetes.io/'
    const cases: readonly (readonly [ApiObject, string])[] = [
      [{ [`${NEW}set-identifier`]: 'eu' }, 'eu'],
      [{ [`${OLD}set-identifier`]: 'eu', 'sextant.io/weight': '1' }, 'eu'],
      [{ [`${NEW}set-identifier`]: 'a', [`${OLD}set-identifier`]: 'b' }, 'a'],
      [{ 'sextant.io/location': '1,2' }, 'shop/front'],
      [{ 'sextant.io/default': 'true' }, 'shop/front'],
      [{ [`${OLD}aws-weight`]: '1' }, 'shop/front'],
      [{ [`${NEW}webhook-sextant-weight`]: '1' }, 'shop/front'],
      [{ 'sextant.io/health-port': '8080' }, ''],
      [{ [`${OLD}alias`]: 'true' }, ''],
    ]
    for (const [annotations, want] of cases) {
      t.equal(read(annotations).settings?.setIdentifier, want, JSON.stringify(annotations))
    }
  },
)

t.test(
  'our annotation replaces the property of ours in an annotation of external-dns',
  async (t) => {
    const { settings } = read({
      'sextant.io/weight': '5',
      'sextant.io/sticky': 'true',
      'external-dns.kubernetes.io/webhook-weight': '9',
      'external-dns.kubernetes.io/webhook-sextant-sticky': 'false',
      'external-dns.kubernetes.io/webhook-sextant-answers': '2',
      'external-dns.kubernetes.io/aws-weight': '7',
    })
    t.strictSame(settings?.properties, [
      { name: 'aws/weight', value: '7', annotation: 'external-dns.kubernetes.io/aws-weight' },
      { name: 'weight', value: '5', annotation: 'sextant.io/weight' },
    ])
    t.strictSame(settings?.annotations, { 'sextant.io/sticky': 'true', 'sextant.io/answers': '2' })
  },
)

t.test('a shift names a set identifier of the object', async (t) => {
  const shift = { 'sextant.io/shift': 'to=blue steps=50% bake=1m' }
  t.match(read(shift).refused?.message, /no endpoint of the record has that setIdentifier/)
  t.ok(read(shift, ['green', 'blue']).settings)
  t.ok(read({ ...shift, 'external-dns.kubernetes.io/set-identifier': 'blue' }).settings)
})

const INVALID: readonly (readonly [string, string, RegExp])[] = [
  ['sextant.io/weight', '-1', /invalid weight/],
  ['sextant.io/weight', '1\u0000', /invalid weight/],
  ['sextant.io/geo-code', 'XX', /unexpected geo code/],
  ['sextant.io/default', 'yes', /must be true or false/],
  ['sextant.io/location', 'Berlin', /invalid location/],
  ['sextant.io/health-port', '0', /health-port must be/],
  ['sextant.io/health-address', 'a b', /is not an IP address or a host name/],
  ['sextant.io/failover', 'nowhere', /has no colon/],
  ['sextant.io/sticky', 'yes', /must be true, false/],
  ['sextant.io/drain-until', '2026-12-01T00:00:00Z', /has no effect without sextant.io\/drain/],
  ['sextant.io/health-check', 'a: [', /health-check line 1: /],
  ['sextant.io/health-check', 'HTTP', /must be YAML of spec.healthCheck/],
  ['sextant.io/health-check', 'protocol: HTP', /protocol must be one of/],
  [
    'sextant.io/health-check',
    '{protocol: EXEC, command: x}',
    /only manifests may have protocol EXEC/,
  ],
  ['sextant.io/health-check', `path: /${'a'.repeat(5000)}`, /up to 4096 characters/],
  ['external-dns.kubernetes.io/set-identifier', 'x'.repeat(1025), /up to 1024 characters/],
]

t.test('an annotation that does not parse is refused, with its place', async (t) => {
  for (const [name, value, want] of INVALID) {
    const { refused } = read({ [name]: value })
    t.match(refused?.message, want, name)
    t.strictSame(refused?.path, ['metadata', 'annotations', name])
  }
})

t.test('what is unknown is ignored and reported', async (t) => {
  const { settings, problems } = read({
    'sextant.io/wieght': '1',
    'sextant.io/__proto__': 'x',
    'sextant.io/health-check': '{protocol: TCP, pot: 80, __proto__: {port: 1}}',
    'external-dns.kubernetes.io/set-identifier': 'a',
    'external-dns.alpha.kubernetes.io/set-identifier': 'b',
  })
  t.strictSame(settings?.healthCheck, { protocol: 'TCP' })
  t.match(
    problems.map(({ message }) => message),
    [
      /"sextant.io\/wieght" is unknown and is ignored; did you mean sextant.io\/weight/,
      /"sextant.io\/__proto__" is unknown and is ignored/,
      /"pot" is not a field of healthCheck and is ignored; did you mean port/,
      /"__proto__" is not a field/,
    ],
  )
})
