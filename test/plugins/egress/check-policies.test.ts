import { join } from 'node:path'
import t, { type Test } from 'tap'
import { check } from '../../../src/cli/check.ts'
import { recordOutput } from '../../support/recorded-output.ts'

const POD = `apiVersion: v1
kind: Pod
metadata: { name: web, namespace: a, labels: { app: web } }
status: { podIPs: [{ ip: 10.0.0.1 }] }
`
const policy = (name: string, rule = 'toFQDNs: [{ matchName: a.example }]') => `---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: ${name}, namespace: a }
spec:
  endpointSelector: {}
  egress:
    - ${rule}
`

/** `sextant check` of a Corefile with these policies; paths are relative. */
async function checkWith(
  t: Test,
  policies: Parameters<Test['testdir']>[0] | undefined,
  args: readonly string[] = [],
) {
  const directory = t.testdir({
    ...(policies === undefined ? {} : { policies }),
    Corefile: `.:1053 {
    bind 127.0.0.1
    root ${t.testdirName}
    egress {
        policies policies
        cluster 10.0.0.0/8
        dry_run
        dialect cilium-1.16
    }
    whoami
}
`,
  })
  const { output, printed, errors } = recordOutput(directory)
  const code = await check(['-conf', join(directory, 'Corefile'), ...args], output)
  return { code, printed, errors }
}

t.test('valid policies', async (t) => {
  const folder = { 'pods.yaml': POD, 'web.yml': policy('web') }
  t.strictSame(await checkWith(t, folder, ['--strict']), {
    code: 0,
    printed: [
      'read Corefile: 1 server block: .:1053',
      'read policies: 2 objects in 2 files, 1 clients',
      'no errors found',
    ],
    errors: [],
  })
})

t.test('invalid files are faults, with their lines', async (t) => {
  const { code, errors } = await checkWith(t, {
    'pods.yaml': POD,
    'a.yaml': `${policy('web')}---\nspec: [\n`,
    'b.yaml': policy('web').replace('name: web', 'name: WEB'),
  })
  t.equal(code, 1)
  t.match(errors, [/^policies\/a\.yaml:1\d: /, /^policies\/b\.yaml:4: metadata\.name is /])
  t.equal(errors.length, 2)
})

t.test('parts of policies without their effect are warnings', async (t) => {
  const folder = {
    'pods.yaml': POD,
    'a.yaml': policy('moon', 'toEntities: [moon]'),
    'b.yaml': policy('pattern', 'toFQDNs: [{ matchPattern: "a..b" }]'),
    'c.yaml': policy('moon'),
    'd.yaml': 'apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: x }\n',
    'e.yaml': '',
  }
  const { code, printed, errors } = await checkWith(t, folder)
  t.equal(code, 0)
  t.match(printed.at(-1), 'no errors found, 5 warnings')
  const object = 'CiliumNetworkPolicy a'
  t.match(errors, [
    `[WARNING] policies/a.yaml:8: ${object}/moon: spec.egress[0].toEntities[0]: "moon" is not`,
    `[WARNING] policies/b.yaml:8: ${object}/pattern: spec.egress[0].toFQDNs[0].matchPattern: `,
    `[WARNING] policies/c.yaml:4: ${object}/moon: metadata.name: ignored: policies/a.yaml:4 has`,
    '[WARNING] policies/d.yaml:2: Deployment x: kind: ignored: apps/v1 Deployment is not read',
    '[WARNING] policies/e.yaml:1: the file is empty: it has no objects',
  ])
  t.equal((await checkWith(t, folder, ['--strict'])).code, 1)
})

t.test('a folder without files of policies', async (t) => {
  const { code, errors } = await checkWith(t, { 'a.YAML': policy('web') })
  t.equal(code, 0)
  const ending = /^\[WARNING\] policies\/a\.YAML: not read: the name of a manifest ends with \.yaml/
  t.match(errors.sort(), [ending, /^\[WARNING\] policies: no file is a manifest/])
  t.equal(errors.length, 2)
})

t.test('a folder that is missing', async (t) => {
  const { code, errors } = await checkWith(t, undefined)
  t.equal(code, 1)
  t.match(errors, [/^Corefile:\d+: plugin\/egress: policies: policies: cannot be read: ENOENT/])
  t.equal(errors.length, 1)
})

