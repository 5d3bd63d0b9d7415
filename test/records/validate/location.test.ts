import t from 'tap'
import { packRecord, unpackRecord } from '../../../src/records/pack.ts'
import { validateResource } from '../../../src/records/validate/resource.ts'

function validated(location: string) {
  return validateResource({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'app', namespace: 'n' },
    spec: {
      rootHost: 'app.k.example.com',
      endpoints: [
        {
          dnsName: 'app.k.example.com',
          recordType: 'A',
          recordTTL: 60,
          targets: ['192.0.2.1'],
          providerSpecific: [{ name: 'location', value: location }],
        },
      ],
    },
  })
}

const ACCEPTED = [
  { given: '52.5, -13', want: '52.50,-13.00' },
  // All meridians meet at a pole, and -180 degrees is the meridian of 180.
  { given: '90,180', want: '90.00,0.00' },
  { given: '-90,-179.99', want: '-90.00,0.00' },
  { given: '0,-180', want: '0.00,180.00' },
]
for (const { given, want } of ACCEPTED) {
  t.test(`location ${given} is read, and kept by the packed form`, async (t) => {
    const got = validated(given)
    if (got.kind !== 'record') throw new Error(JSON.stringify(got))
    t.equal(got.record.endpoints[0]?.point?.text, want)
    t.equal(unpackRecord(packRecord(got.record)).endpoints[0]?.point?.text, want)
  })
}

const REFUSED = ['52.52;13.40', '90.01,0', '0,180.01', '1', 'NaN,0', '1e400,0', '1,2,3', '']
for (const given of REFUSED) {
  t.test(`location ${JSON.stringify(given)} is refused with its field`, async (t) => {
    const got = validated(given)
    if (got.kind !== 'refused') throw new Error(JSON.stringify(got))
    t.match(got.problem.message, /^invalid location: write latitude and longitude in degrees/)
    t.equal(got.problem.path.join('.'), 'spec.endpoints.0.providerSpecific.0.value')
  })
}
