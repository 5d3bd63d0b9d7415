// Claims: 1 000 Gateways with 10 routes each, and 10 000 DNSEndpoints: time from the start to the first answer, and from a
// change in the API to the answer. The API is a process that keeps the objects in memory.
//   npm run build && node bench/sources.mjs [gateway|dnsendpoint]     half a minute each

import { fork } from 'node:child_process'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay, setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from './peers/ports.mjs'
import { cpuUs, startProcess } from './peers/server-process.mjs'

const ZONE = 'k.example.com'
const GATEWAYS = 1000
const ROUTES = 10
const ENDPOINTS = 10_000
const CHANGES = 42
const MAIN = new URL('../dist/main.js', import.meta.url).pathname
const SELF = fileURLToPath(import.meta.url)
const ACCEPTED = [{ type: 'Accepted', status: 'True', reason: 'Accepted', message: '' }]
const hostOf = (i) => `app-${i}.${ZONE}`
const addressOf = (i) => `192.0.${i >> 8}.${i & 255}`

const metadata = (namespace, name) => ({
  ...{ namespace, name, uid: `${namespace}-${name}`, generation: 1 },
  creationTimestamp: '2026-01-01T00:00:00Z',
})
const gateway = (g, address = addressOf(g)) => ({
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'Gateway',
  metadata: metadata(`infra-${g % 50}`, `gateway-${g}`),
  spec: {
    gatewayClassName: 'bench',
    listeners: [
      {
        ...{ name: 'https', port: 443, protocol: 'HTTPS', hostname: `*.${ZONE}` },
        allowedRoutes: { namespaces: { from: 'All' } },
      },
    ],
  },
  status: {
    addresses: [{ type: 'IPAddress', value: address }],
    conditions: ACCEPTED,
    listeners: [
      { name: 'https', attachedRoutes: ROUTES, supportedKinds: [], conditions: ACCEPTED },
    ],
  },
})
/** `i`: of the host. */
const route = (i, target = i) => {
  const g = Math.floor(target / ROUTES)
  const parentRef = { namespace: `infra-${g % 50}`, name: `gateway-${g}` }
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: metadata(`team-${i % 50}`, `route-${i}`),
    spec: {
      ...{ hostnames: [hostOf(i)], parentRefs: [parentRef] },
      rules: [{ backendRefs: [{ name: 'app', port: 80 }], matches: [{ path: { value: '/' } }] }],
    },
    status: {
      parents: [{ parentRef, controllerName: 'example.org/bench', conditions: ACCEPTED }],
    },
  }
}
const dnsEndpoint = (i, address = addressOf(i)) => ({
  apiVersion: 'externaldns.k8s.io/v1alpha1',
  kind: 'DNSEndpoint',
  metadata: metadata(`team-${i % 50}`, `endpoint-${i}`),
  spec: {
    endpoints: [{ dnsName: hostOf(i), recordType: 'A', recordTTL: 60, targets: [address] }],
  },
})
const times = (count, make) => Array.from({ length: count }, (_, i) => make(i))

/** For each kind: its objects, the address of a host, and changes: the object, the host, and its address then. */
const KINDS = {
  gateway: {
    objects: () => ({
      gateways: times(GATEWAYS, (g) => gateway(g)),
      httproutes: times(GATEWAYS * ROUTES, (i) => route(i)),
    }),
    hosts: GATEWAYS * ROUTES,
    addressOf: (i) => addressOf(Math.floor(i / ROUTES)),
    changes: {
      'a route that moves to another Gateway': (n) => {
        const [i, other] = [(n * 7919) % (GATEWAYS * ROUTES), (n * 104729) % (GATEWAYS * ROUTES)]
        const address = addressOf(Math.floor(other / ROUTES))
        return { plural: 'httproutes', object: route(i, other), host: i, address }
      },
      'a Gateway with another address': (n) => {
        const g = (n * 613 + 7) % GATEWAYS
        const address = `198.51.100.${n}`
        return { plural: 'gateways', object: gateway(g, address), host: g * ROUTES + 9, address }
      },
    },
  },
  dnsendpoint: {
    objects: () => ({ dnsendpoints: times(ENDPOINTS, (i) => dnsEndpoint(i)) }),
    hosts: ENDPOINTS,
    addressOf,
    changes: {
      'a DNSEndpoint with another address': (n) => {
        const host = (n * 7919) % ENDPOINTS
        const address = `198.51.100.${n}`
        return { plural: 'dnsendpoints', object: dnsEndpoint(host, address), host, address }
      },
    },
  },
}

