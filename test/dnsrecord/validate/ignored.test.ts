import t from 'tap'
import { findIgnored } from '../../../src/dnsrecord/validate/ignored.ts'
import { SETTING_NAMES } from '../../../src/dnsrecord/validate/settings.ts'
import type { YamlValue } from '../../../src/yaml/scan-block-yaml.ts'

function record(more: { readonly [key: string]: YamlValue }): YamlValue {
  const endpoint = { dnsName: 'k.example.com', recordType: 'A', targets: ['192.0.2.1'], ...more }
  return { spec: { rootHost: 'k.example.com', endpoints: [endpoint] } }
}

const properties = (...pairs: readonly (readonly [string, YamlValue])[]): YamlValue =>
  record({ providerSpecific: pairs.map(([name, value]) => ({ name, value })) })

const TABLE: readonly { name: string; given: YamlValue; want: readonly string[] }[] = [
  { name: 'nothing', given: record({ recordTTL: 1, labels: {}, setIdentifier: 's' }), want: [] },
  {
    name: 'all that is read',
    given: properties(
      ['weight', 1],
      ['geo-code', 'IE'],
      ['geo-code', 'FR'],
      ['default', 'true'],
      ['health-port', '8081'],
      ['health-address', '192.0.2.9'],
    ),
    want: [],
  },
  {
    name: 'a field of another spelling',
    given: record({ recordTtl: 1 }),
    want: ['spec.endpoints.0.recordTtl: "recordTtl" is not a field of an endpoint and is ignored'],
  },
  {
    name: "another provider's property",
    given: properties(['aws/weight', '1']),
    want: [
      'spec.endpoints.0.providerSpecific.0: property "aws/weight" is unknown and is ignored; the known ones are weight, geo-code, default, health-port, health-address',
    ],
  },
  {
    name: 'two weights',
    given: properties(['weight', 1], ['weight', 2]),
    want: ['spec.endpoints.0.providerSpecific.1: a second weight replaces the first'],
  },
  {
    name: 'a default that is neither',
    given: properties(['default', 'yes'], ['default', false]),
    want: [
      'spec.endpoints.0.providerSpecific.0: property default must be true or false: "yes" is ignored',
    ],
  },
  {
    name: 'an annotation of another spelling, beside known and foreign ones',
    given: {
      metadata: {
        annotations: { 'sextant.io/all_down': 'x', 'sextant.io/sticky': 'true', 'a.io/b': '' },
      },
    },
    want: [
      `metadata.annotations.sextant.io/all_down: annotation "sextant.io/all_down" is unknown and is ignored; the known ones are ${SETTING_NAMES.join(', ')}`,
    ],
  },
  { name: 'what is no record', given: [null, 'x'], want: [] },
]

t.test('fields of a record that have no effect', async (t) => {
  for (const { name, given, want } of TABLE) {
    const got = findIgnored(given).map(({ path, message }) => `${path.join('.')}: ${message}`)
    t.strictSame(got, want, name)
  }
})
