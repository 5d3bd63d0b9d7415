// Claims: a server that probes 10 000 addresses at their interval takes a small part of a processor for it, spreads
// its looks, and keeps what it found in a file without keeping others waiting for long.
//   npm run build && node bench/probes.mjs [probes] [interval, s] [seconds]
// 10 of the probes are of one address each, as records that share a gateway are. Everything is on this machine.
import { fork } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { NextFile } from '../dist/base/persist/next-file.js'
import { printStates } from '../dist/health/probes/state-text.js'
import { page, sum } from './operator/metrics.mjs'
import { freePort } from './peers/ports.mjs'
import { cpuUs, residentMib, startProcess } from './peers/server-process.mjs'

const [probes = 10_000, intervalSeconds = 30, seconds = 45] = process.argv.slice(2).map(Number)
const MAIN = new URL('../dist/main.js', import.meta.url).pathname
const GATEWAYS = new URL('probes/gateways.mjs', import.meta.url).pathname
const ZONE = 'k.example.com'
const PROBES_PER_GATEWAY = 10
const RECORDS_PER_FILE = 500
/** No pause between two looks is longer, in intervals: a tenth is drawn, the rest is room for a busy machine. */
const PAUSE_MAX = 1.2
const WRITES = 11

const network = `127.${66 + randomInt(60)}`
const gateways = Math.ceil(probes / PROBES_PER_GATEWAY)
const addressOf = (gateway) => `${network}.${(gateway + 1) >> 8}.${(gateway + 1) & 255}`
const directory = mkdtempSync(join(tmpdir(), 'sextant-probes-'))
const file = join(directory, 'probes')

function recordOf(i, port) {
  const rootHost = `app-${i}.${ZONE}`
  const targets = [addressOf(i % gateways)]
  const healthCheck = { protocol: 'HTTP', port, path: '/', interval: `${intervalSeconds}s` }
  return {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: `app-${i}`, namespace: 'apps' },
    spec: {
      rootHost,
      ...(port === undefined ? {} : { healthCheck }),
      endpoints: [{ dnsName: rootHost, recordType: 'A', recordTTL: 60, targets }],
    },
  }
}

/** `port`: undefined = nothing is to be probed. */
function writeManifests(folder, port) {
  mkdirSync(folder)
  for (let from = 0; from < probes; from += RECORDS_PER_FILE) {
    const count = Math.min(RECORDS_PER_FILE, probes - from)
    const records = Array.from({ length: count }, (_, i) => recordOf(from + i, port))
    const text = records.map((record) => JSON.stringify(record)).join('\n---\n')
    writeFileSync(join(folder, `${from}.yaml`), text)
  }
}

/** A server with those manifests that is ready; `lines`: of its block. */
async function start(name, lines) {
  const [port, http] = [await freePort(), `127.0.0.1:${await freePort()}`]
  const conf = join(directory, `Corefile-${name}`)
  writeFileSync(
    conf,
    `${ZONE}:${port} {
    bind 127.0.0.1
    prometheus ${http}
    ready ${http}
    kuadrant {
        manifests ${join(directory, name)}
        ${lines}
    }
}
`,
  )
  const server = startProcess(name, process.execPath, [MAIN, 'serve', '-conf', conf])
  while ((await fetch(`http://${http}/ready`).catch(() => ({}))).status !== 200) {
    if (server.failure !== undefined) throw new Error(server.failure)
    await delay(50)
  }
  return { pid: server.pid, http, stop: () => server.stop() }
}

async function startGateways(port) {
  const child = fork(GATEWAYS, [network, gateways, port].map(String))
  const next = () => new Promise((resolve) => child.once('message', resolve))
  await next()
  const take = () => {
    const taken = next()
    child.send('take')
    return taken
  }
  return { take, stop: () => child.kill() }
}

/** Without a probe, and with all of them: what comes on top. */
async function measure() {
  const port = await freePort()
  writeManifests(join(directory, 'plain'), undefined)
  writeManifests(join(directory, 'probing'), port)
  const plain = await start('plain', '')
  await delay(2000)
  const withoutMib = residentMib(plain.pid)
  await plain.stop()
  const asked = await startGateways(port)
  const startMs = performance.now()
  const probing = await start('probing', `probe ${file}\n        probe-allow 127.0.0.0/8`)
  console.log(`${probes} probes of ${gateways} addresses, every ${intervalSeconds} s`)
  await untilAllSeen(probing)
  console.log(`all looked at once after ${((performance.now() - startMs) / 1000).toFixed(1)} s`)
  await asked.take()
  await measureLooks(probing, asked)
  console.log(
    `memory: ${residentMib(probing.pid).toFixed(0)} MiB resident, ${withoutMib.toFixed(0)} without a probe`,
  )
  asked.stop()
  await probing.stop()
}

