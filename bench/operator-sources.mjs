// Claims: how soon an operator has written the DNSRecords of many Services, and how soon all of them are Ready.
//   npm run build && test/cluster/build
//   node bench/operator-sources.mjs [services]     a minute for 10 000
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startApiServer } from './cluster/api-server.mjs'
import { page, sum } from './operator/metrics.mjs'
import { freePort } from './peers/ports.mjs'
import { cpuUs, startProcess } from './peers/server-process.mjs'

const services = Number(process.argv[2] ?? '10000')
const MAIN = new URL('../dist/main.js', import.meta.url).pathname
const ZONE = 'k.example.com'
const NAMESPACE = '/api/v1/namespaces/apps'
const WRITERS = 16
const COUNT = 'sextant_operator_source_records'

const serviceOf = (i) => ({
  metadata: {
    name: `app-${i}`,
    annotations: { 'external-dns.kubernetes.io/hostname': `app-${i}.${ZONE}` },
  },
  spec: { type: 'ExternalName', externalName: `lb-${i % 100}.example.net` },
})

const directory = mkdtempSync(join(tmpdir(), 'sextant-bench-'))
const { api, stop, kubeconfig } = await startApiServer(directory)
await api.installCrds()
await api.must('POST', '/api/v1/namespaces', { metadata: { name: 'apps' } })
await api.must('POST', `${NAMESPACE}/secrets`, {
  metadata: { name: 'coredns', labels: { 'kuadrant.io/default-provider': 'true' } },
  type: 'kuadrant.io/coredns',
  stringData: { ZONES: ZONE },
})
let next = 0
const writer = async () => {
  while (next < services) await api.must('POST', `${NAMESPACE}/services`, serviceOf(next++))
}
await Promise.all(Array.from({ length: WRITERS }, writer))
const port = await freePort()
const operator = startProcess('operator', process.execPath, [
  ...[MAIN, 'operator', `--kubeconfig=${kubeconfig}`, '--sources=dnsrecord,service'],
  ...['--site=bench', '--leader-elect=false', `--metrics-bind-address=127.0.0.1:${port}`],
  ...['--health-probe-bind-address=0'],
])
const startMs = performance.now()
for (const [what, states] of [
  ['written', /state="(ready|pending)"/],
  ['Ready', /state="ready"/],
]) {
  while (sum(await page(`127.0.0.1:${port}`), COUNT, states) < services) {
    if (operator.failure !== undefined) throw new Error(operator.failure)
    await delay(100)
  }
  const seconds = (performance.now() - startMs) / 1000
  const { user, system } = cpuUs(operator.pid)
  const cpu = ((user + system) / 1e6).toFixed(1)
  const rate = (services / seconds).toFixed(0)
  console.log(
    `${services} ${what} ${seconds.toFixed(1)} s after the start: ${rate} per second, CPU ${cpu} s`,
  )
}
await operator.stop()
await stop()
rmSync(directory, { recursive: true })
