import t from 'tap'
import { compilePod, object, type Printed } from '../compiled.ts'

const CNP = 'cilium.io/v2 CiliumNetworkPolicy'
const DNS_TO = { matchLabels: { 'k8s:io.kubernetes.pod.namespace': 'kube-system' } }
const ALL = '0.0.0.0/0,::/0'
const ANY_53 = 'tcp:53,udp:53,sctp:53'

// biome-ignore lint/suspicious/noExplicitAny: a spec as a user writes it
type Spec = any

const port = (number: string, protocol?: string) => ({
  ports: [{ port: number, ...(protocol === undefined ? {} : { protocol }) }],
})
const dns = (...rules: object[]) => ({ ...port('53', 'UDP'), rules: { dns: rules } })

interface Case {
  readonly name: string
  /** Of a CiliumNetworkPolicy a/web; without an endpointSelector, it selects all Pods. */
  readonly spec: Spec
  /** What the Pod may do; '' = no policy selects it. */
  readonly want: string
  /** The first problem, without its object. */
  readonly problem?: string
  /** Default: no question is allowed. */
  readonly dns?: readonly string[] | 'every name'
}

function text({ lists }: Printed): string {
  return lists.map((list) => list.join('; ')).join(' && ')
}

const allowing = (...egress: Spec[]) => ({ egress })
const denying = (...egressDeny: Spec[]) => ({ egressDeny })

