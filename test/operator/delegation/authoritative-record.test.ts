import t from 'tap'
import {
  authoritativeLabels,
  authoritativeName,
  composeAuthoritative,
} from '../../../src/operator/delegation/authoritative-record.ts'
import { printRecord } from '../../../src/operator/record/desired-record.ts'

t.test('the record of a host is named by its hash, the same for its wildcard', async (t) => {
  t.equal(authoritativeName('example.com'), 'authoritative-record-1jbcyj4z')
  t.equal(authoritativeName('*.example.com'), 'authoritative-record-1jbcyj4z')
  t.equal(authoritativeName('foo.example.com'), 'authoritative-record-qtn4u6on')
})

t.test('an authoritative record has the labels by which it is found and served', async (t) => {
  const labels = {
    'kuadrant.io/authoritative-record': 'true',
    'kuadrant.io/authoritative-record-hash': 'qtn4u6on',
  }
  t.strictSame(authoritativeLabels({ rootHost: 'foo.example.com', zone: '' }), labels)
  t.strictSame(authoritativeLabels({ rootHost: '*.foo.example.com', zone: 'example.com' }), {
    ...labels,
    'kuadrant.io/dns-provider-name': 'coredns',
    'kuadrant.io/coredns-zone-name': 'example.com',
  })
})

t.test(
  'an authoritative record has no owner reference, and names a provider if the delegating record does',
  async (t) => {
    const facts = { namespace: 'n', rootHost: '*.foo.example.com', provider: 'dns', zone: '' }
    t.strictSame(printRecord(composeAuthoritative(facts, [], '')), {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: {
        namespace: 'n',
        name: 'authoritative-record-qtn4u6on',
        labels: authoritativeLabels(facts),
      },
      spec: { rootHost: 'foo.example.com', providerRef: { name: 'dns' }, endpoints: [] },
    })
    t.strictSame(composeAuthoritative({ ...facts, provider: '' }, [], '').spec, {
      rootHost: 'foo.example.com',
      endpoints: [],
    })
  },
)
