// The names of a cluster of 10 000 Services beside CoreDNS: start, memory, queries/s.
//   npm run build && node bench/cluster-dns.mjs [rounds] [seconds] [--services 10000]
// Both servers have one thread and read the same API, which this program answers. A fifth of the Services is headless, each
// has three endpoints. The queries are a third each for A of a Service, for SRV, and for a name of another domain under the
// search path of a Pod, which does not exist. CoreDNS is left out if it is not in PATH.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { loadavg, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { median } from './median.mjs'
import { write } from './peers/files.mjs'
import { saturate } from './peers/load.mjs'
import { freePort } from './peers/ports.mjs'
import { cpuUs, findCommand, residentMib, startProcess } from './peers/server-process.mjs'

const NAMESPACES = 100
const CLIENTS = 200
const START_LIMIT_MS = 60_000

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { services: { type: 'string', default: '10000' } },
})
const services = Number(values.services)
const rounds = Number(positionals[0] ?? 5)
const seconds = Number(positionals[1] ?? 1)
const main = join(dirname(fileURLToPath(import.meta.url)), '../dist/main.js')
const directory = mkdtempSync(join(tmpdir(), 'sextant-bench-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))

const PORTS = [
  { name: 'http', protocol: 'TCP', port: 80 },
  { name: 'metrics', protocol: 'TCP', port: 9090 },
]
const indexes = Array.from({ length: services }, (_, i) => i)
const metadata = (i, name, labels = {}) => ({
  ...{ name, namespace: `ns-${i % NAMESPACES}`, uid: name, resourceVersion: '4', labels },
})
const LISTS = {
  namespaces: {
    kind: 'NamespaceList',
    apiVersion: 'v1',
    items: indexes.slice(0, NAMESPACES).map((i) => ({ metadata: { name: `ns-${i}` } })),
  },
  services: {
    kind: 'ServiceList',
    apiVersion: 'v1',
    items: indexes.map((i) => ({
      metadata: metadata(i, `service-${i}`),
      spec: {
        clusterIPs: [i % 5 === 0 ? 'None' : `10.3.${i >> 8}.${i & 255}`],
        ports: PORTS,
        type: 'ClusterIP',
      },
    })),
  },
  endpointslices: {
    kind: 'EndpointSliceList',
    apiVersion: 'discovery.k8s.io/v1',
    items: indexes.map((i) => ({
      metadata: metadata(i, `slice-${i}`, { 'kubernetes.io/service-name': `service-${i}` }),
      addressType: 'IPv4',
      ports: PORTS,
      endpoints: [100, 101, 102].map((net) => ({
        addresses: [`10.${net}.${i >> 8}.${i & 255}`],
        conditions: { ready: true },
      })),
    })),
  },
}

/** Lists in pages; a watch on which nothing happens. */
const api = createServer((request, response) => {
  const url = new URL(request.url, 'http://api')
  if (url.searchParams.has('sendInitialEvents')) {
    const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 422 }
    response.writeHead(422, { 'content-type': 'application/json' }).end(JSON.stringify(status))
    return
  }
  response.writeHead(200, { 'content-type': 'application/json' })
  if (url.searchParams.has('watch')) {
    response.flushHeaders()
    return
  }
  const list = LISTS[url.pathname.slice(url.pathname.lastIndexOf('/') + 1)]
  const start = Number(url.searchParams.get('continue') ?? 0)
  const end = start + Number(url.searchParams.get('limit') ?? services)
  const next = end < list.items.length ? String(end) : ''
  const items = list.items.slice(start, end)
  const page = { ...list, metadata: { resourceVersion: '5', continue: next }, items }
  response.end(JSON.stringify(page))
}).listen(0, '127.0.0.1')

const corefile = (port, lines) => `cluster.local:${port} in-addr.arpa:${port} ip6.arpa:${port} {
    bind 127.0.0.1
${lines}    kubernetes {
        endpoint http://127.0.0.1:${api.address().port}
        startup_timeout 60s
        fallthrough in-addr.arpa ip6.arpa
    }
}
`
const PEERS = {
  Sextant: { command: process.execPath, args: [main, 'serve'], lines: '    multisocket 1\n' },
  CoreDNS: { command: 'coredns', args: [], lines: '', env: { GOMAXPROCS: '1' } },
}

async function start(name) {
  const { command, args, lines, env } = PEERS[name]
  const path = findCommand(command)
  if (path === undefined) {
    console.log(`${name}: left out, ${command} is not installed`)
    return []
  }
  const port = await freePort()
  const file = join(directory, name)
  mkdirSync(file)
  write(join(file, 'Corefile'), corefile(port, lines))
  const startMs = performance.now()
  const server = startProcess(name, path, [...args, '-conf', join(file, 'Corefile')], env)
  for (;;) {
    const load = await measure({ port, server }, 'one', 0.1).catch(() => undefined)
    const ms = performance.now() - startMs
    if (load !== undefined) {
      console.log(`${name}: first answer after ${(ms / 1000).toFixed(1)} s`)
      return [{ name, port, server }]
    }
    if (server.failure !== undefined) throw new Error(server.failure)
    if (ms > START_LIMIT_MS) throw new Error(`${name} did not answer: ${server.output()}`)
  }
}

async function measure({ port, server }, work, duration) {
  const target = { port, file: join(directory, work), form: 'plain', clients: CLIENTS }
  const rcode = work === 'absent' ? 3 : 0
  const before = cpuUs(server.pid)
  const load = { ...target, outstanding: CLIENTS, generator: 'batch', rcode }
  const { completed, qps } = await saturate(load, duration)
  const after = cpuUs(server.pid)
  if (completed === 0) throw new Error(`${server.name} answered no query`)
  return { qps, us: (after.user - before.user + after.system - before.system) / completed }
}

const random = () => Math.floor(Math.random() * services)
const nameOf = (i) => `service-${i}.ns-${i % NAMESPACES}.svc.cluster.local`
const WORKS = {
  A: () => `${nameOf(random())} A\n`,
  SRV: () => `_http._tcp.${nameOf(random())} SRV\n`,
  absent: () => `www.example${random()}.com.ns-${random() % NAMESPACES}.svc.cluster.local A\n`,
}
write(join(directory, 'one'), `${nameOf(services - 1)} A\n`)
for (const [work, query] of Object.entries(WORKS)) {
  write(join(directory, work), Array.from({ length: 65_536 }, query))
}
console.log(
  `queries/s (us of CPU per query); ${rounds} rounds of ${seconds} s; ${services} Services`,
)
console.log(`load average ${loadavg().map((value) => value.toFixed(1))}\n`)
const rows = [...(await start('Sextant')), ...(await start('CoreDNS'))]
for (const { name, server } of rows) {
  console.log(`${name}: ${residentMib(server.pid).toFixed(0)} MiB resident after the start`)
}
for (const work of Object.keys(WORKS)) {
  for (const row of rows) for (let i = 0; i < 3; i++) await measure(row, work, 0.3)
  const figures = rows.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (const [i, row] of rows.entries()) figures[i].push(await measure(row, work, seconds))
  }
  rows.forEach(({ name, server }, i) => {
    const qps = median(figures[i].map((figure) => figure.qps))
    const us = median(figures[i].map((figure) => figure.us))
    const ratio = median(figures[i].map((figure, round) => figures[0][round].qps / figure.qps))
    const memory = `${residentMib(server.pid).toFixed(0)} MiB`
    const rate = `${(qps / 1000).toFixed(1)}k (${us.toFixed(2)})`
    console.log(
      `${work.padEnd(7)} ${name.padEnd(8)} ${rate}  ${memory}  Sextant/${name} ${ratio.toFixed(2)}`,
    )
  })
}
process.exit(0)
