// Sextant beside other authoritative servers: the same zone, the same database, the same packets.
//   npm run build && node bench/peers/run.mjs [rounds] [seconds] [--cases geo,1k,100k,1m]
//     [--mmdb FILE] [--threads 1] [--clients 8] [--outstanding 200]
//     [--generator batch|segments|dnsperf] [--peers gdnsd,Knot,PowerDNS,CoreDNS,ungrouped]
// Needs dnsperf, and what is to be compared with: Debian's gdnsd, knot, knot-module-geoip, pdns-server,
// pdns-backend-geoip; coredns if it is on PATH. All of them have one UDP thread. `ungrouped` is Sextant that sends
// each reply by itself; with as many clients as queries outstanding, each has a port of its own.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, release, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { untilUp, verify } from './ask.mjs'
import { CASES, DEFAULT_CASES, GEO_NAME, simpleName } from './content.mjs'
import { write } from './files.mjs'
import { latency, saturate } from './load.mjs'
import { composeMmdb } from './mmdb.mjs'
import { freePort } from './ports.mjs'
import { printTable } from './report.mjs'
import { cpuUs, findCommand, residentMib, startProcess } from './server-process.mjs'
import { coredns } from './servers/coredns.mjs'
import { gdnsd } from './servers/gdnsd.mjs'
import { knot } from './servers/knot.mjs'
import { powerdns } from './servers/powerdns.mjs'
import { sextant, sextantUngrouped } from './servers/sextant.mjs'

/** A million names take PowerDNS's YAML minutes. */
const START_LIMIT_MS = 300_000
/** More lines than this tell no more about cache misses, and dnsperf holds them all. */
const MAX_QUESTIONS = 1_000_000

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    cases: { type: 'string', default: DEFAULT_CASES.join() },
    mmdb: { type: 'string' },
    threads: { type: 'string', default: '1' },
    clients: { type: 'string', default: '8' },
    outstanding: { type: 'string', default: '200' },
    generator: { type: 'string', default: 'batch' },
    peers: { type: 'string', default: 'gdnsd,Knot,PowerDNS,CoreDNS' },
  },
})
const compared = options.peers.split(',')
const rounds = Number(positionals[0] ?? 5)
const seconds = Number(positionals[1] ?? 4)
const { threads, clients, outstanding, generator } = options

const directory = mkdtempSync(join(tmpdir(), 'sextant-peers-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
const mmdb = resolve(options.mmdb ?? join(directory, 'country.mmdb'))
if (options.mmdb === undefined) writeFileSync(mmdb, composeMmdb())

/** Starts a server for a case, or says why not. */
async function start(peer, name, entry) {
  const command = findCommand(peer.command)
  if (command === undefined) {
    const cure = peer.debian === undefined ? '' : ` (Debian: ${peer.debian})`
    console.log(`${peer.name}: left out, ${peer.command} is not installed${cure}`)
    return undefined
  }
  if (entry.geo && peer.withoutGeo) {
    console.log(`${peer.name}: left out, it cannot choose by place`)
    return undefined
  }
  if (entry.geo && peer.unweighted) {
    console.log(`${peer.name}: by place only, it cannot weigh endpoints within a place`)
  }
  const folder = join(directory, name, peer.name)
  mkdirSync(folder, { recursive: true })
  const port = await freePort()
  const args = peer.prepare({ directory: folder, port, mmdb, geo: false, ...entry })
  const process = startProcess(peer.name, command, args, peer.env)
  await untilUp(process, port, entry, START_LIMIT_MS)
  await verify(peer, port, entry)
  return { name: peer.name, process, target: { port }, rounds: [] }
}

async function measure({ process: server, target }) {
  const before = cpuUs(server.pid)
  const { completed, ...load } = await saturate(target, seconds)
  const after = cpuUs(server.pid)
  if (server.failure !== undefined) throw new Error(server.failure)
  const user = after.user - before.user
  const system = after.system - before.system
  return {
    ...load,
    userUs: user / completed,
    systemUs: system / completed,
    // While the generator starts and ends there is nothing to do.
    serverCores: (user + system) / 1e6 / seconds,
    ...(await latency(target, 1)),
  }
}

function writeQuestions(path, { geo, names }) {
  const count = Math.min(names, MAX_QUESTIONS)
  const random = () => `${simpleName(Math.floor(Math.random() * names))} A\n`
  write(path, geo ? `${GEO_NAME} A\n` : Array.from({ length: count }, random))
}

async function compare(name, entry) {
  console.log(`\n### ${entry.title}\n`)
  const file = join(directory, `${name}.txt`)
  writeQuestions(file, entry)
  const rows = []
  const all = [sextantUngrouped, gdnsd, knot, powerdns, coredns]
  const peers = all.filter(({ name }) => compared.includes(name))
  for (const peer of [sextant, ...peers]) {
    const row = await start(peer, name, entry)
    if (row === undefined) continue
    Object.assign(row.target, { file, ecs: entry.geo, clients, threads, outstanding, generator })
    rows.push(row)
  }
  // Compilers and caches get warm outside the figures.
  for (const { target } of rows) await saturate(target, 1)
  for (let round = 0; round < rounds; round++) {
    // Nobody is always the first, or always after the same neighbour's heat.
    const order = round % 2 === 0 ? rows : rows.toReversed()
    for (const row of order) row.rounds.push(await measure(row))
  }
  for (const row of rows) {
    row.residentMib = residentMib(row.process.pid)
    await row.process.stop()
  }
  console.log()
  printTable(rows)
}

const load = () =>
  loadavg()
    .map((value) => value.toFixed(1))
    .join(' ')
if (findCommand('dnsperf') === undefined) {
  console.error('dnsperf, which measures latency, is not installed (Debian: dnsperf)')
  process.exit(1)
}
try {
  const [cpu] = cpus()
  console.log(`${cpus().length} x ${cpu.model}, Linux ${release()}, Node ${process.version}`)
  console.log(`${rounds} rounds of ${seconds} s; load average at the start ${load()}`)
  console.log(`load: ${generator}, ${clients} clients, ${outstanding} queries under way`)
  for (const name of options.cases.split(',')) {
    if (CASES[name] === undefined) throw new Error(`no case ${name}; cases: ${Object.keys(CASES)}`)
    await compare(name, CASES[name])
  }
  console.log(`\nload average at the end ${load()}`)
  // Not left to the end of the event loop: whatever still runs is killed now.
  process.exit(0)
} catch (error) {
  console.error(error)
  process.exit(1)
}
