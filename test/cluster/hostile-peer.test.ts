import t from 'tap'
import type { Message, ResourceRecord } from '../../src/dns/message/message.ts'
import type { ApiObject } from '../../src/kube/api.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { peerRecord, record } from '../support/exported-zone.ts'
import { framed, HostilePeer, replyTo } from '../support/hostile-peer.ts'
import { endpoint } from '../support/peer-text.ts'
import { until } from '../support/until.ts'
import { RunningOperator } from './operator.ts'

const NAMESPACE = 'a'
const HOST = 'app.k.example.com'
/** Ample, for a machine on which other tests run too. */
const SEEN_MS = 240_000
/** Records in one message: they have to fit. */
const RECORDS_MAX = 50

/** A zone of as much as an operator takes for one host, and more: in the API each `<` is six octets. */
function zoneOf(serial: number, sites: readonly string[], loudSite: string): ResourceRecord[] {
  const loud = Array.from({ length: 1200 }, (_, i) =>
    peerRecord(
      endpoint({
        site: loudSite,
        rootHost: HOST,
        // Names of its own: the merge would make one endpoint of the same text at the same name.
        dnsName: `${loudSite}-${i}.${HOST}`,
        recordType: 'TXT',
        targets: [`${serial} ${'<'.repeat(800)}`],
      }),
    ),
  )
  const quiet = sites.map((site, i) =>
    peerRecord(endpoint({ site, rootHost: HOST, dnsName: HOST, targets: [`192.0.2.${100 + i}`] })),
  )
  return [...quiet, ...(sites.length === 0 ? [] : takeOver()), ...loud]
}

/** Endpoints that would take our host away. */
function takeOver(): ResourceRecord[] {
  // Of as many records those of short site names are taken.
  const at = { site: 'e', rootHost: HOST, dnsName: HOST }
  return [
    endpoint({ ...at, targets: ['192.0.2.1'], health: 'down', ttlSeconds: 0 }),
    endpoint({ ...at, recordType: 'CNAME', targets: ['evil.example'] }),
    endpoint({ ...at, recordType: 'NS', targets: ['ns.evil.example'] }),
    endpoint({ ...at, dnsName: `*.${HOST}` }),
  ].map(peerRecord)
}

function countTypes(endpoints: readonly ApiObject[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const { recordType } of endpoints) {
    const type = String(recordType)
    counts[type] = (counts[type] ?? 0) + 1
  }
  return counts
}

t.setTimeout(CLUSTER_TEST_MS)

