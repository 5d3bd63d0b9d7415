import t from 'tap'
import { compilePod, object } from '../compiled.ts'

const ANP = 'policy.networking.k8s.io/v1alpha1 AdminNetworkPolicy'
const BANP = 'policy.networking.k8s.io/v1alpha1 BaselineAdminNetworkPolicy'
const CLUSTER = 'policy.networking.k8s.io/v1alpha2 ClusterNetworkPolicy'
const BETA = 'policy.networking.k8s.io/v1beta1 ClusterNetworkPolicy'
const CNP = 'cilium.io/v2 CiliumNetworkPolicy'
const ALL = '0.0.0.0/0,::/0'

// biome-ignore lint/suspicious/noExplicitAny: a rule as a user writes it
type Rule = any

const everyone = { namespaces: {} }
const anp = (...egress: Rule[]) => ({ priority: 10, subject: everyone, egress })
const cnp = (...egress: Rule[]) => ({ tier: 'Admin', priority: 10, subject: everyone, egress })
const to = (action: string, peer: Rule, more: Rule = {}) => ({ action, to: [peer], ...more })
const tcp = (number: number) => ({ tcp: { destinationPort: { number } } })

interface Case {
  readonly name: string
  readonly type?: string
  readonly spec: Rule
  readonly want: readonly string[]
  readonly problem?: string
}

