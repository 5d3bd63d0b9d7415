import t from 'tap'
import { MEDIA_TYPE } from '../../src/webhook/listener.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsExternalDns } from '../support/cluster-binary.ts'
import { until } from '../support/until.ts'
import { SEEN_MS, ZONE } from './served-cluster.ts'
import { ENDPOINT_API, installDnsEndpoint } from './source-definitions.ts'
import {
  grantRights,
  isSettled,
  NAMESPACE,
  recordsOf,
  startExternalDns,
  startWebhook,
} from './webhook-site.ts'

const ENDPOINTS = `${ENDPOINT_API}/namespaces/${NAMESPACE}/dnsendpoints`
/** So many that the API server is killed before all are written. */
const HOSTS = 200
const STOPPED = /POST \/records failed with 503: the API server: /g

/** The endpoints of all hosts, with their addresses in 192.0.`third`.0. */
const specOf = (third: number) => ({
  endpoints: Array.from({ length: HOSTS }, (_, i) => {
    return { dnsName: `h${i}.${ZONE}`, recordType: 'A', targets: [addressOf(third, i)] }
  }),
})
const addressOf = (third: number, i: number): string => `192.0.${third + (i >> 8)}.${i & 255}`

/** What is served of each record, and who owns it. */
// biome-ignore lint/suspicious/noExplicitAny: whatever the API says
const shown = ({ metadata, spec }: any): string => {
  const endpoints = spec.endpoints.map((one: { targets: string[] }) => one.targets.join(' '))
  const registry = metadata.annotations['webhook.sextant.io/registry']
  return `${spec.rootHost} ${endpoints.join(', ')} ${registry.includes('owner=default')}`
}
const wantedOf = (third: number): string[] =>
  Array.from({ length: HOSTS }, (_, i) => `h${i}.${ZONE} ${addressOf(third, i)} true`).sort()

t.setTimeout(CLUSTER_TEST_MS)

t.test('the API server stops half-way through a change', needsExternalDns(), async (t) => {
  const cluster = await Cluster.start(t)
  await cluster.installCrds()
  await installDnsEndpoint(cluster)
  await cluster.createNamespace(NAMESPACE)
  await grantRights(cluster)
  const webhook = await startWebhook(t, ['--kubeconfig', cluster.kubeconfig('viewer')])
  const externalDns = startExternalDns(t, cluster, webhook.port, { sources: ['crd'] })
  await isSettled(externalDns)

  /** Status of a request as external-dns sends it. */
  const ask = async (path: string, body?: string): Promise<number> => {
    const headers = { accept: MEDIA_TYPE, 'content-type': MEDIA_TYPE }
    const how = body === undefined ? {} : { method: 'POST', body }
    const reply = await fetch(`http://localhost:${webhook.port}${path}`, { headers, ...how })
    await reply.text()
    return reply.status
  }
  const all = async (): Promise<string[]> => (await recordsOf(cluster)).map(shown).sort()

  const table = [
    {
      name: 'records are created',
      edit: () =>
        cluster.must('POST', ENDPOINTS, {
          apiVersion: 'externaldns.k8s.io/v1alpha1',
          kind: 'DNSEndpoint',
          metadata: { name: 'all' },
          spec: specOf(2),
        }),
      hasBegun: (found: readonly string[]) => found.length > 0,
      want: wantedOf(2),
    },
    {
      name: 'records get other addresses',
      edit: () => cluster.must('PATCH', `${ENDPOINTS}/all`, { spec: specOf(8) }),
      hasBegun: (found: readonly string[]) => found.some((one) => / 192\.0\.[89]\./.test(one)),
      want: wantedOf(8),
    },
    {
      name: 'records are removed',
      edit: () => cluster.must('DELETE', `${ENDPOINTS}/all`),
      hasBegun: (found: readonly string[]) => found.length < HOSTS,
      want: [],
    },
  ]
  for (const { name, edit, hasBegun, want } of table) {
    await t.test(name, async (t) => {
      const stops = () => webhook.output().match(STOPPED)?.length ?? 0
      const before = stops()
      await edit()
      await until(async () => hasBegun(await all()), 'the first write', SEEN_MS)
      await cluster.killServer()
      await until(() => stops() > before, 'the end of the change', SEEN_MS)
      t.equal(await ask('/records'), 503)
      t.equal(await ask('/records', '{"create":[]}'), 503)
      t.equal(await ask('/records', '{"create":'), 400, 'a repetition would not help')
      t.equal(await ask('/adjustendpoints', '[]'), 200, 'this needs no API server')
      await cluster.startServer()
      await until(async () => (await all()).join() === want.join(), 'all changes', SEEN_MS)
      await isSettled(externalDns)
      t.strictSame(await all(), want)
    })
  }

  const errors = externalDns.output().match(/^.*level=(?:error|fatal).*$/gm) ?? []
  t.ok(errors.length >= table.length, `${errors.length} errors`)
  // external-dns ends at any other error.
  t.strictSame(
    errors.filter((line) => !line.includes('soft error')),
    [],
  )
})
