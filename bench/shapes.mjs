// User CPU per query of each shape of query, beside other builds and other servers.
//   npm run build && node bench/shapes.mjs [rounds] [seconds] [--base ROOT] [--peers gdnsd,Knot]
//     [--shapes plain,chain|dnssec] [--clients 200] [--outstanding 200]
// ROOT: another checkout with its `dist`, named `base` in the table. Every server has one UDP thread. Within each round,
// the servers are loaded in turn with each shape, so a busy machine slows all of them; a ratio is the median of the
// rounds' ratios. `dnssec`: the shapes of signed zones; needs dnssec-signzone. Then a second table has ratios of rates. The
// signatures of some answers are verified first.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { median } from './median.mjs'
import { write } from './peers/files.mjs'
import { saturate } from './peers/load.mjs'
import { composeMmdb } from './peers/mmdb.mjs'
import { freePort } from './peers/ports.mjs'
import { commandOf, cpuUs, startProcess } from './peers/server-process.mjs'
import { gdnsd } from './shapes/gdnsd.mjs'
import { knot } from './shapes/knot.mjs'
import { nsd } from './shapes/nsd.mjs'
import { sextant } from './shapes/sextant.mjs'
import { DNSSEC_SHAPES, SHAPES } from './shapes/shapes.mjs'
import { signZones } from './shapes/signed-zones.mjs'
import { verifySigned } from './shapes/verify-signed.mjs'

const START_LIMIT_MS = 120_000
/** A query path is compiled after some ten thousand queries. */
const WARM_QUERIES = 200_000

const UNSIGNED = Object.keys(SHAPES).filter((name) => !DNSSEC_SHAPES.includes(name))

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    base: { type: 'string' },
    peers: { type: 'string', default: 'gdnsd,Knot' },
    shapes: { type: 'string', default: UNSIGNED.join() },
    clients: { type: 'string', default: '200' },
    outstanding: { type: 'string', default: '200' },
  },
})
const rounds = Number(positionals[0] ?? 5)
const seconds = Number(positionals[1] ?? 1)
const shapes = options.shapes === 'dnssec' ? DNSSEC_SHAPES : options.shapes.split(',')

