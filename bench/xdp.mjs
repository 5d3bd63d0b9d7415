// What answering past the sockets (AF_XDP) gains: Sextant with and without it, gdnsd and Knot, and an answer that is always the
// same, interleaved. The server and the generator are network namespaces, connected by veth. Needs root, ip and kxdpgun.
//   npm run build && node bench/xdp.mjs [rounds] [seconds] [queries per second]
//     [--ways sockets,generic,native,gdnsd,knot,knot-xdp,fixed] [--names 1000] [--geo] [--do]
// --geo: one name with endpoints in two continents and weights, chosen by the source address; sockets, generic, native and gdnsd.
// --do: queries with the bit DO, of a zone that the server signs; without gdnsd.
// Prints the median of each way: replies per second, its ratio to `sockets` round by round, and CPU time of the server per
// reply. kxdpgun sends each query from another port. On veth, the kernel charges the client's receive work to the server.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { median } from './median.mjs'
import {
  CLIENTS,
  GEO_NAME,
  masterFile,
  PLAIN_ZONE,
  plainLines,
  simpleName,
} from './peers/content.mjs'
import { write } from './peers/files.mjs'
import { composeMmdb } from './peers/mmdb.mjs'
import { findCommand, startProcess } from './peers/server-process.mjs'
import * as gdnsd from './peers/servers/gdnsd.mjs'
import * as knot from './peers/servers/knot.mjs'
import { sextant as sextantPeer } from './peers/servers/sextant.mjs'

const folder = dirname(fileURLToPath(import.meta.url))
const main = join(folder, '../dist/main.js')
const ADDRESS = '10.77.0.1'
/** In Europe, for --geo. */
const CLIENT = [...CLIENTS.EU, 1].join('.')
const PORT = 53
const START_LIMIT_MS = 30_000
const RUNS_MAX = 5

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    ways: { type: 'string', default: 'sockets,generic,native,gdnsd,knot,knot-xdp,fixed' },
    names: { type: 'string', default: '1000' },
    geo: { type: 'boolean', default: false },
    do: { type: 'boolean', default: false },
  },
})
const [rounds = 3, seconds = 2, rate = 1_000_000] = positionals.map(Number)
const { geo, do: dnssecOk } = values
const names = Number(values.names)
const directory = mkdtempSync(join(tmpdir(), 'sextant-bench-'))
const [serverSpace, clientSpace] = ['server', 'client'].map((one) => `sxb${process.pid}-${one}`)
process.on('exit', () => {
  for (const space of [serverSpace, clientSpace]) quietly('ip', 'netns', 'del', space)
  rmSync(directory, { recursive: true, force: true })
})

write(join(directory, 'zone'), masterFile(PLAIN_ZONE, plainLines(names)))
const questions = join(directory, 'queries.txt')
const asked = geo ? [GEO_NAME] : Array.from({ length: names }, (_, i) => simpleName(i))
write(
  questions,
  asked.map((name) => `${name} A${dnssecOk ? ' D' : ''}\n`),
)

/** What a way logs when it has attached its program. */
const XDP_LINES = { generic: 'xdp eth0: generic', native: 'xdp eth0: native' }

/** Each returns the command of a server that answers on ADDRESS. */
const WAYS = {
  sockets: () => sextant(''),
  generic: () => sextant('xdp eth0 { mode generic }'),
  native: () => sextant('xdp eth0 { mode native }'),
  gdnsd: () => {
    const place = freshFolder('gdnsd')
    if (geo) {
      const args = gdnsd.gdnsd.prepare({ directory: place, port: PORT, mmdb: database(), geo })
      edit(join(place, 'config'), (text) => text.replace('127.0.0.1', ADDRESS))
      return [need('gdnsd'), ...args]
    }
    const args = gdnsd.writeConfig(
      { directory: place, port: PORT },
      { [PLAIN_ZONE]: plainLines(names) },
    )
    edit(join(place, 'config'), (text) => text.replace('127.0.0.1', ADDRESS))
    return [need('gdnsd'), ...args]
  },
  knot: () => knotd(''),
  'knot-xdp': () => knotd(`xdp:\n    listen: eth0@${PORT}\n`),
  fixed: () => [process.execPath, join(folder, 'xdp/fixed.mjs'), ADDRESS, String(PORT)],
}