const CASES: readonly Case[] = [
  { name: 'ingress alone restricts nothing', spec: { ingress: [{}] }, want: '', dns: 'every name' },
  {
    name: 'an empty list restricts nothing',
    spec: { egress: [] },
    want: '',
    dns: 'every name',
  },
  { name: 'an empty rule allows nothing', spec: allowing({}), want: 'deny others' },
  {
    name: 'toFQDNs',
    spec: allowing({ toFQDNs: [{ matchName: 'a.example' }, { matchPattern: '*.b.example' }] }),
    want: 'accept a.example,*.b.example * connections; deny others',
  },
  {
    name: 'toFQDNs with ports',
    spec: allowing({
      toFQDNs: [{ matchName: 'a.example' }],
      toPorts: [port('443', 'TCP'), { ports: [{ port: '8000', endPort: 8010, protocol: 'UDP' }] }],
    }),
    want: 'accept a.example tcp:443,udp:8000-8010 connections; deny others',
  },
  {
    name: 'toFQDNs with another destination allows nothing',
    spec: allowing({ toFQDNs: [{ matchName: 'a.example' }], toCIDR: ['192.0.2.0/24'] }),
    want: 'deny others',
    problem: 'spec.egress[0]: combining toCIDR and toFQDNs in one rule is not supported',
  },
  {
    name: 'an invalid name, beside a valid one',
    spec: allowing({ toFQDNs: [{ matchName: 'a..example' }, { matchName: 'b.example' }] }),
    want: 'accept b.example * connections; deny others',
    problem: 'spec.egress[0].toFQDNs[0].matchName: invalid name "a..example"',
  },
  {
    name: 'a pattern as a name',
    spec: allowing({ toFQDNs: [{ matchName: '*.example' }] }),
    want: 'deny others',
    problem: 'spec.egress[0].toFQDNs[0].matchName: invalid name "*.example"',
  },
  {
    name: 'a name and a pattern in one selector',
    spec: allowing({ toFQDNs: [{ matchName: 'a.example', matchPattern: '*' }] }),
    want: 'deny others',
    problem: 'spec.egress[0].toFQDNs[0]: must have one of matchName and matchPattern',
  },
  {
    name: 'toFQDNs without names allows nothing',
    spec: allowing({ toFQDNs: [], toPorts: [port('443')] }),
    want: 'deny others',
  },
  {
    name: 'toCIDR, with an address alone',
    spec: allowing({ toCIDR: ['192.0.2.0/24', '2001:db8::1'] }),
    want: 'accept 192.0.2.0/24,2001:db8::1/128 *; deny others',
  },
  {
    name: 'toCIDRSet with exceptions',
    spec: allowing({ toCIDRSet: [{ cidr: '10.0.0.0/8', except: ['10.1.0.0/16', '10.2.0.0/16'] }] }),
    want: 'accept 10.0.0.0/8!10.1.0.0/16!10.2.0.0/16 *; deny others',
  },
  {
    name: 'an exception that is invalid',
    spec: allowing({ toCIDRSet: [{ cidr: '10.0.0.0/8', except: ['10.1/16'] }] }),
    want: 'deny others',
    problem: 'spec.egress[0].toCIDRSet[0].except[0]: invalid network "10.1/16"',
  },
  {
    name: 'IPv4 in IPv6 form, denied',
    spec: denying({ toCIDR: ['::ffff:10.0.0.0/104'] }),
    want: `deny ${ALL} *; deny others`,
    problem: 'spec.egressDeny[0].toCIDR[0]: invalid network "::ffff:10.0.0.0/104"',
  },
  {
    name: 'endPort 0',
    spec: allowing({
      toCIDR: ['::1'],
      toPorts: [{ ports: [{ port: '1', endPort: 0, protocol: 'TCP' }] }],
    }),
    want: 'accept ::1/128 tcp:1; deny others',
  },
  {
    name: 'a CiliumCIDRGroup',
    spec: allowing({ toCIDRSet: [{ cidrGroupRef: 'g' }] }),
    want: 'deny others',
    problem: 'spec.egress[0].toCIDRSet[0].cidrGroupRef: unsupported field',
  },
  {
    name: 'a CiliumCIDRGroup that is denied',
    spec: denying({ toCIDRSet: [{ cidrGroupRef: 'g' }], toPorts: [port('80', 'TCP')] }),
    want: `deny ${ALL} tcp:80; deny others`,
    problem: 'spec.egressDeny[0].toCIDRSet[0].cidrGroupRef: unsupported field',
  },
  {
    name: 'entity world',
    spec: allowing({ toEntities: ['world'] }),
    want: `accept ${ALL} *; deny others`,
  },
  {
    name: 'entity all: also questions',
    spec: allowing({ toEntities: ['all'] }),
    want: `accept ${ALL} *; deny others`,
    dns: ['* *,*'],
  },
  {
    name: 'entities of one family',
    spec: allowing({ toEntities: ['world-ipv4'] }, { toEntities: ['world-ipv6'] }),
    want: 'accept 0.0.0.0/0 *; accept ::/0 *; deny others',
  },
  {
    name: 'entities of the cluster',
    spec: allowing({ toEntities: ['remote-node', 'kube-apiserver', 'health', 'init', 'none'] }),
    want: 'deny others',
  },
  {
    name: 'entities that may answer questions',
    spec: allowing({ toEntities: ['cluster'] }, { toEntities: ['host'] }),
    want: 'deny others',
    dns: ['* *,*', '* *,*'],
  },
  {
    name: 'an unknown entity',
    spec: allowing({ toEntities: ['world', 'moon'] }),
    want: 'deny others',
    problem: 'spec.egress[0].toEntities[1]: "moon" is not supported: unknown entity',
  },
  {
    name: 'the API server, denied',
    spec: denying({ toEntities: ['kube-apiserver'] }),
    want: `deny ${ALL} *; deny others`,
    problem: 'spec.egressDeny[0].toEntities[0]: "kube-apiserver" is not supported',
  },
  {
    name: 'Pods are no matter of ours, whatever their ports and rules',
    spec: allowing({
      toEndpoints: [{ matchLabels: { app: 'db' } }],
      toPorts: [{ ports: [{ port: 'postgres' }], rules: { http: [{ method: 'GET' }] } }],
    }),
    want: 'deny others',
  },
  {
    name: 'reserved labels',
    spec: allowing({ toEndpoints: [{ matchLabels: { 'reserved:world': '' } }] }),
    want: 'deny others',
    problem: 'spec.egress[0].toEndpoints[0]: only labels of Pods and Namespaces are supported',
  },
  {
    name: 'ports without a destination',
    spec: allowing({ toPorts: [port('443')] }),
    want: `accept ${ALL} tcp:443,udp:443,sctp:443; deny others`,
  },
  {
    name: 'port 0 is all ports',
    spec: allowing({ toEntities: ['world'], toPorts: [port('0', 'TCP')] }),
    want: `accept ${ALL} tcp:0-65535; deny others`,
  },
  {
    name: 'ANY and letter case of protocols',
    spec: allowing({ toCIDR: ['192.0.2.1'], toPorts: [port('1', 'ANY'), port('2', 'udp')] }),
    want: 'accept 192.0.2.1/32 tcp:1,udp:1,sctp:1,udp:2; deny others',
  },
  {
    name: 'a named port',
    spec: allowing({ toCIDR: ['192.0.2.1'], toPorts: [port('http'), port('443', 'TCP')] }),
    want: 'accept 192.0.2.1/32 tcp:443; deny others',
    problem: 'spec.egress[0].toPorts[0].ports[0].port: named port "http" is not supported',
  },
  {
    name: 'a named port that is denied',
    spec: denying({ toCIDR: ['192.0.2.1'], toPorts: [port('http'), port('443', 'TCP')] }),
    want: 'deny 192.0.2.1/32 *; deny others',
    problem: 'spec.egressDeny[0].toPorts[0].ports[0].port: named port "http" is not supported',
  },
  {
    name: 'an unsupported protocol',
    spec: allowing({ toCIDR: ['192.0.2.1'], toPorts: [port('1', 'ICMP')] }),
    want: 'deny others',
    problem: 'spec.egress[0].toPorts[0].ports[0].protocol: must be TCP, UDP, SCTP or ANY',
  },
  {
    name: 'rules of HTTP',
    spec: allowing({
      toFQDNs: [{ matchName: 'a.example' }],
      toPorts: [{ ...port('80', 'TCP'), rules: { http: [{ path: '/' }] } }, port('443', 'TCP')],
    }),
    want: 'accept a.example tcp:443 connections; deny others',
    problem: 'spec.egress[0].toPorts[0].rules.http: unsupported field',
  },
  {
    name: 'names of TLS',
    spec: allowing({
      toCIDR: ['192.0.2.1'],
      toPorts: [{ ...port('443', 'TCP'), serverNames: ['a.example'] }],
    }),
    want: 'deny others',
    problem: 'spec.egress[0].toPorts[0].serverNames: unsupported field',
  },
  {
    name: 'ICMP types',
    spec: allowing({ toCIDR: ['192.0.2.1'], icmps: [{ fields: [{ type: 8 }] }] }),
    want: 'deny others',
    problem: 'spec.egress[0].icmps: unsupported field',
  },
  {
    name: 'mutual authentication',
    spec: allowing({ toCIDR: ['192.0.2.1'], authentication: { mode: 'required' } }),
    want: 'deny others',
    problem: 'spec.egress[0].authentication.mode: authentication is not supported',
  },
  {
    name: 'Services and groups',
    spec: allowing({ toServices: [{ k8sService: { serviceName: 'x' } }] }),
    want: 'deny others',
    problem: 'spec.egress[0].toServices[0]: toServices and toGroups are not supported',
  },
  {
    name: 'a denial decides first',
    spec: { ...allowing({ toCIDR: ['10.0.0.0/8'] }), ...denying({ toCIDR: ['10.1.0.0/16'] }) },
    want: 'deny 10.1.0.0/16 *; accept 10.0.0.0/8 *; deny others',
  },
  {
    name: 'without the default denial',
    spec: {
      ...allowing({ toFQDNs: [{ matchName: 'a.example' }] }),
      enableDefaultDeny: { egress: false },
    },
    want: 'accept a.example * connections',
    dns: 'every name',
  },
  {
    name: 'only the default denial',
    spec: { enableDefaultDeny: { egress: true } },
    want: 'deny others',
  },
  {
    name: 'a list that is none',
    spec: { egress: { toCIDR: ['0.0.0.0/0'] } },
    want: 'deny others',
    problem: 'spec.egress: must be a list',
  },
  {
    name: 'a field that is misspelt',
    spec: { egres: [] },
    want: '',
    dns: 'every name',
    problem: 'spec.egres: unknown field',
  },
  {
    name: 'a policy for nodes',
    spec: { nodeSelector: {}, egress: [{}], endpointSelector: undefined },
    want: '',
    dns: 'every name',
  },
  {
    name: 'a selector that is invalid selects all, and accepts nothing',
    spec: {
      endpointSelector: { matchExpressions: [{ key: 'a', operator: 'Equals', values: ['b'] }] },
      ...allowing({ toEntities: ['all'] }),
      ...denying({ toCIDR: ['10.1.0.0/16'] }),
    },
    want: 'deny 10.1.0.0/16 *; deny others',
    problem: 'spec.endpointSelector.matchExpressions[0].operator: must be In, NotIn, Exists',
  },
  {
    name: 'a selector that is missing',
    spec: { endpointSelector: undefined, ...allowing({ toEntities: ['all'] }) },
    want: 'deny others',
    problem: 'spec.endpointSelector: is missing',
  },
]

