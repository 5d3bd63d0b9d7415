import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { scanOperatorArgs } from '../../src/cli/operator-args.ts'
import { composeManifests, type Manifest, manifestOf, SITE } from '../support/kustomize.ts'
import { root, runSextant } from '../support/server.ts'

const OVERLAYS = [
  'all-namespaces',
  'chosen-namespaces',
  'cluster-dns',
  'egress-firewall',
  'fqdn-network-policy',
  'ovn-address-sets',
].map((name) => `deploy/overlays/${name}`)
const OPTIONS = [
  'remote-cluster',
  'notify',
  'cluster-dns',
  'kube-dns-service',
  'egress-firewall',
  'egress-names',
  'cluster-drains',
  'zone-keys',
  'namespace-drains',
  'fqdn-network-policy',
  'node',
  'policy-status',
  ...['gateway', 'service', 'ingress', 'dnsendpoint'].map((word) => `server-sources/${word}`),
  ...['gateway', 'service', 'ingress', 'dnsendpoint'].map((word) => `operator-sources/${word}`),
]
const FOLDERS = [...OVERLAYS, SITE, ...OPTIONS.map((name) => `deploy/${name}`)]

function isInstalled(tool: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${tool}`], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const byName = (a: Manifest, b: Manifest) => (nameOf(a) < nameOf(b) ? -1 : 1)
const nameOf = ({ kind, metadata }: Manifest) =>
  `${kind} ${metadata.namespace ?? ''} ${metadata.name}`

// Where kubectl is at hand: the other tests read what this repository composes, users what kubectl does.
for (const folder of isInstalled('kubectl') ? FOLDERS : []) {
  t.test(`${folder} is to kubectl what it is to these tests`, (t) => {
    const text = execFileSync('kubectl', ['kustomize', join(root, folder)], { encoding: 'utf8' })
    const theirs: Manifest[] = parseAllDocuments(text).map((document) => document.toJS())
    t.strictSame(composeManifests(folder).sort(byName), theirs.sort(byName))
    t.end()
  })
}

/** What is applied with a component: a site, or cluster DNS with its Service. */
function manifestsWith(component: string): Manifest[] {
  if (component !== 'kube-dns') return composeManifests(SITE)
  const folders = ['deploy/overlays/cluster-dns', 'deploy/kube-dns-service']
  return folders.flatMap((folder) => composeManifests(folder))
}

/** Deployment by name, with the only container of its pod. */
function deploymentOf(component: string) {
  const name = `sextant-${component}`
  const deployment = manifestOf(manifestsWith(component), 'Deployment', name)
  const pod = deployment.spec.template.spec
  return { deployment, pod, container: pod.containers[0] }
}

t.test('the environment of the operator for address sets has flags of the operator', async (t) => {
  const manifests = composeManifests('deploy/overlays/ovn-address-sets')
  const { spec } = manifestOf(manifests, 'Deployment', 'sextant-operator').spec.template
  const [{ args, env, volumeMounts }] = spec.containers
  const { data } = manifestOf(manifests, 'ConfigMap', 'sextant-scope')
  const entries = env.map(({ name, value, valueFrom }: Manifest) => {
    return [name, value ?? data[valueFrom.configMapKeyRef?.key] ?? 'x']
  })
  const operator = scanOperatorArgs(args.slice(1), Object.fromEntries(entries))
  if (typeof operator === 'string') throw new Error(operator)
  // Without dnsnameresolver, no program removes dead addresses.
  t.strictSame([...operator.controllers], ['dnsnameresolver', 'egressfirewall', 'ovn'])
  const { remotes, tls, clusterNetworks } = operator.egress.ovn
  t.equal(remotes.length, 1)
  t.equal(clusterNetworks.length, 2)
  const [mount] = volumeMounts
  for (const file of [tls?.authority, tls?.certificate, tls?.key]) {
    t.ok(file?.startsWith(`${mount.mountPath}/`))
  }
  t.equal(spec.volumes[0].name, mount.name)
})

for (const component of ['server', 'exchange', 'operator', 'kube-dns']) {
  t.test(`the ${component} has no more rights over its node than it needs`, (t) => {
    const { pod, container } = deploymentOf(component)
    t.match(pod.securityContext, { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
    t.strictSame(container.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    const privileged = container.ports.filter(
      ({ containerPort }: { containerPort: number }) => containerPort < 1024,
    )
    t.strictSame(privileged, [], 'no port takes a capability')
    t.type(container.resources.limits.memory, 'string')
    t.end()
  })

  t.test(`objects that the ${component} refers to exist`, (t) => {
    const manifests = manifestsWith(component)
    const { deployment, pod, container } = deploymentOf(component)
    const { labels } = deployment.spec.template.metadata
    t.match(labels, deployment.spec.selector.matchLabels)
    t.ok(manifestOf(manifests, 'ServiceAccount', pod.serviceAccountName))
    for (const volume of pod.volumes ?? []) {
      if (volume.configMap) t.ok(manifestOf(manifests, 'ConfigMap', volume.configMap.name))
    }
    for (const { valueFrom } of container.env ?? []) {
      const { configMapKeyRef: config, secretKeyRef: secret } = valueFrom ?? {}
      if (config) t.type(manifestOf(manifests, 'ConfigMap', config.name).data[config.key], 'string')
      if (secret) {
        const { stringData } = manifestOf(manifests, 'Secret', secret.name)
        t.type(stringData[secret.key], 'string')
      }
    }
    const ports = container.ports.map(({ name }: { name: string }) => name)
    const probes = ['startupProbe', 'livenessProbe', 'readinessProbe']
    for (const probe of probes) t.ok(ports.includes(container[probe].httpGet.port), probe)
    const selectors = manifests
      .filter(({ metadata }) => metadata.name === `sextant-${component}`)
      .map(({ spec }) => spec?.selector?.matchLabels ?? spec?.podSelector?.matchLabels)
      .filter((selector) => selector !== undefined)
    for (const selector of selectors) t.match(labels, selector)
    for (const { kind, spec, metadata } of manifests) {
      if (kind !== 'Service' || !metadata.name.endsWith(component)) continue
      t.equal(metadata.namespace, deployment.metadata.namespace)
      t.match(labels, spec.selector)
      const targets = spec.ports.map(({ targetPort }: { targetPort: string }) => targetPort)
      for (const target of targets) t.ok(ports.includes(target), `port ${target}`)
    }
    t.end()
  })
}

for (const component of ['server', 'exchange', 'kube-dns']) {
  t.test(`the Corefile of the ${component} is one, and fits its pod`, async (t) => {
    const { Corefile } = manifestOf(
      manifestsWith(component),
      'ConfigMap',
      `sextant-${component}`,
    ).data
    const directory = t.testdir({})
    const key = { NAME: 'key', SECRET: 'c2V4dGFudA==', ALGORITHM: 'hmac-sha256' }
    const filled = Corefile.replace(
      /\{\$TSIG_(\w+)\}/g,
      (_: string, word: keyof typeof key) => key[word],
    )
    // As in the CI of users: without the cluster, and without the volumes of the pod.
    writeFileSync(join(directory, 'Corefile'), filled)
    const check = ['check', '-conf', 'Corefile', '--offline']
    const { code, stdout, stderr } = await runSextant(directory, check)
    t.equal(code, 0, stdout + stderr)
    const { deployment, pod, container } = deploymentOf(component)
    const ports: { containerPort: number }[] = container.ports
    for (const [, port] of Corefile.matchAll(/ :(\d+)$/gm)) {
      t.ok(
        ports.some(({ containerPort }) => containerPort === Number(port)),
        `port ${port}`,
      )
    }
    const [, lameduckSeconds = '0'] = /lameduck (\d+)s/.exec(Corefile) ?? []
    t.ok(Number(lameduckSeconds) + 10 <= pod.terminationGracePeriodSeconds, 'time to end')
    const mounts = container.volumeMounts.map(({ mountPath }: { mountPath: string }) => mountPath)
    for (const [, path] of Corefile.matchAll(/ (\/\S+)\/[^/\s]+$/gm))
      t.ok(mounts.includes(path), path)
    t.ok(deployment.spec.replicas >= 1)
  })
}

t.test(
  'cluster DNS can reach what its Corefile names, and differs from the server in little else',
  async (t) => {
    const manifests = manifestsWith('kube-dns')
    const { pod, container } = deploymentOf('kube-dns')
    t.equal(pod.dnsPolicy, 'Default', '/etc/resolv.conf is that of the node')
    const { egress } = manifestOf(manifests, 'NetworkPolicy', 'sextant-kube-dns').spec
    const open = egress.flatMap(({ ports }: Manifest) =>
      ports.map(({ port, protocol = 'TCP' }: Manifest) => `${port} ${protocol}`),
    )
    t.strictSame(open, ['443 TCP', '6443 TCP', '53 UDP', '53 TCP', '853 TCP'])
    const { container: server } = deploymentOf('server')
    for (const field of ['args', 'ports', 'startupProbe', 'livenessProbe', 'readinessProbe']) {
      t.strictSame(container[field], server[field], field)
    }
  },
)
