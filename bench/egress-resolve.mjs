// How fast 10 000 names with 100 000 addresses are resolved again, and what it costs: names/s, CPU time per name, memory.
//   npm run build && node --expose-gc bench/egress-resolve.mjs [rounds]
// Three parts in turn, each in a process of its own; the first two with real UDP to an upstream in another process:
//   resolver    the resolver of src/egress without a limit of starts, with a table of addresses
//   controller  the controller dnsnameresolver as it runs, over an API in memory; 500 starts per second are its limit
//   status      the directive egressfirewall: the answers of all names into their statuses, over an API in memory
import { fork } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../dist/base/clock.js'
import { Random } from '../dist/base/random.js'
import { createLogger } from '../dist/base/telemetry/log.js'
import { MetricsRegistry, NO_METRICS } from '../dist/base/telemetry/metrics.js'
import { systemTimers } from '../dist/base/timers.js'
import { askAddresses } from '../dist/client/resolver/ask-addresses.js'
import { Resolver } from '../dist/client/resolver/resolver.js'
import { RESOLVER_RULES_DEFAULT } from '../dist/client/resolver/waits.js'
import { composeMessage } from '../dist/dns/message/compose-message.js'
import { HeaderFlag } from '../dist/dns/message/header.js'
import { parseMessage } from '../dist/dns/message/parse-message.js'
import { NameBuffer } from '../dist/dns/name/hashed-name.js'
import { nameKey, scanName } from '../dist/dns/name/name.js'
import { LearnedTable } from '../dist/egress/learned/learned-table.js'
import { DEFAULT_LIMITS } from '../dist/egress/policies/openshift/resolved-names.js'
import { createDnsNameResolverController } from '../dist/operator/egress/dnsnameresolver/dns-name-resolver-controller.js'
import { NameFollower } from '../dist/plugins/egressfirewall/name-follower.js'
import { median } from './median.mjs'

const NAMES = 10_000
/** For each name and family. */
const ADDRESSES = 5
const WORKERS = 64
const TTL_SECONDS = 3600
const NAMESPACE = 'ovn-kubernetes'
const nameOf = (i) => `www.n${i}.example.com.`

/** Answers each query with addresses that depend on the name. */
async function serveUpstream() {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 2 ** 22 }).bind(0, '127.0.0.1')
  socket.on('message', (octets, { port, address }) => {
    const query = parseMessage(octets)
    const { name, type } = query.question
    const answer = Array.from({ length: ADDRESSES }, (_, n) => {
      const number = Number(Buffer.from(name).toString('latin1', 6, 5 + name[4]))
      const rdata = new Uint8Array(type === 1 ? 4 : 16)
      rdata.set([0x20, number >> 8, number & 255, n])
      return { owner: name, type, rrclass: 1, ttlSeconds: TTL_SECONDS, rdata }
    })
    const flags = HeaderFlag.QR | HeaderFlag.RD | HeaderFlag.RA
    socket.send(composeMessage({ ...query, flags, answer, edns: undefined }), port, address)
  })
  await once(socket, 'listening')
  process.send(socket.address().port)
}

const log = createLogger(
  '',
  () => {},
  () => false,
)
const env = { clock: systemClock, timers: systemTimers, random: new Random(1), log }

/** An API in memory. `lists`: by plural. Accepts each patch of a status. */
function apiOf(lists) {
  let version = 5
  const body = async function* (value) {
    if (value === undefined) await new Promise(() => {})
    else yield Buffer.from(JSON.stringify(value))
  }
  const reply = (status, value) => ({ status, retryAfterSeconds: 0, body: body(value) })
  const get = async (path) => {
    if (path.includes('sendInitialEvents')) return reply(422, { kind: 'Status', code: 422 })
    if (path.includes('watch=')) return reply(200, undefined)
    const plural = Object.keys(lists).find((one) => path.includes(`/${one}?`))
    const items = lists[plural]?.() ?? []
    return reply(200, { kind: 'List', metadata: { resourceVersion: '5' }, items })
  }
  const send = async (_method, path, { metadata, status }) => {
    const name = /\/([^/]+)\/status/.exec(path)[1]
    version++
    const written = { ...metadata, namespace: NAMESPACE, name, resourceVersion: String(version) }
    return reply(200, { metadata: written, spec: { name: nameOf(name.slice(4)) }, status })
  }
  return { place: 'memory', refresh: () => {}, get, send }
}