function sextant(xdp) {
  const signing = dnssecOk ? `dnssec {\n        keys ${directory}/keys\n    }` : ''
  if (geo) {
    const place = freshFolder('sextant')
    const args = sextantPeer.prepare({ directory: place, port: PORT, mmdb: database(), geo })
    edit(join(place, 'Corefile'), (text) =>
      text.replace('bind 127.0.0.1', `bind ${ADDRESS}\n    ${xdp}\n    ${signing}`),
    )
    return [process.execPath, ...args]
  }
  const path = join(directory, 'Corefile')
  // Like the others, without the name servers of the zone in each reply.
  const file = `file ${directory}/zone`
  const lines = ['multisocket 1', `bind ${ADDRESS}`, xdp, 'minimal', file, signing]
  writeFileSync(path, `${PLAIN_ZONE}:${PORT} {\n    ${lines.join('\n    ')}\n}\n`)
  return [process.execPath, main, 'serve', '-conf', path]
}

function knotd(xdp) {
  const place = freshFolder('knot')
  write(join(place, 'zone'), masterFile(PLAIN_ZONE, plainLines(names)))
  const zones = [{ zone: PLAIN_ZONE, file: 'zone', signed: dnssecOk }]
  const args = knot.writeConfig({ directory: place, port: PORT }, zones)
  edit(join(place, 'knot.conf'), (text) => xdp + text.replace('127.0.0.1', ADDRESS))
  return [need('knotd'), ...args]
}

function database() {
  const path = join(directory, 'geo.mmdb')
  writeFileSync(path, composeMmdb())
  return path
}

function need(command) {
  const path = findCommand(command)
  if (path === undefined) throw new Error(`${command} is not installed`)
  return path
}

function freshFolder(name) {
  const path = join(directory, name)
  rmSync(path, { recursive: true, force: true })
  mkdirSync(path)
  return path
}

function edit(path, change) {
  writeFileSync(path, change(readFileSync(path, 'utf8')))
}

function ip(...words) {
  execFileSync('ip', words, { stdio: ['ignore', 'ignore', 'inherit'] })
}

function quietly(...words) {
  try {
    execFileSync(words[0], words.slice(1), { stdio: 'ignore' })
  } catch {
    // It is not there.
  }
}

function connectSpaces() {
  for (const space of [serverSpace, clientSpace]) ip('netns', 'add', space)
  const peer = ['peer', 'name', 'eth0', 'netns', clientSpace]
  const one = ['numrxqueues', '1', 'numtxqueues', '1']
  ip('-n', serverSpace, 'link', 'add', 'eth0', ...one, 'type', 'veth', ...peer, ...one)
  ip('-n', serverSpace, 'address', 'add', `${ADDRESS}/24`, 'dev', 'eth0')
  ip('-n', clientSpace, 'address', 'add', '10.77.0.2/24', 'dev', 'eth0')
  ip('-n', clientSpace, 'address', 'add', `${CLIENT}/24`, 'dev', 'eth0')
  for (const space of [serverSpace, clientSpace]) {
    ip('-n', space, 'link', 'set', 'lo', 'up')
    ip('-n', space, 'link', 'set', 'eth0', 'up')
  }
  ip('-n', serverSpace, 'route', 'add', `${CLIENT}/32`, 'dev', 'eth0')
}

/** CPU time of all threads of a process, in ns. Contains the interrupts that ran on top of it. */
function cpuNs(pid) {
  return readdirSync(`/proc/${pid}/task`).reduce((sum, task) => {
    return sum + Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0])
  }, 0)
}

/**
 * Runs kxdpgun on the first CPU; returns the numbers of queries and replies. It sometimes finds its queue busy and ends
 * without a query, and without an error.
 */
function load(forSeconds, perSecond) {
  for (let run = 0; run < RUNS_MAX; run++) {
    const result = loadOnce(forSeconds, perSecond)
    if (result.queries > 0) return result
  }
  throw new Error(`kxdpgun sent nothing in ${RUNS_MAX} runs`)
}

