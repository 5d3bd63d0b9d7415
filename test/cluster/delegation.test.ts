import { Resolver } from 'node:dns/promises'
import t from 'tap'
import type { ApiObject } from '../../src/kube/api.ts'
import { CLUSTER_TEST_MS, Cluster } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { RunningOperator } from './operator.ts'

const ZONE = 'k.example.com'
const NAMESPACE = 'gateways'
/** On a machine on which other tests run too. */
const SEEN_MS = 120_000

const address = (dnsName: string, ...targets: readonly string[]) => ({
  dnsName,
  recordType: 'A',
  recordTTL: 60,
  targets,
})

t.setTimeout(CLUSTER_TEST_MS)

/** One API server for all: it takes ten seconds to start. */
t.test('delegating records, against an API server', needsCluster(), async (t) => {
  const cluster = await Cluster.start(t)
  await cluster.installCrds()
  await cluster.createNamespace(NAMESPACE)
  await cluster.must('POST', `/api/v1/namespaces/${NAMESPACE}/secrets`, {
    metadata: { name: 'coredns', labels: { 'kuadrant.io/default-provider': 'true' } },
    type: 'kuadrant.io/coredns',
    stringData: { ZONES: ZONE },
  })
  const kubeconfig = cluster.kubeconfig('admin')
  const server = await startServer(t, {
    corefile: `${ZONE}:{PORT} {\n    bind 127.0.0.1\n    kuadrant {\n        kubeconfig ${kubeconfig}\n    }\n}\n`,
    env: { WATCH_NAMESPACES: NAMESPACE },
  })
  const start = () =>
    RunningOperator.start(t, { kubeconfig, args: [`--watch-namespaces=${NAMESPACE}`] })
  let operator = await start()
  const resolver = new Resolver({ timeout: 2000, tries: 2 })
  resolver.setServers([`127.0.0.1:${server.port}`])

  const create = (name: string, rootHost: string, endpoints: readonly object[], more = {}) =>
    cluster.must('POST', cluster.records(NAMESPACE), {
      apiVersion: 'kuadrant.io/v1alpha1',
      kind: 'DNSRecord',
      metadata: { name },
      spec: { rootHost, delegate: true, endpoints, ...more },
    })
  const remove = (name: string) => cluster.must('DELETE', cluster.records(NAMESPACE, name))
  const read = async (name: string) =>
    (await cluster.call('GET', cluster.records(NAMESPACE, name))).body
  const list = async () => (await cluster.must('GET', cluster.records(NAMESPACE))).items
  const authoritative = async () =>
    (await list()).filter(({ metadata }: { metadata: { name: string } }) =>
      metadata.name.startsWith('authoritative-record-'),
    )
  const wait = (what: string, isSo: () => Promise<boolean>) =>
    until(isSo, what, SEEN_MS).catch((error: Error) => {
      throw new Error(`${error.message}:\n${operator.output}\n${server.output()}`)
    })
  /** Waits until the nameserver answers with these addresses; '' = with none. */
  const answers = (host: string, want: string) =>
    wait(`${host} to be ${want}`, async () => {
      const found = await resolver.resolve4(host).catch(() => [] as string[])
      return found.sort().join(' ') === want
    })
  const hasCondition = (name: string, want: RegExp) =>
    wait(`${want} of ${name}`, async () => {
      const conditions: readonly ApiObject[] = (await read(name)).status?.conditions ?? []
      const ready = conditions.find(({ type }) => type === 'Ready')
      return want.test(`${ready?.status} ${ready?.reason}: ${ready?.message}`)
    })

  /** Waits until the record names all three owners of its host, which are written when there is time. */
  const knowsOwners = (name: string) =>
    wait(`the owners of ${name}`, async () => {
      return (await read(name)).status?.domainOwners?.length === 3
    })

  await t.test('records of one host are served together', async (t) => {
    const host = `app.${ZONE}`
    await create('one', host, [address(host, '192.0.2.1')])
    await create('two', host, [address(host, '192.0.2.2')])
    await create('wild', `*.${host}`, [address(`*.${host}`, '192.0.2.3')])
    await answers(host, '192.0.2.1 192.0.2.2')
    await answers(`x.${host}`, '192.0.2.3')
    const [made, ...others] = await authoritative()
    t.strictSame(others, [])
    t.equal(made.metadata.ownerReferences, undefined)
    for (const name of ['one', 'two', 'wild']) {
      await hasCondition(name, /^True ProviderSuccess: Provider ensured the dns record$/)
      await knowsOwners(name)
      const { metadata, status } = await read(name)
      t.strictSame(metadata.finalizers, ['kuadrant.io/dns-record'])
      t.match(status, { zoneID: made.metadata.name, zoneDomainName: host })
    }
    await hasCondition(made.metadata.name, /^True/)
  })

  await t.test('notes of ownership are not served', async (t) => {
    const [made] = await authoritative()
    const endpoints: readonly ApiObject[] = made.spec.endpoints
    const notes = endpoints.filter(({ recordType }) => recordType === 'TXT')
    t.equal(notes.length, 3)
    for (const { dnsName } of notes.filter((note) => !String(note.dnsName).includes('wildcard'))) {
      await t.rejects(resolver.resolveTxt(String(dnsName)), /ENODATA|ENOTFOUND/)
    }
  })

  await t.test(
    'many records of one host are created and deleted at once, and none undoes another',
    async (t) => {
      const host = `many.${ZONE}`
      const numbers = Array.from({ length: 20 }, (_, i) => i + 1)
      const ip = (i: number) => `192.0.2.${i}`
      await Promise.all(numbers.map((i) => create(`many-${i}`, host, [address(host, ip(i))])))
      await answers(host, numbers.map(ip).sort().join(' '))
      for (const i of numbers) await hasCondition(`many-${i}`, /^True/)
      const odd = numbers.filter((i) => i % 2 === 1)
      await Promise.all(odd.map((i) => remove(`many-${i}`)))
      const even = numbers.filter((i) => i % 2 === 0)
      await answers(host, even.map(ip).sort().join(' '))
      await Promise.all(even.map((i) => remove(`many-${i}`)))
      await answers(host, '')
      await wait('its authoritative record to go', async () => (await authoritative()).length === 1)
      t.notMatch(operator.output, /warning|error/i, 'that others are faster is no fault')
    },
  )

  await t.test('a conflict is said, and is over with its cause', async () => {
    const host = `conflict.${ZONE}`
    await create('first', host, [address(host, '192.0.2.1')])
    await answers(host, '192.0.2.1')
    const cname = { dnsName: host, recordType: 'CNAME', recordTTL: 60, targets: [`app.${ZONE}`] }
    await create('second', host, [cname])
    await hasCondition('second', /^False ProviderError: .*record type conflict, cannot update/)
    await hasCondition('first', /^True/)
    await remove('first')
    await hasCondition('second', /^True/)
    await answers(host, '192.0.2.1 192.0.2.2')
    await remove('second')
    await answers(host, '')
  })

  await t.test('edits of an authoritative record by others are undone', async () => {
    const path = cluster.records(NAMESPACE, (await authoritative())[0].metadata.name)
    await cluster.must('PATCH', path, { spec: { endpoints: [] } })
    await wait('the endpoints', async () => {
      return (await authoritative())[0]?.spec.endpoints.length > 0
    })
    await answers(`app.${ZONE}`, '192.0.2.1 192.0.2.2')
    await cluster.must('DELETE', path)
    await wait('the record', async () => (await authoritative()).length === 1)
    await answers(`app.${ZONE}`, '192.0.2.1 192.0.2.2')
  })

  await t.test('a record that is deleted without its finalizer leaves nothing', async (t) => {
    const host = `gone.${ZONE}`
    const tear = async (name: string) => {
      const metadata = { finalizers: null }
      await cluster.must('PATCH', cluster.records(NAMESPACE, name), { metadata })
      await remove(name)
    }
    await create('stays', host, [address(host, '192.0.2.1')])
    await create('torn', host, [address(host, '192.0.2.2')])
    await answers(host, '192.0.2.1 192.0.2.2')
    // The operator restores the finalizer, so it must not see the record between the two.
    t.equal(await operator.stop(), 0)
    t.notMatch(operator.output, /removing endpoints/, 'an operator that ends removes nothing')
    await tear('torn')
    operator = await start()
    await answers(host, '192.0.2.1')
    await operator.prints(/removing endpoints of owner \S+: its record is gone/)
    t.equal(await operator.stop(), 0)
    await tear('stays')
    operator = await start()
    await answers(host, '')
    await wait('its authoritative record to go', async () => (await authoritative()).length === 1)
  })

  await t.test('an operator that is started anew writes nothing', async (t) => {
    const versions = async (): Promise<string[]> =>
      (await list()).map(
        ({ metadata }: { metadata: { name: string; resourceVersion: string } }) =>
          `${metadata.name} ${metadata.resourceVersion}`,
      )
    await operator.rests(versions)
    // What is only about them is written a while after all else.
    for (const name of ['one', 'two', 'wild']) await knowsOwners(name)
    await operator.rests(versions)
    t.equal(await operator.stop(), 0)
    const before = await versions()
    operator = await start()
    await wait('all looks', async () => {
      return ((await operator.metric('sextant_operator_reconciles')) ?? 0) >= before.length
    })
    await operator.rests(versions)
    t.strictSame(await versions(), before)
  })

  await t.test('nothing is left behind, even if the Secret was deleted first', async (t) => {
    await cluster.must('DELETE', `/api/v1/namespaces/${NAMESPACE}/secrets/coredns`)
    await hasCondition('one', /^False DNSProviderError: .*No default provider secret/)
    await answers(`app.${ZONE}`, '192.0.2.1 192.0.2.2')
    for (const name of ['one', 'two', 'wild']) await remove(name)
    await wait('the end', async () => (await list()).length === 0)
    await answers(`app.${ZONE}`, '')
    t.equal(await operator.stop(), 0)
  })
})
