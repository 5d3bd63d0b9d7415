import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { CHART, exampleValues, helm, needsHelm, renderChart } from '../support/helm.ts'
import { composeManifests, type Manifest, manifestOf, SITE } from '../support/kustomize.ts'
import { root } from '../support/server.ts'

/** Labels that Helm asks for. */
const OF_HELM = ['app.kubernetes.io/instance', 'app.kubernetes.io/managed-by', 'helm.sh/chart']

const nameOf = ({ kind, metadata }: Manifest) =>
  `${kind} ${metadata.namespace ?? ''} ${metadata.name}`

/** Without what the chart adds on purpose. Corefiles without comments, which differ in what the reader is to edit. */
function comparable(manifest: Manifest): Manifest {
  const plain = structuredClone(manifest)
  const { labels } = plain.metadata as { labels?: Record<string, string> }
  for (const label of OF_HELM) delete labels?.[label]
  // The base gives this Secret no labels.
  if (plain.kind === 'Secret') delete (plain.metadata as { labels?: unknown }).labels
  const pod = plain.spec?.template?.metadata
  // Of the chart alone: restart Pods when what they read at their start changes.
  for (const name of ['checksum/scope', 'checksum/tsig']) delete pod?.annotations?.[name]
  if (Object.keys(pod?.annotations ?? {}).length === 0) delete pod?.annotations
  if (plain.data?.Corefile) plain.data.Corefile = plain.data.Corefile.replace(/^\s*#.*\n/gm, '')
  return plain
}

/** `sextant-system` is made by `--create-namespace`, and definitions are in crds/. */
const isOfChart = ({ kind, metadata }: Manifest) =>
  kind !== 'CustomResourceDefinition' &&
  !(kind === 'Namespace' && metadata.name === 'sextant-system')

const sortedObjects = (manifests: readonly Manifest[]) =>
  Object.fromEntries(
    manifests
      .filter(isOfChart)
      .map((one) => [nameOf(one), comparable(one)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  )

interface Case {
  readonly folders: readonly string[]
  /** A file of deploy/chart/examples. */
  readonly example: string
  readonly set?: readonly string[]
  readonly namespace?: string
  /** What users add to the objects of the folder. */
  readonly edit?: (manifests: Manifest[]) => void
}

const SITE_OPTIONS = [
  'cluster-dns',
  'egress-names',
  'namespace-drains',
  'cluster-drains',
  'zone-keys',
]
const KINDS = ['gateway', 'service', 'ingress', 'dnsendpoint']
const CONFIG_MAPS = ['server', 'exchange'].map((one) => `${one}.existingConfigMap=sextant-${one}`)
const OVERLAY = [
  'extraObjects=null',
  'tsig.existingSecret=sextant-exchange',
  'image.repository=sextant',
  ...CONFIG_MAPS,
]
const CASES: Readonly<Record<string, Case>> = {
  'a site': { folders: [SITE], example: 'site' },
  'all namespaces': {
    folders: ['deploy/overlays/all-namespaces'],
    example: 'site',
    set: OVERLAY,
  },
  'chosen namespaces': {
    folders: ['deploy/overlays/chosen-namespaces'],
    example: 'site',
    set: [...OVERLAY, 'watchNamespaces={gateways}'],
  },
  'options of a site': {
    folders: [SITE, ...[...SITE_OPTIONS, 'notify', 'policy-status'].map((one) => `deploy/${one}`)],
    example: 'site',
    set: [
      ...['kubernetes', 'egressNames', 'namespaceDrains', 'clusterDrains'].map(
        (right) => `server.rights.${right}=true`,
      ),
      'server.rights.zoneKeys=sextant-zone-keys',
      'operator.service.enabled=true',
      'operator.controllers={dnsrecord,policystatus}',
    ],
    edit: (manifests) => {
      const scope = manifests.find(({ metadata }) => metadata.name === 'sextant-scope')!
      scope.data.CONTROLLERS = 'dnsrecord,policystatus'
    },
  },
  'kinds of objects of the server': {
    folders: [SITE, ...KINDS.map((word) => `deploy/server-sources/${word}`)],
    example: 'site',
    set: [`server.sources={dnsrecord,${KINDS.join()}}`],
    edit: (manifests) => {
      const { data } = manifestOf(manifests, 'ConfigMap', 'sextant-server')
      const line = `        sources dnsrecord ${KINDS.join(' ')}\n`
      data.Corefile = data.Corefile.replace('    kuadrant {\n', (text: string) => text + line)
    },
  },
  'kinds of objects of the operator': {
    folders: [SITE, ...KINDS.map((word) => `deploy/operator-sources/${word}`)],
    example: 'site',
    set: [`operator.sources={dnsrecord,${KINDS.join()}}`],
    edit: (manifests) => {
      const scope = manifests.find(({ metadata }) => metadata.name === 'sextant-scope')!
      scope.data.SOURCES = `dnsrecord,${KINDS.join()}`
    },
  },
  'egress firewalls': { folders: ['deploy/overlays/egress-firewall'], example: 'egress-firewall' },
  'address sets of OVN': {
    folders: ['deploy/overlays/ovn-address-sets'],
    example: 'ovn-address-sets',
  },
  FQDNNetworkPolicies: {
    folders: ['deploy/overlays/fqdn-network-policy'],
    example: 'fqdn-network-policy',
  },
  'cluster DNS': {
    folders: ['deploy/overlays/cluster-dns'],
    example: 'cluster-dns',
    namespace: 'kube-system',
  },
  'the node agent': {
    folders: ['deploy/node'],
    example: 'node',
    edit: (manifests) => {
      const { spec } = manifests.find(({ kind }) => kind === 'DaemonSet')!
      const networks = '--cluster=10.244.0.0/16,10.96.0.0/12,192.0.2.0/24'
      spec.template.spec.containers[0].args.push(networks)
    },
  },
}

t.test('the chart', needsHelm(), async (t) => {
  for (const [name, { folders, example, set = [], namespace, edit }] of Object.entries(CASES)) {
    await t.test(`${name}: the objects of ${folders}`, async (t) => {
      const args = ['-f', exampleValues(example), ...set.flatMap((one) => ['--set', one])]
      const ours = await renderChart(namespace ?? 'sextant-system', args)
      const wanted = folders.flatMap((folder) => composeManifests(folder))
      edit?.(wanted)
      t.strictSame(sortedObjects(ours), sortedObjects(wanted))
    })
  }

  await t.test('helm lint has nothing to say', async (t) => {
    const { code, stdout } = await helm('lint', '--strict', CHART, '-f', exampleValues('site'))
    t.equal(code, 0, stdout)
    t.notMatch(stdout, /WARNING|ERROR/)
  })

  await t.test('its definitions are those of crds/', (t) => {
    for (const name of ['dnsrecords.yaml', 'dnshealthcheckprobes.yaml']) {
      const path = join(CHART, 'crds', name)
      t.equal(readFileSync(path, 'utf8'), readFileSync(join(root, 'crds', name), 'utf8'))
    }
    t.end()
  })
})

/** `--set` of a value beside a zone ('' = neither), and what the error has: the place of the value and the reason. */
const REFUSED: readonly (readonly [set: string, message: RegExp])[] = [
  ['', /at '\/zones': minItems: got 0, want 1/],
  ['zones=null', /missing property 'zones'/],
  ['zones={a..b}', /at '\/zones\/0': 'a\.\.b' does not match pattern/],
  ['replica=3', /additional properties 'replica' not allowed/],
  ['fullnameOverride=Sextant', /at '\/fullnameOverride': 'Sextant' does not match pattern/],
  ['server.replicas=two', /at '\/server\/replicas': got string, want integer/],
  ['server.replicas=-1', /at '\/server\/replicas': minimum: got -1, want 0/],
  ['server.service.type=External', /at '\/server\/service\/type': value must be one of/],
  ['server.image.tag=1', /at '\/server': additional properties 'image' not allowed/],
  ['image.digest=sha256:1', /at '\/image\/digest': 'sha256:1' does not match pattern/],
  ['operator.controllers={dns}', /at '\/operator\/controllers\/0': value must be one of/],
  ['server.sources={gatway}', /at '\/server\/sources\/0': value must be one of/],
  ['operator.sources={gateway}', /at '\/operator\/sources': no items match contains schema/],
  ['watchNamespaces={Team}', /at '\/watchNamespaces\/0': 'Team' does not match pattern/],
  ['nameservers[0].name=ns1.k.example.com', /at '\/nameservers\/0': missing property 'address'/],
  ['exchange.enabled=true', /at '\/tsig\/secret': minLength: got 0, want 1/],
  ['tsig.secret=no!', /at '\/tsig\/secret': 'no!' does not match pattern/],
  ['node.enabled=true', /at '\/clusterNetworks': minItems: got 0, want 1/],
  ['clusterNetworks={10.0.0.0}', /at '\/clusterNetworks\/0': '10\.0\.0\.0' does not match pattern/],
]

t.test('values that the schema rejects: the error has their place', needsHelm(), async (t) => {
  for (const [set, message] of REFUSED) {
    const values = set === '' ? [] : ['--set', 'zones={k.example.com}', '--set', set]
    const { code, stderr } = await helm('template', 'sextant', CHART, ...values)
    t.not(code, 0, set)
    t.match(stderr, message, set)
  }
})

/** Values that YAML could read as others, or that meet names of the chart's own objects. */
t.test('odd values keep their meaning', needsHelm(), async (t) => {
  const corefile = '  # "quotes": {{ braces }}\n\n.:1053 {\n\twhoami \n}\n\n\n'
  const values = {
    image: { tag: '1 # 2' },
    watchNamespaces: ['123', 'null', '456'],
    server: { corefile, existingConfigMap: '' },
    exchange: { enabled: true, networkPolicy: { from: [] } },
    operator: { controllers: ['dnsrecord', 'dnsnameresolver'], egressNamespace: '1e3' },
    networkPolicy: { metricsFrom: [] },
    extraObjects: [],
  }
  const directory = t.testdir({ 'values.yaml': JSON.stringify(values) })
  const args = ['-f', exampleValues('site'), '-f', join(directory, 'values.yaml')]
  const manifests = await renderChart('456', args)
  const names = manifests.map(nameOf)
  t.strictSame([...new Set(names)], names, 'each object has a name of its own')
  for (const { metadata } of manifests) {
    t.match(
      metadata.namespace ?? '',
      /^(?:|123|null|456|1e3|kube-system)$/,
      `${metadata.name}: a string`,
    )
  }
  t.equal(manifestOf(manifests, 'ConfigMap', 'sextant-server').data?.Corefile, corefile)
  const { spec } = manifestOf(manifests, 'Deployment', 'sextant-server').spec.template
  t.match(spec.containers[0].image, /:1 # 2$/)
  for (const { kind, spec } of manifests) {
    if (kind !== 'NetworkPolicy') continue
    for (const { from, ports } of spec.ingress) {
      t.notSame(from, [], 'an empty list is not any source')
      t.notMatch(JSON.stringify(ports), /metrics/)
    }
  }
})

t.test('alerts and dashboards are those of deploy/observability', needsHelm(), async (t) => {
  const folder = join(root, 'deploy/observability')
  const options = [
    'podMonitor.enabled=true',
    'prometheusRule.enabled=true',
    'dashboards.enabled=true',
  ]
  const args = ['-f', exampleValues('site'), ...options.flatMap((one) => ['--set', one])]
  const manifests = await renderChart('sextant-system', args)
  const rules = parse(readFileSync(join(folder, 'alerts.yaml'), 'utf8'))
  t.strictSame(manifestOf(manifests, 'PrometheusRule', 'sextant').spec, rules)
  for (const file of readdirSync(join(folder, 'dashboards'))) {
    const name = `sextant-dashboard-${file.replace('.json', '')}`
    const { data, metadata } = manifestOf(manifests, 'ConfigMap', name)
    t.strictSame(data, { [file]: readFileSync(join(folder, 'dashboards', file), 'utf8') })
    t.match(metadata, { labels: { grafana_dashboard: '1' } })
  }
  const monitor = manifestOf(manifests, 'PodMonitor', 'sextant').spec
  t.strictSame(monitor.selector.matchLabels, { 'app.kubernetes.io/name': 'sextant' })
})
