import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { probeManifest, recordManifest } from '../../support/manifest.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

/** A finding for the only address of the record `a`. */
const probe = (isHealthy: boolean) => probeManifest('a', '192.0.2.1', isHealthy)

t.test('the log, the ready page and a metric say that health and drains are ignored', async (t) => {
  const directory = t.testdir({
    'a.yaml': recordManifest('a', '192.0.2.1'),
    'probe.yaml': probe(false),
  })
  const setUp = new SetUp(kuadrant, `kuadrant {\n manifests ${directory}\n}`, ['k.example.com.'])
  await setUp.start()
  t.teardown(() => setUp.stop())
  const note = (): string => setUp.readiness[0]!.note?.() ?? ''
  const labels = `{source="${directory}",zone="k.example.com."}`
  const metric = () => setUp.metric(`sextant_kuadrant_health_ignored${labels}`)
  t.equal(
    note(),
    'health and drains are ignored, because all endpoints are down or drained: a.k.example.com. A',
  )
  t.equal(await metric(), 1)
  t.match(
    setUp.lines.join('\n'),
    /WARNING.*a\.k\.example\.com\. A: all endpoints are down or drained; health/,
  )
  writeFileSync(join(directory, 'probe.yaml'), probe(true))
  await until(() => note() === '', 'the address to be up')
  t.equal(await metric(), 0)
  t.match(
    setUp.lines.join('\n'),
    /INFO.*a\.k\.example\.com\. A: health and drains are not ignored any more/,
  )
})

t.test('the log, the ready page and a metric say which policy is in force', async (t) => {
  const directory = t.testdir({
    'a.yaml': recordManifest('a', '192.0.2.1'),
    'probe.yaml': probe(false),
  })
  const table: readonly (readonly [policy: string, note: string, line: RegExp, kind: string])[] = [
    [
      'closed',
      'the answer is empty',
      /A: all endpoints are down or drained; the answer is empty/,
      'closed',
    ],
    [
      'spare',
      'health and drains are ignored, because no endpoint has the set identifier "spare"',
      /A: all endpoints are down or drained; health and drains are ignored, because no endpoint has the set identifier "spare"/,
      'open',
    ],
  ]
  for (const [policy, note, line, kind] of table) {
    const corefile = `kuadrant {\n manifests ${directory}\n all-down ${policy}\n}`
    const setUp = new SetUp(kuadrant, corefile, ['k.example.com.'])
    await setUp.start()
    t.teardown(() => setUp.stop())
    t.equal(
      setUp.readiness[0]!.note?.(),
      `all endpoints are down or drained, and ${note}: a.k.example.com. A`,
    )
    t.match(setUp.lines.join('\n'), line)
    const labels = `source="${directory}",zone="k.example.com."`
    const metric = 'sextant_kuadrant_all_down'
    t.equal(await setUp.metric(`${metric}{${labels},policy="${kind}"}`), 1)
    t.equal(await setUp.metric(`${metric}{${labels},policy="fallback"}`), 0)
    const ignored = await setUp.metric(`sextant_kuadrant_health_ignored{${labels}}`)
    t.equal(ignored, kind === 'open' ? 1 : 0)
  }
})

t.test('log, ready page, metric and status name exhausted failover lists', async (t) => {
  const endpoints = ['EU', 'NA'].map((code, i) => ({
    dnsName: 'a.k.example.com',
    recordType: 'A',
    setIdentifier: code,
    targets: [`192.0.2.${i + 1}`],
    providerSpecific: [{ name: 'geo-code', value: `GEO-${code}` }],
  }))
  const record = {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'a', annotations: { 'sextant.io/failover': 'GEO-EU: EU' } },
    spec: { rootHost: 'a.k.example.com', endpoints },
  }
  const directory = t.testdir({ 'a.json': JSON.stringify(record), 'probe.yaml': probe(false) })
  const setUp = new SetUp(kuadrant, `kuadrant {\n manifests ${directory}\n}`, ['k.example.com.'])
  await setUp.start()
  t.teardown(() => setUp.stop())
  const note = (): string => setUp.readiness[0]!.note?.() ?? ''
  const labels = `source="${directory}",zone="k.example.com.",policy="open"`
  const metric = () => setUp.metric(`sextant_kuadrant_failover_exhausted{${labels}}`)
  const list = 'failover list GEO-EU is exhausted'
  const says = 'any endpoint in service serves'
  t.equal(note(), `${list}, and ${says}: a.k.example.com. A`)
  t.equal(await metric(), 1)
  t.match(setUp.lines.join('\n'), `a.k.example.com. A: ${list}; ${says}`)
  const status = () => setUp.statusReports[0]?.().zones?.[0]
  t.match(status(), { allDown: [], exhausted: [`a.k.example.com. A: ${list}; ${says}`] })
  writeFileSync(join(directory, 'probe.yaml'), probe(true))
  await until(() => note() === '', 'the address to be up')
  t.equal(await metric(), 0)
  t.match(setUp.lines.join('\n'), /A: failover lists have an endpoint in service again/)
})

t.test('settings of the block that are wrong', async (t) => {
  const table = [
    ['all-down open\n all-down open', /all-down appears twice/],
    ['all-down', /Wrong argument count/],
    ['all-down a b', /Wrong argument count/],
    ['sticky 24', /sticky needs the prefix lengths for IPv4 .* got 24/],
    ['sticky 0 56', /got 0 56/],
    ['sticky 24 65', /got 24 65/],
    ['sticky\n sticky', /sticky appears twice/],
    ['answers', /Wrong argument count/],
    ['answers 0', /answers needs the largest number of endpoints in an answer, 1 to 64, got 0/],
    ['answers off', /got off/],
    ['answers 3\n answers 3', /answers appears twice/],
  ] as const
  for (const [properties, want] of table) {
    const corefile = `kuadrant {\n manifests .\n ${properties}\n}`
    t.match(setupError(kuadrant, corefile), want, properties)
  }
})
