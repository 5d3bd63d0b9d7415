import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import { SERVICE } from '../../../src/sources/objects/service/service-kind.ts'
import { nodeOf, podOf, serviceOf, sliceOf } from './service-objects.ts'
import { type Put, printProblems, printRecords, settledOf } from './settled.ts'

const NEW = 'external-dns.kubernetes.io/'
const HOST = { [`${NEW}hostname`]: 'a.example.com' }
const INTERNAL = { [`${NEW}internal-hostname`]: 'a.example.com' }

interface Case {
  readonly annotations?: Readonly<Record<string, string>>
  readonly spec: ApiObject
  readonly status?: ApiObject
  readonly others?: readonly Put[]
  /** Undefined = the object is invalid. */
  readonly want: readonly string[] | undefined
  readonly problems?: readonly RegExp[]
}

const PORTS = {
  ports: [
    { port: 80, nodePort: 30080 },
    { port: 53, nodePort: 30053, protocol: 'UDP' },
  ],
}
const SRV = [
  '_web._tcp.a.example.com SRV 0 50 30080 a.example.com.',
  '_web._udp.a.example.com SRV 0 50 30053 a.example.com.',
]
const NODES = [
  nodeOf('n1', { ExternalIP: ['192.0.2.1', '2001:db8::1'], InternalIP: ['10.0.0.1'] }),
  nodeOf('n2', { ExternalIP: ['192.0.2.2'], InternalIP: ['10.0.0.2'], Hostname: ['n2'] }),
  nodeOf('n3', { ExternalIP: ['192.0.2.3'] }, { unschedulable: true }),
]
const HEADLESS = { clusterIP: 'None', selector: { app: 'web' } }
const READY = { ready: true, serving: true }
const PODS = [
  podOf('p1', { hostname: 'one', node: 'n1', hostAddress: '10.0.0.1' }),
  podOf('p2', { node: 'n2', hostAddress: '10.0.0.2' }),
  podOf('p3', { node: 'n2', hostAddress: '10.0.0.2' }),
]
const SLICES = [
  sliceOf('web-1', 'web', [
    { pod: 'p1', addresses: ['10.1.0.1', '10.1.9.9'], conditions: READY, node: 'n1' },
    { pod: 'p2', addresses: ['10.1.0.2'], node: 'n2' },
    { pod: 'p3', addresses: ['10.1.0.3'], conditions: { ready: false }, node: 'n2' },
  ]),
  sliceOf('web-6', 'web', [{ pod: 'p1', addresses: ['fd00::1'], conditions: READY }], 'IPv6'),
  sliceOf('web-f', 'web', [{ pod: 'p1', addresses: ['x.example'], conditions: READY }], 'FQDN'),
  sliceOf('other-1', 'other', [{ pod: 'p1', addresses: ['10.1.0.4'], conditions: READY }]),
]

