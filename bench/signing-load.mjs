// Claims: while a zone of 100 000 names is signed from nothing, which takes at most 40 s on two cores, queries of another
// zone are answered at 0.9 of their rate.
//   npm run build && node bench/signing-load.mjs [rounds] [names] [--rate 20000]
// Each round replaces all names of the zone, so nothing of the last version can be reused. Before and after, while nothing
// is signed, and meanwhile, in turn: as many queries as the server answers, each of 200 clients with one under way; and
// RATE queries/s, whatever the server does. The generator shares the processors with the server.
// Prints: rates, CPU time per query of the thread that answers, latencies, the CPU time of the other threads.
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { median } from './median.mjs'
import { ask, untilUp } from './peers/ask.mjs'
import { masterFile, PLAIN_ZONE, plainAddress, plainLines, simpleName } from './peers/content.mjs'
import { write } from './peers/files.mjs'
import { run, saturate } from './peers/load.mjs'
import { freePort } from './peers/ports.mjs'
import { startProcess } from './peers/server-process.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rate: { type: 'string', default: '20000' } },
})
const [rounds = 3, names = 100_000] = positionals.map(Number)
const NAMES = 1000
const BIG_ZONE = 'big.example'
const WINDOW_S = 1.5
const IDLE_WINDOWS = 6
const LIMIT_MS = 600_000
const TICK_MS = 10

