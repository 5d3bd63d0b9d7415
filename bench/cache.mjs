// Cache hits and forwarded queries beside Unbound and CoreDNS.
//   npm run build && node bench/cache.mjs [rounds] [seconds] [--works hits,misses] [--peers Unbound,CoreDNS] [--names 10000]
// Every server has one thread and the same upstream, Knot, which serves the names. `hits`: A of random names that all
// servers have cached. `misses`: the same queries with no cache. A command that is not in PATH is left out. The servers
// are loaded in turn within each round; a ratio is the median of the rounds' ratios.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { median } from './median.mjs'
import { masterFile, PLAIN_ZONE, plainLines, simpleName } from './peers/content.mjs'
import { write } from './peers/files.mjs'
import { saturate } from './peers/load.mjs'
import { freePort } from './peers/ports.mjs'
import { cpuUs, findCommand, residentMib, startProcess } from './peers/server-process.mjs'

const START_LIMIT_MS = 30_000
const CLIENTS = 200

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    works: { type: 'string', default: 'hits,misses' },
    peers: { type: 'string', default: 'Unbound,CoreDNS' },
    names: { type: 'string', default: '10000' },
  },
})
const rounds = Number(positionals[0] ?? 5)
const seconds = Number(positionals[1] ?? 1)
const names = Number(options.names)
const main = join(dirname(fileURLToPath(import.meta.url)), '../dist/main.js')

const directory = mkdtempSync(join(tmpdir(), 'sextant-cache-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))

const corefile = (port, upstream, isCached) => `.:${port} {
    bind 127.0.0.1
    errors
${isCached ? `    cache 3600 {\n        success ${names * 2}\n    }\n` : ''}    forward . 127.0.0.1:${upstream}
}
`
const unboundConf = (port, upstream, isCached) => `server:
  interface: 127.0.0.1@${port}
  num-threads: 1
  username: ""
  chroot: ""
  pidfile: ""
  use-syslog: no
  do-daemonize: no
  do-not-query-localhost: no
  outgoing-range: 4096
  num-queries-per-thread: 2048
  module-config: "iterator"
${isCached ? '' : '  cache-max-ttl: 0\n'}forward-zone:
  name: "."
  forward-addr: 127.0.0.1@${upstream}
remote-control:
  control-enable: no
`

const PEERS = {
  Sextant: {
    command: process.execPath,
    prepare(folder, port, upstream, isCached) {
      const text = corefile(port, upstream, isCached).replace('errors', 'errors\n    multisocket 1')
      write(join(folder, 'Corefile'), text)
      return [main, 'serve', '-conf', join(folder, 'Corefile')]
    },
  },
  Unbound: {
    command: 'unbound',
    prepare(folder, port, upstream, isCached) {
      write(join(folder, 'unbound.conf'), unboundConf(port, upstream, isCached))
      return ['-d', '-c', join(folder, 'unbound.conf')]
    },
  },
  CoreDNS: {
    command: 'coredns',
    env: { GOMAXPROCS: '1' },
    prepare(folder, port, upstream, isCached) {
      write(join(folder, 'Corefile'), corefile(port, upstream, isCached))
      return ['-conf', join(folder, 'Corefile')]
    },
  },
}

async function startUpstream() {
  const command = findCommand('knotd')
  if (command === undefined) throw new Error('knotd is not installed')
  const port = await freePort()
  write(join(directory, 'zone'), masterFile(PLAIN_ZONE, plainLines(names)))
  write(
    join(directory, 'knot.conf'),
    `server:
  rundir: ${directory}
  listen: 127.0.0.1@${port}
  udp-workers: 1
database:
  storage: ${directory}/db
zone:
  - domain: ${PLAIN_ZONE}
    file: ${directory}/zone
    zonefile-sync: -1
`,
  )
  mkdirSync(join(directory, 'db'))
  startProcess('Knot', command, ['-c', join(directory, 'knot.conf')])
  return port
}

async function start(name, work, upstream) {
  const peer = PEERS[name]
  const command = findCommand(peer.command)
  if (command === undefined) {
    console.log(`${name}: left out, ${peer.command} is not installed`)
    return []
  }
  const folder = join(directory, `${name}-${work}`)
  mkdirSync(folder, { recursive: true })
  const port = await freePort()
  const args = peer.prepare(folder, port, upstream, work === 'hits')
  const row = { name, port, server: startProcess(name, command, args, peer.env) }
  const end = Date.now() + START_LIMIT_MS
  for (;;) {
    const load = await measure(row, 0.2).catch(() => undefined)
    if (load !== undefined) return [row]
    if (row.server.failure !== undefined) throw new Error(row.server.failure)
    if (Date.now() > end) throw new Error(`${name} did not answer`)
  }
}

async function measure({ port, server }, duration) {
  const target = { port, file: join(directory, 'queries'), form: 'rd', clients: CLIENTS }
  const before = cpuUs(server.pid)
  const load = { ...target, outstanding: CLIENTS, generator: 'batch' }
  const { completed, qps } = await saturate(load, duration)
  const after = cpuUs(server.pid)
  if (completed === 0) throw new Error(`${server.name} answered no query`)
  const us = (after.user - before.user + after.system - before.system) / completed
  return { completed, qps, us }
}

write(
  join(directory, 'queries'),
  Array.from({ length: 65_536 }, () => `${simpleName(Math.floor(Math.random() * names))} A\n`),
)
const upstream = await startUpstream()
console.log(`queries/s (us of CPU per query); ${rounds} rounds of ${seconds} s; ${names} names`)
console.log(`load average ${loadavg().map((value) => value.toFixed(1))}\n`)
for (const work of options.works.split(',')) {
  const rows = []
  for (const name of ['Sextant', ...options.peers.split(',')]) {
    rows.push(...(await start(name, work, upstream)))
  }
  for (const row of rows) for (let i = 0; i < 4; i++) await measure(row, 0.5)
  const figures = rows.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (const [i, row] of rows.entries()) figures[i].push(await measure(row, seconds))
  }
  rows.forEach(({ name, server }, i) => {
    const qps = median(figures[i].map((figure) => figure.qps))
    const us = median(figures[i].map((figure) => figure.us))
    const ratio = median(figures[i].map((figure, round) => figures[0][round].qps / figure.qps))
    const memory = `${residentMib(server.pid).toFixed(0)} MiB`
    console.log(
      `${work.padEnd(7)} ${name.padEnd(8)} ${(qps / 1000).toFixed(1)}k (${us.toFixed(2)})  ${memory}  Sextant/${name} ${ratio.toFixed(2)}`,
    )
  })
  for (const { server } of rows) await server.stop()
}
process.exit(0)