/** The API: lists of these objects as streams, and what the bench sends as changes. */
async function serveApi(kind) {
  const lines = new Map(
    Object.entries(KINDS[kind].objects()).map(([plural, objects]) => [
      plural,
      objects.map((object) => lineOf('ADDED', object, 1)),
    ]),
  )
  const watchers = new Map()
  let version = 1
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://localhost')
    const plural = pathname.split('/').at(-1)
    response.writeHead(200, { 'content-type': 'application/json' })
    response.flushHeaders()
    if (!searchParams.has('sendInitialEvents')) return watchers.set(plural, response)
    for (const [n, line] of (lines.get(plural) ?? []).entries()) {
      response.write(line)
      if (n % 200 === 199) await setImmediate()
    }
    const end = { annotations: { 'k8s.io/initial-events-end': 'true' } }
    response.write(lineOf('BOOKMARK', { metadata: end }, version))
  })
  server.listen(0, '127.0.0.1', () => process.send(server.address().port))
  process.on('message', ({ plural, object }) => {
    watchers.get(plural).write(lineOf('MODIFIED', object, ++version))
  })
}

function lineOf(type, object, version) {
  const stamped = { ...object.metadata, resourceVersion: `${version}` }
  return `${JSON.stringify({ type, object: { ...object, metadata: stamped } })}\n`
}

async function measure(kind) {
  const { hosts, addressOf, changes } = KINDS[kind]
  const directory = mkdtempSync(join(tmpdir(), 'sextant-bench-'))
  const api = fork(SELF, ['api', kind])
  const [apiPort] = await once(api, 'message')
  const port = await freePort()
  const kubeconfig = join(directory, 'kubeconfig')
  const server = { server: `http://127.0.0.1:${apiPort}` }
  const contexts = [{ name: 'a', context: { cluster: 'a', user: 'a' } }]
  const clusters = [{ name: 'a', cluster: server }]
  const config = { clusters, contexts, users: [{ name: 'a', user: {} }], 'current-context': 'a' }
  writeFileSync(kubeconfig, JSON.stringify(config))
  const conf = join(directory, 'Corefile')
  const block = `kuadrant {\n kubeconfig ${kubeconfig}\n sources ${kind}\n share-hosts . *\n }`
  writeFileSync(conf, `${ZONE}:${port} {\n bind 127.0.0.1\n ${block}\n}\n`)
  const resolver = new Resolver({ timeout: 1000, tries: 1 })
  resolver.setServers([`127.0.0.1:${port}`])
  const ask = async (i) => (await resolver.resolve4(hostOf(i)).catch(() => [])).join()
  const startMs = performance.now()
  const sextant = startProcess('sextant', process.execPath, [MAIN, 'serve', '-conf', conf])
  const until = async (i, address) => {
    while ((await ask(i)) !== address) {
      if (sextant.failure !== undefined) throw new Error(sextant.failure)
      await delay(1)
    }
  }
  await until(hosts - 1, addressOf(hosts - 1))
  const { user, system } = cpuUs(sextant.pid)
  const seconds = ((performance.now() - startMs) / 1000).toFixed(2)
  console.log(`${kind}: ${hosts} hosts, first right answer after ${seconds} s`)
  const [, peak] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${sextant.pid}/status`, 'utf8'))
  const cpu = ((user + system) / 1e6).toFixed(2)
  console.log(`  CPU ${cpu} s, at most ${(Number(peak) / 1024).toFixed(0)} MiB`)
  for (const [name, change] of Object.entries(changes)) {
    const seen = []
    for (let n = 1; n <= CHANGES; n++) {
      const { host, address, ...sent } = change(n)
      const sentMs = performance.now()
      api.send(sent)
      await until(host, address)
      seen.push(performance.now() - sentMs)
    }
    // After a start, the control thread collects garbage: the first change waits for it.
    const first = seen.shift().toFixed(1)
    seen.sort((a, b) => a - b)
    const [median, worst] = [seen[seen.length >> 1], seen.at(-1)].map((ms) => ms.toFixed(1))
    const figures = `first ${first} ms, then median ${median} ms, worst ${worst} ms`
    console.log(`  ${name}, sent to answered: ${figures}`)
  }
  await sextant.stop()
  api.kill()
  rmSync(directory, { recursive: true })
}

const [what, kind] = process.argv.slice(2)
if (what === 'api') await serveApi(kind)
else {
  for (const one of what === undefined ? Object.keys(KINDS) : [what]) await measure(one)
  process.exit()
}
