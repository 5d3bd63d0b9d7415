// Claims: one changed record among a million is visible in every data thread within 10 ms; the p99 of
// queries during 1 000 changes/s is at most twice that of a quiet server.
//   npm run build && node bench/changes.mjs [names] [rounds] [seconds] [--ways batches,files,direct] [--wait]
// dnsperf asks 2 000 queries/s over 8 sockets, in turn of a quiet server and of one whose records change, in
// many short rounds: where neighbours slow the machine down, they do so for both. In a third kind of round the
// files are written where no server looks: what writing them costs is not the server's.
//   batches  20 files/s, each with 50 changed endpoints, written and renamed
//   files    1 000 files/s of one endpoint each
//   direct   1 000 RRsets/s put into the image and published one by one, without files and records
// --ways '': only how long it takes until a change is visible.
// --wait: before each part, wait for a line on standard input (to attach a profiler, or for others to be done).
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { BATCH, BATCHES, bulkName, editsOf, SINGLES, ZONE } from './changes/manifests.mjs'
import { connectToAll, untilVisible } from './changes/probe.mjs'
import { startDirect, startServer, THREADS } from './changes/server.mjs'
import { median } from './median.mjs'
import { latency } from './peers/load.mjs'
import { cpuUs } from './peers/server-process.mjs'

const EDITS = 41
const QUERIES = 100_000
const CHANGES_PER_SECOND = 1000
const ONE = `one.${ZONE}`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ways: { type: 'string', default: 'batches,files,direct' },
    wait: { type: 'boolean', default: false },
  },
})
const [names, rounds, seconds] = [1_000_000, 21, 1].map((n, i) => Number(positionals[i] ?? n))
const ways = values.ways.split(',').filter((way) => way !== '')

