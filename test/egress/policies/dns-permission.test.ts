import t from 'tap'
import type { CiliumDialect } from '../../../src/egress/policies/policy.ts'
import { compileOne, mayAsk, object } from './compiled.ts'

const CNP = 'cilium.io/v2 CiliumNetworkPolicy'

/** A rule for a port of some server. The servers do not matter: all questions get to one. */
function rule(port: number, protocol: 'UDP' | 'TCP' | 'ANY', names: readonly string[] | 'all') {
  const rules = names === 'all' ? {} : { rules: { dns: names.map(nameRule) } }
  return {
    toEntities: ['cluster'],
    toPorts: [{ ports: [{ port: `${port}`, protocol }], ...rules }],
  }
}

function nameRule(text: string): object {
  return text.includes('*') ? { matchPattern: text } : { matchName: text }
}

function clientOf(egress: readonly object[], dialect: CiliumDialect = 'cilium-1.19') {
  const policy = object(CNP, { endpointSelector: {}, egress })
  return compileOne([policy], { dialect }).client?.rules
}

// The rules of Cilium's TestFullPathDependence, per endpoint. Rows that differ in the server only are left out.
const ENDPOINT_1 = [
  rule(53, 'UDP', ['*.ubuntu.com', 'aws.amazon.com']),
  rule(53, 'TCP', ['sub.ubuntu.com']),
  rule(53, 'UDP', ['cilium.io']),
  rule(54, 'UDP', ['example.com']),
]
const ENDPOINT_3 = [rule(53, 'UDP', ['example.com']), rule(53, 'TCP', ['example.com'])]

const QUESTIONS: readonly {
  readonly egress: readonly object[]
  readonly protocol: 'udp' | 'tcp'
  readonly port: number
  readonly name: string
  readonly may: boolean
}[] = [
  { egress: ENDPOINT_1, protocol: 'udp', port: 53, name: 'www.ubuntu.com.', may: true },
  { egress: ENDPOINT_1, protocol: 'udp', port: 53, name: 'sub.ubuntu.com.', may: true },
  { egress: ENDPOINT_1, protocol: 'tcp', port: 53, name: 'sub.ubuntu.com.', may: true },
  { egress: ENDPOINT_1, protocol: 'udp', port: 53, name: 'cilium.io.', may: true },
  { egress: ENDPOINT_1, protocol: 'udp', port: 54, name: 'example.com.', may: true },
  { egress: ENDPOINT_1, protocol: 'tcp', port: 53, name: 'www.ubuntu.com.', may: false },
  { egress: ENDPOINT_1, protocol: 'udp', port: 54, name: 'cilium.io.', may: false },
  { egress: ENDPOINT_1, protocol: 'udp', port: 53, name: 'example.com.', may: false },
  { egress: ENDPOINT_1, protocol: 'tcp', port: 54, name: 'example.com.', may: false },
  { egress: ENDPOINT_3, protocol: 'udp', port: 53, name: 'example.com.', may: true },
  { egress: ENDPOINT_3, protocol: 'tcp', port: 53, name: 'example.com.', may: true },
  { egress: ENDPOINT_3, protocol: 'tcp', port: 53, name: 'amazon.com.', may: false },
  { egress: ENDPOINT_3, protocol: 'udp', port: 54, name: 'example.com.', may: false },
  { egress: [rule(53, 'UDP', ['*'])], protocol: 'udp', port: 53, name: 'example.com.', may: true },
  { egress: [rule(53, 'UDP', [])], protocol: 'udp', port: 53, name: 'example.com.', may: true },
  { egress: [rule(53, 'UDP', 'all')], protocol: 'udp', port: 53, name: '\\255.x.', may: true },
  { egress: [rule(53, 'UDP', 'all')], protocol: 'udp', port: 53, name: '.', may: true },
  { egress: [rule(53, 'UDP', 'all')], protocol: 'tcp', port: 53, name: 'example.com.', may: false },
  { egress: [rule(80, 'ANY', 'all')], protocol: 'udp', port: 53, name: 'example.com.', may: false },
  { egress: [{}], protocol: 'udp', port: 53, name: 'example.com.', may: false },
]

