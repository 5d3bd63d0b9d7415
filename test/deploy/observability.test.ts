import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { UdpClient } from '../support/client.ts'
import { needs, run } from '../support/peer.ts'
import { DASHBOARDS, Prometheus, panelsOf, printDashboard } from '../support/prometheus.ts'
import { freePort, root, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly annotations: { readonly summary: string; readonly runbook_url: string }
}
interface Group {
  readonly name: string
  readonly rules: readonly Rule[]
}

const RULES = join(root, 'deploy/observability/alerts.yaml')
const { groups } = parse(readFileSync(RULES, 'utf8')) as { readonly groups: readonly Group[] }
const alerts = groups.flatMap(({ rules }) => rules)

t.test('each alert has a page, and each page an alert', (t) => {
  const names = alerts.map(({ alert }) => alert)
  const pages = readdirSync(join(root, 'docs/runbooks')).map((file) => file.replace('.md', ''))
  t.strictSame(pages.sort(), [...names].sort())
  for (const { alert, annotations } of alerts) {
    t.equal(annotations.runbook_url, `docs/runbooks/${alert}.md`)
    t.ok(annotations.summary, alert)
  }
  t.end()
})

t.test('the dashboards are those of the tables', (t) => {
  for (const name of Object.keys(DASHBOARDS)) {
    const file = join(root, `deploy/observability/dashboards/${name}.json`)
    t.equal(readFileSync(file, 'utf8'), printDashboard(name), `${name}: run dashboards.mjs`)
  }
  t.end()
})

t.test('alerts and dashboards name metrics that exist', (t) => {
  const known = readFileSync(join(root, 'docs/reference/metrics.md'), 'utf8')
  const panels = Object.values(DASHBOARDS).flatMap(({ panels }) => panels)
  const queries = [...alerts.map(({ expr }) => expr), ...panels.map(([, , query]) => query)]
  for (const query of queries) {
    for (const [name] of query.matchAll(/\b(coredns|sextant|dns_provider|process)_\w+/g)) {
      t.ok(known.includes(`\`${name.replace(/_bucket$/, '')}\``), `${name} of ${query}`)
    }
  }
  t.end()
})

t.test(
  'promtool accepts the rules, and they fire when they have to',
  needs('promtool'),
  async (t) => {
    const checked = await run('promtool', ['check', 'rules', RULES])
    t.equal(checked.code, 0, checked.stdout + checked.stderr)
    const directory = temporaryDirectory(t)
    // Without the texts for people, which the cases would have to repeat.
    const bare = groups.map(({ name, rules }) => ({
      name,
      rules: rules.map(({ annotations: _, ...rule }) => rule),
    }))
    writeFileSync(join(directory, 'RULES'), JSON.stringify({ groups: bare }))
    const cases = readFileSync(join(root, 'test/deploy/alerts.yaml'), 'utf8')
    for (const { alert } of alerts)
      t.ok(cases.includes(`alertname: ${alert}\n`), `${alert} has a case`)
    writeFileSync(join(directory, 'cases.yaml'), cases)
    const tested = await run('promtool', ['test', 'rules', join(directory, 'cases.yaml')])
    t.equal(tested.code, 0, tested.stdout + tested.stderr)
  },
)

const POLICY = `
apiVersion: v1
kind: Pod
metadata: { name: shop, namespace: default, labels: { app: shop } }
status: { podIP: 127.0.0.1, podIPs: [{ ip: 127.0.0.1 }] }
---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: { name: shop, namespace: default }
spec:
  endpointSelector: { matchLabels: { app: shop } }
  egress: [{ toFQDNs: [{ matchName: app.k.example.com }] }]
`
const RECORD = `
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: { name: app }
spec:
  rootHost: app.k.example.com
  healthCheck: { path: /, port: 1, protocol: HTTP, interval: 1s, failureThreshold: 1 }
  endpoints:
    - dnsName: app.k.example.com
      recordType: A
      setIdentifier: dublin
      targets: [127.0.0.9]
      providerSpecific: [{ name: weight, value: "1" }, { name: geo-code, value: IE }]
`

/**
 * Panels that a server without a cluster, and a dry run, leave empty. The first is tested with a cluster. The series of
 * the second are in test/e2e/egress-reload.test.ts, with real nftables.
 */
const NOT_HERE = ['Age of the records', 'Failures of nftables']

t.test('each panel of a server has data in a real Prometheus', needs('prometheus'), async (t) => {
  const metrics = await freePort()
  const corefile = `k.example.com:{PORT} {
    bind 127.0.0.1
    prometheus 127.0.0.1:${metrics}
    geoip
    egress {
        policies policies
        dry_run
        cluster 10.0.0.0/8
        api off
    }
    kuadrant {
        manifests records
        probe
        probe-allow 127.0.0.0/8
    }
}
`
  const files = { 'policies/shop.yaml': POLICY, 'records/app.yaml': RECORD }
  const server = await startServer(t, { corefile, files })
  const prometheus = await Prometheus.start(t, { sextant: `127.0.0.1:${metrics}` })
  const client = await UdpClient.connect(server.port)
  t.teardown(() => client.close())
  await client.ask({ name: 'app.k.example.com', type: 'A' })
  for (const name of ['fleet', 'zone', 'endpoint', 'egress']) {
    await t.resolves(prometheus.fills(panelsOf(name, NOT_HERE)), name)
  }
})
