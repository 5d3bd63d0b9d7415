// What a query costs in user space when it arrives through AF_XDP: the transport and the engine, over plain memory, without
// a kernel.
//   npm run build && node bench/xdp-cost.mjs [rounds] [--names 1000] [--depth 512] [--ways WAY,...] [--base ROOT]
// Ways, each with all that is before it:
//   dropped    rings, checks of the frame; the query is for another address
//   read       the message and the addresses are copied from the frame; no reply
//   fixed      a reply of 60 octets, always the same: copied into the frame, with headers and checksums
//   plain, geo, chain   the replies of the engine: A; GEO + weight + ECS; a chain of four CNAMEs, GEO + weight + ECS
// `engine` is the part of the last three without the transport. ROOT: another checkout with its `dist`, in turn in the same
// process. Prints ns per query: median and minimum of the rounds, each `depth` queries, so few rounds are interrupted.
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { GEO_NAME, simpleName } from './peers/content.mjs'
import { composeMmdb } from './peers/mmdb.mjs'
import { CHAIN_HOST } from './shapes/shapes.mjs'
import { makeEngine, messageOf } from './xdp/engine.mjs'
import { frameOf, PlainMemory } from './xdp/plain-memory.mjs'

const WAYS = ['dropped', 'read', 'fixed', 'plain', 'geo', 'chain']
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    names: { type: 'string', default: '1000' },
    depth: { type: 'string', default: '512' },
    ways: { type: 'string', default: WAYS.join() },
    base: { type: 'string' },
  },
})
const rounds = Number(positionals[0] ?? 2000)
const names = Number(values.names)
const depth = Number(values.depth)
const ways = values.ways.split(',')
const own = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const roots = { new: own, ...(values.base === undefined ? {} : { base: resolve(values.base) }) }

const FIXED_OCTETS = 60
/** More than any cache of a server holds; each from another port and network. */
const QUESTIONS = Math.max(4096, Math.min(names, 65_536))
const MESSAGES = {
  plain: () => messageOf(simpleName(Math.floor(Math.random() * names)), false),
  geo: (i) => messageOf(GEO_NAME, true, [1 + (i % 200), i & 255, (i >> 8) & 255]),
  chain: (i) => messageOf(CHAIN_HOST, true, [1 + (i % 200), i & 255, (i >> 8) & 255]),
}
const questions = (way) => {
  const message = MESSAGES[way] ?? MESSAGES.plain
  return Array.from({ length: QUESTIONS }, (_, i) => {
    return frameOf([10, 1 + (i % 200), i & 255, 7], 1024 + (i % 60_000), message(i))
  })
}

async function makeRows(version, root) {
  const load = (path) => import(join(root, 'dist', `${path}.js`))
  const { Query } = await load('dns/message/query')
  const { BatchLoop } = await load('transport/udp/batch/loop')
  const ring = await load('transport/udp/xdp/ring')
  const { Targets } = await load('transport/udp/xdp/targets')
  const { XdpSocket } = await load('transport/udp/xdp/xdp-socket')
  const xsk = await load('transport/udp/xdp/xsk')
  const engine = ways.some((way) => way in MESSAGES)
    ? await makeEngine(root, composeMmdb(), names)
    : undefined

  const constant = (octets) => {
    const exchange = { query: new Query(), reply: undefined, replyAt: -1 }
    return { acquire: () => exchange, release: () => {}, serve: () => octets }
  }
  return ways.map((way) => {
    const memory = new PlainMemory(xsk, ring, questions(way))
    const address = new Uint8Array(16)
    address.set([192, 0, 2, way === 'dropped' ? 2 : 1])
    const targets = new Targets([{ family: 1, address, port: 53, lane: 0 }], [])
    const routes = { targets, lanes: [{ socket: undefined }], mtuOctets: 1500 }
    const socket = new XdpSocket(memory.kernel, memory.place, routes)
    const handler = way in MESSAGES ? engine.handler : constant(way === 'fixed' ? FIXED_OCTETS : 0)
    const clock = engine?.clock ?? { turn: () => {} }
    let fds
    const libc = {
      addressOf: (array) => {
        fds = array
        return 1
      },
      poll: () => {
        fds[3] |= 1 << 16
        return 1
      },
    }
    const hooks = {
      onWake: () => {},
      onHandOver: () => {
        throw new Error('a query was handed over')
      },
      onFault: (error) => {
        throw error
      },
      onBatch: () => clock.turn(),
      onBatchEnd: () => {},
    }
    const loop = new BatchLoop(libc, { fd: 0, isCalled: () => false, clear: () => {} }, hooks)
    loop.addLanes(socket, [{ fd: 5, handler }], new Float64Array(3))
    const transport = () => {
      memory.deliver(depth)
      const start = process.hrtime.bigint()
      while (!memory.isServed) loop.serveOnce()
      return Number(process.hrtime.bigint() - start) / depth
    }
    return { name: way, version, run: transport, memory, times: [] }
  })
}

const rows = []
for (const [version, root] of Object.entries(roots)) rows.push(...(await makeRows(version, root)))
// Of one way and then of the other build, so that both see the same machine.
rows.sort((a, b) => ways.indexOf(a.name) - ways.indexOf(b.name))
const warmRounds = Math.ceil(300_000 / depth)
for (const row of rows) for (let i = 0; i < warmRounds; i++) row.run()
for (let round = 0; round < rounds; round++) for (const row of rows) row.times.push(row.run())
console.log(`${rounds} rounds of ${depth} queries, ${names} names, Node ${process.version}`)
for (const { name, version, times, memory } of rows) {
  times.sort((a, b) => a - b)
  const [middle, least] = [times[times.length >> 1], times[0]].map((ns) =>
    ns.toFixed(0).padStart(5),
  )
  const octets = name === 'dropped' || name === 'read' ? 0 : memory.lastSent.length
  console.log(
    `${name.padEnd(8)} ${version.padEnd(5)} ${middle} ns/query  (minimum ${least}), frame sent: ${octets} octets`,
  )
}
process.exit(0)
