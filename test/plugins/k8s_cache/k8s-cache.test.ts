import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { RRType } from '../../../src/dns/iana/index.ts'
import { Section } from '../../../src/dns/message/section.ts'
import type { Transaction } from '../../../src/plugin/transaction.ts'
import { k8sCache } from '../../../src/plugins/k8s_cache/setup.ts'
import { followerOf, SetUp, setupError } from '../../support/setup.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { answering, show, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'
import { ApiServer } from '../api-server.ts'

const pod = (name: string, ...ips: string[]) => ({
  metadata: { namespace: 'a', name, uid: name, resourceVersion: '40' },
  status: { podIPs: ips.map((ip) => ({ ip })) },
})

const NEXT = answering(({ query, response }: Transaction) => {
  response.add(Section.Answer, query.qname, 0, RRType.A, 1, 60, Uint8Array.of(192, 0, 2, 1), 0, 4)
  return 0
}, true)

async function place(t: Test) {
  const api = await ApiServer.start(t)
  api.objects.set('pods', [
    pod('early', '192.0.2.53', 'fd00::53'),
    pod('twin', '192.0.2.53', 'none'),
    pod('pending'),
  ])
  const kubeconfig = join(temporaryDirectory(t), 'kubeconfig')
  writeFileSync(kubeconfig, api.kubeconfig)
  const corefile = `k8s_cache {\n earlyrefresh 5s\n kubeconfig ${kubeconfig} main\n}`
  const block = (): SetUp => {
    const c = new SetUp(k8sCache, corefile)
    t.teardown(() => c.stop())
    return c
  }
  return { api, block, corefile }
}

/** The TTL of the answer to a client. */
async function ttlFor(c: SetUp, from: string): Promise<number> {
  const tx = transaction({ name: 'a.example.org.', from, recursionDesired: true })
  tx.startedMs = c.clock.monotonic()
  const { answer } = await show(c.handler(NEXT), tx)
  t.equal(tx.response.answeredBy === 'k8s_cache' || tx.response.answeredBy === '', true)
  return Number(answer[0]?.split(' ')[1])
}

t.test('Pods with the label are early clients, in all threads', async (t) => {
  const { block, corefile } = await place(t)
  const c = block()
  t.equal(c.readiness[0]!.check(), 'the Pods are not read yet')
  await c.start()
  await until(() => c.readiness[0]!.check() === '', 'the Pods')
  const follower = followerOf(c, k8sCache, corefile)
  await until(async () => (await ttlFor(c, '192.0.2.53')) === 60, 'the early client')
  const inDataThread = async (from: string): Promise<number> => {
    const tx = transaction({ name: 'a.example.org.', from })
    tx.startedMs = c.clock.monotonic()
    return Number((await show(follower.handler(), tx)).answer[0]?.split(' ')[1])
  }
  for (const [early, other] of [
    ['192.0.2.53', '192.0.2.54'],
    ['fd00::53', 'fd00::54'],
  ] as const) {
    t.equal(await ttlFor(c, early), 60, early)
    t.equal(await ttlFor(c, other), 65, other)
    // The fake clock of the data thread starts later.
    t.equal((await inDataThread(other)) - (await inDataThread(early)), 5, 'in a data thread')
  }
})

t.test('a cluster that is away, and a reload', async (t) => {
  const { api, block } = await place(t)
  api.isAway = true
  const first = block()
  await first.start()
  t.equal(await ttlFor(first, '192.0.2.53'), 65, 'serves before the Pods are known')
  await until(() => /pods in all namespaces/.test(first.readiness[0]!.check()), 'the reason')
  api.isAway = false
  await until(() => first.readiness[0]!.check() === '', 'the Pods')
  api.isAway = true
  const second = block()
  await second.start()
  await first.stop()
  t.equal(await ttlFor(second, '192.0.2.53'), 60, 'a reload keeps the early clients')
})

t.test('without earlyrefresh it is cache, and reads no Pods', async (t) => {
  const c = new SetUp(k8sCache, 'k8s_cache')
  await c.start()
  t.equal(c.readiness.length, 0)
  t.equal(await ttlFor(c, '192.0.2.53'), 60)
  await c.stop()
})

t.test('valid configurations', async (t) => {
  const good = [
    'k8s_cache',
    'k8s_cache 30 example.org {\n earlyrefresh 5s\n}',
    'k8s_cache {\n success 5000 3600 10\n denial 2500\n earlyrefresh 1500ms\n prefetch 10\n}',
    'k8s_cache {\n serve_stale 1h verify\n servfail 10s\n keepttl\n disable denial\n}',
    'k8s_cache {\n success 4194304\n earlyrefresh 1h\n kubeconfig file context\n}',
  ]
  for (const text of good) t.equal(new SetUp(k8sCache, text).factories.length, 1, text)
  const bad: [string, RegExp][] = [
    ['k8s_cache {\n earlyrefresh\n}', /Corefile:2 .*Wrong argument count/],
    ['k8s_cache {\n earlyrefresh 5s 6s\n}', /Corefile:2 .*Wrong argument count/],
    ['k8s_cache {\n earlyrefresh soon\n}', /Corefile:2 .*not a duration: "soon"/],
    ['k8s_cache {\n earlyrefresh -5s\n}', /Corefile:2 .*not a duration: "-5s"/],
    ['k8s_cache {\n earlyrefresh 61m\n}', /Corefile:2 .*longer than 1 hour: "61m"/],
    ['k8s_cache {\n kubeconfig\n}', /Corefile:2 .*Wrong argument count/],
    ['k8s_cache {\n kubeconfig a b c\n}', /Corefile:2 .*Wrong argument count/],
    ['k8s_cache 0', /Corefile:1 .*TTL can not be zero/],
    ['k8s_cache {\n size 5\n}', /Corefile:2 .*unknown property 'size'/],
    ['k8s_cache\nk8s_cache', /Corefile:2 .*can only be used once per Server Block/],
  ]
  for (const [text, message] of bad) t.match(setupError(k8sCache, text), message, text)
  t.throws(() => new SetUp(k8sCache, 'k8s_cache', ['.'], { above: ['cache'] }), {
    message: /Corefile:1 .*k8s_cache has all options of cache: remove cache/,
  })
})

t.test('a kubeconfig without a usable cluster is a fault of the line', async (t) => {
  const c = new SetUp(k8sCache, 'k8s_cache {\n earlyrefresh 5s\n kubeconfig none\n}')
  const { faults } = await c.check()
  t.match(faults, [/Corefile:1: .*none: cannot be read/])
  await t.rejects(c.start(), { name: 'InputError', message: /none: cannot be read/ })
  await c.stop()
})