const directory = mkdtempSync(join(tmpdir(), 'sextant-shapes-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
const mmdb = join(directory, 'country.mmdb')
writeFileSync(mmdb, composeMmdb())

const signedZones = shapes.some((name) => DNSSEC_SHAPES.includes(name))
  ? signZones(join(directory, 'zones'))
  : []

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const wanted = options.peers.split(',')
const peers = [
  sextant('Sextant', root),
  ...(options.base === undefined ? [] : [sextant('base', resolve(options.base))]),
  ...[gdnsd, knot, nsd].filter(({ name }) => wanted.includes(name)),
]

async function start(peer) {
  const command = commandOf(peer)
  if (command === undefined) return []
  const folder = join(directory, peer.name)
  mkdirSync(folder, { recursive: true })
  const port = await freePort()
  const args = peer.prepare({ directory: folder, port, mmdb, signedZones })
  const server = startProcess(peer.name, command, args)
  const row = { peer, server, port }
  const end = Date.now() + START_LIMIT_MS
  for (;;) {
    const load = await measure(row, 'plain', 0.1).catch(() => undefined)
    if (load !== undefined) return [row]
    if (server.failure !== undefined) throw new Error(server.failure)
    if (Date.now() > end) throw new Error(`${peer.name} did not answer: ${server.output()}`)
  }
}

async function measure({ server, port }, shape, duration) {
  const { clients, outstanding } = options
  const { form, rcode } = SHAPES[shape]
  const file = join(directory, shape)
  const target = { port, file, form, rcode, clients, outstanding, generator: 'batch' }
  if (server.failure !== undefined) throw new Error(server.failure)
  const before = cpuUs(server.pid)
  const { completed, qps } = await saturate(target, duration)
  if (server.failure !== undefined) throw new Error(server.failure)
  const after = cpuUs(server.pid)
  if (completed === 0) throw new Error(`${server.name} answered no query`)
  const us = (after.user - before.user) / completed
  return { completed, qps, us, cpu: us + (after.system - before.system) / completed }
}

/** Compilers and caches get warm outside the figures. */
async function warm(row, shape) {
  if (row.peer.command !== process.execPath) return
  for (let left = WARM_QUERIES; left > 0; ) left -= (await measure(row, shape, 0.5)).completed
}

for (const [name, { lines }] of Object.entries(SHAPES)) {
  write(
    join(directory, name),
    lines().map((line) => `${line}\n`),
  )
}
const rows = []
for (const peer of peers) rows.push(...(await start(peer)))
const names = rows.map(({ server }) => server.name)
console.log(`user us per query (q/s); ${rounds} rounds of ${seconds} s; Node ${process.version}`)
console.log(`load average ${loadavg().map((value) => value.toFixed(1))}\n`)
console.log(
  `| shape | ${names.join(' | ')} |${names
    .slice(1)
    .map((name) => ` Sextant/${name} |`)
    .join('')}`,
)
console.log(`|---|${'---:|'.repeat(names.length * 2 - 1)}`)
const measured = shapes.map((shape) => {
  const able = rows.filter(({ peer }) => !peer.lacks.includes(shape))
  return { shape, able, figures: able.map(() => []) }
})
for (const { shape, able } of measured) {
  for (const row of able) {
    if (SHAPES[shape].without !== undefined) await verifySigned(row.peer, row.port, SHAPES[shape])
    await warm(row, shape)
  }
}
for (let round = 0; round < rounds; round++) {
  for (const { shape, able, figures } of measured) {
    for (const [i, row] of able.entries()) figures[i].push(await measure(row, shape, seconds))
  }
}
for (const { shape, able, figures } of measured) {
  const cells = rows.map((row) => {
    const i = able.indexOf(row)
    if (i === -1) return ['', '']
    const us = median(figures[i].map((figure) => figure.us)).toFixed(2)
    const qps = median(figures[i].map((figure) => figure.qps)) / 1000
    const ratio = median(figures[i].map((figure, round) => figures[0][round].us / figure.us))
    return [`${us} (${qps.toFixed(0)}k)`, ratio.toFixed(2)]
  })
  const ratios = cells.slice(1).map(([, ratio]) => ` ${ratio} |`)
  console.log(
    `| ${SHAPES[shape].title} | ${cells.map(([us]) => us).join(' | ')} |${ratios.join('')}`,
  )
}

const ratiosOf = (figures, others, of) => {
  return figures.map((figure, round) => of(figure) / of(others[round])).sort((a, b) => a - b)
}
/** Medians, and the quartiles of CPU. */
const rateAndCpu = (figures, others) => {
  const rate = median(ratiosOf(figures, others, ({ qps }) => qps)).toFixed(2)
  const cpu = ratiosOf(figures, others, ({ cpu }) => cpu)
  const at = (share) => cpu[Math.round((cpu.length - 1) * share)].toFixed(2)
  return ` ${rate} (${median(cpu).toFixed(2)}; ${at(0.25)} to ${at(0.75)}) |`
}
const withDo = measured.filter(({ shape }) => shapes.includes(SHAPES[shape].without))
if (withDo.length > 0) {
  const heads = [
    ...names.map((name) => `${name}/without`),
    ...names.slice(1).map((name) => `Sextant/${name}`),
  ]
  console.log(
    `\n| ratio of rates (of CPU, user and system; quartiles) | ${heads.join(' | ')} |\n|---|${'---:|'.repeat(heads.length)}`,
  )
}
for (const { shape, able, figures } of withDo) {
  const without = measured.find((other) => other.shape === SHAPES[shape].without)
  const own = rows.map((row) => {
    const i = able.indexOf(row)
    return i === -1 ? ' |' : rateAndCpu(figures[i], without.figures[i])
  })
  const peers = rows.slice(1).map((row) => {
    const i = able.indexOf(row)
    return i === -1 ? ' |' : rateAndCpu(figures[0], figures[i])
  })
  console.log(`| ${SHAPES[shape].title} |${own.join('')}${peers.join('')}`)
}
process.exit(0)
