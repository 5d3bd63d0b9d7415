// Claims: an operator of many records whose hosts three other sites have as well: what it does when it starts
// anew and nothing changed, when nothing happens, and when a peer changes something.
//   npm run build && test/cluster/build
//   node bench/operator.mjs create DIR [records]             minutes; DIR keeps them
//   node bench/operator.mjs restart DIR [records] [polled]   half a minute; polled: peers without transfers
//   node bench/operator.mjs measure DIR [records] [polled]   a minute: that, and what comes after it
//   node bench/operator.mjs notified DIR [records]           a minute: changes at a peer that sends NOTIFYs and at one
//                                                            that does not, in turn

import { randomInt } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { startApiServer } from './cluster/api-server.mjs'
import { page, sum } from './operator/metrics.mjs'
import {
  addressOf,
  editRecord,
  HTTP_PORT,
  NOTIFY_PORT,
  PORT,
  recordOf,
  SINGLES,
  SITES,
  startPeer,
  writeManifests,
  ZONE,
} from './operator/peers.mjs'
import { freePort } from './peers/ports.mjs'
import { cpuUs, residentMib, startProcess } from './peers/server-process.mjs'

const [what, where = '', count = '1000', how = ''] = process.argv.slice(2)
const records = Number(count)
const MAIN = new URL('../dist/main.js', import.meta.url).pathname
const RECORDS = '/apis/kuadrant.io/v1alpha1/namespaces/apps/dnsrecords'
const WRITERS = 16
/** As long as the TTL of what is asked for host by host. */
const IDLE_SECONDS = 60
const CHANGES = 11
/** Of each kind. */
const NOTIFIED_CHANGES = 25
/** Nothing done for so long: settled. */
const QUIET_MS = 3000

async function create(directory) {
  const { api, stop, kubeconfig } = await startApiServer(directory)
  await api.installCrds()
  await api.must('POST', '/api/v1/namespaces', { metadata: { name: 'apps' } })
  // The same addresses from one run to the next: another nameserver is a change.
  const network = `127.77.${randomInt(256)}`
  writeFileSync(join(directory, 'network'), network)
  await api.must('POST', '/api/v1/namespaces/apps/secrets', {
    metadata: { name: 'coredns', labels: { 'kuadrant.io/default-provider': 'true' } },
    type: 'kuadrant.io/coredns',
    stringData: {
      ZONES: ZONE,
      NAMESERVERS: SITES.map((site) => `${network}.${site}:${PORT}`).join(', '),
    },
  })
  let next = 0
  const writer = async () => {
    while (next < records) await api.must('POST', RECORDS, recordOf(0, next++))
  }
  const startMs = performance.now()
  await Promise.all(Array.from({ length: WRITERS }, writer))
  console.log(`${records} records created in ${seconds(startMs)} s`)
  writeManifests(directory, records)
  const peers = await startPeers(directory, true)
  const operator = await startOperator(kubeconfig)
  await settle(operator, api)
  await closeAll(operator, peers)
  await stop()
}

async function measure(directory) {
  await started(directory, async (operator, peers, api) => {
    await measureIdle(operator, peers)
    await measureChanges(directory, api)
    await measureBulk(directory, operator, api)
  })
}

async function measureNotified(directory) {
  await started(directory, async (_operator, _peers, api) => {
    const times = { notified: [], polled: [] }
    for (let i = 0; i < 2 * NOTIFIED_CHANGES; i++) {
      const [site, kind] = i % 2 === 0 ? [1, 'notified'] : [2, 'polled']
      // At any time between two polls.
      await delay(300 + ((i * 370) % 1000))
      const startMs = performance.now()
      editRecord(directory, site, i, `198.51.100.${i}`)
      await seen(api, i, `198.51.100.${i}`)
      times[kind].push(performance.now() - startMs)
    }
    for (const [kind, some] of Object.entries(times)) {
      const sorted = some.toSorted((a, b) => a - b)
      console.log(
        `${some.length} changes at a peer, ${kind}: median ${sorted[some.length >> 1].toFixed(0)} ms, best ${sorted[0].toFixed(0)} ms, worst ${sorted.at(-1).toFixed(0)} ms`,
      )
    }
    for (let i = 0; i < 2 * NOTIFIED_CHANGES; i++) editRecord(directory, 1 + (i % 2), i)
    await delay(QUIET_MS)
  })
}

