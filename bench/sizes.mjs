// Claims: the rate does not depend on how much is served: a zone of a thousand names beside one of ten million, and beside
// 5 000 zones of twelve records. Random names of all that each server has, one UDP thread.
//   npm run build && node bench/sizes.mjs [ROUNDS] [SECONDS] [NAMES]
// NAMES: of the large zone; ten million need 1.3 GB and a minute to load. A ratio is the median of the rounds' ratios.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { median } from './median.mjs'
import { masterFile, PLAIN_ZONE, plainLines, simpleName } from './peers/content.mjs'
import { write } from './peers/files.mjs'
import { saturate } from './peers/load.mjs'
import { freePort } from './peers/ports.mjs'
import { cpuUs, startProcess } from './peers/server-process.mjs'

const [rounds = 5, seconds = 1, large = 10_000_000] = process.argv.slice(2).map(Number)
const ZONES = 5000
const NAMES_OF_ZONE = 9
const QUESTIONS = 200_000
const START_LIMIT_MS = 180_000
const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url))

const directory = mkdtempSync(join(tmpdir(), 'sextant-sizes-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
const below = (count) => Math.floor(Math.random() * count)

/** One zone of `names` names. */
const oneZone = (names) => ({
  title: `${names} names in a zone`,
  question: () => simpleName(below(names)),
  prepare(folder) {
    write(join(folder, 'zone'), masterFile(PLAIN_ZONE, plainLines(names)))
    return `file ${folder}/zone ${PLAIN_ZONE}`
  },
})

const manyZones = {
  title: `${ZONES} zones of 12 records`,
  question: () => `n${below(NAMES_OF_ZONE)}.z${below(ZONES)}.example`,
  prepare(folder) {
    mkdirSync(join(folder, 'zones'))
    for (let i = 0; i < ZONES; i++) {
      const zone = `z${i}.example`
      write(join(folder, `zones/db.${zone}`), masterFile(zone, plainLines(NAMES_OF_ZONE)))
    }
    return `auto {\n directory ${folder}/zones\n }`
  },
}

async function start(size, index) {
  const folder = join(directory, String(index))
  mkdirSync(folder)
  const port = await freePort()
  const corefile = join(folder, 'Corefile')
  const directive = size.prepare(folder)
  write(corefile, [`.:${port} {\n bind 127.0.0.1\n multisocket 1\n errors\n ${directive}\n}\n`])
  const file = join(folder, 'questions')
  write(
    file,
    Array.from({ length: QUESTIONS }, () => `${size.question()} A\n`),
  )
  const server = startProcess(size.title, process.execPath, [MAIN, 'serve', '-conf', corefile])
  const row = { size, server, port, file }
  for (const end = Date.now() + START_LIMIT_MS; ; ) {
    if (await measure(row, 0.1).catch(() => undefined)) return row
    if (server.failure !== undefined) throw new Error(server.failure)
    if (Date.now() > end) throw new Error(`${size.title}: no answer`)
  }
}

async function measure({ server, port, file }, duration) {
  const target = { port, file, clients: 200, outstanding: 200, generator: 'batch' }
  const before = cpuUs(server.pid)
  const { completed, qps } = await saturate(target, duration)
  if (completed === 0) throw new Error(`${server.name} answered no query`)
  return { qps, us: (cpuUs(server.pid).user - before.user) / completed }
}

const rows = []
for (const [index, size] of [oneZone(1000), manyZones, oneZone(large)].entries()) {
  rows.push(await start(size, index))
}
for (const row of rows) await measure(row, 3)
const figures = rows.map(() => [])
for (let round = 0; round < rounds; round++) {
  for (const [i, row] of rows.entries()) figures[i].push(await measure(row, seconds))
}
console.log(`median of ${rounds} rounds of ${seconds} s; Node ${process.version}`)
for (const [i, { size }] of rows.entries()) {
  const middle = (of) => median(figures[i].map(of))
  const qps = middle((figure) => figure.qps) / 1000
  const ratio = middle((figure, round) => figure.qps / figures[0][round].qps)
  const us = middle((figure) => figure.us)
  console.log(
    `${size.title}: ${qps.toFixed(0)}k/s (${ratio.toFixed(2)}), user ${us.toFixed(2)} us/query`,
  )
}
process.exit(0)
