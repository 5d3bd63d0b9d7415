// Latency at a fixed rate, a port per query, beside gdnsd and Knot: what a client sees in quiet times, and while the server
// has other work. All threads of a server are on one CPU, as in a Pod with one, or on two; the generator is on the last CPU.
//   npm run build && node bench/tails.mjs [rounds] [seconds] [--rates 30%,70%,95%] [--cpus 1]
//     [--works quiet,edits,reload,transfer,database] [--peers gdnsd,Knot] [--other ROOT]
// --rates: queries/s, or percent of gdnsd's maximum. --other: another built checkout takes part too.
// works, of Sextant only but the first: edits = 100 files/s with ten changed endpoints each; reload = SIGUSR1 each second;
// transfer = AXFRs of 100 000 names, one after the other; database = a new GEO database each second.
// Prints medians of p50, p99 and p99.9 in microseconds, and what was lost in all rounds.
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { median } from './median.mjs'
import { untilUp } from './peers/ask.mjs'
import { masterFile, PLAIN_ZONE, plainAddress, plainLines, simpleName } from './peers/content.mjs'
import { write } from './peers/files.mjs'
import { run, saturate } from './peers/load.mjs'
import { composeMmdb } from './peers/mmdb.mjs'
import { freePort } from './peers/ports.mjs'
import { commandOf, cpuUs, startProcess } from './peers/server-process.mjs'
import { gdnsd } from './peers/servers/gdnsd.mjs'
import { knot } from './peers/servers/knot.mjs'

const NAMES = 1000
const FILES = 100
const BIG_ZONE = 'big.example'
const BIG_NAMES = 100_000
const PORTS = 256
const START_LIMIT_MS = 60_000