/** Starts everything over what `create` left and waits until the operator has settled. */
async function started(directory, use) {
  const { api, stop, kubeconfig } = await startApiServer(directory)
  const selected = '/apis/kuadrant.io/v1alpha1/dnsrecords?limit=1&labelSelector=a'
  while ((await api.call('GET', selected)).status !== 200) await delay(200)
  writeManifests(directory, records)
  const peers = await startPeers(directory, how !== 'polled')
  const operator = await startOperator(kubeconfig)
  await settle(operator, api)
  await use?.(operator, peers, api)
  await closeAll(operator, peers)
  await stop()
}

async function startPeers(directory, transfers) {
  const network = readFileSync(join(directory, 'network'), 'utf8')
  const peers = []
  for (const site of SITES) {
    const address = `${network}.${site}`
    peers.push({
      server: startPeer({
        directory,
        site,
        address,
        transfers,
        notifies: what === 'notified' && site === 1,
      }),
      http: `${address}:${HTTP_PORT}`,
    })
  }
  for (const { server, http } of peers) {
    while ((await fetch(`http://${http}/ready`).catch(() => ({}))).status !== 200) {
      if (server.failure !== undefined) throw new Error(server.failure)
      await delay(100)
    }
  }
  return peers
}

async function startOperator(kubeconfig) {
  const http = `127.0.0.1:${await freePort()}`
  const startMs = performance.now()
  const server = startProcess('operator', process.execPath, [
    MAIN,
    'operator',
    `--kubeconfig=${kubeconfig}`,
    '--site=here',
    `--metrics-bind-address=${http}`,
    '--health-probe-bind-address=0',
    `--notify-bind-address=127.0.0.1:${NOTIFY_PORT}`,
  ])
  return { server, http, startMs }
}