const directory = mkdtempSync(join(tmpdir(), 'changes-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
const queries = join(directory, 'queries.txt')
const randomName = () => bulkName(Math.floor(Math.random() * names))
writeFileSync(queries, Array.from({ length: QUERIES }, () => `${randomName()} A\n`).join(''))

const spread = (ms) => `median ${median(ms).toFixed(2)}, worst ${Math.max(...ms).toFixed(2)} ms`

/** Edits of one file, from its rename to the last thread's new answer. */
async function measureVisible(server, { edit, name, title }) {
  const clients = await connectToAll({ ...server, threads: THREADS, name })
  const [visible, processing] = [[], []]
  for (let version = 1; version <= EDITS; version++) {
    const before = await server.commits()
    // Never in step with the timers of the server.
    await delay(50 + Math.random() * 10)
    const target = edit(version)
    const renamedMs = performance.now()
    visible.push((await untilVisible(clients, name, target)) - renamedMs)
    const after = await server.commits()
    processing.push((after.ms - before.ms) / (after.count - before.count))
  }
  for (const client of clients) client.close()
  console.log(`${title}, renamed to visible in ${THREADS} threads: ${spread(visible)}`)
  console.log(`  of it from parsed record to published: ${spread(processing)}`)
}

/** As before, from the call of `publish` to the last thread's new answer. */
async function measurePublished(direct) {
  const clients = await connectToAll({ ...direct, threads: THREADS, name: ONE })
  const [visible, calls] = [[], []]
  for (let version = 1; version <= EDITS; version++) {
    await delay(10 + Math.random() * 10)
    // Asking goes on while the change is made: the last answer comes right after it.
    const seen = untilVisible(clients, ONE, `192.0.2.${version % 256}`)
    const { startNs, endNs } = await direct.ask({ put: version })
    const offsetMs = performance.now() - Number(process.hrtime.bigint()) / 1e6
    visible.push((await seen) - (Number(startNs) / 1e6 + offsetMs))
    calls.push(Number(BigInt(endNs) - BigInt(startNs)) / 1e6)
  }
  for (const client of clients) client.close()
  console.log(`one RRset put and published to visible in ${THREADS} threads: ${spread(visible)}`)
  console.log(`  of it the calls: ${spread(calls)}`)
}

let version = 1

/** Calls `edit` so many times a second until the returned function is called, which tells how often. */
function repeat(perSecond, edit) {
  const startMs = performance.now()
  let done = 0
  const timer = setInterval(() => {
    const due = ((performance.now() - startMs) / 1000) * perSecond
    for (; done < due; done++) edit(done)
  }, 1)
  return () => {
    clearInterval(timer)
    return done
  }
}

/** What each way changes; the returned function ends it and resolves with the number of changes. */
function changersOf(manifests, direct) {
  const edits = editsOf(manifests)
  return {
    batches: () => {
      const stop = repeat(CHANGES_PER_SECOND / BATCH, (n) => {
        if (n % BATCHES === 0) version++
        edits.batch(n % BATCHES, version)
      })
      return async () => stop() * BATCH
    },
    files: () => {
      const stop = repeat(CHANGES_PER_SECOND, (n) => {
        if (n % SINGLES === 0) version++
        edits.single(n % SINGLES, version)
      })
      return async () => stop()
    },
    direct: async () => {
      const before = await direct.ask({ perSecond: CHANGES_PER_SECOND })
      return async () => {
        const after = await direct.ask({ perSecond: 0 })
        return after.done - before.done
      }
    },
  }
}

async function measureLatency(server, change) {
  const target = { port: server.port, file: queries, ecs: false, latencyClients: 8 }
  const stop = await change()
  const [before, startMs] = [cpuUs(server.pid), performance.now()]
  const commits = await server.commits?.()
  const measured = await latency(target, seconds)
  const elapsedMs = performance.now() - startMs
  const [after, changes] = [cpuUs(server.pid), await stop()]
  const published = ((await server.commits?.())?.count ?? 0) - (commits?.count ?? 0)
  const used = after.user - before.user + after.system - before.system
  return {
    ...measured,
    perSecond: (changes * 1000) / elapsedMs,
    publishes: (published * 1000) / elapsedMs,
    cores: used / 1000 / elapsedMs,
  }
}

/** `elsewhere`: the same work on the machine, and nothing of it for the server. */
async function measureWay(way, server, change, elsewhere) {
  const phases = {
    quiet: () => async () => 0,
    ...(elsewhere && { elsewhere }),
    changing: change,
  }
  const measured = Object.fromEntries(Object.keys(phases).map((phase) => [phase, []]))
  for (let round = 0; round < rounds; round++) {
    const order = Object.keys(phases)
    if (round % 2 === 1) order.reverse()
    for (const phase of order) measured[phase].push(await measureLatency(server, phases[phase]))
  }
  const { changing } = measured
  const of = (rows, key) => median(rows.map((row) => row[key]))
  const print = (rows) =>
    `p50 ${of(rows, 'p50Us').toFixed(0)} us, p99 ${of(rows, 'p99Us').toFixed(0)} us, ${of(rows, 'cores').toFixed(2)} cores`
  const ratio = (rows, key) => {
    const sorted = changing.map((row, i) => row[key] / rows[i][key]).sort((a, b) => a - b)
    const at = (share) => sorted[Math.floor((rounds - 1) * share)].toFixed(2)
    return `${at(0.5)} (quartiles ${at(0.25)}, ${at(0.75)})`
  }
  const publishes = server.commits ? `, ${of(changing, 'publishes').toFixed(0)} publishes/s` : ''
  console.log(`${way}: ${of(changing, 'perSecond').toFixed(0)} changes/s${publishes}`)
  for (const [phase, rows] of Object.entries(measured)) {
    console.log(`  ${phase.padEnd(9)} ${print(rows)}`)
    if (rows === changing) continue
    console.log(`    changing is of that: p50 ${ratio(rows, 'p50Us')}, p99 ${ratio(rows, 'p99Us')}`)
  }
}

const lines = values.wait ? createInterface(process.stdin)[Symbol.asyncIterator]() : undefined

async function begin(part) {
  if (lines === undefined) return
  console.log(`ready for: ${part}`)
  await lines.next()
}

const usesFiles = ways.length === 0 || ways.some((way) => way !== 'direct')
const server = usesFiles ? await startServer(directory, names) : undefined
const direct = ways.includes('direct') ? await startDirect(names) : undefined
console.log(`${names} names, ${THREADS} data threads, node ${process.version}`)
await begin('visible')
if (server !== undefined) {
  const edits = editsOf(server.manifests)
  await measureVisible(server, { edit: edits.one, name: ONE, title: 'file of one endpoint' })
  const title = 'one endpoint in a file of 1 000'
  await measureVisible(server, { edit: edits.large, name: `large.${ZONE}`, title })
}
if (direct !== undefined) await measurePublished(direct)
const changers = changersOf(server?.manifests, direct)
const aside = join(directory, 'elsewhere')
mkdirSync(aside)
const elsewhere = changersOf(aside)
for (const way of ways) {
  await begin(way)
  if (way === 'direct') await measureWay(way, direct, changers.direct)
  else await measureWay(way, server, changers[way], elsewhere[way])
}
process.exit(0)
