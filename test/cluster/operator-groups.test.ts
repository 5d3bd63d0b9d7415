import t from 'tap'
import { Rcode, RRClass, RRType } from '../../src/dns/iana/index.ts'
import type { ApiObject } from '../../src/kube/api.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { ScriptedServer } from '../support/scripted-server.ts'
import { until } from '../support/until.ts'
import { RunningOperator } from './operator.ts'

const NAMESPACE = 'east'
const ZONE = 'k.example.com'
const HOST = `app.${ZONE}`
const SEEN_MS = 120_000

t.setTimeout(CLUSTER_TEST_MS)

t.test('a cluster is passive while its group is not active', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  await cluster.installCrds()
  await cluster.createNamespace(NAMESPACE)
  let groups = 'g1'
  const server = await ScriptedServer.open(t, ({ question }) => {
    if (question?.type !== RRType.TXT) return Rcode.REFUSED
    const text = Buffer.from(`version=1;groups=${groups}`)
    const rdata = Buffer.concat([Buffer.from([text.length]), text])
    return [{ owner: question.name, type: RRType.TXT, rrclass: RRClass.IN, ttlSeconds: 1, rdata }]
  })
  await cluster.must('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, {
    metadata: { name: 'coredns', labels: { 'kuadrant.io/default-provider': 'true' } },
    type: 'kuadrant.io/coredns',
    stringData: { ZONES: ZONE, NAMESERVERS: server.address },
  })
  await cluster.must('POST', cluster.records(NAMESPACE), {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'app' },
    spec: {
      rootHost: HOST,
      endpoints: [{ dnsName: HOST, recordType: 'A', recordTTL: 60, targets: ['192.0.2.1'] }],
    },
  })
  const operator = await RunningOperator.start(t, {
    kubeconfig: cluster.kubeconfig('admin'),
    args: [`--watch-namespaces=${NAMESPACE}`, '--site=east', '--group=g1'],
  })
  /** What the record says about its group, and whether peers get its address as up. */
  const state = async (): Promise<string> => {
    const { status } = await cluster.must('GET', cluster.records(NAMESPACE, 'app'))
    const conditions: readonly ApiObject[] = status?.conditions ?? []
    const reasonOf = (type: string) => conditions.find((one) => one.type === type)?.reason
    const local = await cluster.call('GET', cluster.records(NAMESPACE, 'local-app'))
    const isUp = !JSON.stringify(local.body).includes('health=down')
    const words = [status?.group, status?.activeGroups, reasonOf('Ready'), reasonOf('Active')]
    return [...words, isUp ? 'up' : 'down'].join(' ')
  }
  const reaches = async (want: string): Promise<void> => {
    let got = ''
    const isSo = async () => (got = await state()) === want
    await until(isSo, want, SEEN_MS).catch((error: Error) => {
      throw new Error(`${error.message}, it is ${got}:\n${operator.output}`)
    })
    t.equal(got, want)
  }
  await reaches('g1 g1 ProviderSuccess MemberOfActiveGroup up')
  groups = 'g2'
  await reaches('g1 g2 MemberOfInactiveGroup NotMemberOfActiveGroup down')
  groups = 'g1&&g2'
  await reaches('g1 g1,g2 ProviderSuccess MemberOfActiveGroup up')
})