/** Waits until the operator has looked at all and has nothing left to do, and says what that took. */
async function settle({ server, http, startMs }, api) {
  let [last, lastMs, atMs, cpuAt, firstMs] = ['', 0, 0, 0, 0]
  for (;;) {
    if (server.failure !== undefined) throw new Error(server.failure)
    const text = await page(http)
    const looks = sum(text, 'sextant_operator_reconciles')
    const now = `${looks} ${sum(text, 'sextant_operator_writes_total')}`
    if (looks >= records && firstMs === 0) firstMs = performance.now()
    if (now !== last)
      [last, lastMs, atMs, cpuAt] = [
        now,
        performance.now(),
        performance.now(),
        cpuSeconds(server.pid),
      ]
    const isIdle = sum(text, 'sextant_operator_queue_depth') === 0
    const isHeard = sum(text, 'sextant_operator_peer_up') === SITES.length
    if (firstMs > 0 && isIdle && isHeard && performance.now() - lastMs > QUIET_MS) break
    await delay(100)
  }
  const text = await page(http)
  const looks = sum(text, 'sextant_operator_reconciles')
  console.log(
    `all looked at after ${((firstMs - startMs) / 1000).toFixed(2)} s, last of ${looks} looks after ${((atMs - startMs) / 1000).toFixed(2)} s`,
  )
  console.log(`CPU until then ${cpuAt.toFixed(2)} s; ${memory(server.pid)}`)
  const kinds = text.match(/(?<=^sextant_operator_writes_total\{kind=")\w+"\} [1-9]\d*/gm) ?? []
  console.log(
    `writes: ${sum(text, 'sextant_operator_writes_total')} by the operator's count ${kinds.join().replaceAll('"}', '')}`,
  )
  console.log(`  ${await writesAt(api)} by that of the API server, to dnsrecords and events`)
  console.log(
    `generations: ${text
      .match(/peer_info\{.*generation="\w*"/g)
      ?.map((one) => one.slice(-3, -1))
      .join()}`,
  )
}

async function writesAt(api) {
  const { text } = await api.call('GET', '/metrics')
  const verbs = /verb="(POST|PUT|PATCH|APPLY|DELETE)"/
  return sum(text, 'apiserver_request_total', verbs, /resource="(dnsrecords|events)"/)
}

async function measureIdle({ server, http }, peers) {
  const questions = async () =>
    Promise.all(peers.map(async (one) => requests(await page(one.http))))
  const looksBefore = sum(await page(http), 'sextant_operator_reconciles')
  const [before, cpuBefore, startMs] = [
    await questions(),
    cpuSeconds(server.pid),
    performance.now(),
  ]
  const peerCpu = peers.map((one) => cpuSeconds(one.server.pid))
  await delay(IDLE_SECONDS * 1000)
  const minutes = (performance.now() - startMs) / 60_000
  const cpu = cpuSeconds(server.pid) - cpuBefore
  const after = await questions()
  const asked = after.map((one, i) => ((one - before[i]) / minutes).toFixed(0))
  const spent = peers.map((one, i) =>
    ((cpuSeconds(one.server.pid) - peerCpu[i]) / minutes).toFixed(2),
  )
  const looks = sum(await page(http), 'sextant_operator_reconciles') - looksBefore
  console.log(
    `idle for ${IDLE_SECONDS} s: CPU ${(cpu / minutes).toFixed(2)} s a minute, ${looks} looks`,
  )
  console.log(
    `  requests a minute at each peer ${asked.join(', ')}; CPU there ${spent.join(', ')} s a minute`,
  )
}

const requests = (text) => sum(text, 'coredns_dns_requests_total')

/** One host at a time, at one peer. */
async function measureChanges(directory, api) {
  const times = []
  for (let i = 0; i < CHANGES; i++) {
    // At any time between two polls.
    await delay((i * 370) % 1000)
    const startMs = performance.now()
    editRecord(directory, 1, i, `198.51.100.${i}`)
    await seen(api, i, `198.51.100.${i}`)
    times.push(performance.now() - startMs)
  }
  const sorted = times.toSorted((a, b) => a - b)
  console.log(
    `a change at a peer until it is in the merged record: median ${sorted[CHANGES >> 1].toFixed(0)} ms, worst ${sorted.at(-1).toFixed(0)} ms`,
  )
}

async function seen(api, i, address) {
  for (;;) {
    const { text } = await api.call('GET', `${RECORDS}/merged-app-${i}`)
    if (text.includes(`"${address}"`)) return
    await delay(5)
  }
}

/** Many hosts at one stroke, at one peer. */
async function measureBulk(directory, { server, http }, api) {
  await delay(QUIET_MS)
  const writes = async () => sum(await page(http), 'sextant_operator_writes_total')
  const changed = Math.min(SINGLES, records)
  const [before, cpuBefore, startMs] = [await writes(), cpuSeconds(server.pid), performance.now()]
  for (let i = 0; i < changed; i++) editRecord(directory, 1, i, `203.0.113.${i}`)
  for (let i = 0; i < changed; i++) await seen(api, i, `203.0.113.${i}`)
  const tookMs = performance.now() - startMs
  await delay(QUIET_MS)
  const cpu = cpuSeconds(server.pid) - cpuBefore
  console.log(
    `${changed} changes at once: all merged after ${tookMs.toFixed(0)} ms, ${(await writes()) - before} writes, CPU ${((cpu * 1000) / changed).toFixed(2)} ms each`,
  )
  for (let i = 0; i < changed; i++) editRecord(directory, 1, i)
  for (let i = 0; i < changed; i++) await seen(api, i, addressOf(1, i))
  await delay(QUIET_MS)
}

async function closeAll({ server }, peers) {
  process.kill(server.pid, 'SIGTERM')
  while (server.failure === undefined) await delay(20)
  for (const peer of peers) await peer.server.stop()
}

const seconds = (startMs) => ((performance.now() - startMs) / 1000).toFixed(2)
function cpuSeconds(pid) {
  const { user, system } = cpuUs(pid)
  return (user + system) / 1e6
}
function memory(pid) {
  const [, peak] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return `${residentMib(pid).toFixed(0)} MiB resident, ${(Number(peak) / 1024).toFixed(0)} at most`
}

const ways = {
  create,
  restart: (directory) => started(directory),
  measure,
  notified: measureNotified,
}
if (!Object.hasOwn(ways, what) || where === '') {
  console.error(
    'usage: node bench/operator.mjs create|restart|measure|notified DIR [records] [polled]',
  )
  process.exit(1)
}
const directory = resolve(where)
if (what !== 'create' && !existsSync(directory))
  throw new Error(`${directory} is not there: create it`)
mkdirSync(directory, { recursive: true })
await ways[what](directory)
process.exit()
