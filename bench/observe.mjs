// The rate with each of the directives that watch or unwrap queries, against the rate with none of them.
//   npm run build && node bench/observe.mjs [rounds] [seconds] [--only json,prometheus]
// Each server has one UDP thread and is loaded alone, in turn within each round. A ratio is the median of the rounds'
// ratios. The log is written to a file in the folder for temporary files, and cut after each load.
import { spawn } from 'node:child_process'
import { mkdtempSync, openSync, rmSync, statSync, truncateSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { median } from './median.mjs'
import { masterFile, PLAIN_ZONE, plainLines } from './peers/content.mjs'
import { write } from './peers/files.mjs'
import { saturate } from './peers/load.mjs'
import { freePort } from './peers/ports.mjs'
import { cpuUs, startProcess } from './peers/server-process.mjs'
import { plainZoneLines, SHAPES } from './shapes/shapes.mjs'

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string', default: '' } },
})
const rounds = Number(positionals[0] ?? 5)
const seconds = Number(positionals[1] ?? 2)

const WATCHERS = {
  none: { lines: '', args: [] },
  prometheus: { lines: 'prometheus 127.0.0.1:{HTTP}', args: [] },
  console: { lines: 'admin 127.0.0.1:{HTTP} {\nconsole on\n}', args: [] },
  text: { lines: 'log', args: [] },
  json: { lines: 'log', args: ['-log-format', 'json'] },
  // Needs fstrm_capture, which is loaded too.
  dnstap: { lines: 'dnstap {SINK} full', args: [] },
  // Needs a collector, which is this process.
  trace: { lines: 'trace otlp 127.0.0.1:{COLLECTOR} {\nevery 100\n}', args: [] },
  // Each query has a PROXY header of version 2.
  proxyproto: { lines: 'proxyproto {\nallow 127.0.0.0/8\n}', args: [], form: 'proxy' },
  traceAll: { lines: 'trace otlp 127.0.0.1:{COLLECTOR}', args: [] },
}
const only = options.only.split(',').filter(Boolean)
const chosen = Object.entries(WATCHERS).filter(
  ([name]) => name === 'none' || only.length === 0 || only.includes(name),
)

const directory = mkdtempSync(join(tmpdir(), 'sextant-observe-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
const main = resolve(dirname(fileURLToPath(import.meta.url)), '../dist/main.js')
const queries = join(directory, 'queries')
write(
  queries,
  SHAPES.plain.lines().map((line) => `${line}\n`),
)
write(join(directory, 'zone'), masterFile(PLAIN_ZONE, plainZoneLines(plainLines)))

/** Starts a dnstap sink that discards what it gets. */
function startSink(socket) {
  const args = ['-t', 'protobuf:dnstap.Dnstap', '-u', socket, '-w', '/dev/null']
  const sink = spawn('fstrm_capture', args, { stdio: 'ignore' })
  process.on('exit', () => sink.kill())
}

/** Resolves to the port of a trace collector that discards what it gets. */
async function startCollector() {
  const collector = createServer((request, response) => {
    request.resume().on('end', () => response.end('{}'))
  })
  await new Promise((resolve) => collector.listen(0, '127.0.0.1', resolve))
  return collector.address().port
}

async function start(name, { lines, args, form = 'plain' }) {
  const [port, http] = [await freePort(), await freePort()]
  const corefile = join(directory, `Corefile.${name}`)
  const sink = join(directory, 'sink')
  if (lines.includes('{SINK}')) startSink(sink)
  const collector = lines.includes('{COLLECTOR}') ? await startCollector() : 0
  const text = `${PLAIN_ZONE}:${port} {
    bind 127.0.0.1
    multisocket 1
    errors
    minimal
    ${lines.replaceAll('{HTTP}', http).replaceAll('{SINK}', sink).replaceAll('{COLLECTOR}', collector)}
    file ${directory}/zone ${PLAIN_ZONE}
}
`
  write(corefile, text)
  const log = join(directory, `${name}.log`)
  const command = [main, 'serve', '-conf', corefile, ...args]
  // Appended: the file can be cut while the server writes to it.
  const server = startProcess(name, process.execPath, command, {}, openSync(log, 'a'))
  const row = { name, port, log, server, form }
  const end = Date.now() + 30_000
  for (;;) {
    const load = await measure(row, 0.1).catch(() => undefined)
    if (load !== undefined) return row
    if (server.failure !== undefined) throw new Error(server.failure)
    if (Date.now() > end) throw new Error(`${name} did not answer`)
  }
}

async function measure({ port, log, server, form }, duration) {
  const target = { port, file: queries, form, clients: 200, outstanding: 200, generator: 'batch' }
  const before = cpuUs(server.pid)
  const { completed, qps } = await saturate(target, duration)
  const after = cpuUs(server.pid)
  if (completed === 0) throw new Error('no answers')
  const octets = statSync(log).size
  truncateSync(log)
  const us = (after.user - before.user + after.system - before.system) / completed
  return { qps, us, octets: octets / completed }
}

const rows = []
for (const [name, watcher] of chosen) rows.push(await start(name, watcher))
for (const row of rows) await measure(row, 1.5)
const figures = rows.map(() => [])
for (let round = 0; round < rounds; round++) {
  for (const [i, row] of rows.entries()) figures[i].push(await measure(row, seconds))
}
console.log(`${rounds} rounds of ${seconds} s; Node ${process.version}\n`)
console.log('| directive | q/s | rate / none | CPU us per query | octets of log per query |')
console.log('|---|---:|---:|---:|---:|')
for (const [i, { name }] of rows.entries()) {
  const of = (key) => median(figures[i].map((figure) => figure[key]))
  const ratio = median(figures[i].map(({ qps }, round) => qps / figures[0][round].qps))
  const cells = [
    `${(of('qps') / 1000).toFixed(0)}k`,
    ratio.toFixed(3),
    of('us').toFixed(2),
    of('octets').toFixed(0),
  ]
  console.log(`| ${name} | ${cells.join(' | ')} |`)
}
process.exit(0)