/** All objects; the TTLs of their addresses have ended `ageMs` ago. */
function resolversOf(ageMs) {
  const lookup = new Date(Date.now() - TTL_SECONDS * 1000 - ageMs).toISOString()
  const lastLookupTime = `${lookup.slice(0, 19)}Z`
  const conditions = [{ type: 'Degraded', status: 'False', reason: 'NOERROR', message: 'No Error' }]
  return Array.from({ length: NAMES }, (_, i) => {
    const ips = Array.from({ length: ADDRESSES }, (_, n) => [
      `32.${i >> 8}.${i & 255}.${n}`,
      `20${(i >> 8).toString(16).padStart(2, '0')}:${(i & 255).toString(16)}0${n}::`,
    ])
    const resolvedAddresses = ips.flat().map((ip) => {
      return { ip, ttlSeconds: TTL_SECONDS, lastLookupTime }
    })
    return {
      metadata: { namespace: NAMESPACE, name: `dns-${i}`, uid: `${i}`, resourceVersion: '4' },
      spec: { name: nameOf(i) },
      status: { resolvedNames: [{ dnsName: nameOf(i), resolvedAddresses, conditions }] },
    }
  })
}

function learn(store, { kind, name, atMs, facts }) {
  if (kind !== 'answer') return
  for (const { address, ttlSeconds } of facts) {
    store.add({ name: nameKey(name), addresses: [address], lookupMs: atMs, ttlSeconds })
  }
}

function heapMib() {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 2 ** 20
}

/** Runs `work`, which resolves when all names are done; returns its costs. */
async function measured(work) {
  // The timers of the program do not keep a process alive.
  const alive = setInterval(() => {}, 1000)
  const cpu = process.cpuUsage()
  const start = performance.now()
  await work()
  const seconds = (performance.now() - start) / 1000
  const { user, system } = process.cpuUsage(cpu)
  clearInterval(alive)
  return { perSecond: NAMES / seconds, cpuUs: (user + system) / NAMES }
}

async function resolveAll(port) {
  const before = heapMib()
  const store = new LearnedTable({
    endOf: (one) => one.lookupMs + 3_600_000,
    addressesPerName: 1000,
  })
  let left = NAMES
  let end = () => {}
  const done = new Promise((resolve) => (end = resolve))
  const resolver = new Resolver({
    ...env,
    rules: { ...RESOLVER_RULES_DEFAULT, workers: WORKERS, perSecond: 1e9 },
    familiesOf: () => [1, 2],
    servers: () => [{ host: '127.0.0.1', port }],
    ask: askAddresses,
    onObservation: (observation) => learn(store, observation),
    onResolved: () => {
      if (--left === 0) end()
    },
  })
  const costs = await measured(async () => {
    for (let i = 0; i < NAMES; i++) {
      resolver.schedule(scanName(nameOf(i)), 0)
    }
    await done
  })
  if (store.size !== 2 * NAMES * ADDRESSES) throw new Error(`${store.size} addresses`)
  const mib = heapMib() - before
  resolver.close()
  return { ...costs, mib }
}

