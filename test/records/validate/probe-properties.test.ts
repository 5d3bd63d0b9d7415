import t from 'tap'
import {
  firstOwnerKey,
  locateEndpoints,
  packRecord,
  unpackRecord,
} from '../../../src/records/pack.ts'
import { validateResource } from '../../../src/records/validate/resource.ts'
import type { YamlValue } from '../../../src/yaml/scan-block-yaml.ts'

type Property = readonly [name: string, value: YamlValue]

/** Reads a record with two endpoints; the first one has these properties. */
function scan(...properties: readonly Property[]) {
  const endpoint = { dnsName: 'a.k.example.com', recordType: 'A', targets: ['192.0.2.1'] }
  const providerSpecific = properties.map(([name, value]) => ({ name, value }))
  return validateResource({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'a' },
    spec: {
      rootHost: 'a.k.example.com',
      endpoints: [{ ...endpoint, setIdentifier: 's', providerSpecific }, endpoint],
    },
  })
}

const TABLE: readonly {
  readonly name: string
  readonly given: readonly Property[]
  readonly want: object | undefined
}[] = [
  { name: 'neither', given: [['weight', 1]], want: undefined },
  { name: 'a port', given: [['health-port', '8081']], want: { address: '', port: 8081 } },
  { name: 'a number', given: [['health-port', 443]], want: { address: '', port: 443 } },
  {
    name: 'the last one counts',
    given: [
      ['health-port', 80],
      ['health-port', 53],
    ],
    want: { port: 53 },
  },
  {
    name: 'an address, and other properties',
    given: [
      ['weight', 20],
      ['health-address', '2001:DB8::1'],
      ['geo-code', 'IE'],
    ],
    want: { address: '2001:db8::1', port: 0 },
  },
  {
    name: 'a host name and a port',
    given: [
      ['health-address', 'Probe.example.net.'],
      ['health-port', 8443],
    ],
    want: { address: 'probe.example.net', port: 8443 },
  },
]

t.test('where an endpoint is probed, also in its packed form', async (t) => {
  for (const { name, given, want } of TABLE) {
    const found = scan(...given)
    if (found.kind !== 'record') throw new Error(JSON.stringify(found))
    t.match(found.record.endpoints[0], { probeAt: want }, name)
    const packed = packRecord(found.record)
    const { namespace: _, name: __, ...content } = found.record
    t.strictSame(unpackRecord(packed), content, `${name}: unpacked`)
    const owners = new Set([firstOwnerKey(packed)!])
    t.equal(unpackRecord(packed, owners).endpoints.length, 2, `${name}: chosen by owner`)
    t.equal(unpackRecord(packed, new Set()).endpoints.length, 0, `${name}: all skipped`)
    t.equal(locateEndpoints(packed).starts.at(-1), packed.length, `${name}: located`)
  }
})

t.test('a wrong value refuses the record with its place', async (t) => {
  for (const [name, value] of [
    ['health-port', ''],
    ['health-port', '0'],
    ['health-port', '22'],
    ['health-port', '49152'],
    ['health-port', '8080/tcp'],
    ['health-port', -1],
    ['health-address', ''],
    ['health-address', '192.0.2.1:80'],
    ['health-address', 'http://a.example'],
    ['health-address', 'a b'],
    ['health-address', [1]],
  ] as const) {
    const found = scan(['weight', 1], [name, value])
    const text = `${name} ${JSON.stringify(value)}`
    if (found.kind !== 'refused') t.fail(`accepted: ${text}`)
    else {
      const path = found.problem.path.join('.')
      t.equal(path, 'spec.endpoints.0.providerSpecific.1.value', text)
      t.match(found.problem.message, /^(health-port must|health-address "|value must)/, text)
    }
  }
})