const FIREWALL = `apiVersion: k8s.ovn.org/v1
kind: EgressFirewall
metadata: { name: default, namespace: a }
spec:
  egress:
    - { type: Allow, to: { dnsName: a.example }, ports: [{ port: 443, protocol: TCP }] }
`
const FQDN = `apiVersion: networking.delta10.nl/v1alpha4
kind: FQDNNetworkPolicy
metadata: { name: web, namespace: a }
spec:
  podSelector: { matchLabels: { app: web } }
  policyTypes: [Egress]
  egress:
    - { to: [{ fqdns: [a.example] }], ports: [{ port: 443, endPort: 444, protocol: TCP }] }
`
const ADMIN = `apiVersion: policy.networking.k8s.io/v1alpha1
kind: AdminNetworkPolicy
metadata: { name: web }
spec:
  priority: 1
  subject: { namespaces: {} }
  egress:
    - { name: a, action: Allow, to: [{ domainNames: [a.example] }], ports: [{ portRange: { start: 1, end: 2 } }] }
`
const CLUSTER = `apiVersion: policy.networking.k8s.io/v1alpha2
kind: ClusterNetworkPolicy
metadata: { name: web }
spec:
  tier: Admin
  priority: 1
  subject: { pods: { namespaceSelector: {}, podSelector: {} } }
  egress:
    - { action: Accept, to: [{ networks: [::/0] }], protocols: [{ tcp: { destinationPort: { range: { start: 1, end: 2 } } } }] }
`
const CILIUM = `${policy('web')}      toPorts: [{ ports: [{ port: "443", protocol: TCP }] }]
  enableDefaultDeny: { egress: true }
`

/** Each misspells a field of a valid policy. */
const TYPOS: readonly (readonly [text: string, was: string, is: string])[] = [
  [FIREWALL, 'spec', 'sepc'],
  [FIREWALL, 'egress', 'egres'],
  [FIREWALL, 'type', 'tpye'],
  [FIREWALL, 'dnsName', 'dnsname'],
  [FIREWALL, 'port', 'prot'],
  [FQDN, 'podSelector', 'podselector'],
  [FQDN, 'policyTypes', 'policyType'],
  [FQDN, 'egress', 'egres'],
  [FQDN, 'fqdns', 'fqdn'],
  [FQDN, 'endPort', 'endport'],
  [ADMIN, 'priority', 'priorty'],
  [ADMIN, 'subject', 'subjects'],
  [ADMIN, 'namespaces', 'namespace'],
  [ADMIN, 'action', 'actoin'],
  [ADMIN, 'domainNames', 'domainName'],
  [ADMIN, 'portRange', 'portrange'],
  [ADMIN, 'end', 'ende'],
  [CLUSTER, 'tier', 'teir'],
  [CLUSTER, 'podSelector', 'podSelecter'],
  [CLUSTER, 'networks', 'network'],
  [CLUSTER, 'tcp', 'tcpp'],
  [CLUSTER, 'destinationPort', 'destinationport'],
  [CLUSTER, 'range', 'rang'],
  [CLUSTER, 'end', 'ende'],
  [CILIUM, 'endpointSelector', 'endpointSelecter'],
  [CILIUM, 'enableDefaultDeny', 'enableDefaultDenny'],
  [CILIUM, '{ egress', '{ egres'],
  [CILIUM, 'toFQDNs', 'toFQDNS'],
  [CILIUM, 'toPorts', 'toPort'],
  [CILIUM, 'matchName', 'matchNames'],
  [CILIUM, 'protocol', 'protocl'],
]

t.test('a misspelt field is an error, with the nearest name', async (t) => {
  const valid = { 'pods.yaml': POD, 'a.yaml': FIREWALL, 'b.yaml': FQDN, 'c.yaml': ADMIN }
  const folder = { ...valid, 'd.yaml': CLUSTER, 'e.yaml': CILIUM }
  t.strictSame((await checkWith(t, folder, ['--strict'])).errors, [])
  for (const [text, was, is] of TYPOS) {
    const at = text.search(new RegExp(`${was}:`))
    t.ok(at >= 0, was)
    const file = text.slice(0, at) + is + text.slice(at + was.length)
    const { code, errors } = await checkWith(t, { 'pods.yaml': POD, 'a.yaml': file })
    const line = text.slice(0, at).split('\n').length
    const [from, to] = [is.replace('{ ', ''), was.replace('{ ', '')]
    const own = new RegExp(
      `^policies/a\\.yaml:${line}: \\w+ \\S+: \\S*${from}: unknown field; .* ${to}\\?$`,
    )
    t.equal(errors.filter((error) => own.test(error)).length, 1, `${is}: ${errors.join('\n')}`)
    t.equal(code, 1, is)
  }
})

t.test('a field of the API that is not supported is a warning', async (t) => {
  const folder = { 'pods.yaml': POD, 'a.yaml': policy('web', 'icmps: []') }
  const { code, errors } = await checkWith(t, folder)
  t.equal(code, 0)
  t.match(errors, [/^\[WARNING\] policies\/a\.yaml:8: .*icmps: unsupported field$/])
})