/** The TTLs end at the start, so all names are due one second later. */
async function runController(port) {
  const before = heapMib()
  const slice = {
    metadata: { namespace: 'kube-system', name: 'kube-dns-1' },
    addressType: 'IPv4',
    ports: [{ name: 'dns', protocol: 'UDP', port }],
    endpoints: [{ addresses: ['127.0.0.1'] }],
  }
  const lists = { dnsnameresolvers: () => resolversOf(0), endpointslices: () => [slice] }
  const api = apiOf(lists)
  let asked = 0
  let end = () => {}
  const done = new Promise((resolve) => (end = resolve))
  const controller = createDnsNameResolverController(
    {
      ...env,
      api,
      namespaces: [],
      events: { record: () => {} },
      registry: new MetricsRegistry(),
      // Nothing writes new TTLs here, so on a slow machine the last addresses would be removed.
      mayWrite: () => false,
    },
    { namespace: NAMESPACE, service: { namespace: 'kube-system', name: 'kube-dns' } },
    async (query) => {
      const answered = await askAddresses(query)
      if (answered.kind !== 'reply') throw new Error(answered.reason)
      if (++asked === 2 * NAMES) end()
      return answered
    },
  )
  const costs = await measured(async () => {
    controller.begin()
    await done
  })
  const mib = heapMib() - before
  await controller.end()
  return { ...costs, mib }
}

async function writeStatuses() {
  const before = heapMib()
  const objects = resolversOf(60_000)
  const follower = new NameFollower({
    ...env,
    api: apiOf({ dnsnameresolvers: () => objects }),
    namespaces: [],
    limits: DEFAULT_LIMITS,
    gateMs: 60_000,
    metrics: NO_METRICS,
  })
  follower.start()
  await follower.settled()
  const mib = heapMib() - before
  const name = new NameBuffer()
  const costs = await measured(async () => {
    for (let i = 0; i < NAMES; i += WORKERS) {
      const waits = []
      for (let n = i; n < Math.min(NAMES, i + WORKERS); n++) {
        const wire = scanName(nameOf(n))
        name.set(wire, 0, wire.length)
        const [{ resolvedAddresses }] = objects[n].status.resolvedNames
        const addresses = resolvedAddresses.map(({ ip }) => ({ ip, ttlSeconds: TTL_SECONDS }))
        const lookup = { dnsName: nameOf(n), rcode: 0, addresses, nowMs: Date.now() }
        waits.push(follower.submit(name, lookup))
      }
      for (const result of await Promise.all(waits)) {
        if (result !== 'acknowledged') throw new Error(`a status was not written: ${result}`)
      }
    }
  })
  follower.close()
  return { ...costs, mib }
}

const PARTS = { resolver: resolveAll, controller: runController, status: writeStatuses }

/** Runs a part in a process of its own, so that the memory of another one does not count. */
async function runPart(name, port) {
  const child = fork(fileURLToPath(import.meta.url), [name, String(port)])
  const [costs] = await once(child, 'message')
  child.kill()
  return costs
}

async function main() {
  const rounds = Number(process.argv[2] ?? 3)
  const upstream = fork(fileURLToPath(import.meta.url), ['upstream'])
  const [port] = await once(upstream, 'message')
  const results = Object.keys(PARTS).map((name) => ({ name, runs: [] }))
  for (let round = 0; round < rounds; round++) {
    for (const { name, runs } of results) runs.push(await runPart(name, port))
  }
  for (const { name, runs } of results) {
    const of = (field) => median(runs.map((run) => run[field])).toFixed(field === 'mib' ? 1 : 0)
    const costs = `${of('perSecond')} names/s, ${of('cpuUs')} µs CPU per name, ${of('mib')} MiB`
    console.log(`${name.padEnd(10)} ${costs}`)
  }
  const load = loadavg()[0].toFixed(1)
  console.log(`${NAMES} names with ${2 * ADDRESSES} addresses each, ${rounds} rounds, load ${load}`)
  upstream.kill()
}

const [, , first = '3', port] = process.argv
if (first === 'upstream') await serveUpstream()
else if (Object.hasOwn(PARTS, first)) process.send(await PARTS[first](Number(port)))
else await main()
