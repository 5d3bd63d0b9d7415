// DNS over TCP beside NSD, Knot and gdnsd: queries/s on kept connections, connections/s, memory of an idle connection.
//   npm run build && node bench/tcp.mjs [rounds] [seconds] [--peers NSD,Knot,gdnsd]
// Needs dnsperf. All servers have one thread for queries and the same 1 000 names; each round loads them in turn. Sextant
// allows 100 connections of one client and 2 000 in all, so more are not measured; idle ones come from 40 addresses.
// Connections/s is what one client in Node.js reaches: the median of the rounds, and the CPU time of the server for each.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { median } from './median.mjs'
import { untilUp } from './peers/ask.mjs'
import { simpleName } from './peers/content.mjs'
import { write } from './peers/files.mjs'
import { field, run } from './peers/load.mjs'
import { freePort } from './peers/ports.mjs'
import { commandOf, cpuUs, residentMib, startProcess } from './peers/server-process.mjs'
import { gdnsd } from './peers/servers/gdnsd.mjs'
import { knot } from './peers/servers/knot.mjs'
import { nsd } from './peers/servers/nsd.mjs'
import { sextant } from './peers/servers/sextant.mjs'

const NAMES = 1000
const KEPT = [
  { connections: 50, inFlight: 1 },
  { connections: 50, inFlight: 10 },
  { connections: 100, inFlight: 1 },
  { connections: 100, inFlight: 10 },
]
const IDLE_ADDRESSES = 40
const IDLE_EACH = 45
const CONNECTING = 32

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { peers: { type: 'string', default: 'NSD,Knot,gdnsd' } },
})
const [rounds = 5, seconds = 2] = positionals.map(Number)
const directory = mkdtempSync(join(tmpdir(), 'sextant-tcp-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
const questions = join(directory, 'queries.txt')
write(
  questions,
  Array.from({ length: NAMES }, (_, i) => `${simpleName(i)} A\n`),
)

/** Changes to the configuration that the peers share with other benches: room for the connections. */
const ROOM = {
  gdnsd: {
    file: 'config',
    before: 'tcp_threads => 1',
    after: 'tcp_threads => 1\n  tcp_clients_per_thread => 4000',
  },
  Knot: {
    file: 'knot.conf',
    before: 'tcp-workers: 1',
    after: 'tcp-workers: 1\n    tcp-max-clients: 4000',
  },
}

async function start(peer) {
  const command = commandOf(peer)
  if (command === undefined) return []
  const place = join(directory, peer.name)
  mkdirSync(place)
  const port = await freePort()
  const args = peer.prepare({ directory: place, port, names: NAMES, geo: false })
  const room = ROOM[peer.name]
  if (room !== undefined) {
    const path = join(place, room.file)
    writeFileSync(path, readFileSync(path, 'utf8').replace(room.before, room.after))
  }
  const server = startProcess(peer.name, command, args)
  await untilUp(server, port, {}, 30_000)
  return [{ name: peer.name, server, port }]
}

/** CPU time of all processes of a server: NSD has several. */
const usedUs = ({ server }) => childrenOf(server.pid).reduce((sum, pid) => sum + cpuOf(pid), 0)

function cpuOf(pid) {
  const { user, system } = cpuUs(pid)
  return user + system
}

function childrenOf(pid) {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return [pid, ...children.split(' ').filter(Boolean).map(Number).flatMap(childrenOf)]
}

async function kept(one, { connections, inFlight }) {
  const before = usedUs(one)
  const load = ['-c', connections, '-q', connections * inFlight, '-l', seconds]
  const report = await run('dnsperf', [
    '-m',
    'tcp',
    '-s',
    '127.0.0.1',
    '-p',
    one.port,
    '-d',
    questions,
    ...load,
  ])
  const completed = field(report, /Queries completed:\s+(\d+)/)
  const lost = field(report, /Queries lost:\s+(\d+)/)
  return { rate: completed / seconds, us: (usedUs(one) - before) / completed, lost }
}

const QUERY = Buffer.from(
  '0022000700000001000000000000026e3105706c61696e076578616d706c650000010001',
  'hex',
)

/** One query after the other on one connection. dnsperf does not do this: it sleeps for 0.1 s between some. */
async function oneByOne(one) {
  const before = usedUs(one)
  const endMs = performance.now() + seconds * 1000
  let done = 0
  const socket = connect(one.port, '127.0.0.1', () => socket.write(QUERY))
  socket.setNoDelay(true)
  socket.on('data', () => {
    done++
    if (performance.now() < endMs) socket.write(QUERY)
    else socket.destroy()
  })
  await new Promise((resolve) => socket.once('close', resolve))
  return { rate: done / seconds, us: (usedUs(one) - before) / done, lost: 0 }
}

/** Connects, asks and closes, again and again. */
async function connectAgain(one) {
  const before = usedUs(one)
  const endMs = performance.now() + seconds * 1000
  let [done, failed] = [0, 0]
  const next = () =>
    new Promise((resolve) => {
      const socket = connect(one.port, '127.0.0.1', () => socket.write(QUERY))
      socket.once('data', () => {
        done++
        socket.destroy()
      })
      socket.once('error', () => failed++)
      socket.once('close', resolve)
    })
  const worker = async () => {
    while (performance.now() < endMs) await next()
  }
  await Promise.all(Array.from({ length: CONNECTING }, worker))
  return { rate: done / seconds, us: (usedUs(one) - before) / done, lost: failed }
}

/** KiB of RSS of an idle connection that has asked once. */
async function idleKib(one) {
  const mib = () => childrenOf(one.server.pid).reduce((sum, pid) => sum + residentMib(pid), 0)
  const before = mib()
  const sockets = []
  let [open, closed] = [0, 0]
  for (let i = 0; i < IDLE_ADDRESSES * IDLE_EACH; i++) {
    const localAddress = `127.1.0.${1 + (i % IDLE_ADDRESSES)}`
    const socket = connect({ port: one.port, host: '127.0.0.1', localAddress }, () =>
      socket.write(QUERY),
    )
    socket.once('data', () => open++)
    socket.once('error', () => {})
    socket.once('close', () => closed++)
    sockets.push(socket)
    if (i % 100 === 99) await delay(5)
  }
  const endMs = performance.now() + 5000
  while (open < sockets.length && performance.now() < endMs) await delay(20)
  const kib = ((mib() - before) * 1024) / sockets.length
  const kept = open - closed
  for (const socket of sockets) socket.destroy()
  return `${kib.toFixed(1)} KiB (${kept} of ${sockets.length} open)`
}

const peers = [nsd, knot, gdnsd].filter(({ name }) => values.peers.split(',').includes(name))
const servers = []
for (const peer of [sextant, ...peers]) servers.push(...(await start(peer)))
// Until the code is compiled.
for (const one of servers) await kept(one, KEPT[1])
console.log(`${rounds} rounds of ${seconds} s, node ${process.version}`)

async function compare(title, measure) {
  const results = servers.map(() => [])
  for (let round = 0; round < rounds; round++) {
    const order = servers.map((_, i) => i)
    if (round % 2 === 1) order.reverse()
    for (const i of order) results[i].push(await measure(servers[i]))
  }
  const cells = servers.map(({ name }, i) => {
    const of = (key) => median(results[i].map((one) => one[key]))
    const ratio = median(results[i].map((one, round) => results[0][round].rate / one.rate))
    const lost = results[i].reduce((sum, one) => sum + one.lost, 0)
    const beside = i === 0 ? '' : `, Sextant ${ratio.toFixed(2)} of it`
    return `${name} ${(of('rate') / 1000).toFixed(1)}k/s, ${of('us').toFixed(1)} us${beside}${lost > 0 ? `, ${lost} lost` : ''}`
  })
  console.log(`${title}: ${cells.join('; ')}`)
}

for (const one of KEPT) {
  const title = `${one.connections} connections, ${one.inFlight} in flight`
  await compare(title, (server) => kept(server, one))
}
await compare('one connection, one in flight', oneByOne)
await compare('connect, ask, close', connectAgain)
for (const one of servers) console.log(`idle connection, ${one.name}: ${await idleKib(one)}`)
process.exit()
