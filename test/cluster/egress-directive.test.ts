import t, { type Test } from 'tap'
import { Rcode, RRClass, RRType } from '../../src/dns/iana/index.ts'
import type { ResourceRecord } from '../../src/dns/message/message.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { DNS_NAME_RESOLVER } from '../../src/egress/policies/openshift/dns-name-resolver.ts'
import { ENTRIES_OCTETS_MAX } from '../../src/egress/policies/openshift/name-api.ts'
import { type Stage, serve } from '../server/data/stage.ts'
import { applyAll } from '../support/apply.ts'
import { UdpClient } from '../support/client.ts'
import { CLUSTER_TEST_MS, Cluster, readCrd } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { composeManifests } from '../support/kustomize.ts'
import { ScriptedServer } from '../support/scripted-server.ts'
import { until } from '../support/until.ts'

const NAMESPACE = 'openshift-ovn-kubernetes'
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const RESOLVERS = `/apis/network.openshift.io/v1alpha1/namespaces/${NAMESPACE}/dnsnameresolvers`
const DNS_NAMES = `/apis/dns.openshift.io/v1alpha1/namespaces/${NAMESPACE}/egressfirewalldnsnames`
const WWW = 'www.example.com.'

interface Server {
  readonly stage: Stage
  /** What its upstream answers; an rcode = an error. */
  answer: readonly string[] | number
  /** Returns the rcode of the reply. */
  query(name?: string): Promise<number>
}

async function startServer(t: Test, cluster: Cluster, properties: string): Promise<Server> {
  const server: { answer: readonly string[] | number } = { answer: [] }
  const upstream = await ScriptedServer.open(t, ({ question }) => {
    const { answer } = server
    if (typeof answer === 'number') return answer
    return answer.map((ip): ResourceRecord => {
      const rdata = scanAddress(ip)!.bytes
      const fixed = { type: RRType.A, rrclass: RRClass.IN, ttlSeconds: 30, rdata }
      return { owner: question!.name, ...fixed }
    })
  })
  const corefile = `.:{PORT} {
    bind 127.0.0.1
    prometheus :1
    egressfirewall {
        kubeconfig ${cluster.kubeconfig('viewer')}
        namespaces ${NAMESPACE}
        ${properties}
    }
    forward . 127.0.0.1:${upstream.port}
}
`
  const stage = await serve(t, 'dgram', corefile)
  const client = await UdpClient.connect(stage.port)
  t.teardown(() => client.close())
  const query = async (name = WWW): Promise<number> => {
    return (await client.ask({ name, type: 'A' }))[3]! & 15
  }
  return Object.assign(server, { stage, query })
}

t.setTimeout(CLUSTER_TEST_MS)