const folder = dirname(fileURLToPath(import.meta.url))
const directory = mkdtempSync(join(tmpdir(), 'sextant-signing-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
const questions = join(directory, 'questions')
write(
  questions,
  Array.from({ length: NAMES }, (_, i) => `${simpleName(i)} A\n`),
)
write(join(directory, 'plain'), masterFile(PLAIN_ZONE, plainLines(NAMES)))

/** Version `version` of the zone: all names and the serial are others. */
function writeBig(version, count) {
  const lines = function* () {
    yield `v${version} 300 IN A 192.0.2.1\n`
    for (let i = 0; i < count; i++) yield `n${version}-${i} 300 IN A ${plainAddress(i)}\n`
  }
  const file = join(directory, 'big')
  const [soa, ...rest] = masterFile(BIG_ZONE, [])
  write(`${file}.new`, [
    soa,
    ...rest.map((text) => text.replace(' 1 7200', ` ${version} 7200`)),
    ...lines(),
  ])
  renameSync(`${file}.new`, file)
}

/** CPU milliseconds so far: of the main thread, of those that answer, and of those of low priority. */
function cpuMs(pid) {
  const times = { main: 0, answers: 0, background: 0 }
  for (const task of readdirSync(`/proc/${pid}/task`)) {
    const fields = readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8').split(') ')[1].split(' ')
    const isBackground = Number(fields[16]) > 0
    const kind = task === `${pid}` ? 'main' : isBackground ? 'background' : 'answers'
    times[kind] += (Number(fields[11]) + Number(fields[12])) * TICK_MS
  }
  return times
}

const target = { file: questions, form: 'edns', clients: 200, outstanding: 200, generator: 'batch' }
let isOpenLoop = false

/** One window, at saturation or at a fixed rate in turn. */
async function measure({ pid, port }) {
  const before = cpuMs(pid)
  isOpenLoop = !isOpenLoop
  const load = isOpenLoop ? await openLoop(port) : await saturate({ ...target, port }, WINDOW_S)
  const after = cpuMs(pid)
  const cpu = Object.fromEntries(Object.keys(before).map((key) => [key, after[key] - before[key]]))
  return { ...load, cpu, us: (cpu.answers * 1000) / (load.completed ?? load.sent - load.lost) }
}

async function openLoop(port) {
  const args = [questions, port, values.rate, WINDOW_S, 200]
  return JSON.parse(await run(process.execPath, [join(folder, 'tails/open-loop.mjs'), ...args]))
}

/** Windows until `isOver`, and the CPU time of all threads. */
async function windows(server, isOver) {
  const measured = []
  const [before, startMs] = [cpuMs(server.pid), performance.now()]
  do {
    if (server.process.failure !== undefined) throw new Error(server.process.failure)
    if (performance.now() - startMs > LIMIT_MS) throw new Error('the zone was not published')
    measured.push(await measure(server))
  } while (!(await isOver(measured.length)))
  const after = cpuMs(server.pid)
  return {
    measured,
    main: after.main - before.main,
    background: after.background - before.background,
  }
}

/** Waits until the name of a version is answered; resolves with the time. */
async function published(port, version) {
  while ((await ask(port, `v${version}.${BIG_ZONE}`, undefined, 500))?.length !== 1) {
    await new Promise((resume) => setTimeout(resume, 50))
  }
  return performance.now()
}

const port = await freePort()
const block = (zone, lines) => `${zone}:${port} {\n bind 127.0.0.1\n multisocket 1\n${lines}}\n`
write(join(directory, 'Corefile'), [
  block(PLAIN_ZONE, ` minimal\n file ${directory}/plain ${PLAIN_ZONE}\n`),
  block(
    BIG_ZONE,
    ` file ${directory}/big ${BIG_ZONE} {\n  reload 1s\n }\n dnssec {\n  keys ${directory}/keys\n }\n`,
  ),
])
writeBig(1, 1)
const main = join(folder, '../dist/main.js')
const sextant = startProcess('Sextant', process.execPath, [
  main,
  'serve',
  '-conf',
  join(directory, 'Corefile'),
])
const server = { process: sextant, pid: sextant.pid, port }
await untilUp(sextant, port, {}, LIMIT_MS)
await published(port, 1)
await windows(server, (count) => count >= IDLE_WINDOWS)

const ratios = { qps: [], us: [], answered: [], p50: [], p99: [] }
const middle = (list, key) => median(list.flatMap((one) => one[key] ?? []))
const answered = ({ sent, lost }) => 1 - lost / sent
console.log(`${names} names, ${rounds} rounds; load average ${loadavg().map((n) => n.toFixed(1))}`)
for (let round = 0; round < rounds; round++) {
  const before = await windows(server, (count) => count >= IDLE_WINDOWS)
  const version = round + 2
  writeBig(version, names)
  const startMs = performance.now()
  let endMs
  const end = published(port, version).then((ms) => {
    endMs = ms
  })
  const { measured, main, background } = await windows(server, () => endMs !== undefined)
  await end
  // The last two windows may have begun when all was signed.
  const during = measured.slice(0, -2)
  const after = await windows(server, (count) => count >= IDLE_WINDOWS)
  const idle = [...before.measured, ...after.measured]
  const open = (list) => list.filter(({ sent }) => sent !== undefined)
  const full = (list) => list.filter(({ qps }) => qps !== undefined)
  for (const [key, of] of [
    ['qps', full],
    ['us', full],
    ['p50', open],
    ['p99', open],
  ]) {
    ratios[key].push(middle(of(during), key) / middle(of(idle), key))
  }
  ratios.answered.push(median(open(during).map(answered)))
  const seconds = (ms) => (ms / 1000).toFixed(1)
  console.log(
    `published after ${seconds(endMs - startMs)} s; CPU: main ${seconds(main)} s, background ${seconds(background)} s`,
  )
  for (const [what, list] of [
    ['idle', idle],
    ['signing', during],
  ]) {
    console.log(
      `  ${what.padEnd(8)} ${middle(full(list), 'qps').toFixed(0)} q/s, ${middle(full(list), 'us').toFixed(2)} us each; at ${values.rate} q/s p50 ${middle(open(list), 'p50')}, p99 ${middle(open(list), 'p99')} us, answered ${median(open(list).map(answered)).toFixed(4)}`,
    )
  }
}
const spread = (list) =>
  `${median(list).toFixed(2)} (${Math.min(...list).toFixed(2)} to ${Math.max(...list).toFixed(2)})`
console.log(
  `signing/idle: rate ${spread(ratios.qps)}, CPU per query ${spread(ratios.us)}, p50 ${spread(ratios.p50)}, p99 ${spread(ratios.p99)}; answered ${spread(ratios.answered)}`,
)
process.exit(0)