t.test('questions by port and protocol', async (t) => {
  for (const { egress, protocol, port, name, may } of QUESTIONS) {
    t.equal(mayAsk(clientOf(egress), protocol, port, name), may, `${protocol}:${port} ${name}`)
  }
})

t.test('after a rule is removed', async (t) => {
  const twice = [rule(53, 'UDP', ['a.example']), rule(53, 'UDP', ['a.example', 'b.example'])]
  t.equal(mayAsk(clientOf(twice), 'udp', 53, 'b.example.'), true)
  t.equal(mayAsk(clientOf(twice.slice(0, 1)), 'udp', 53, 'a.example.'), true)
  t.equal(mayAsk(clientOf(twice.slice(0, 1)), 'udp', 53, 'b.example.'), false)
  t.equal(mayAsk(clientOf([{}]), 'udp', 53, 'a.example.'), false)
})

/** Names that a pattern selects, in both dialects; Cilium before and since 1.19. */
const PATTERNS: readonly {
  readonly pattern: string
  readonly both: string
  readonly since: string
  readonly none: string
}[] = [
  { pattern: '*.cilium.io', both: 'a.cilium.io.', since: '', none: 'cilium.io. a.b.cilium.io.' },
  { pattern: '*cilium.io', both: 'cilium.io. xcilium.io.', since: '', none: 'www.cilium.io.' },
  { pattern: '**.cilium.io', both: 'a.cilium.io.', since: 'a.b.cilium.io.', none: 'cilium.io.' },
  { pattern: 'a.**.x', both: 'a.b.x.', since: '', none: 'a.b.c.x.' },
  { pattern: '*', both: 'a. a.b.c. .', since: '', none: '\\255.x.' },
  { pattern: '**', both: 'a.', since: 'a.b.c.', none: '' },
  { pattern: 'A_b.Example', both: 'a_b.example.', since: '', none: 'ab.example.' },
]

t.test('patterns of both dialects', async (t) => {
  const words = (text: string) => text.split(' ').filter((word) => word !== '')
  for (const { pattern, both, since, none } of PATTERNS) {
    const ask = (dialect: CiliumDialect, name: string) => {
      return mayAsk(clientOf([rule(53, 'UDP', [pattern])], dialect), 'udp', 53, name)
    }
    for (const dialect of ['cilium-1.16', 'cilium-1.19'] as const) {
      for (const name of words(both)) t.equal(ask(dialect, name), true, `${pattern} ${name}`)
      for (const name of words(none)) t.equal(ask(dialect, name), false, `${pattern} ${name}`)
      for (const name of words(since)) {
        t.equal(ask(dialect, name), dialect === 'cilium-1.19', `${dialect} ${pattern} ${name}`)
      }
    }
  }
})

