import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import { INGRESS } from '../../../src/sources/objects/ingress/ingress-kind.ts'
import { objectOf, printProblems, printRecords, settledOf } from './settled.ts'

const NEW = 'external-dns.kubernetes.io/'
const OLD = 'external-dns.alpha.kubernetes.io/'
const RULES = { rules: [{ host: 'A.example.com' }, {}, { host: 'b.example.com' }] }
const IP = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } }

interface Case {
  readonly annotations?: Readonly<Record<string, string>>
  readonly spec?: ApiObject
  readonly status?: ApiObject
  /** Undefined = the object is invalid. */
  readonly want: readonly string[] | undefined
  readonly problems?: readonly RegExp[]
}

const CASES: Readonly<Record<string, Case>> = {
  'hosts of rules': {
    want: ['a.example.com A 192.0.2.1', 'b.example.com A 192.0.2.1'],
  },
  'hosts of certificates and of the annotation, each once': {
    annotations: { [`${NEW}hostname`]: 'c.example.com., B.example.com' },
    spec: { ...RULES, tls: [{ hosts: ['b.example.com', '*.example.com', ''] }, {}] },
    want: [
      'a.example.com A 192.0.2.1',
      'b.example.com A 192.0.2.1',
      '*.example.com A 192.0.2.1',
      'c.example.com A 192.0.2.1',
    ],
  },
  'only defined hosts': {
    annotations: {
      [`${OLD}hostname`]: 'c.example.com',
      [`${OLD}ingress-hostname-source`]: 'Defined-Hosts-Only',
    },
    want: ['a.example.com A 192.0.2.1', 'b.example.com A 192.0.2.1'],
  },
  'only hosts of the annotation': {
    annotations: {
      [`${OLD}hostname`]: 'c.example.com',
      [`${OLD}ingress-hostname-source`]: 'annotation-only',
    },
    want: ['c.example.com A 192.0.2.1'],
  },
  'another source of hosts': {
    annotations: { [`${NEW}ingress-hostname-source`]: 'none' },
    want: undefined,
    problems: [/ingress-hostname-source must be annotation-only or defined-hosts-only, got "none"/],
  },
  'no hosts': { spec: { rules: [{}] }, status: {}, want: [] },
  'another controller': { annotations: { [`${NEW}controller`]: 'other' }, want: [] },
  'our controller': {
    annotations: { [`${OLD}controller`]: 'dns-controller' },
    spec: { rules: [{ host: 'a.example.com' }] },
    want: ['a.example.com A 192.0.2.1'],
  },
  'addresses of both families and a host name': {
    spec: { rules: [{ host: 'a.example.com' }] },
    status: {
      loadBalancer: {
        ingress: [{ ip: '192.0.2.1' }, { ip: '2001:db8::1', hostname: 'lb.example.net' }],
      },
    },
    want: ['a.example.com A 192.0.2.1', 'a.example.com AAAA 2001:db8::1'],
    problems: [/"lb.example.net" is not served at a.example.com, because a CNAME must be alone/],
  },
  'a host name': {
    spec: { rules: [{ host: 'a.example.com' }] },
    status: { loadBalancer: { ingress: [{ hostname: 'lb.example.net' }] } },
    want: ['a.example.com CNAME lb.example.net'],
  },
  'an alias': {
    annotations: { [`${NEW}alias`]: 'true' },
    spec: { rules: [{ host: 'a.example.com' }] },
    status: { loadBalancer: { ingress: [{ hostname: 'lb.example.net' }] } },
    want: ['a.example.com ALIAS lb.example.net'],
  },
  'targets, TTL and set identifier of annotations': {
    annotations: {
      [`${OLD}target`]: '198.51.100.1, 2001:db8::2',
      [`${OLD}ttl`]: '5m',
      [`${OLD}set-identifier`]: 'eu',
      [`${OLD}aws-weight`]: '10',
      'sextant.io/geo-code': 'GEO-EU',
    },
    spec: { rules: [{ host: 'a.example.com' }] },
    status: {},
    want: [
      'a.example.com A 198.51.100.1 ttl=300 id=eu geo-code=GEO-EU weight=10',
      'a.example.com AAAA 2001:db8::2 ttl=300 id=eu geo-code=GEO-EU weight=10',
    ],
  },
  'the new prefix counts': {
    annotations: { [`${NEW}ttl`]: '60', [`${OLD}ttl`]: '120' },
    spec: { rules: [{ host: 'a.example.com' }] },
    want: ['a.example.com A 192.0.2.1 ttl=60'],
    problems: [/alpha.kubernetes.io\/ttl is ignored, because external-dns.kubernetes.io\/ttl has/],
  },
  'no address yet': {
    status: { loadBalancer: {} },
    want: undefined,
    problems: [/^status.loadBalancer.ingress: the Ingress has no address yet/],
  },
  'a host that is no DNS name': {
    annotations: { [`${NEW}hostname`]: 'a..example.com' },
    want: undefined,
    problems: [
      /^metadata.annotations.external-dns.kubernetes.io\/hostname: "a..example.com" is not/,
    ],
  },
  'a host with a control character': {
    annotations: { [`${NEW}hostname`]: 'a\u0007.example.com' },
    want: undefined,
    problems: [/"a\\u0007.example.com" is not a domain name/],
  },
  '10 000 hosts in one annotation': {
    annotations: {
      [`${NEW}hostname`]: Array.from({ length: 10_000 }, (_, i) => `h${i}.example.com`).join(),
    },
    want: undefined,
    problems: [/hostname may have up to 256 items/],
  },
  'a target that is no name': {
    annotations: { [`${NEW}target`]: 'a b,c_d!é' },
    want: undefined,
    problems: [/"c_d!é" is neither an IP address nor a host name/],
  },
  'an invalid TTL': {
    annotations: { [`${NEW}ttl`]: 'soon' },
    want: undefined,
    problems: [/ttl must be seconds from 1 to 2147483647, or a duration such as 5m, got "soon"/],
  },
  'a TTL of 0': { annotations: { [`${NEW}ttl`]: '0' }, want: undefined, problems: [/ttl must be/] },
  'a property without an equal': {
    annotations: { [`${NEW}cloudflare-proxied`]: 'true' },
    want: undefined,
    problems: [
      /^metadata.annotations.external-dns.kubernetes.io\/cloudflare-proxied: .*no equivalent/,
    ],
  },
  'an annotation of ours that does not parse': {
    annotations: { 'sextant.io/weight': 'heavy' },
    want: undefined,
    problems: [/^metadata.annotations.sextant.io\/weight: invalid weight/],
  },
  'unknown annotations and prototype keys': {
    annotations: {
      'sextant.io/wieght': '1',
      [`${NEW}webhook-sextant-wieght`]: '1',
      [`${NEW}constructor`]: 'x',
      [`${NEW}__proto__`]: 'x',
      ['__proto__']: 'x',
    },
    spec: { rules: [{ host: 'a.example.com' }] },
    want: ['a.example.com A 192.0.2.1'],
    problems: [/did you mean sextant.io\/weight/, /did you mean webhook\/sextant-weight/],
  },
  'fields of other types': {
    annotations: { [`${NEW}hostname`]: 'a.example.com' },
    spec: { rules: ['x', { host: 7 }], tls: { hosts: 'x' } },
    status: { loadBalancer: { ingress: [null, { ip: 7 }, { ip: '192.0.2.9' }] } },
    want: ['a.example.com A 192.0.2.9'],
  },
}