const CASES: readonly Case[] = [
  {
    name: 'names are accepted',
    spec: cnp(to('Accept', { domainNames: ['a.example', '*.b.example.'] })),
    want: ['accept a.example,*.b.example. * ttl'],
  },
  {
    name: 'names of v1alpha1 with ports',
    type: ANP,
    spec: anp(
      to(
        'Allow',
        { domainNames: ['a.example'] },
        {
          ports: [
            { portNumber: { protocol: 'TCP', port: 443 } },
            { portRange: { protocol: 'UDP', start: 8000, end: 8010 } },
            { portNumber: { port: 80 } },
          ],
        },
      ),
    ),
    want: ['accept a.example tcp:443,udp:8000-8010,tcp:80 ttl'],
  },
  {
    name: 'protocols of v1alpha2',
    spec: cnp(
      to(
        'Accept',
        { networks: ['192.0.2.0/24', '2001:db8::/32'] },
        {
          protocols: [
            tcp(443),
            { udp: { destinationPort: { range: { start: 1, end: 2 } } } },
            { sctp: {} },
          ],
        },
      ),
    ),
    want: ['accept 192.0.2.0/24,2001:db8::/32 tcp:443,udp:1-2,sctp:0-65535'],
  },
  {
    name: 'rules are in order',
    spec: cnp(
      to('Pass', { networks: ['192.0.2.0/24'] }),
      to('Deny', { networks: ['0.0.0.0/0'] }),
      to('Accept', { networks: ['::/0'] }),
    ),
    want: ['pass 192.0.2.0/24 *', 'deny 0.0.0.0/0 *', 'accept ::/0 *'],
  },
  {
    name: 'peers in the cluster are no matter of ours, nor are their named ports',
    spec: cnp(
      to('Deny', { namespaces: {} }, { protocols: [{ destinationNamedPort: 'http' }] }),
      to('Accept', { pods: { namespaceSelector: {}, podSelector: {} } }),
      to('Pass', { nodes: {} }),
      to('Accept', { networks: ['192.0.2.1/32'] }),
    ),
    want: ['accept 192.0.2.1/32 *'],
  },
  {
    name: 'a name is not denied',
    spec: cnp(to('Deny', { domainNames: ['a.example'] }, { protocols: [tcp(443)] })),
    want: [`deny ${ALL} tcp:443`],
    problem: 'spec.egress[0].to: domainNames can only be accepted',
  },
  {
    name: 'a name is not passed',
    spec: cnp(to('Pass', { domainNames: ['a.example'] })),
    want: [`deny ${ALL} *`],
    problem: 'spec.egress[0].to: domainNames can only be accepted',
  },
  {
    name: 'an unknown peer is not accepted, with the rest of its rule',
    spec: cnp({ action: 'Accept', to: [{ networks: ['192.0.2.1/32'] }, { planets: {} }] }),
    want: [],
    problem: 'spec.egress[0].to[1].planets: unknown field',
  },
  {
    name: 'a peer without a field',
    spec: cnp(to('Accept', {})),
    want: [],
    problem: 'spec.egress[0].to[0]: must have one of',
  },
  {
    name: 'a peer with two fields',
    spec: cnp(to('Accept', { networks: ['192.0.2.1/32'], domainNames: ['a.example'] })),
    want: [],
    problem: 'spec.egress[0].to[0]: must have one of',
  },
  {
    name: 'an unknown peer is denied',
    spec: cnp(to('Deny', { planets: {} }, { protocols: [tcp(25)] })),
    want: [`deny ${ALL} tcp:25`],
    problem: 'spec.egress[0].to[0].planets: unknown field',
  },
  {
    name: 'an unknown peer is not passed',
    spec: cnp(to('Pass', { planets: {} })),
    want: [`deny ${ALL} *`],
    problem: 'spec.egress[0].to[0].planets: unknown field',
  },
  {
    name: 'no peers',
    spec: cnp({ action: 'Accept', to: [] }),
    want: [],
    problem: 'spec.egress[0].to: must have at least one item',
  },
  {
    name: 'a named port is not accepted',
    spec: cnp(
      to(
        'Accept',
        { networks: ['192.0.2.1/32'] },
        {
          protocols: [{ destinationNamedPort: 'http' }, tcp(443)],
        },
      ),
    ),
    want: ['accept 192.0.2.1/32 tcp:443'],
    problem: 'spec.egress[0].protocols[0].destinationNamedPort: named port "http"',
  },
  {
    name: 'a named port is denied',
    type: ANP,
    spec: anp(to('Deny', { networks: ['192.0.2.1/32'] }, { ports: [{ namedPort: 'http' }] })),
    want: ['deny 192.0.2.1/32 *'],
    problem: 'spec.egress[0].ports[0].namedPort: named port "http"',
  },
  {
    name: 'an unknown port is not passed',
    spec: cnp(to('Pass', { networks: ['192.0.2.1/32'] }, { protocols: [{ icmp: {} }] })),
    want: ['deny 192.0.2.1/32 *'],
    problem: 'spec.egress[0].protocols[0].icmp: unknown field',
  },
  {
    name: 'a range that ends before it starts',
    type: ANP,
    spec: anp(
      to(
        'Allow',
        { networks: ['192.0.2.1/32'] },
        {
          ports: [{ portRange: { protocol: 'TCP', start: 9, end: 8 } }],
        },
      ),
    ),
    want: [],
    problem: 'spec.egress[0].ports[0].portRange.end: must not be less than 9',
  },
  {
    name: 'an unknown action denies',
    spec: cnp(to('Allow', { networks: ['192.0.2.1/32'] })),
    want: ['deny 192.0.2.1/32 *'],
    problem: 'spec.egress[0].action: must be Accept, Deny or Pass, not "Allow"',
  },
  {
    name: 'a misspelt field of a rule',
    spec: cnp(to('Accept', { networks: ['192.0.2.1/32'] }, { protocol: [] })),
    want: [],
    problem: 'spec.egress[0].protocol: unknown field; did you mean protocols?',
  },
  {
    name: 'an unknown field of a rule',
    spec: cnp(to('Accept', { networks: ['192.0.2.1/32'] }, { when: 'night' })),
    want: [],
    problem: 'spec.egress[0].when: unknown field',
  },
  {
    name: 'a network without a length',
    spec: cnp(to('Deny', { networks: ['192.0.2.1'] })),
    want: [`deny ${ALL} *`],
    problem: 'spec.egress[0].to[0].networks[0]: invalid network "192.0.2.1"',
  },
  {
    name: 'more than 25 names',
    spec: cnp(to('Accept', { domainNames: Array.from({ length: 26 }, (_, i) => `n${i}.example`) })),
    want: [],
    problem: 'spec.egress[0].to[0].domainNames: must have 1 to 25 items',
  },
  {
    name: 'a baseline has no names',
    type: BANP,
    spec: {
      subject: everyone,
      egress: [
        to('Allow', { domainNames: ['a.example'] }),
        to('Allow', { networks: ['192.0.2.1/32'] }),
      ],
    },
    want: ['accept 192.0.2.1/32 *'],
    problem: 'spec.egress[0].to[0].domainNames: only policies of the tier Admin may have names',
  },
  {
    name: 'nor has the tier',
    spec: { ...cnp(to('Accept', { domainNames: ['a.example'] })), tier: 'Baseline' },
    want: [],
    problem: 'spec.egress[0].to[0].domainNames: only policies of the tier Admin may have names',
  },
  {
    name: 'a baseline cannot pass',
    type: BANP,
    spec: { subject: everyone, egress: [to('Pass', { networks: ['192.0.2.1/32'] })] },
    want: ['deny 192.0.2.1/32 *'],
    problem: 'spec.egress[0].action: must be Allow or Deny, not "Pass"',
  },
  {
    name: 'a list of rules that is none',
    spec: { ...cnp(), egress: {} },
    want: [`deny ${ALL} *`],
    problem: 'spec.egress: must be a list',
  },
  {
    name: 'an unknown tier accepts nothing',
    spec: {
      ...cnp(to('Accept', { networks: ['::/0'] }), to('Deny', { networks: ['192.0.2.1/32'] })),
      tier: 'Top',
    },
    want: ['deny 192.0.2.1/32 *'],
    problem: 'spec.tier: must be Admin or Baseline, not "Top"',
  },
  {
    name: 'a priority out of bounds accepts nothing',
    spec: { ...cnp(to('Accept', { networks: ['::/0'] })), priority: 1001 },
    want: [],
    problem: 'spec.priority: must be an integer from 0 to 1000, not 1001',
  },
  {
    name: 'a subject that is invalid is everything, and accepts nothing',
    spec: {
      ...cnp(to('Accept', { networks: ['::/0'] }), to('Deny', { networks: ['192.0.2.1/32'] })),
      subject: {},
    },
    want: ['deny 192.0.2.1/32 *'],
    problem: 'spec.subject: must have one of namespaces and pods',
  },
]

