// Claims: 100 000 DNSRecords in an API server: time to the first answer, memory, CPU when idle, and the
// time from a change in the API to the answer.
//   npm run build && test/cluster/build
//   node bench/cluster.mjs create DIR [records]      minutes; DIR keeps them
//   node bench/cluster.mjs measure DIR [records]     a minute and a half
//   node bench/cluster.mjs nameservers DIR [records] a minute: three of them, and a change to all

import { Resolver } from 'node:dns/promises'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startApiServer } from './cluster/api-server.mjs'
import { freePort } from './peers/ports.mjs'
import { cpuUs, residentMib, startProcess } from './peers/server-process.mjs'

const [what, where = '', count = '100000'] = process.argv.slice(2)
const records = Number(count)
const ZONE = 'k.example.com'
const NAMESPACES = 50
const WRITERS = 24
const CHANGES = 41
const IDLE_SECONDS = 20
const NAMESERVERS = 3
const MAIN = new URL('../dist/main.js', import.meta.url).pathname

const path = (i) => `/apis/kuadrant.io/v1alpha1/namespaces/team-${i % NAMESPACES}/dnsrecords`
const host = (i) => `app-${i}.${ZONE}`
const endpoint = (i, set, geo, address) => ({
  dnsName: host(i),
  recordType: 'A',
  recordTTL: 60,
  setIdentifier: set,
  targets: [address],
  providerSpecific: [
    { name: 'weight', value: '120' },
    { name: 'geo-code', value: geo },
  ],
})
const endpoints = (i, address) => [
  endpoint(i, 'eu', 'GEO-EU', address),
  endpoint(i, 'na', 'GEO-NA', address),
]
const record = (i) => ({
  apiVersion: 'kuadrant.io/v1alpha1',
  kind: 'DNSRecord',
  metadata: { name: `app-${i}`, labels: { 'kuadrant.io/coredns-zone-name': ZONE } },
  spec: { rootHost: host(i), endpoints: endpoints(i, `192.0.2.${i % 250}`) },
})

async function create(directory) {
  const { api, stop } = await startApiServer(directory)
  await api.installCrds()
  for (let i = 0; i < NAMESPACES; i++) {
    await api.must('POST', '/api/v1/namespaces', { metadata: { name: `team-${i}` } })
  }
  const startMs = performance.now()
  let next = 0
  const writer = async () => {
    while (next < records) {
      const i = next++
      await api.must('POST', path(i), record(i))
      if (i % 10_000 === 9999) console.log(`${i + 1} records, ${seconds(startMs)} s`)
    }
  }
  await Promise.all(Array.from({ length: WRITERS }, writer))
  console.log(`${records} records created by ${WRITERS} writers in ${seconds(startMs)} s`)
  await stop()
}

async function startWithCaches(directory) {
  const site = await startApiServer(directory)
  // Its own caches fill after it is ready, which takes it half a minute of CPU.
  const selected = '/apis/kuadrant.io/v1alpha1/dnsrecords?limit=1&labelSelector=a'
  while ((await site.api.call('GET', selected)).status !== 200) await delay(200)
  await delay(2000)
  return site
}

async function startNameserver(directory, kubeconfig) {
  const [port, http] = [await freePort(), await freePort()]
  const conf = join(directory, `Corefile-${port}`)
  writeFileSync(
    conf,
    `${ZONE}:${port} {
    bind 127.0.0.1
    ready 127.0.0.1:${http}
    kuadrant {
        kubeconfig ${kubeconfig}
    }
}
`,
  )
  const resolver = new Resolver({ timeout: 1000, tries: 1 })
  resolver.setServers([`127.0.0.1:${port}`])
  const ask = async (i) => (await resolver.resolve4(host(i)).catch(() => [])).join()
  const server = startProcess('sextant', process.execPath, [MAIN, 'serve', '-conf', conf])
  return { server, ask, http }
}

async function untilLast({ server, ask }) {
  const last = records - 1
  while ((await ask(last)) !== `192.0.2.${last % 250}`) {
    if (server.failure !== undefined) throw new Error(server.failure)
    await delay(20)
  }
}