t.test('an Ingress gives a record for each host', async (t) => {
  for (const [name, one] of Object.entries(CASES)) {
    const { annotations = {}, spec = RULES, status = IP, want, problems = [] } = one
    const object = objectOf(['networking.k8s.io/v1', 'Ingress'], 'web', annotations, {
      spec,
      status,
    })
    const found = settledOf(INGRESS, [{ plural: 'ingresses', object }]).get('shop/web')
    if (want?.length === 0) {
      t.equal(found, undefined, name)
      continue
    }
    t.strictSame(printRecords(found?.records), want, name)
    const printed = found === undefined ? [] : printProblems(found)
    t.equal(printed.length, problems.length, `${name}: ${printed.join('; ')}`)
    for (const [index, problem] of problems.entries()) t.match(printed[index], problem, name)
  }
})

t.test('a record has the age, the namespace and the settings of its Ingress', async (t) => {
  const annotations = {
    'sextant.io/answers': '3',
    'sextant.io/health-check': '{protocol: TCP, port: 443}',
    [`${NEW}webhook-sextant-sticky`]: 'true',
    [`${NEW}aws-health-check-id`]: 'replaced by ours',
  }
  const spec = { rules: [{ host: 'a.example.com' }] }
  const object = objectOf(['networking.k8s.io/v1', 'Ingress'], 'web', annotations, {
    spec,
    status: IP,
  })
  const found = settledOf(INGRESS, [{ plural: 'ingresses', object }]).get('shop/web')
  t.strictSame(found?.of, {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    namespace: 'shop',
    name: 'web',
    uid: 'uid-web',
  })
  const [record] = found?.records ?? []
  t.match(record?.metadata, {
    name: /^web-ingress-[0-9a-f]{10}$/,
    namespace: 'shop',
    creationTimestamp: '2026-11-01T00:00:00Z',
    annotations: { 'sextant.io/answers': '3', 'sextant.io/sticky': 'true' },
  })
  t.strictSame(record?.spec.rootHost, 'a.example.com')
  t.strictSame(record?.spec.healthCheck, { protocol: 'TCP', port: 443 })
})

t.test('changes and removals are settled once', async (t) => {
  const reader = INGRESS.open()
  const of = (name: string, more: ApiObject) =>
    objectOf(['networking.k8s.io/v1', 'Ingress'], name, {}, more)
  reader.put('ingresses', of('none', {}))
  t.strictSame(reader.settle(), [], 'an object without hosts gives nothing')
  reader.put('ingresses', of('web', { spec: RULES, status: IP }))
  t.equal(reader.settle().length, 1)
  t.strictSame(reader.settle(), [])
  reader.put('ingresses', of('web', { spec: RULES, status: {} }))
  t.equal(reader.settle()[0]?.records, undefined, 'the last state is kept')
  t.strictSame([...reader.keys('ingresses', '')], ['shop/none', 'shop/web'])
  t.strictSame([...reader.keys('ingresses', 'sho')], [])
  reader.remove('ingresses', 'shop/web')
  reader.remove('ingresses', 'shop/unknown')
  t.match(reader.settle(), [{ of: { name: 'web' }, records: [], problems: [] }])
  const gone = of('web', { spec: RULES, status: IP })
  reader.put('ingresses', {
    ...gone,
    metadata: { ...(gone.metadata as ApiObject), deletionTimestamp: 'x' },
  })
  t.strictSame(reader.settle(), [])
  t.strictSame([...reader.keys('ingresses', 'shop')], ['shop/none'])
})
