// What sticky choices, drains, counters of endpoints and explanations cost, beside the same records without them.
//   npm run build && node bench/steering-cost.mjs [rounds] [seconds] [--geo] [--names 1000] [--clients 200] [--base ROOT]
// Each case is a server with one UDP thread, on one CPU if the machine has two and taskset. The cases are loaded in turn
// within each round, beginning with another one each time; a ratio to `weighted` is the median of the rounds' ratios.
// `weighted, again` is the same server once more: its ratios show what the machine can measure. With as many clients as
// queries under way, each query has a port of its own. `--geo`: the endpoints have geo codes, and queries a client
// subnet. `--base`: adds the case `weighted` of another checkout with its `dist`.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { median } from './median.mjs'
import { ask } from './peers/ask.mjs'
import { CLIENTS } from './peers/content.mjs'
import { write } from './peers/files.mjs'
import { saturate } from './peers/load.mjs'
import { composeMmdb } from './peers/mmdb.mjs'
import { freePort } from './peers/ports.mjs'
import { cpuUs, findCommand, startProcess } from './peers/server-process.mjs'

const START_LIMIT_MS = 60_000
/** A query path is compiled after some ten thousand queries. */
const WARM_QUERIES = 200_000
const ASKS = 100
const ZONE = 'k.example.com'
const WEIGHTS = [120, 60, 20]
const BASE = 'weighted'

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    geo: { type: 'boolean', default: false },
    names: { type: 'string', default: '1000' },
    clients: { type: 'string', default: '200' },
    outstanding: { type: 'string', default: '200' },
    base: { type: 'string' },
  },
})
const rounds = Number(positionals[0] ?? 15)
const seconds = Number(positionals[1] ?? 2)
const names = Number(options.names)
const { geo, clients, outstanding } = options