/** Which questions a rule allows. */
const QUESTIONS: readonly Case[] = [
  {
    name: 'names, of the DNS of the cluster',
    spec: allowing({
      toEndpoints: [DNS_TO],
      toPorts: [dns({ matchName: 'a.example' }, { matchPattern: '*.b.example' })],
    }),
    want: 'deny others',
    dns: ['udp:53 a.example,*.b.example'],
  },
  {
    name: 'an empty list of names restricts nothing',
    spec: allowing({ toEndpoints: [DNS_TO], toPorts: [dns()] }),
    want: 'deny others',
    dns: ['udp:53 *,*'],
  },
  {
    name: 'port 53 without names',
    spec: allowing({ toEndpoints: [DNS_TO], toPorts: [port('53')] }),
    want: 'deny others',
    dns: [`${ANY_53} *,*`],
  },
  {
    name: 'names that are invalid are none',
    spec: allowing({ toEndpoints: [DNS_TO], toPorts: [dns({ matchName: 'a..b' })] }),
    want: 'deny others',
    dns: ['udp:53 '],
    problem: 'spec.egress[0].toPorts[0].rules.dns[0].matchName: invalid name "a..b"',
  },
  {
    name: 'a list of names that is none',
    spec: allowing({
      toEndpoints: [DNS_TO],
      toPorts: [{ ...port('53', 'UDP'), rules: { dns: { matchPattern: '*' } } }],
    }),
    want: 'deny others',
    dns: ['udp:53 '],
    problem: 'spec.egress[0].toPorts[0].rules.dns: must be a list',
  },
  {
    name: 'all ports of the DNS of the cluster',
    spec: allowing({
      toEndpoints: [{ matchLabels: { ...DNS_TO.matchLabels, 'k8s-app': 'kube-dns' } }],
    }),
    want: 'deny others',
    dns: ['* *,*'],
  },
  {
    name: 'all ports of other Pods, and of Pods of the namespace',
    spec: allowing({ toEndpoints: [{ matchLabels: { app: 'db' } }] }, { toEndpoints: [{}] }),
    want: 'deny others',
  },
  {
    name: 'all ports of a network are not about questions',
    spec: allowing({ toCIDR: ['192.0.2.0/24'] }, { toCIDR: ['192.0.2.1'], toPorts: [port('0')] }),
    want: 'accept 192.0.2.0/24 *; accept 192.0.2.1/32 tcp:0-65535,udp:0-65535,sctp:0-65535; deny others',
  },
  {
    name: 'port 53 of a network is',
    spec: allowing({ toCIDR: ['192.0.2.1'], toPorts: [port('53', 'UDP')] }),
    want: 'accept 192.0.2.1/32 udp:53; deny others',
    dns: ['udp:53 *,*'],
  },
  {
    name: 'names on another port: no connection, because nothing restricts its questions',
    spec: allowing({
      toCIDR: ['192.0.2.1'],
      toPorts: [{ ...port('5353', 'UDP'), rules: { dns: [{ matchPattern: '*' }] } }],
    }),
    want: 'deny others',
    dns: ['udp:5353 *'],
  },
  {
    name: 'port 53 of names does not count',
    spec: allowing({ toFQDNs: [{ matchName: 'a.example' }], toPorts: [port('53', 'UDP')] }),
    want: 'accept a.example udp:53 connections; deny others',
  },
  {
    name: 'a named port has no questions',
    spec: allowing({
      toEndpoints: [DNS_TO],
      toPorts: [{ ...port('dns', 'UDP'), rules: { dns: [{ matchPattern: '*' }] } }],
    }),
    want: 'deny others',
    problem: 'spec.egress[0].toPorts[0].ports[0].port: named port "dns" is not supported',
  },
  {
    name: 'a denial of all',
    spec: {
      ...allowing({ toEntities: ['all'] }),
      ...denying({ toEntities: ['all'], toPorts: [port('53', 'TCP')] }),
    },
    want: `deny ${ALL} tcp:53; accept ${ALL} *; deny others`,
    dns: ['udp:0-65535 *,*'],
  },
  {
    name: 'a denial where everything else is allowed',
    spec: {
      ...denying({ toEntities: ['cluster'], toPorts: [port('53', 'UDP')] }),
      enableDefaultDeny: { egress: false },
    },
    want: '',
    dns: ['tcp:0-65535 *,*'],
  },
  {
    name: 'a denial of other DNS servers',
    spec: {
      ...allowing({ toEndpoints: [DNS_TO], toPorts: [port('53', 'UDP')] }),
      ...denying({ toEntities: ['world'], toPorts: [port('53', 'UDP')] }),
    },
    want: `deny ${ALL} udp:53; deny others`,
    dns: ['udp:53 *,*'],
  },
]