function loadOnce(forSeconds, perSecond) {
  const words = ['-t', forSeconds, '-Q', perSecond, '-b', 32, '-i', questions, '-p', PORT]
  if (geo) words.push('-l', CLIENT)
  words.push(ADDRESS)
  const command = ['netns', 'exec', clientSpace, 'taskset', '-c', '0', need('kxdpgun'), ...words]
  const text = execFileSync('ip', command.map(String), { encoding: 'utf8', stdio: 'pipe' })
  const total = (what) => Number(new RegExp(`total ${what}:\\s+(\\d+)`).exec(text)?.[1] ?? 0)
  const octets = Number(/average DNS reply size:\s+(\d+)/.exec(text)?.[1])
  return { queries: total('queries'), replies: total('replies'), octets }
}

async function untilServed(way, process) {
  const end = performance.now() + START_LIMIT_MS
  const isReady = () => !(way in XDP_LINES) || process.output().includes(XDP_LINES[way])
  const dig = ['dig', `@${ADDRESS}`, asked[0], '+short', '+tries=1', '+time=1', '+dnssec']
  for (;;) {
    if (process.failure !== undefined) throw new Error(process.failure)
    try {
      const words = ['netns', 'exec', clientSpace, ...dig]
      const reply = execFileSync('ip', words, { encoding: 'utf8', stdio: 'pipe' }).trim()
      if (reply.includes('A 13 ') === dnssecOk && reply !== '' && isReady()) return
    } catch {
      // dig had no reply.
    }
    if (performance.now() > end) throw new Error(`no reply: ${process.output()}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** One round of one way. */
async function measure(way) {
  const cpu = String(Math.min(1, availableParallelism() - 1))
  const command = ['netns', 'exec', serverSpace, 'taskset', '-c', cpu, ...WAYS[way]()]
  const server = startProcess(way, 'ip', command)
  try {
    await untilServed(way, server)
    // Until the code is compiled.
    load(1, Math.min(rate, 200_000))
    const before = cpuNs(server.pid)
    const { replies, octets } = load(seconds, rate)
    const used = cpuNs(server.pid) - before
    return { rate: replies / seconds, us: used / 1000 / Math.max(1, replies), octets }
  } finally {
    await server.stop()
    // Knot leaves its program on the interface, and the kernel frees a queue a moment later.
    for (const mode of ['xdp', 'xdpdrv', 'xdpgeneric']) {
      quietly('ip', '-n', serverSpace, 'link', 'set', 'eth0', mode, 'off')
    }
    await new Promise((resolve) => setTimeout(resolve, 300))
  }
}

connectSpaces()
const ways = values.ways.split(',')
const results = Object.fromEntries(ways.map((way) => [way, []]))
for (let round = 0; round < rounds; round++) {
  for (const way of ways) {
    try {
      results[way].push(await measure(way))
    } catch (error) {
      console.log(`${way}: ${error.message}`)
    }
  }
}
console.log(
  `${rounds} rounds of ${seconds} s, ${rate} queries/s offered, ${geo ? 'GEO and weight' : `${names} names`}${dnssecOk ? ', signed, with DO' : ''}`,
)
for (const way of ways) {
  const all = results[way]
  if (all.length === 0) continue
  const rates = all.map((one) => one.rate)
  const base = results.sockets ?? []
  const ratios = all.flatMap((one, i) => (base[i] === undefined ? [] : [one.rate / base[i].rate]))
  const range = [Math.min(...rates), Math.max(...rates)].map((one) => (one / 1000).toFixed(0))
  console.log(
    `${way.padEnd(9)} ${(median(rates) / 1000).toFixed(0).padStart(5)} thousand replies/s [${range.join('-')}]` +
      `${ratios.length === 0 ? '' : `, ${median(ratios).toFixed(2)} times sockets`}` +
      `, ${median(all.map((one) => one.us)).toFixed(2)} us/reply, ${all[0].octets} octets`,
  )
}
