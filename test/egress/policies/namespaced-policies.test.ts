import t from 'tap'
import { compilePod, object } from './compiled.ts'

const FIREWALL = 'k8s.ovn.org/v1 EgressFirewall'
const FQDN = 'networking.delta10.nl/v1alpha4 FQDNNetworkPolicy'
const GKE = 'networking.gke.io/v1alpha3 FQDNNetworkPolicy'
const ALL = '0.0.0.0/0,::/0'

// biome-ignore lint/suspicious/noExplicitAny: a rule as a user writes it
type Rule = any

const allow = (to: Rule, ...ports: Rule[]) => ({ type: 'Allow', to, ports })
const deny = (to: Rule, ...ports: Rule[]) => ({ type: 'Deny', to, ports })

const FIREWALLS: readonly {
  readonly name: string
  readonly egress: Rule
  readonly want: readonly string[]
  readonly problem?: string
}[] = [
  {
    name: 'the rules are in order, and others pass',
    egress: [
      allow({ dnsName: '*.a.example' }),
      allow({ cidrSelector: '192.0.2.0/24' }, { protocol: 'TCP', port: 443 }),
      { type: 'Deny', to: { cidrSelector: '0.0.0.0/0' } },
    ],
    want: ['accept *.a.example * ttl', 'accept 192.0.2.0/24 tcp:443', 'deny 0.0.0.0/0 *'],
  },
  { name: 'nodes are in the cluster', egress: [deny({ nodeSelector: {} })], want: [] },
  {
    name: 'a name is not denied',
    egress: [deny({ dnsName: 'a.example' }, { protocol: 'UDP', port: 5000 })],
    want: [`deny ${ALL} udp:5000`],
    problem: 'spec.egress[0].to.dnsName: a name cannot be denied',
  },
  {
    name: 'an invalid name is not denied either',
    egress: [deny({ dnsName: 'a.*.example' })],
    want: [`deny ${ALL} *`],
    problem: 'spec.egress[0].to.dnsName: invalid name "a.*.example"',
  },
  {
    name: 'an invalid name does not affect other rules',
    egress: [allow({ dnsName: 'a..example' }), allow({ dnsName: 'b.example' })],
    want: ['accept b.example * ttl'],
    problem: 'spec.egress[0].to.dnsName: invalid name "a..example"',
  },
  {
    name: 'an unknown destination that is denied',
    egress: [deny({ planet: 'x' })],
    want: [`deny ${ALL} *`],
    problem: 'spec.egress[0].to.planet: unknown field',
  },
  {
    name: 'two destinations',
    egress: [allow({ cidrSelector: '::/0', dnsName: 'a.example' })],
    want: [],
    problem: 'spec.egress[0].to: must have one of',
  },
  {
    name: 'an invalid network',
    egress: [deny({ cidrSelector: '192.0.2.1' })],
    want: [`deny ${ALL} *`],
    problem: 'spec.egress[0].to.cidrSelector: invalid network "192.0.2.1"',
  },
  {
    name: 'an unknown type denies',
    egress: [{ type: 'allow', to: { cidrSelector: '::/0' } }],
    want: ['deny ::/0 *'],
    problem: 'spec.egress[0].type: must be Allow or Deny, not "allow"',
  },
  {
    name: 'an invalid port',
    egress: [allow({ cidrSelector: '::/0' }, { protocol: 'TCP', port: 0 })],
    want: [],
    problem: 'spec.egress[0].ports[0].port: must be an integer from 1 to 65535, not 0',
  },
  {
    name: 'a list of rules that is none',
    egress: {},
    want: [`deny ${ALL} *`],
    problem: 'spec.egress: must be a list',
  },
]

t.test('EgressFirewall', async (t) => {
  for (const { name, egress, want, problem } of FIREWALLS) {
    const firewall = object(FIREWALL, { egress }, { name: 'default' })
    const { lists, dns, problems } = compilePod([firewall])
    t.strictSame(lists.flat(), want, name)
    t.equal(dns, undefined)
    t.equal(problems.length > 0, problem !== undefined, `${name}: ${problems[0]}`)
    if (problem === undefined) continue
    t.ok(problems[0]!.startsWith(`EgressFirewall a/default: ${problem}`), `${name}: ${problems[0]}`)
  }
})

t.test('EgressFirewall: its namespace and name', async (t) => {
  const spec = { egress: [{ type: 'Deny', to: { cidrSelector: '::/0' } }] }
  const parts = { namespace: 'b', name: 'default' }
  t.strictSame(compilePod([object(FIREWALL, spec, parts)]).lists, [])
  const other = compilePod([object(FIREWALL, spec, { name: 'other' })])
  t.strictSame(other.lists, [])
  t.strictSame(other.problems, [
    'EgressFirewall a/other: metadata.name: ignored: the name must be "default"',
  ])
})

