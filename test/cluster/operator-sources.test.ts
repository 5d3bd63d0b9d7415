import { Resolver } from 'node:dns/promises'
import t, { type Test } from 'tap'
import { SOURCE_WORDS } from '../../src/sources/objects/source-words.ts'
import { applyAll } from '../support/apply.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { composeManifests, type Manifest } from '../support/kustomize.ts'
import { LACKED } from '../support/rights.ts'
import { freePort, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { Gateways } from './gateway-objects.ts'
import { RunningOperator } from './operator.ts'
import { ENDPOINT_API, installDnsEndpoint, installGatewayApi } from './source-definitions.ts'

const ZONE = 'k.example.com'
/** From a change in the API to the answer, on a machine on which other tests run too. */
const SEEN_MS = 120_000
const HOSTNAME = 'external-dns.alpha.kubernetes.io/hostname'

/** A cluster of its own, as far as its operator and its nameserver see: a namespace. */
class Site {
  readonly name: string
  operator: RunningOperator
  readonly #t: Test
  readonly #cluster: Cluster
  readonly #resolver = new Resolver({ timeout: 2000, tries: 3 })

  private constructor(
    t: Test,
    cluster: Cluster,
    name: string,
    port: number,
    operator: RunningOperator,
  ) {
    this.#t = t
    this.#cluster = cluster
    this.name = name
    this.operator = operator
    this.#resolver.setServers([`127.0.0.1:${port}`])
  }

  static async start(
    t: Test,
    cluster: Cluster,
    name: string,
    { port, nameservers }: { readonly port: number; readonly nameservers: string },
  ): Promise<Site> {
    await cluster.createNamespace(name)
    await cluster.must('POST', `/api/v1/namespaces/${name}/secrets`, {
      metadata: { name: 'coredns', labels: { 'kuadrant.io/default-provider': 'true' } },
      type: 'kuadrant.io/coredns',
      stringData: { ZONES: ZONE, NAMESERVERS: nameservers },
    })
    const kubeconfig = cluster.kubeconfig('admin')
    const block = (zone: string) => `${zone}:{PORT} {
    bind 127.0.0.1
    kuadrant {
        kubeconfig ${kubeconfig}
    }
    transfer {
        to 127.0.0.1
    }
}
`
    await startServer(t, {
      corefile: block('kdrnt') + block(ZONE),
      beside: { port, directory: temporaryDirectory(t) },
      env: { WATCH_NAMESPACES: name },
    })
    return new Site(t, cluster, name, port, await startOperator(t, cluster, name))
  }

  async restartOperator(): Promise<void> {
    await this.operator.stop()
    this.operator = await startOperator(this.#t, this.#cluster, this.name)
  }

  /** Creates a Service of a load balancer that has this address. */
  async createService(name: string, host: string, ip: string): Promise<void> {
    const path = `/api/v1/namespaces/${this.name}/services`
    await this.#cluster.must('POST', path, {
      metadata: { name, annotations: { [HOSTNAME]: host } },
      spec: { type: 'LoadBalancer', ports: [{ port: 80 }] },
    })
    const status = { loadBalancer: { ingress: [{ ip }] } }
    await this.#cluster.must('PATCH', `${path}/${name}/status`, { status })
  }

  /** Waits for an Event of a Service. */
  async hasEvent(name: string, want: string): Promise<void> {
    const path = `/apis/events.k8s.io/v1/namespaces/${this.name}/events`
    const find = async (): Promise<string> => {
      const { items } = await this.#cluster.must('GET', path)
      const isIt = ({ regarding: { kind, name: of }, reason }: ApiEvent): boolean =>
        kind === 'Service' && of === name && reason === want
      return (items as readonly ApiEvent[]).find(isIt)?.reason ?? ''
    }
    await this.becomes(`an Event of ${name}`, find, want)
  }

  /** The DNSRecords that were written for objects. */
  async sources(): Promise<readonly Named[]> {
    const path = `${this.#cluster.records(this.name)}?labelSelector=sextant.io/source`
    return (await this.#cluster.must('GET', path)).items
  }

  async answers(host: string, want: string): Promise<void> {
    const ask = async (): Promise<string> => {
      const found = await this.#resolver.resolve4(host).catch(() => [] as string[])
      return found.sort().join(' ')
    }
    await this.becomes(`${host} at ${this.name}`, ask, want)
  }

  async becomes(what: string, read: () => Promise<string>, want: string): Promise<void> {
    let got = ''
    const isSo = async () => (got = await read()) === want
    await until(isSo, `${what} to be ${want}`, SEEN_MS).catch(async (error: Error) => {
      const records = JSON.stringify(await this.sources(), undefined, 1)
      throw new Error(`${error.message}, it is ${got}:\n${this.operator.output}\n${records}`)
    })
  }
}

interface ApiEvent {
  readonly reason: string
  readonly regarding: { readonly kind: string; readonly name: string }
}

/** With the rights of the user `viewer`. */
function startOperator(t: Test, cluster: Cluster, name: string): Promise<RunningOperator> {
  return RunningOperator.start(t, {
    kubeconfig: cluster.kubeconfig('viewer'),
    args: [`--watch-namespaces=${name}`, `--site=${name}`, `--sources=${SOURCE_WORDS.join()}`],
  })
}

/** The rights of the operator in all namespaces, for the user `viewer`. */
function operatorRights(): Manifest[] {
  const words = SOURCE_WORDS.filter((word) => word !== 'dnsrecord')
  const folders = ['overlays/all-namespaces', ...words.map((word) => `operator-sources/${word}`)]
  const subject = { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'viewer' }
  return folders
    .flatMap((folder) => composeManifests(`deploy/${folder}`))
    .filter(({ kind, metadata: { name } }) => {
      return kind.startsWith('ClusterRole') && /^sextant-(operator|cluster-id)/.test(name)
    })
    .map((one) => (one.subjects === undefined ? one : { ...one, subjects: [subject] }))
}

t.setTimeout(CLUSTER_TEST_MS)

t.test('objects of other kinds, with the real API server', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  await cluster.installCrds()
  await installGatewayApi(cluster, ['gateways', 'httproutes'])
  await applyAll(cluster, operatorRights())
  const ports = [await freePort(), await freePort()]
  const nameservers = ports.map((port) => `127.0.0.1:${port}`).join(', ')
  const east = await Site.start(t, cluster, 'east', { port: ports[0]!, nameservers })
  const west = await Site.start(t, cluster, 'west', { port: ports[1]!, nameservers })

  await t.test('a kind without its definition is reported', async (t) => {
    const { text } = await east.operator.ready()
    t.match(text, 'is the CustomResourceDefinition dnsendpoints.externaldns.k8s.io installed?')
    await installDnsEndpoint(cluster)
  })

  await t.test('Services of two clusters are merged', async (t) => {
    const host = `shop.${ZONE}`
    await east.createService('shop', host, '192.0.2.1')
    await east.answers(host, '192.0.2.1')
    await west.createService('shop', host, '192.0.2.2')
    for (const site of [east, west]) await site.answers(host, '192.0.2.1 192.0.2.2')
    const [record] = await east.sources()
    t.match(record, {
      metadata: {
        labels: { 'sextant.io/source': 'service' },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name: 'shop' }],
      },
    })
    await east.hasEvent('shop', 'HostServed')
  })

  await t.test('an Ingress and a Gateway', async () => {
    const path = '/apis/networking.k8s.io/v1/namespaces/east/ingresses'
    const host = `web.${ZONE}`
    const backend = { service: { name: 'web', port: { number: 80 } } }
    const http = { paths: [{ path: '/', pathType: 'Prefix', backend }] }
    await cluster.must('POST', path, {
      metadata: { name: 'web' },
      spec: { rules: [{ host, http }] },
    })
    const status = { loadBalancer: { ingress: [{ ip: '192.0.2.3' }] } }
    await cluster.must('PATCH', `${path}/web/status`, { status })
    await east.answers(host, '192.0.2.3')

    const hostname = `gate.${ZONE}`
    const gateways = new Gateways(cluster)
    await gateways.create('east', 'gate', [{ name: 'a', port: 80, protocol: 'HTTP', hostname }])
    await gateways.accept('east', 'gate', ['192.0.2.4'])
    const parent = { name: 'gate', namespace: 'east' }
    await gateways.route('east', 'gate', [hostname], { parent })
    await gateways.acceptRoute('east', 'gate', 'True', { parent })
    await east.answers(hostname, '192.0.2.4')
  })

  await t.test('DNSEndpoints, once their definition is installed', async () => {
    const path = `${ENDPOINT_API}/namespaces/east/dnsendpoints`
    const host = `list.${ZONE}`
    const endpoints = [{ dnsName: host, recordType: 'A', targets: ['192.0.2.5'] }]
    const kind = { apiVersion: 'externaldns.k8s.io/v1alpha1', kind: 'DNSEndpoint' }
    await cluster.must('POST', path, { ...kind, metadata: { name: 'list' }, spec: { endpoints } })
    await east.answers(host, '192.0.2.5')
    const observed = async () => {
      const { status } = await cluster.must('GET', `${path}/list`)
      return String(status?.observedGeneration)
    }
    await east.becomes('observedGeneration', observed, '1')
  })

  await t.test('a conflict: the oldest is served, and both get an Event', async () => {
    await east.createService('rival', `shop.${ZONE}`, '192.0.2.9')
    for (const name of ['rival', 'shop']) await east.hasEvent(name, 'HostConflict')
    await east.answers(`shop.${ZONE}`, '192.0.2.1 192.0.2.2')
  })

  await t.test('an edit is repaired', async () => {
    const [record] = await west.sources()
    const path = cluster.records('west', record!.metadata.name)
    await cluster.must('PATCH', path, { spec: { endpoints: [] } })
    const targets = async () => {
      const { spec } = await cluster.must('GET', path)
      return String(spec.endpoints[0]?.targets)
    }
    await west.becomes('its target', targets, '192.0.2.2')
  })

  await t.test('the next leader writes nothing', async (t) => {
    await east.restartOperator()
    const { operator } = east
    const state = 'sextant_operator_source_records{source_kind="service",state="ready"}'
    await east.becomes('Services', async () => String(await operator.metric(state)), '1')
    for (const kind of ['create', 'patch', 'delete', 'status']) {
      t.equal(
        await operator.metric(`sextant_operator_source_writes_total{kind="${kind}"}`),
        0,
        kind,
      )
    }
  })

  await t.test('the DNSRecords of objects that are gone are removed', async (t) => {
    for (const name of ['shop', 'rival'])
      await cluster.must('DELETE', `/api/v1/namespaces/east/services/${name}`)
    await west.answers(`shop.${ZONE}`, '192.0.2.2')
    await east.answers(`shop.${ZONE}`, '')
    for (const { operator } of [east, west]) t.notMatch(operator.output, LACKED)
    t.equal(await east.operator.stop(), 0)
  })
})

interface Named {
  readonly metadata: { readonly name: string }
}