/** A change is over when the last of several nameservers has it. */
async function measureNameservers(directory) {
  const { api, stop, kubeconfig, pid: apiPid } = await startWithCaches(directory)
  const [apiBefore, startMs] = [cpuUs(apiPid), performance.now()]
  const servers = []
  for (let i = 0; i < NAMESERVERS; i++) servers.push(await startNameserver(directory, kubeconfig))
  await Promise.all(servers.map(untilLast))
  console.log(`first right answer of all ${NAMESERVERS} after ${seconds(startMs)} s`)
  console.log(`  CPU of the API server ${cpu(apiBefore, cpuUs(apiPid))} s`)
  for (const { server } of servers) console.log(memory(server.pid))
  await delay(5000)
  await measureChanges(api, async (i) => {
    const answers = new Set(await Promise.all(servers.map(({ ask }) => ask(i))))
    return answers.size === 1 ? [...answers][0] : 'not all the same'
  })
  for (const { server } of servers) await server.stop()
  await stop()
}

async function measure(directory) {
  const { api, stop, kubeconfig, pid: apiPid } = await startWithCaches(directory)
  const [apiBefore, startMs] = [cpuUs(apiPid), performance.now()]
  const nameserver = await startNameserver(directory, kubeconfig)
  const { server, ask, http } = nameserver
  await untilLast(nameserver)
  console.log(`first right answer after ${seconds(startMs)} s`)
  const { user, system } = cpuUs(server.pid)
  console.log(`  CPU ${cpu({ user: 0, system: 0 }, { user, system })} s`)
  console.log(`  of the API server ${cpu(apiBefore, cpuUs(apiPid))} s`)
  while ((await fetch(`http://127.0.0.1:${http}/ready`).catch(() => ({}))).status !== 200) {
    await delay(20)
  }
  console.log(`ready after ${seconds(startMs)} s`)
  console.log(memory(server.pid))
  await delay(5000)
  const before = cpuUs(server.pid)
  await delay(IDLE_SECONDS * 1000)
  const idle = Number(cpu(before, cpuUs(server.pid)))
  console.log(`idle: ${((idle / IDLE_SECONDS) * 100).toFixed(2)} % of a CPU over ${IDLE_SECONDS} s`)
  console.log(memory(server.pid))
  await measureChanges(api, ask)
  console.log(memory(server.pid))
  await server.stop()
  await stop()
}

async function measureChanges(api, ask) {
  const [written, seen] = [[], []]
  for (let change = 0; change < CHANGES; change++) {
    const i = (change * 7919) % records
    const address = `198.51.100.${change}`
    const startMs = performance.now()
    let writtenMs = 0
    const patch = { spec: { endpoints: endpoints(i, address) } }
    const patched = api.must('PATCH', `${path(i)}/app-${i}`, patch).then(() => {
      writtenMs = performance.now() - startMs
    })
    while ((await ask(i)) !== address) await delay(1)
    seen.push(performance.now() - startMs)
    await patched
    written.push(writtenMs)
    const before = { spec: { endpoints: endpoints(i, `192.0.2.${i % 250}`) } }
    await api.must('PATCH', `${path(i)}/app-${i}`, before)
    while ((await ask(i)) === address) await delay(1)
  }
  console.log(`a change, request to answer of the API: ${spread(written)}`)
  console.log(`a change, request to answer at the name server: ${spread(seen)}`)
}

const seconds = (startMs) => ((performance.now() - startMs) / 1000).toFixed(2)
const cpu = (before, after) =>
  ((after.user + after.system - before.user - before.system) / 1e6).toFixed(2)
function memory(pid) {
  const [, peak] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return `${residentMib(pid).toFixed(0)} MiB resident, ${(Number(peak) / 1024).toFixed(0)} at most`
}
function spread(times) {
  const sorted = times.toSorted((a, b) => a - b)
  return `median ${sorted[sorted.length >> 1].toFixed(1)} ms, worst ${sorted.at(-1).toFixed(1)} ms`
}

const ways = { create, measure, nameservers: measureNameservers }
if (!Object.hasOwn(ways, what) || where === '') {
  console.error('usage: node bench/cluster.mjs create|measure|nameservers DIR [records]')
  process.exit(1)
}
const directory = resolve(where)
mkdirSync(directory, { recursive: true })
await ways[what](directory)
process.exit()