const directory = mkdtempSync(join(tmpdir(), 'sextant-steering-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
const mmdb = join(directory, 'country.mmdb')
writeFileSync(mmdb, composeMmdb())
const drains = join(directory, 'drains')
writeFileSync(drains, 'id:e0-* by=bench\n')

/** The `endpoints` of an answer by number, and the lines of `kuadrant`. */
const WEIGHTED = { lines: '', endpoints: [0, 1, 2] }
const STICKY = 'sticky'
const DRAINED = `drain ${drains}`
const COUNTED = 'endpoint-metrics 100000'
const EXPLAINED = 'explain 127.0.0.0/8'
const CASES = {
  plain: { lines: '', endpoints: [0], isPlain: true },
  [BASE]: WEIGHTED,
  'weighted, again': WEIGHTED,
  sticky: { lines: STICKY, endpoints: undefined },
  drained: { lines: DRAINED, endpoints: [1, 2] },
  counted: { lines: COUNTED, endpoints: [0, 1, 2] },
  explain: { lines: EXPLAINED, endpoints: [0, 1, 2] },
  'sticky, drained, counted, explain': {
    lines: [STICKY, DRAINED, COUNTED, EXPLAINED].join('\n        '),
    endpoints: undefined,
  },
}

const addressOf = (endpoint, code) => `192.0.${code === 'NA' ? 3 : 2}.${endpoint + 1}`

function* manifest(isPlain) {
  for (let i = 0; i < names; i++) {
    yield `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: { name: n${i}, namespace: bench }
spec:
  rootHost: n${i}.${ZONE}
  endpoints:
`
    if (isPlain) yield endpoint(i, 0, '', [])
    else for (const code of geo ? ['EU', 'NA'] : ['']) yield* endpointsOf(i, code)
  }
}

function* endpointsOf(name, code) {
  const codes = code === '' ? [] : [`{ name: geo-code, value: GEO-${code} }`]
  if (code === 'EU') codes.push('{ name: default, value: "true" }')
  for (const [i, weight] of WEIGHTS.entries()) {
    yield endpoint(name, i, code, [...codes, `{ name: weight, value: "${weight}" }`])
  }
}

const endpoint = (name, i, code, properties) => `    - dnsName: n${name}.${ZONE}
      recordType: A
      recordTTL: 60
      setIdentifier: e${i}-${code}
      targets: [${addressOf(i, code)}]
      providerSpecific: [${properties.join(', ')}]
`

const corefile = (port, folder, lines) => `${ZONE}:${port} {
    bind 127.0.0.1
    multisocket 1
    errors
${geo ? `    geoip ${mmdb} {\n        edns-subnet\n    }\n` : ''}    kuadrant {
        manifests ${folder}/records
        ${lines}
    }
}
`

const taskset = cpus().length > 1 ? findCommand('taskset') : undefined

async function start([name, { lines, endpoints, isPlain, root }], index) {
  const folder = join(directory, String(index))
  mkdirSync(join(folder, 'records'), { recursive: true })
  write(join(folder, 'records/all.yaml'), manifest(isPlain))
  const port = await freePort()
  write(join(folder, 'Corefile'), corefile(port, folder, lines))
  const main = join(root ?? own, 'dist/main.js')
  const args = [process.execPath, main, 'serve', '-conf', join(folder, 'Corefile')]
  const [command, ...rest] = taskset === undefined ? args : [taskset, '-c', '0', ...args]
  const server = startProcess(name, command, rest)
  await untilUp(server, port)
  await verify(name, port, endpoints)
  return { name, server, port, rounds: [] }
}

async function untilUp(server, port) {
  const end = Date.now() + START_LIMIT_MS
  while (Date.now() < end) {
    const found = await ask(port, `n${names - 1}.${ZONE}`, geo && CLIENTS.EU, 200).catch(() => {})
    if (found?.length > 0) return
    if (server.failure !== undefined) throw new Error(server.failure)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`${server.name} did not answer on port ${port}`)
}

/** `endpoints`: undefined = one endpoint answers this client. */
async function verify(name, port, endpoints) {
  const seen = new Set()
  for (let i = 0; i < ASKS; i++) {
    const found = await ask(port, `n0.${ZONE}`, geo && CLIENTS.NA)
    seen.add(found?.join('+'))
  }
  const code = geo && name !== 'plain' ? 'NA' : ''
  const want = endpoints?.map((endpoint) => addressOf(endpoint, code)).join()
  const got = [...seen].sort().join()
  if (want === undefined ? seen.size === 1 : got === want) return
  throw new Error(`${name}: answered ${got}, not ${want ?? 'one address'}`)
}

async function measure({ server, port }, duration) {
  const file = join(directory, 'queries')
  const target = { port, file, form: geo ? 'ecs' : 'plain', clients, outstanding }
  const before = cpuUs(server.pid)
  const { completed, qps } = await saturate({ ...target, generator: 'batch' }, duration)
  const after = cpuUs(server.pid)
  if (completed === 0) throw new Error(`${server.name} answered no query`)
  const [user, system] = [after.user - before.user, after.system - before.system]
  return { completed, qps, us: (user + system) / completed, user }
}

const own = resolve(dirname(fileURLToPath(import.meta.url)), '..')
if (options.base !== undefined) {
  CASES['weighted, base'] = { ...WEIGHTED, root: resolve(options.base) }
}
write(
  join(directory, 'queries'),
  Array.from({ length: 65_536 }, () => `n${Math.floor(Math.random() * names)}.${ZONE} A\n`),
)
console.log(`${names} names${geo ? ' with geo codes' : ''}, ${clients} client ports`)
console.log(`${rounds} rounds of ${seconds} s; ${cpus()[0]?.model}, Node ${process.version}`)
console.log(`load average ${loadavg().map((value) => value.toFixed(1))}\n`)
const rows = []
for (const [index, entry] of Object.entries(CASES).entries()) rows.push(await start(entry, index))
// The generator inherits the CPU.
if (taskset !== undefined) {
  execFileSync(taskset, ['-pc', '1', String(process.pid)], { stdio: 'ignore' })
}
for (const row of rows) {
  for (let left = WARM_QUERIES; left > 0; ) left -= (await measure(row, 0.5)).completed
}
for (let round = 0; round < rounds; round++) {
  for (let i = 0; i < rows.length; i++) {
    const row = rows[(round + i) % rows.length]
    row.rounds.push(await measure(row, seconds))
  }
}
const base = rows.find(({ name }) => name === BASE)
const middle = (row, key) => median(row.rounds.map((round) => round[key]))
const ratio = (row, key) => {
  return median(row.rounds.map((round, i) => round[key] / base.rounds[i][key])).toFixed(3)
}
/** The kernel samples user time, so a round is too short for it. */
const userUs = ({ rounds }) => {
  const sum = (key) => rounds.reduce((total, round) => total + round[key], 0)
  return sum('user') / sum('completed')
}
console.log(
  '| case | q/s | us CPU | user us | q/s to weighted | CPU to weighted | user to weighted |',
)
console.log(`|---|${'---:|'.repeat(6)}`)
for (const row of rows) {
  const figures = [middle(row, 'qps').toFixed(0), middle(row, 'us').toFixed(2)]
  figures.push(userUs(row).toFixed(2), ratio(row, 'qps'), ratio(row, 'us'))
  console.log(`| ${[row.name, ...figures, (userUs(row) / userUs(base)).toFixed(3)].join(' | ')} |`)
}
console.log(`\nload average ${loadavg().map((value) => value.toFixed(1))}`)
process.exit(0)
