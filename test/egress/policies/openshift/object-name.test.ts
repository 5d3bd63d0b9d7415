import t from 'tap'
import { resolverObjectName } from '../../../../src/egress/policies/openshift/object-name.ts'

t.test('names of objects are those that OVN-Kubernetes computes', async (t) => {
  const table: [dnsName: string, first: string, second: string][] = [
    ['www.example.com.', 'dns-5dd68c7c99', 'dns-65454994bb'],
    ['*.example.com.', 'dns-86b778d444', 'dns-7dd75d6b9c'],
    ['www.google.com.', 'dns-7497bbd96d', ''],
    ['www.test.com.', 'dns-5668f9b865', ''],
  ]
  for (const [dnsName, first, second] of table) {
    t.equal(resolverObjectName(dnsName), first, dnsName)
    if (second !== '') t.equal(resolverObjectName(dnsName, 1), second, `${dnsName}, taken once`)
  }
})