const folder = dirname(fileURLToPath(import.meta.url))
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rates: { type: 'string', default: '30%,70%,95%' },
    cpus: { type: 'string', default: '1' },
    works: { type: 'string', default: 'quiet,edits,reload,transfer,database' },
    peers: { type: 'string', default: 'gdnsd,Knot' },
    other: { type: 'string' },
  },
})
const [rounds = 5, seconds = 2] = positionals.map(Number)
const last = availableParallelism() - 1
const serverCpus = values.cpus === '1' ? '0' : `0-${Number(values.cpus) - 1}`
const directory = mkdtempSync(join(tmpdir(), 'sextant-tails-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
const questions = join(directory, 'queries.txt')
write(
  questions,
  Array.from({ length: NAMES }, (_, i) => `${simpleName(i)} A\n`),
)

function* endpoints(batch, version) {
  for (let i = batch * (NAMES / FILES); i < (batch + 1) * (NAMES / FILES); i++) {
    const address = version === 0 ? plainAddress(i) : `10.1.${version & 255}.${i & 255}`
    yield `    - { dnsName: ${simpleName(i)}, recordTTL: 300, recordType: A, targets: [${address}] }\n`
  }
}

function* manifest(batch, version) {
  yield `apiVersion: kuadrant.io/v1alpha1\nkind: DNSRecord\nmetadata: { name: r${batch}, namespace: bench }\n`
  yield `spec:\n  rootHost: ${PLAIN_ZONE}\n  endpoints:\n`
  yield* endpoints(batch, version)
}

/** Sextant, of this checkout or of another one. */
const sextant = (name, root) => ({
  name,
  command: process.execPath,
  prepare({ directory: place, port }) {
    mkdirSync(join(place, 'records'), { recursive: true })
    for (let i = 0; i < FILES; i++) write(join(place, `records/r${i}.yaml`), manifest(i, 0))
    write(join(place, 'big'), masterFile(BIG_ZONE, plainLines(BIG_NAMES)))
    writeFileSync(join(place, 'geo.mmdb'), composeMmdb())
    const blocks = [
      `${PLAIN_ZONE}:${port} {\n bind 127.0.0.1\n multisocket 1\n minimal\n geoip ${place}/geo.mmdb`,
      ` kuadrant {\n  manifests ${place}/records\n }\n}\n`,
      `${BIG_ZONE}:${port} {\n bind 127.0.0.1\n multisocket 1\n file ${place}/big\n transfer {\n  to *\n }\n}\n`,
    ]
    writeFileSync(join(place, 'Corefile'), blocks.join('\n'))
    return [join(root, 'dist/main.js'), 'serve', '-quiet', '-conf', join(place, 'Corefile')]
  },
})

/** Each starts the work and returns a function that ends it. */
const WORKS = {
  quiet: () => () => {},
  edits: ({ place }) => {
    const temporary = join(place, 'next')
    return repeat(10, () => {
      edits++
      write(temporary, manifest(edits % FILES, 1 + Math.floor(edits / FILES)))
      renameSync(temporary, join(place, `records/r${edits % FILES}.yaml`))
    })
  },
  reload: ({ server }) => repeat(1000, () => process.kill(server.pid, 'SIGUSR1')),
  database: ({ place }) =>
    repeat(1000, () => {
      writeFileSync(join(place, 'next'), composeMmdb())
      renameSync(join(place, 'next'), join(place, 'geo.mmdb'))
    }),
  transfer: ({ port }) => transferAgain(port),
}
let edits = 0

function repeat(everyMs, act) {
  const timer = setInterval(act, everyMs)
  return () => clearInterval(timer)
}

function transferAgain(port) {
  const labels = BIG_ZONE.split('.').flatMap((label) => [label.length, ...Buffer.from(label)])
  const query = [0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 252, 0, 1]
  const socket = connect(port, '127.0.0.1')
  const ask = () => socket.write(Uint8Array.from([0, query.length, ...query]))
  let idle
  // Without a parser: a transfer is over when nothing comes any more.
  socket.on('data', () => {
    clearTimeout(idle)
    idle = setTimeout(ask, 10)
  })
  ask()
  return () => {
    clearTimeout(idle)
    socket.destroy()
  }
}

async function start(peer) {
  const command = commandOf(peer)
  if (command === undefined) return []
  const place = join(directory, peer.name)
  mkdirSync(place)
  const port = await freePort()
  const args = peer.prepare({ directory: place, port, names: NAMES, geo: false })
  const server = startProcess(peer.name, 'taskset', ['-c', serverCpus, command, ...args])
  await untilUp(server, port, {}, START_LIMIT_MS)
  // Until the code is compiled.
  await ask({ port }, 20_000, 1)
  return [{ name: peer.name, server, place, port, isOurs: peer.command === process.execPath }]
}

async function ask({ port }, rate, forSeconds) {
  const words = [join(folder, 'tails/open-loop.mjs'), questions, port, rate, forSeconds, PORTS]
  return JSON.parse(await run('taskset', ['-c', last, process.execPath, ...words]))
}

async function measure(one, work, rate) {
  const before = cpuUs(one.server.pid)
  const stop = WORKS[work](one)
  try {
    const got = await ask(one, rate, seconds)
    const after = cpuUs(one.server.pid)
    if (one.server.failure !== undefined) throw new Error(one.server.failure)
    const usedUs = after.user - before.user + after.system - before.system
    return { ...got, cpuUs: usedUs / got.sent }
  } finally {
    stop()
  }
}

/** Queries/s of each `--rates`. */
async function ratesOf(text, servers) {
  const words = text.split(',')
  if (!words.some((word) => word.endsWith('%'))) return words.map(Number)
  const one = servers.find(({ name }) => name === 'gdnsd') ?? servers[0]
  const target = {
    port: one.port,
    file: questions,
    clients: 200,
    outstanding: 200,
    generator: 'batch',
  }
  const most = []
  for (let i = 0; i < 3; i++) most.push((await saturate(target, 1)).qps)
  const max = median(most)
  console.log(`${one.name}: at most ${Math.round(max)} queries/s`)
  return words.map((word) => Math.round((max * Number.parseFloat(word)) / 100))
}

const all = [sextant('Sextant', join(folder, '..'))]
if (values.other !== undefined) all.push(sextant('other', values.other))
const others = [gdnsd, knot].filter(({ name }) => values.peers.split(',').includes(name))
const servers = []
for (const peer of [...all, ...others]) servers.push(...(await start(peer)))
const rates = await ratesOf(values.rates, servers)
console.log(
  `${rounds} rounds of ${seconds} s, the server on CPU ${serverCpus}, node ${process.version}`,
)
for (const rate of rates) {
  for (const work of values.works.split(',')) {
    const rows = servers.filter(({ isOurs }) => isOurs || work === 'quiet')
    const results = rows.map(() => [])
    for (let round = 0; round < rounds; round++) {
      const order = rows.map((_, i) => i)
      if (round % 2 === 1) order.reverse()
      for (const i of order) results[i].push(await measure(rows[i], work, rate))
    }
    for (const [i, { name }] of rows.entries()) {
      const of = (key) => Math.round(median(results[i].map((one) => one[key])))
      const lost = results[i].reduce((sum, one) => sum + one.lost, 0)
      const cost = median(results[i].map((one) => one.cpuUs)).toFixed(1)
      console.log(
        `${String(rate).padStart(7)}/s ${work.padEnd(9)} ${name.padEnd(8)} p50 ${of('p50')}, p99 ${of('p99')}, p99.9 ${of('p999')} us, lost ${lost}, ${cost} us of CPU`,
      )
    }
  }
}
process.exit()
