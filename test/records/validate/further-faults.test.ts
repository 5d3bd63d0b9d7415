import t from 'tap'
import { findFurtherFaults } from '../../../src/records/validate/further-faults.ts'
import { SERVED, validateResource } from '../../../src/records/validate/resource.ts'
import type { YamlValue } from '../../../src/yaml/scan-block-yaml.ts'

const record = (spec: YamlValue): YamlValue => ({
  apiVersion: 'kuadrant.io/v1alpha1',
  kind: 'DNSRecord',
  metadata: { name: 'r', namespace: 'default' },
  spec,
})
const sound = { dnsName: 'a.z.example', recordType: 'A', targets: ['192.0.2.1'] }
const weight = (value: string) => [{ name: 'weight', value }]

const table: { name: string; given: YamlValue; want: string[] }[] = [
  {
    name: 'one fault alone',
    given: record({ rootHost: 'z.example', endpoints: [{ ...sound, targets: ['x'] }] }),
    want: ['spec.endpoints.0.targets.0'],
  },
  {
    name: 'several in one endpoint',
    given: record({
      rootHost: 'z.example',
      endpoints: [
        {
          dnsName: 'a.other.example',
          recordType: 'A',
          recordTTL: -1,
          targets: ['x', '192.0.2.1', 'y'],
          setIdentifier: 'one',
          providerSpecific: weight('-1'),
        },
      ],
    }),
    want: [
      'spec.endpoints.0.recordTTL',
      'spec.endpoints.0.providerSpecific.0',
      'spec.endpoints.0.targets.0',
      'spec.endpoints.0.targets.2',
    ],
  },
  {
    name: 'in several endpoints',
    given: record({
      rootHost: 'z.example',
      endpoints: [{ ...sound, recordType: 'X' }, sound, { ...sound, targets: ['::1'] }],
    }),
    want: ['spec.endpoints.0.recordType', 'spec.endpoints.2.targets.0'],
  },
  {
    name: 'a bad root host is one fault',
    given: record({ rootHost: 'z', endpoints: [sound, { ...sound, targets: ['x'] }] }),
    want: ['spec.rootHost', 'spec.endpoints.1.targets.0'],
  },
]

t.test('every fault of a record, each once', async (t) => {
  for (const { name, given, want } of table) {
    const refused = validateResource(given, SERVED)
    if (refused.kind !== 'refused') return t.fail(name)
    const { problem } = refused
    const all = [problem, ...findFurtherFaults(given, problem)]
    const places = all.map(({ path }) => path.join('.'))
    t.strictSame(places.map(cut).sort(), want.map(cut).sort(), name)
  }
})

/** Of a property it does not matter here which field of it is to blame. */
function cut(place: string): string {
  return place.split('.').slice(0, 5).join('.')
}