t.test('v1beta1 has the schema of v1alpha2, and is the same object', async (t) => {
  for (const { name, type = CLUSTER, spec } of CASES) {
    if (type !== CLUSTER) continue
    const [alpha, beta] = [CLUSTER, BETA].map((one) => object(one, spec, { name: 'x' }))
    t.strictSame(compilePod([beta!]), compilePod([alpha!]), name)
    t.strictSame(compilePod([alpha!, beta!]), compilePod([alpha!]), `${name}: once`)
  }
})

t.test('rules of policies of the cluster', async (t) => {
  for (const { name, type = CLUSTER, spec, want, problem } of CASES) {
    const { lists, dns, problems } = compilePod([object(type, spec, { name: 'x' })])
    t.strictSame(lists.flat(), want, name)
    t.equal(dns, undefined, `${name}: every name may be asked for`)
    const [first = '', ...others] = problems
    const kind = type.split(' ')[1]
    t.ok(first.startsWith(problem === undefined ? '' : `${kind} x: ${problem}`), first)
    t.equal(first === '', problem === undefined, `${name}: ${first}`)
    t.strictSame(others, [], name)
  }
})

t.test('domain names, after the definition of the API', async (t) => {
  const accepted = `a.example A.Example. *.a.example x_y.example _dmarc.example 1.2.3.4 a.b *.a.b
    xn--a.example a-b.example`
  const refused = `localhost * *.com *. . a..b -a.example a-.example a.*.com **.x.y *a.example [.example.com
    a.example/b é.example ${'a'.repeat(64)}.example`
  for (const name of accepted.split(/\s+/)) {
    const { lists } = compilePod([object(CLUSTER, cnp(to('Accept', { domainNames: [name] })))])
    t.strictSame(lists, [[`accept ${name} * ttl`]], name)
  }
  for (const name of [...refused.split(/\s+/), '', 7, `${'a.'.repeat(128)}a`]) {
    const peer = { domainNames: [name, 'ok.example'] }
    const { lists, problems } = compilePod([object(CLUSTER, cnp(to('Accept', peer)))])
    t.strictSame(lists, [['accept ok.example * ttl']], String(name))
    t.match(
      problems[0],
      /^ClusterNetworkPolicy web: spec\.egress\[0\]\.to\[0\]\.domainNames\[0\]: /,
    )
  }
})

t.test('policies decide by tier, then by priority', async (t) => {
  const net = (i: number) => to('Deny', { networks: [`192.0.2.${i}/32`] })
  const old = (i: number) => ({ action: 'Deny', to: [{ networks: [`192.0.2.${i}/32`] }] })
  const { lists } = compilePod([
    object(BANP, { subject: everyone, egress: [old(7)] }, { name: 'default' }),
    object(CLUSTER, { ...cnp(net(6)), tier: 'Baseline' }, { name: 'base' }),
    object(CNP, { endpointSelector: {}, egress: [{ toCIDR: ['192.0.2.5'] }] }),
    object(CLUSTER, { ...cnp(net(4)), priority: 20 }, { name: 'late' }),
    object(CLUSTER, { ...cnp(net(3)), priority: 10 }, { name: 'z' }),
    object(CLUSTER, { ...cnp(net(2)), priority: 10 }, { name: 'a' }),
    object(ANP, { ...anp(old(1)), priority: 0 }, { name: 'first' }),
  ])
  const deny = (...all: number[]) => all.map((i) => `deny 192.0.2.${i}/32 *`)
  t.strictSame(lists, [
    [...deny(1, 2, 3, 4), '--', 'accept 192.0.2.5/32 *', 'deny others', '--', ...deny(6, 7)],
  ])
})

t.test('subjects', async (t) => {
  const web = { matchLabels: { app: 'web' } }
  const name = { matchLabels: { 'kubernetes.io/metadata.name': 'a' } }
  const table = [
    { subject: { namespaces: {} }, isSelected: true },
    { subject: { namespaces: name }, isSelected: true },
    { subject: { namespaces: web }, isSelected: false },
    { subject: { pods: { namespaceSelector: {}, podSelector: web } }, isSelected: true },
    { subject: { pods: { namespaceSelector: name, podSelector: {} } }, isSelected: true },
    { subject: { pods: { namespaceSelector: web, podSelector: web } }, isSelected: false },
    { subject: { pods: { namespaceSelector: name, podSelector: name } }, isSelected: false },
  ]
  for (const { subject, isSelected } of table) {
    const spec = { ...cnp(to('Accept', { networks: ['::/0'] })), subject }
    const { lists, problems } = compilePod([object(CLUSTER, spec)])
    t.equal(lists.length > 0, isSelected, JSON.stringify(subject))
    t.strictSame(problems, [])
  }
})