t.test('rules of administrators for port 53', async (t) => {
  const spec = { tier: 'Admin', priority: 5, subject: { namespaces: {} } }
  const type = 'policy.networking.k8s.io/v1alpha2 ClusterNetworkPolicy'
  const dns = (numbers: object = { number: 53 }) => [
    { udp: { destinationPort: numbers } },
    { tcp: { destinationPort: numbers } },
  ]
  const [all, cluster, names] = [
    { networks: ['0.0.0.0/0', '::/0'] },
    { namespaces: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } } },
    { domainNames: ['*.example'] },
  ]
  const pods = { pods: { namespaceSelector: {}, podSelector: { matchLabels: { app: 'dns' } } } }
  const rule = (action: string, to: object, protocols?: readonly object[]) => {
    return { action, to: [to], ...(protocols === undefined ? {} : { protocols }) }
  }
  const deny = rule('Deny', all, dns())
  const table: readonly [string, readonly object[], boolean][] = [
    ['port 53', [deny], false],
    ['a range with it', [rule('Deny', all, dns({ range: { start: 1, end: 99 } }))], false],
    ['another port', [rule('Deny', all, dns({ number: 853 }))], true],
    ['port 53 of the cluster', [rule('Deny', cluster, dns())], false],
    ['port 53 of Pods', [rule('Deny', pods, dns())], false],
    [
      'port 53 of a part of the networks',
      [rule('Deny', { networks: ['8.8.8.0/24'] }, dns())],
      true,
    ],
    ['TCP alone', [rule('Deny', all, dns().slice(1))], true],
    ['all ports', [rule('Deny', all)], true],
    ['accepted before', [rule('Accept', cluster, dns()), deny], true],
    ['accepted before, by Pod', [rule('Accept', pods, dns()), deny], true],
    ['accepted before, on all ports', [rule('Accept', cluster), deny], true],
    ['another Pod accepted before', [rule('Accept', pods), deny], false],
    ['passed before', [rule('Pass', cluster, dns()), deny], true],
    ['accepted behind', [deny, rule('Accept', cluster, dns())], false],
    ['a name accepted before', [rule('Accept', names, dns()), deny], false],
    ['a named port', [rule('Deny', cluster, [{ destinationNamedPort: 'dns' }])], false],
    ['another named port', [rule('Deny', cluster, [{ destinationNamedPort: 'http' }])], true],
    ['an unknown port', [rule('Deny', all, [{ icmp: {} }])], false],
  ]
  const ask = (objects: readonly ReturnType<typeof object>[], protocol: 'udp' | 'tcp' = 'udp') => {
    return mayAsk(compileOne(objects).client?.rules, protocol, 53, 'a.example.')
  }
  for (const [what, egress, may] of table) {
    t.equal(ask([object(type, { ...spec, egress })]), may, what)
  }
  const tcp = object(type, { ...spec, egress: [rule('Deny', all, dns().slice(1))] })
  t.equal(ask([tcp], 'tcp'), false)
  const denial = object(type, { ...spec, egress: [deny] }, { name: 'denial' })
  const acceptance = (priority: number, tier: string, action = 'Accept') => {
    const egress = [rule(action, cluster, dns())]
    return object(type, { ...spec, tier, priority, egress }, { name: 'other' })
  }
  t.equal(ask([denial, acceptance(1, 'Admin')]), true, 'of a policy before')
  t.equal(ask([denial, acceptance(9, 'Admin')]), false, 'of a policy behind')
  t.equal(ask([denial, acceptance(1, 'Baseline')]), false, 'of a tier behind')
  t.equal(compileOne([acceptance(1, 'Admin')]).client, undefined, 'it restricts nothing')
  const baseline = object(type, { ...spec, tier: 'Baseline', egress: [deny] })
  t.equal(ask([baseline]), false)
  const cilium = object(CNP, { endpointSelector: {}, egress: [rule53()] })
  t.equal(ask([baseline, cilium]), true, "a policy of Cilium's decides before")
  t.equal(ask([denial, cilium]), false)
  t.equal(ask([acceptance(1, 'Admin', 'Pass'), denial, baseline]), false)
})

function rule53() {
  return rule(53, 'ANY', ['*'])
}

t.test('policies of other languages restrict no question', async (t) => {
  const spec = { tier: 'Admin', priority: 1, subject: { namespaces: {} } }
  const egress = [{ action: 'Deny', to: [{ networks: ['0.0.0.0/0'] }] }]
  const type = 'policy.networking.k8s.io/v1alpha2 ClusterNetworkPolicy'
  const { client } = compileOne([object(type, { ...spec, egress })])
  t.ok(client)
  t.equal(mayAsk(client?.rules, 'udp', 53, 'a.example.'), true)
})