for (const [group, cases] of Object.entries({ CASES, QUESTIONS })) {
  t.test(`CiliumNetworkPolicy: ${group.toLowerCase()}`, async (t) => {
    for (const { name, spec, want, problem, dns = [] } of cases) {
      const printed = compilePod([object(CNP, { endpointSelector: {}, ...spec })])
      t.equal(text(printed), want, name)
      const asked = printed.dns ?? 'every name'
      t.strictSame(asked, dns, `${name}: questions`)
      const [first = '', ...others] = printed.problems
      t.ok(
        first.startsWith(problem === undefined ? '' : `CiliumNetworkPolicy a/web: ${problem}`),
        first,
      )
      t.equal(first === '', problem === undefined, `${name}: ${first}`)
      t.strictSame(others, [], name)
    }
  })
}

t.test('spec and specs', async (t) => {
  const one = { endpointSelector: {}, egress: [{ toCIDR: ['192.0.2.1'] }] }
  const two = { endpointSelector: {}, egress: [{ toCIDR: ['192.0.2.2'] }] }
  const foreign = {
    endpointSelector: { matchLabels: { app: 'db' } },
    egress: [{ toCIDR: ['::1'] }],
  }
  const policy = { ...object(CNP, one), specs: [two, foreign] }
  t.strictSame(compilePod([policy]).lists, [
    ['accept 192.0.2.1/32 *', 'accept 192.0.2.2/32 *', 'deny others'],
  ])
  const missing = compilePod([object(CNP, undefined)])
  t.strictSame(missing.problems, ['CiliumNetworkPolicy a/web: spec: is missing'])
})
