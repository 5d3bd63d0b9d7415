// Pauses of the garbage collector in data threads at full load.
//   npm run build && node bench/gc.mjs [seconds]
// A data thread is told from the control thread by its heap: the first to collect, at the start, is the latter.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { untilUp } from './peers/ask.mjs'
import { masterFile, PLAIN_ZONE, plainLines, simpleName } from './peers/content.mjs'
import { write } from './peers/files.mjs'
import { saturate } from './peers/load.mjs'
import { freePort } from './peers/ports.mjs'
import { startProcess } from './peers/server-process.mjs'

const main = join(dirname(fileURLToPath(import.meta.url)), '../dist/main.js')
const seconds = Number(process.argv[2] ?? 60)
const NAMES = 1000
const PAUSE = /\[\d+:(0x[0-9a-f]+)\]\s+(\d+) ms: (\S+).* MB, ([\d.]+) \//

const directory = mkdtempSync(join(tmpdir(), 'sextant-bench-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
write(join(directory, 'zone'), masterFile(PLAIN_ZONE, plainLines(NAMES)))
const file = join(directory, 'queries.txt')
write(
  file,
  Array.from({ length: NAMES }, (_, i) => `${simpleName(i)} A\n`),
)
const port = await freePort()
const conf = join(directory, 'Corefile')
writeFileSync(
  conf,
  `${PLAIN_ZONE}:${port} {
    bind 127.0.0.1
    multisocket 1
    errors
    file ${directory}/zone ${PLAIN_ZONE}
}
`,
)
const server = startProcess('Sextant', process.execPath, [
  '--trace-gc',
  main,
  'serve',
  '-conf',
  conf,
])
await untilUp(server, port, { geo: false }, 20_000)
const target = { port, file, ecs: false, clients: 8, outstanding: 200, generator: 'batch' }
await saturate(target, 3)
const started = server.output().length
const { qps } = await saturate(target, seconds)
const control = PAUSE.exec(server.output())?.[1]
const pauses = new Map()
for (const line of server.output().slice(started).split('\n')) {
  const [, heap, , kind, ms] = PAUSE.exec(line) ?? []
  if (heap === undefined) continue
  pauses.set(heap, [...(pauses.get(heap) ?? []), { kind, ms: Number(ms) }])
}
console.log(`${seconds} s at ${qps.toFixed(0)} queries/s, node ${process.version}`)
if (pauses.size === 0) console.log('no collection in any thread')
for (const [heap, list] of pauses) {
  const longest = Math.max(...list.map(({ ms }) => ms))
  const kinds = [...new Set(list.map(({ kind }) => kind))].join()
  const thread = heap === control ? 'control thread' : 'data thread'
  console.log(`${thread}, heap ${heap}: ${list.length} pauses (${kinds}), longest ${longest} ms`)
}
await server.stop()
process.exit(0)