t.test('megabytes of a peer stop nothing of ours', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  await cluster.installCrds()
  await cluster.createNamespace(NAMESPACE)
  let serial = 1
  const soa = () =>
    record('kdrnt.', 'SOA', `ns1.kdrnt. hostmaster.kdrnt. ${serial} 7200 1800 86400 60`)
  const open = (sites: readonly string[], loudSite: string) =>
    HostilePeer.open(t, {
      datagram: (query) => replyTo(query, [soa()]),
      *stream(query: Message) {
        const records = [soa(), ...zoneOf(serial, sites, loudSite), soa()]
        for (let at = 0; at < records.length; at += RECORDS_MAX) {
          yield framed(replyTo(query, records.slice(at, at + RECORDS_MAX)))
        }
      },
    })
  const loud = await open(['q'], 'loud')
  const louder = await open([], 'louder')
  const nameservers = [loud, louder].map(({ port }) => `127.0.0.1:${port}`).join(',')
  await cluster.must('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, {
    metadata: { name: 'coredns', labels: { 'kuadrant.io/default-provider': 'true' } },
    type: 'kuadrant.io/coredns',
    stringData: { ZONES: 'k.example.com', NAMESERVERS: nameservers },
  })
  const specOf = (address: string) => ({
    rootHost: HOST,
    endpoints: [{ dnsName: HOST, recordType: 'A', recordTTL: 60, targets: [address] }],
  })
  await cluster.must('POST', cluster.records(NAMESPACE), {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'app' },
    spec: specOf('192.0.2.1'),
  })
  const args = [`--watch-namespaces=${NAMESPACE}`, '--site=here']
  const operator = await RunningOperator.start(t, { kubeconfig: cluster.kubeconfig('admin'), args })
  // biome-ignore lint/suspicious/noExplicitAny: an object as the API has it
  const read = async (name: string): Promise<any> =>
    (await cluster.call('GET', cluster.records(NAMESPACE, name))).body
  const served = async (): Promise<readonly ApiObject[]> =>
    (await read('merged-app'))?.spec?.endpoints ?? []
  const addresses = async (): Promise<string> =>
    (await served()).flatMap((e) => (e.recordType === 'A' ? e.targets : [])).join(' ')
  const sees = async (condition: () => Promise<boolean>, what: string): Promise<void> => {
    await until(condition, what, SEEN_MS).catch(async (error: Error) => {
      const counts = JSON.stringify(countTypes(await served()))
      const state = `merged-app has ${counts} and the addresses ${await addresses()}`
      throw new Error(`${error.message}; ${state}:\n${operator.output}`)
    })
  }
  const serves = (want: string): Promise<void> =>
    sees(async () => (await addresses()) === want, `merged-app to be ${want}`)
  await serves('192.0.2.1 192.0.2.100')
  const areFull = async () => {
    const names = (await served()).map(({ dnsName }) => String(dnsName))
    return ['loud', 'louder'].every(
      (site) => names.filter((name) => name.startsWith(`${site}-`)).length > 25,
    )
  }
  await sees(areFull, 'as much of the loud ones as fits')
  const ready = async (): Promise<ApiObject | undefined> => {
    const conditions: readonly ApiObject[] = (await read('app')).status?.conditions ?? []
    return conditions.find(({ type }) => type === 'Ready')
  }
  const isReported = async () =>
    /no room for all endpoints of loud, louder/.test(String((await ready())?.message))
  await sees(isReported, 'the warning')
  t.match(await ready(), { status: 'True', reason: 'ProviderSuccess' })

  await t.test(
    'an endpoint that would take our host away is not served, and reported',
    async (t) => {
      const endpoints = await served()
      t.strictSame(Object.keys(countTypes(endpoints)).sort(), ['A', 'TXT'])
      t.ok(endpoints.every(({ dnsName }) => dnsName !== `*.${HOST}`))
      const conditions: readonly ApiObject[] = (await read('app')).status.conditions
      const accepted = conditions.find(({ type }) => type === 'PeersAccepted')
      t.match(accepted, { status: 'False', reason: 'EndpointConflict' })
      await operator.prints(/a\/app: conflict with another site: app\.k\.example\.com/)
      await operator.prints(/peer 127\.0\.0\.1:\d+ without TSIG/)
      const place = 'dns_record_name="app",dns_record_namespace="a"'
      const refused = await operator.metric(`sextant_operator_endpoints_refused{${place}}`)
      t.ok((refused ?? 0) >= 2, `${refused} are refused`)
    },
  )

  await t.test('our own edits get through', async (t) => {
    await cluster.must('PATCH', cluster.records(NAMESPACE, 'app'), { spec: specOf('192.0.2.9') })
    await serves('192.0.2.100 192.0.2.9')
    t.match(await ready(), { status: 'True' })
  })

  await t.test('an Event and metrics report it', async (t) => {
    const path = `/apis/events.k8s.io/v1/namespaces/${NAMESPACE}/events`
    await sees(async () => {
      const { items } = await cluster.must('GET', path)
      return items.some(
        ({ reason, note }: { reason: string; note: string }) =>
          reason === 'EndpointConflict' && / of loud.*: no room for some endpoints/.test(note),
      )
    }, 'an Event')
    const place = 'dns_record_name="app",dns_record_namespace="a"'
    let leftOut: number | undefined
    const areLeftOut = async () => {
      leftOut = await operator.metric(`sextant_operator_endpoints_left_out{${place}}`)
      return (leftOut ?? 0) > 500
    }
    await sees(areLeftOut, 'endpoints to be left out')
    t.comment(`${leftOut} are left out`)
    const peer = `peer="127.0.0.1:${loud.port}"`
    t.equal(await operator.metric(`sextant_operator_peer_refused{${peer}}`), 1)
    await operator.prints(/refused: app\.k\.example\.com: 120[01] endpoints, only \d+ are accepted/)
  })

  await t.test('new megabytes take the place of the old ones', async (t) => {
    serial = 2
    await sees(async () => JSON.stringify(await served()).includes('"2 <<<'), 'the new ones')
    t.match(await ready(), { status: 'True' })
    t.notMatch(operator.output, /too large|request is too/)
  })
})