async function untilAllSeen({ http }) {
  for (;;) {
    const text = await page(http)
    if (sum(text, 'sextant_probes', /state="up"/) === probes) return
    await delay(500)
  }
}

async function measureLooks({ pid, http }, asked) {
  const looks = async () => sum(await page(http), 'sextant_probe_looks_total')
  const [looksBefore, before, startMs] = [await looks(), cpuUs(pid), performance.now()]
  await delay(seconds * 1000)
  const [after, took] = [cpuUs(pid), (performance.now() - startMs) / 1000]
  const count = (await looks()) - looksBefore
  const cpu = (after.user + after.system - before.user - before.system) / 1e6
  console.log(
    `${(count / took).toFixed(0)} looks a second; CPU ${((cpu / took) * 100).toFixed(1)} % of a processor, ${((cpu / count) * 1000).toFixed(2)} ms a look`,
  )
  const overdue = sum(await page(http), 'sextant_probe_overdue_seconds')
  console.log(`most overdue just then: ${overdue.toFixed(3)} s`)
  printSpread(await asked.take())
}

/** How even looks are over time, and how far apart those of one probe. */
function printSpread(seen) {
  const [gaps, perSecond] = [[], new Map()]
  const first = Object.values(seen).reduce((least, [time]) => Math.min(least, time), Infinity)
  // Of later ones only the next looks that come early would be seen.
  const last = first + seconds - PAUSE_MAX * intervalSeconds
  for (const times of Object.values(seen)) {
    for (const [i, time] of times.entries()) {
      perSecond.set(Math.floor(time), (perSecond.get(Math.floor(time)) ?? 0) + 1)
      if (i > 0 && times[i - 1] <= last) gaps.push(time - times[i - 1])
    }
  }
  // The first and the last second are parts of one.
  const counts = [...perSecond.entries()].sort((a, b) => a[0] - b[0]).map(([, count]) => count)
  const whole = counts.slice(1, -1).sort((a, b) => a - b)
  console.log(`looks in one second: ${spread(whole, 0)}`)
  if (gaps.length === 0) return
  gaps.sort((a, b) => a - b)
  console.log(`between two looks of a probe, ${gaps.length} times: ${spread(gaps, 2)} s`)
  const tenths = new Map()
  for (const gap of gaps) {
    const bin = Math.round((gap / intervalSeconds) * 50) / 50
    tenths.set(bin, (tenths.get(bin) ?? 0) + 1)
  }
  const bins = [...tenths].sort((a, b) => a[0] - b[0])
  console.log(`  by part of the interval: ${bins.map(([bin, n]) => `${bin}: ${n}`).join(', ')}`)
}

function spread(sorted, digits) {
  const at = (part) => sorted[Math.floor((sorted.length - 1) * part)]?.toFixed(digits)
  return `least ${at(0)}, median ${at(0.5)}, most ${at(1)}`
}

/** The file of that many states, written by the calls that the server makes, which wait for the disk. */
function measureFile() {
  const size = statSync(file).size
  const reason = 'no connection within 3 s'
  const [since, known] = [Date.now(), { failures: 0, successes: 1, httpStatus: 200, reason }]
  const states = Array.from({ length: probes }, (_, i) => [
    `apps/app-${i}-${addressOf(i % gateways)}`,
    { ...known, verdict: i % 2 === 0 ? 'up' : 'down', sinceMs: since + i },
  ])
  const [printing, writing] = [[], []]
  for (let i = 0; i < WRITES; i++) {
    const startMs = performance.now()
    const text = [...printStates(states)]
    const printedMs = performance.now()
    const next = new NextFile(file, 0o644)
    for (const line of text) next.write(line)
    next.sync()
    next.put()
    next.close()
    printing.push(printedMs - startMs)
    writing.push(performance.now() - printedMs)
  }
  for (const times of [printing, writing]) times.sort((a, b) => a - b)
  console.log(
    `state file of ${size} octets; ${statSync(file).size} with a reason each: printed in ms: ${spread(printing, 1)}; on the disk in ms: ${spread(writing, 1)}`,
  )
}

console.log(
  `load average ${readFileSync('/proc/loadavg', 'utf8').split(' ').slice(0, 3).join(' ')}`,
)
try {
  await measure()
  measureFile()
} finally {
  rmSync(directory, { recursive: true })
}
process.exit()
