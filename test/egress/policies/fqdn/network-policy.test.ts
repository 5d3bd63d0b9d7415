import t from 'tap'
import { FQDN_APIS, readPolicy } from '../../../../src/egress/policies/fqdn/fqdn-policy.ts'
import { networkPolicySpec } from '../../../../src/egress/policies/fqdn/network-policy.ts'
import type { ApiObject } from '../../../../src/kube/api.ts'

const POD = { matchLabels: { role: 'example' } }
const HTTPS = [{ port: 443, protocol: 'TCP' }]

const policyOf = (spec: ApiObject, annotations: ApiObject = {}) => {
  const metadata = { namespace: 'shop', name: 'web', uid: 'u1', generation: 3, annotations }
  return readPolicy(FQDN_APIS[0]!, { metadata, spec })
}

t.test('the NetworkPolicy that results', async (t) => {
  const known = new Map([
    ['a.example', ['192.0.2.2/32', '192.0.2.1/32']],
    ['b.example', ['2001:db8::1/128', '192.0.2.1/32']],
  ])
  const to = (...fqdns: string[]) => [{ to: [{ fqdns }], ports: HTTPS }]
  const block = (...cidrs: string[]) => cidrs.map((cidr) => ({ ipBlock: { cidr } }))
  const both = block('192.0.2.1/32', '192.0.2.2/32', '2001:db8::1/128')
  const table: { name: string; spec: ApiObject; want: object }[] = [
    {
      name: 'sorted and without repetitions',
      spec: { egress: to('b.example', 'a.example') },
      want: { policyTypes: ['Egress'], egress: [{ to: both, ports: HTTPS }] },
    },
    {
      name: 'several peers of a rule',
      spec: { egress: [{ to: [{ fqdns: ['b.example'] }, { fqdns: ['a.example'] }] }] },
      want: { policyTypes: ['Egress'], egress: [{ to: both }] },
    },
    {
      name: 'a rule without addresses is left out, and denies',
      spec: { egress: to('unknown.example') },
      want: { policyTypes: ['Egress'], egress: [] },
    },
    {
      name: 'a rule without names',
      spec: { egress: [{ to: [] }, { to: [{ fqdns: [] }] }] },
      want: { policyTypes: ['Egress'], egress: [] },
    },
    {
      name: 'one of two rules',
      spec: { egress: [...to('unknown.example'), ...to('b.example')] },
      want: {
        policyTypes: ['Egress'],
        egress: [{ to: block('192.0.2.1/32', '2001:db8::1/128'), ports: HTTPS }],
      },
    },
    {
      name: 'ingress',
      spec: { ingress: [{ from: [{ fqdns: ['a.example'] }] }] },
      want: {
        policyTypes: ['Ingress'],
        ingress: [{ from: block('192.0.2.1/32', '192.0.2.2/32') }],
      },
    },
    {
      name: 'policy types as written',
      spec: { policyTypes: ['Ingress', 'Egress'], egress: to('a.example') },
      want: {
        policyTypes: ['Ingress', 'Egress'],
        egress: [{ to: block('192.0.2.1/32', '192.0.2.2/32'), ports: HTTPS }],
        ingress: [],
      },
    },
    {
      name: 'rules of a type that is not written have no effect',
      spec: { policyTypes: ['Ingress'], egress: to('a.example') },
      want: { policyTypes: ['Ingress'], ingress: [] },
    },
    {
      name: 'no rules: what a NetworkPolicy without rules does',
      spec: {},
      want: { policyTypes: ['Ingress'], ingress: [] },
    },
    {
      name: 'both kinds of rules',
      spec: { egress: [], ingress: [] },
      want: { policyTypes: ['Ingress', 'Egress'], egress: [], ingress: [] },
    },
  ]
  for (const { name, spec, want } of table) {
    const { spec: read } = policyOf({ podSelector: POD, ...spec })
    const result = networkPolicySpec(read, (fqdn) => known.get(fqdn) ?? [])
    t.strictSame(result, { podSelector: POD, ...want }, name)
  }
})

t.test('the fields that are read of a policy', async (t) => {
  const skip = { 'fqdnnetworkpolicies.networking.gke.io/aaaa-lookups': 'skip' }
  const spec = {
    podSelector: POD,
    egress: [{ to: [{ fqdns: ['A.example', 'b.example.'] }, { fqdns: ['A.example'] }] }],
    ingress: [{ from: [{ fqdns: ['c.example', '*.d.example'] }] }],
  }
  const policy = policyOf(spec, skip)
  t.match(policy, { namespace: 'shop', name: 'web', uid: 'u1', generation: 3, skipsAaaa: true })
  t.strictSame([...policy.names.keys()], ['A.example', 'b.example.', 'c.example', '*.d.example'])
  t.equal(policy.names.get('*.d.example'), undefined)
  t.equal(policy.wires.length, 3)
  t.equal(policyOf(spec).skipsAaaa, false)
  const odd = { podSelector: 1, egress: [{ to: 'a.example' }, 7], policyTypes: 'Egress' }
  t.strictSame(policyOf(odd).spec, {
    podSelector: {},
    policyTypes: undefined,
    egress: [{ fqdns: [], ports: undefined }],
    ingress: undefined,
  })
})
