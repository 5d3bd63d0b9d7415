// What UDP in batches gains over node:dgram, a second data thread over one, and what logging costs: the
// whole server in each way, interleaved.
//   npm run build && node bench/batch.mjs [rounds] [seconds]
//     [--ways dgram,one,two,logged,piped,discarded,echo1,echo2]
// Prints the median of each way, and of its ratio to `one` round by round. The generator takes a core
// of its own: on two cores, a second thread competes with it, and so does whoever takes the log:
//   logged     lines go to a file
//   piped      lines go through a pipe to a `cat` that throws them away
//   discarded  lines go to /dev/null
// echo1 and echo2 are what the kernel lets one and two threads do that answer without a look at the
// question, replies in groups as ours; SEXTANT_GSO=off has all of them send one by one.
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, openSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { median } from './median.mjs'
import { untilUp } from './peers/ask.mjs'
import { masterFile, PLAIN_ZONE, plainLines, simpleName } from './peers/content.mjs'
import { write } from './peers/files.mjs'
import { saturate } from './peers/load.mjs'
import { freePort } from './peers/ports.mjs'
import { cpuUs, startProcess } from './peers/server-process.mjs'

const main = join(dirname(fileURLToPath(import.meta.url)), '../dist/main.js')
const NAMES = 1000
const START_LIMIT_MS = 20_000
const LOGGING = 'multisocket 1\n    log\n    prometheus 127.0.0.1:METRICS'
const WAYS = {
  one: { udp: 'batch', lines: 'multisocket 1' },
  dgram: { udp: 'dgram', lines: '' },
  two: { udp: 'batch', lines: 'multisocket 2' },
  logged: { udp: 'batch', lines: LOGGING, open: openFile },
  piped: { udp: 'batch', lines: LOGGING, open: openPipe },
  discarded: { udp: 'batch', lines: LOGGING, open: () => openSync('/dev/null', 'w') },
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { ways: { type: 'string', default: 'dgram,two,logged,piped,discarded' } },
})
const rounds = Number(positionals[0] ?? 5)
const seconds = Number(positionals[1] ?? 3)
const ways = ['one', ...values.ways.split(',').filter((way) => way !== 'one')]

const directory = mkdtempSync(join(tmpdir(), 'sextant-bench-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
write(join(directory, 'zone'), masterFile(PLAIN_ZONE, plainLines(NAMES)))
const file = join(directory, 'queries.txt')
write(
  file,
  Array.from({ length: NAMES }, (_, i) => `${simpleName(i)} A\n`),
)

const logFile = join(directory, 'log')

function openFile() {
  return openSync(logFile, 'a')
}

function openPipe() {
  const path = join(directory, 'pipe')
  execFileSync('mkfifo', [path])
  const reader = spawn('cat', [path], { stdio: 'ignore' })
  process.on('exit', () => reader.kill())
  return openSync(path, 'w')
}

async function start(way) {
  const port = await freePort()
  const server = way.startsWith('echo') ? startEcho(way, port) : await startServer(way, port)
  await untilUp(server, port, { geo: false }, START_LIMIT_MS)
  const target = { port, file, ecs: false, clients: 8, outstanding: 200, generator: 'batch' }
  await saturate(target, 2)
  return { way, server, target, rounds: [] }
}

function startEcho(way, port) {
  const echo = join(dirname(fileURLToPath(import.meta.url)), 'peers/echo.mjs')
  return startProcess(way, process.execPath, [echo, port, way.slice('echo'.length)])
}

async function startServer(way, port) {
  const { udp, lines, open } = WAYS[way]
  const conf = join(directory, `Corefile.${way}`)
  writeFileSync(
    conf,
    `${PLAIN_ZONE}:${port} {
    bind 127.0.0.1
    errors
    minimal
    ${lines.replace('METRICS', String(await freePort()))}
    file ${directory}/zone ${PLAIN_ZONE}
}
`,
  )
  const args = [main, 'serve', '-conf', conf]
  return startProcess(way, process.execPath, args, { SEXTANT_UDP: udp }, open?.())
}

async function measure({ server, target }) {
  // Some rounds of lines would fill a disk.
  truncateSync(logFile)
  const before = cpuUs(server.pid)
  const { completed, lost, qps } = await saturate(target, seconds)
  const after = cpuUs(server.pid)
  if (server.failure !== undefined) throw new Error(server.failure)
  const userUs = (after.user - before.user) / completed
  return { qps, lost, userUs, systemUs: (after.system - before.system) / completed }
}

writeFileSync(logFile, '')
const rows = []
for (const way of ways) rows.push(await start(way))
for (let round = 0; round < rounds; round++) {
  const order = round % 2 === 0 ? rows : rows.toReversed()
  for (const row of order) row.rounds.push(await measure(row))
}
console.log(`median of ${rounds} rounds of ${seconds} s, node ${process.version}`)
for (const row of rows) {
  const of = (key, digits) => median(row.rounds.map((round) => round[key])).toFixed(digits)
  const ratio = median(row.rounds.map(({ qps }, i) => qps / rows[0].rounds[i].qps)).toFixed(2)
  const lost = row.rounds.reduce((sum, round) => sum + round.lost, 0)
  console.log(
    `${row.way.padEnd(9)} ${of('qps', 0).padStart(7)} q/s  user ${of('userUs', 2)} us  system ${of('systemUs', 2)} us  lost ${lost}  ${ratio} x one`,
  )
  await row.server.stop()
}
process.exit(0)