t.test('names of egress firewalls with the real API server', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  await cluster.createNamespace(NAMESPACE)
  await applyAll(cluster, composeManifests('deploy/base/namespace'))
  await applyAll(cluster, composeManifests('deploy/egress-names'))
  const apiGroup = 'rbac.authorization.k8s.io'
  await cluster.must('POST', `/apis/${apiGroup}/v1/clusterrolebindings`, {
    metadata: { name: 'viewer-egress-names' },
    roleRef: { apiGroup, kind: 'ClusterRole', name: 'sextant-egress-names' },
    subjects: [{ apiGroup, kind: 'User', name: 'viewer' }],
  })
  const install = async (file: string, path: string): Promise<void> => {
    await cluster.must('POST', DEFINITIONS, readCrd(`openshift/${file}`))
    await until(async () => (await cluster.call('GET', path)).status === 200, file)
  }
  await install('dnsnameresolvers', RESOLVERS)
  const create = async (path: string, name: string, dnsName: string): Promise<void> => {
    const isResolver = path === RESOLVERS
    await cluster.must('POST', path, {
      apiVersion: isResolver ? 'network.openshift.io/v1alpha1' : 'dns.openshift.io/v1alpha1',
      kind: isResolver ? 'DNSNameResolver' : 'EgressFirewallDNSName',
      metadata: { name },
      spec: { name: dnsName },
    })
  }
  const entries = async (path: string, name: string) => {
    const { status } = await cluster.must('GET', `${path}/${name}`)
    return status?.resolvedNames ?? []
  }
  const addresses = async (name = 'www'): Promise<readonly string[]> => {
    const [entry] = await entries(RESOLVERS, name)
    return (entry?.resolvedAddresses ?? []).map(({ ip }: { ip: string }) => ip)
  }

  await create(RESOLVERS, 'www', WWW)
  const one = await startServer(t, cluster, 'gate 5s')
  const two = await startServer(t, cluster, '')
  const servers = [one, two]
  t.match(one.stage.lines.join('\n'), /CustomResourceDefinition egressfirewalldnsnames/)

  await t.test('the status is written before the reply leaves', async (t) => {
    one.answer = ['192.0.2.1']
    t.equal(await one.query(), Rcode.NOERROR)
    t.match(await entries(RESOLVERS, 'www'), [
      {
        dnsName: WWW,
        resolvedAddresses: [{ ip: '192.0.2.1', ttlSeconds: 30 }],
        conditions: [{ type: 'Degraded', status: 'False', reason: 'NOERROR', message: 'No Error' }],
      },
    ])
  })

  await t.test('two servers write one object, and lose nothing', async (t) => {
    for (let round = 0; round < 40; round++) {
      one.answer = [`192.0.2.${10 + round}`]
      two.answer = [`198.51.100.${10 + round}`]
      await Promise.all(servers.map((server) => server.query()))
    }
    await until(async () => (await addresses()).length === 81, 'all addresses')
    const conflicts = /^sextant_egress_status_writes_total\{.*"conflict"\} (\d+)/m
    const counts = await Promise.all(
      servers.map(async ({ stage }) => Number(conflicts.exec(await stage.metrics())?.[1])),
    )
    t.ok(counts[0]! + counts[1]! > 0, `${counts.join(' and ')} conflicts`)
  })

  await t.test('NXDOMAIN is counted', async (t) => {
    two.answer = Rcode.NXDOMAIN
    t.equal(await two.query(), Rcode.NXDOMAIN)
    await until(async () => {
      const [entry] = await entries(RESOLVERS, 'www')
      return entry.resolutionFailures === 1
    }, 'the failure')
    t.match(await entries(RESOLVERS, 'www'), [
      { conditions: [{ status: 'True', reason: 'NXDOMAIN', message: 'Non-Existent Domain' }] },
    ])
  })

  await t.test('the first design of the API, whose definition comes later', async (t) => {
    await install('egressfirewalldnsnames', DNS_NAMES)
    await create(DNS_NAMES, 'www', 'WWW.example.com.')
    one.answer = ['192.0.2.1']
    await until(async () => {
      await one.query()
      return (await entries(DNS_NAMES, 'www')).length > 0
    }, 'the write')
    t.match(await entries(DNS_NAMES, 'www'), [{ dnsName: WWW, ips: ['192.0.2.1'], ttl: 30 }])
  })

  await t.test('the API server is killed and started again', async (t) => {
    await cluster.killServer()
    two.answer = ['203.0.113.1']
    t.equal(await two.query(), Rcode.NOERROR, 'queries are answered')
    one.answer = ['203.0.113.2']
    t.equal(await one.query(), Rcode.NOERROR, 'queries are answered, also with gate')
    await cluster.startServer()
    await until(
      async () => {
        const found = await addresses()
        return ['203.0.113.1', '203.0.113.2'].every((ip) => found.includes(ip))
      },
      'the newest state',
      180_000,
    ).catch(async (error) => t.fail(`${error}: ${await addresses()}`))
  })

  await t.test('the definition is deleted, and installed again', async (t) => {
    await cluster.must('DELETE', `${DEFINITIONS}/dnsnameresolvers.network.openshift.io`)
    const isGone = async () => (await cluster.call('GET', RESOLVERS)).status === 404
    await until(isGone, 'the definition to be gone')
    t.equal(await one.query(), Rcode.NOERROR)
    await install('dnsnameresolvers', RESOLVERS)
    await create(RESOLVERS, 'www', WWW)
    one.answer = ['192.0.2.77']
    await until(
      async () => {
        await one.query()
        return (await addresses()).includes('192.0.2.77')
      },
      'the write',
      180_000,
    )
  })

  await t.test('the API stores a status at the limit', async (t) => {
    await create(RESOLVERS, 'full', '*.full.example.com.')
    const { octetsOf, print } = DNS_NAME_RESOLVER
    const names = []
    let octets = 0
    for (let i = 0; ; i++) {
      const addresses = Array.from({ length: 4 }, (_, n) => {
        const ip = `2001:db8:aaaa:bbbb:cccc:dddd:${(0x1000 + i).toString(16)}:${n + 1000}`
        return { ip, ttlSeconds: 604_800, lookupMs: 0 }
      })
      const degraded = { isDegraded: true, reason: 'NXDOMAIN', sinceMs: 0 }
      const name = { dnsName: `n${i}.full.example.com.`, failures: 5, addresses, degraded }
      octets += octetsOf(name)
      if (octets > ENTRIES_OCTETS_MAX) break
      names.push(name)
    }
    const status = { resolvedNames: print(names) }
    const reply = await cluster.call('PATCH', `${RESOLVERS}/full/status`, { status })
    t.equal(reply.status, 200, `${names.length} names`)
    const stored = JSON.stringify((await cluster.must('GET', `${RESOLVERS}/full`)) ?? '').length
    t.ok(stored < 1.5 * 1024 * 1024, `${stored} octets are stored`)
    t.ok(stored > ENTRIES_OCTETS_MAX / 2, 'the estimate is not far too high')
  })
})
