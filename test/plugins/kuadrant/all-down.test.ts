import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { recordManifest } from '../../support/manifest.ts'
import { SetUp } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

/** A finding for the only address of the record `a`. */
function probe(isHealthy: boolean): string {
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSHealthCheckProbe
metadata:
  name: a
  labels: { kuadrant.io/health-probes-owner: a }
spec: { address: 192.0.2.1 }
status: { healthy: ${isHealthy} }
`
}

t.test('the log, the ready page and a metric say that health is ignored', async (t) => {
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
  t.equal(note(), 'health is ignored, because all endpoints are down: a.k.example.com. A')
  t.equal(await metric(), 1)
  t.match(setUp.lines.join('\n'), /WARNING.*a\.k\.example\.com\. A: all endpoints are down; health/)
  writeFileSync(join(directory, 'probe.yaml'), probe(true))
  await until(() => note() === '', 'the address to be up')
  t.equal(await metric(), 0)
  t.match(setUp.lines.join('\n'), /INFO.*a\.k\.example\.com\. A: health is not ignored any more/)
})