const CASES: Readonly<Record<string, Case>> = {
  'a load balancer': {
    spec: { type: 'LoadBalancer', clusterIP: '10.9.0.1' },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }, { ip: '2001:db8::1' }] } },
    want: ['a.example.com A 192.0.2.1', 'a.example.com AAAA 2001:db8::1'],
  },
  'a load balancer with a host name': {
    spec: { type: 'LoadBalancer' },
    status: { loadBalancer: { ingress: [{ hostname: 'lb.example.net' }] } },
    want: ['a.example.com CNAME lb.example.net'],
  },
  'a load balancer with several host names': {
    spec: { type: 'LoadBalancer' },
    status: { loadBalancer: { ingress: [{ hostname: 'x.example' }, { hostname: 'y.example' }] } },
    want: ['a.example.com CNAME x.example'],
    problems: [/^status.loadBalancer.ingress: "y.example" is not served/],
  },
  'external addresses': {
    spec: { type: 'LoadBalancer', externalIPs: ['198.51.100.1'] },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
    want: ['a.example.com A 198.51.100.1'],
  },
  'an internal host of a load balancer': {
    annotations: { ...HOST, [`${NEW}internal-hostname`]: 'in.example.com' },
    spec: { type: 'LoadBalancer', clusterIP: '10.9.0.1' },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
    want: ['a.example.com A 192.0.2.1', 'in.example.com A 10.9.0.1'],
  },
  'a host in both annotations': {
    annotations: { ...HOST, ...INTERNAL },
    spec: { type: 'LoadBalancer', clusterIP: '10.9.0.1' },
    status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
    want: ['a.example.com A 192.0.2.1,10.9.0.1'],
  },
  'no address yet': {
    spec: { type: 'LoadBalancer', clusterIP: '10.9.0.1' },
    status: { loadBalancer: {} },
    want: undefined,
    problems: [/^status.loadBalancer.ingress: the Service has no address yet/],
  },
  'a target of an annotation': {
    annotations: { ...HOST, [`${NEW}target`]: '198.51.100.7' },
    spec: { type: 'NodePort', ...PORTS },
    want: ['a.example.com A 198.51.100.7'],
  },
  'an address of the cluster': {
    annotations: INTERNAL,
    spec: { clusterIP: '10.9.0.1' },
    want: ['a.example.com A 10.9.0.1'],
  },
  'no address outside of the cluster': {
    spec: { type: 'ClusterIP', clusterIP: '10.9.0.1' },
    want: [],
    problems: [/hostname: "a.example.com" is not served: .*internal-hostname or target/],
  },
  'an external name': {
    spec: { type: 'ExternalName', externalName: 'x.example.' },
    want: ['a.example.com CNAME x.example.'],
  },
  'an external name with addresses': {
    spec: { type: 'ExternalName', externalName: 'x.example', externalIPs: ['192.0.2.1'] },
    want: ['a.example.com A 192.0.2.1'],
  },
  'ports of Nodes, with external addresses': {
    spec: { type: 'NodePort', ...PORTS },
    others: NODES,
    want: [...SRV, 'a.example.com A 192.0.2.1,192.0.2.2', 'a.example.com AAAA 2001:db8::1'],
  },
  'private addresses of Nodes': {
    annotations: { ...HOST, [`${NEW}access`]: 'private' },
    spec: { type: 'NodePort' },
    others: NODES,
    want: ['a.example.com A 10.0.0.1,10.0.0.2'],
  },
  'Nodes without external addresses': {
    spec: { type: 'NodePort' },
    others: [nodeOf('n1', { InternalIP: ['10.0.0.1'] })],
    want: ['a.example.com A 10.0.0.1'],
  },
  'public addresses of Nodes without any': {
    annotations: { ...HOST, [`${NEW}access`]: 'public' },
    spec: { type: 'NodePort' },
    others: [nodeOf('n1', { InternalIP: ['10.0.0.1'] })],
    want: undefined,
    problems: [/^spec.type: the Service has no address yet/],
  },
  'unknown access': {
    annotations: { ...HOST, [`${NEW}access`]: 'all' },
    spec: { type: 'NodePort' },
    others: NODES,
    want: undefined,
    problems: [/access must be public or private, got "all"/],
  },
  'Nodes with Pods of the Service': {
    spec: { type: 'NodePort', externalTrafficPolicy: 'Local' },
    others: [...NODES, ...SLICES],
    want: ['a.example.com A 192.0.2.1,192.0.2.2', 'a.example.com AAAA 2001:db8::1'],
  },
  'Nodes with Pods that are not ready, if no Pod is ready': {
    spec: { type: 'NodePort', externalTrafficPolicy: 'Local' },
    others: [
      ...NODES,
      sliceOf('web-1', 'web', [
        { pod: 'p1', addresses: [], conditions: { ready: false, serving: true }, node: 'n2' },
        { pod: 'p2', addresses: [], conditions: { ready: false, serving: false }, node: 'n1' },
        { pod: 'p3', addresses: [], conditions: { ready: true }, node: 'unknown' },
      ]),
    ],
    want: ['a.example.com A 192.0.2.2'],
  },
  'no Node with Pods': {
    spec: { type: 'NodePort', externalTrafficPolicy: 'Local' },
    others: NODES,
    want: undefined,
    problems: [/no address yet/],
  },
  'ports of a wildcard': {
    annotations: { [`${NEW}hostname`]: '*.example.com' },
    spec: { type: 'NodePort', ...PORTS },
    others: [nodeOf('n1', { InternalIP: ['10.0.0.1'] })],
    want: ['*.example.com A 10.0.0.1'],
  },
  'more Nodes than an endpoint may have targets': {
    spec: { type: 'NodePort' },
    others: Array.from({ length: 257 }, (_, i) =>
      nodeOf(`n${i}`, { InternalIP: [`10.0.1.${i}`, `10.0.2.${i}`] }),
    ),
    want: undefined,
    problems: [/a.example.com has 512 addresses; an endpoint may have up to 256/],
  },
  'a headless Service': {
    spec: HEADLESS,
    others: [...PODS, ...SLICES],
    want: [
      'a.example.com A 10.1.0.1,10.1.0.2',
      'a.example.com AAAA fd00::1',
      'one.a.example.com A 10.1.0.1',
      'one.a.example.com AAAA fd00::1',
    ],
  },
  'a headless Service with Pods that are not ready': {
    spec: { ...HEADLESS, publishNotReadyAddresses: true },
    others: [...PODS.slice(1), SLICES[0]!],
    want: ['a.example.com A 10.1.0.1,10.1.0.2,10.1.0.3'],
  },
  'a headless Service without a ready Pod': { spec: HEADLESS, others: PODS, want: [] },
  'addresses of the hosts of Pods': {
    annotations: { ...HOST, [`${NEW}endpoints-type`]: 'HostIP' },
    spec: HEADLESS,
    others: [...PODS, ...SLICES],
    want: ['a.example.com A 10.0.0.1,10.0.0.2', 'one.a.example.com A 10.0.0.1'],
  },
  'external addresses of the Nodes of Pods': {
    annotations: { ...HOST, [`${NEW}endpoints-type`]: 'NodeExternalIP' },
    spec: HEADLESS,
    others: [...NODES, ...PODS, SLICES[0]!],
    want: [
      'a.example.com A 192.0.2.1,192.0.2.2',
      'a.example.com AAAA 2001:db8::1',
      'one.a.example.com A 192.0.2.1',
      'one.a.example.com AAAA 2001:db8::1',
    ],
  },
  'an unknown type of endpoints': {
    annotations: { ...HOST, [`${NEW}endpoints-type`]: 'PodIP' },
    spec: HEADLESS,
    want: undefined,
    problems: [/endpoints-type must be NodeExternalIP or HostIP, got "PodIP"/],
  },
  'targets of Pods': {
    spec: HEADLESS,
    others: [
      podOf('p1', { annotations: { [`${NEW}target`]: '198.51.100.1' } }),
      podOf('p2', { annotations: { 'external-dns.alpha.kubernetes.io/target': '198.51.100.2' } }),
      SLICES[0]!,
    ],
    want: ['a.example.com A 198.51.100.1,198.51.100.2'],
  },
  'Pods that are not known have what the EndpointSlice says': {
    spec: HEADLESS,
    others: [sliceOf('web-1', 'web', [{ pod: 'p9', addresses: ['10.1.0.9'], hostname: 'nine' }])],
    want: ['a.example.com A 10.1.0.9', 'nine.a.example.com A 10.1.0.9'],
  },
  'endpoints that are no Pods': {
    spec: HEADLESS,
    others: [sliceOf('web-1', 'web', [{ addresses: ['10.1.0.9'] }])],
    want: [],
  },
  'a wildcard of a headless Service': {
    annotations: { [`${NEW}hostname`]: '*.example.com' },
    spec: HEADLESS,
    others: [...PODS, SLICES[0]!],
    want: ['*.example.com A 10.1.0.1,10.1.0.2'],
  },
  settings: {
    annotations: {
      ...HOST,
      'sextant.io/weight': '3',
      'sextant.io/geo-code': 'GEO-EU',
      [`${NEW}ttl`]: '30',
      [`${NEW}alias`]: 'true',
    },
    spec: { type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] },
    others: [nodeOf('n1', { InternalIP: ['10.0.0.1'] })],
    want: [
      '_web._tcp.a.example.com SRV 0 50 30080 a.example.com. ttl=30 id=shop/web weight=3 geo-code=GEO-EU',
      'a.example.com A 10.0.0.1 ttl=30 id=shop/web weight=3 geo-code=GEO-EU',
    ],
  },
  'no host': { annotations: {}, spec: { type: 'LoadBalancer' }, want: [] },
  'another controller': {
    annotations: { ...HOST, [`${NEW}controller`]: 'other' },
    spec: { type: 'LoadBalancer' },
    want: [],
  },
  'a host without a dot': {
    annotations: { [`${NEW}hostname`]: 'localhost' },
    spec: { type: 'LoadBalancer' },
    want: undefined,
    problems: [/hostname: "localhost" is not a domain name with two labels or more/],
  },
}

t.test('a Service gives a record for each host', async (t) => {
  for (const [name, one] of Object.entries(CASES)) {
    const { annotations = HOST, spec, status = {}, others = [], want, problems = [] } = one
    const service = serviceOf('web', annotations, { spec, status })
    for (const puts of [
      [service, ...others],
      [...others, service],
    ]) {
      const found = settledOf(SERVICE, puts).get('shop/web')
      const wanted = want?.length === 0 && problems.length === 0 ? undefined : want
      const records = found === undefined ? undefined : printRecords(found.records)
      if (want?.length === 0 && problems.length === 0) t.equal(found, undefined, name)
      t.strictSame(records, wanted, name)
      const printed = found === undefined ? [] : printProblems(found)
      t.equal(printed.length, problems.length, `${name}: ${printed.join('; ')}`)
      for (const [index, problem] of problems.entries()) t.match(printed[index], problem, name)
    }
  }
})