t.test('EgressFirewall is a list of its own', async (t) => {
  const spec = { podSelector: {}, egress: [{ to: [{ fqdns: ['a.example'] }] }] }
  const firewall = { egress: [{ type: 'Allow', to: { dnsName: 'b.example' } }] }
  const objects = [object(FQDN, spec), object(FIREWALL, firewall, { name: 'default' })]
  t.strictSame(compilePod(objects).lists, [
    ['accept a.example * ttl', 'deny others'],
    ['accept b.example * ttl'],
  ])
})

const fqdn = (...fqdns: string[]) => ({ to: [{ fqdns }] })

const POLICIES: readonly {
  readonly name: string
  readonly spec: Rule
  readonly want: readonly string[]
  readonly problem?: string
}[] = [
  {
    name: 'names and ports',
    spec: {
      egress: [
        {
          to: [{ fqdns: ['a.example', 'B.example.'] }, { fqdns: ['c.example'] }],
          ports: [{ port: 443 }, { port: 53, protocol: 'UDP' }, { port: 8000, endPort: 8010 }],
        },
        fqdn('d.example'),
      ],
    },
    want: [
      'accept a.example,B.example.,c.example tcp:443,udp:53,tcp:8000-8010 ttl',
      'accept d.example * ttl',
      'deny others',
    ],
  },
  {
    name: 'an internationalised name',
    spec: { egress: [fqdn('münchen.example')] },
    want: ['accept münchen.example * ttl', 'deny others'],
  },
  {
    name: 'no rules',
    spec: { egress: [] },
    want: ['deny others'],
  },
  {
    name: 'a list of rules that is none',
    spec: { egress: {} },
    want: ['deny others'],
    problem: 'spec.egress: must be a list',
  },
  { name: 'ingress alone', spec: { ingress: [{ from: [] }] }, want: [] },
  { name: 'only the type', spec: { policyTypes: ['Egress'] }, want: ['deny others'] },
  { name: 'another type', spec: { policyTypes: ['Ingress'], egress: [fqdn('a.b')] }, want: [] },
  {
    name: 'an empty protocol is TCP',
    spec: { egress: [{ ...fqdn('a.example'), ports: [{ port: 443, protocol: '' }] }] },
    want: ['accept a.example tcp:443 ttl', 'deny others'],
  },
  {
    name: 'a protocol without a port',
    spec: { egress: [{ ...fqdn('a.example'), ports: [{ protocol: 'UDP' }] }] },
    want: ['accept a.example udp:0-65535 ttl', 'deny others'],
  },
  {
    name: 'an invalid name',
    spec: { egress: [fqdn('*.example', 'a.example')] },
    want: ['accept a.example * ttl', 'deny others'],
    problem: 'spec.egress[0].to[0].fqdns[0]: invalid name "*.example"',
  },
  {
    name: 'a named port',
    spec: { egress: [{ ...fqdn('a.example'), ports: [{ port: 'https' }] }] },
    want: ['deny others'],
    problem: 'spec.egress[0].ports[0].port: named port "https" is not supported',
  },
  {
    name: 'another peer',
    spec: { egress: [{ to: [{ fqdns: ['a.example'], ipBlock: {} }] }] },
    want: ['deny others'],
    problem: 'spec.egress[0].to[0].ipBlock: unknown field',
  },
  {
    name: 'no peers',
    spec: { egress: [{ ports: [{ port: 443 }] }] },
    want: ['deny others'],
  },
  {
    name: 'without a selector',
    spec: { podSelector: undefined, egress: [fqdn('a.example')] },
    want: ['deny others'],
    problem: 'spec.podSelector: is missing',
  },
]

t.test('FQDNNetworkPolicy', async (t) => {
  for (const { name, spec, want, problem } of POLICIES) {
    for (const type of [FQDN, GKE]) {
      const { lists, dns, problems } = compilePod([object(type, { podSelector: {}, ...spec })])
      t.strictSame(lists.flat(), want, name)
      t.equal(dns, undefined)
      t.equal(problems.length > 0, problem !== undefined, `${name}: ${problems[0]}`)
      if (problem === undefined) continue
      t.ok(
        problems[0]!.startsWith(`FQDNNetworkPolicy a/web: ${problem}`),
        `${name}: ${problems[0]}`,
      )
    }
  }
})
