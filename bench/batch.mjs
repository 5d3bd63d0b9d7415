// What serving UDP in batches gains over node:dgram: the whole server both ways, interleaved.
//   npm run build && node bench/batch.mjs [rounds] [seconds]
// Needs dnsperf (Debian: dnsperf). Prints the median of each way and of the ratios of the pairs, and the
// latency of single queries to an idle server.
import { execFileSync, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const rounds = Number(process.argv[2] ?? 5)
const seconds = Number(process.argv[3] ?? 3)
const PORT = 15355
const NAMES = 1000
const SINGLE_QUERIES = 2000
const WAYS = ['dgram', 'batch']

const directory = mkdtempSync(join(tmpdir(), 'sextant-bench-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
writeFileSync(
  join(directory, 'db.plain.example'),
  `$ORIGIN plain.example.
@ 300 IN SOA ns1 hostmaster 1 7200 1800 86400 60
@ 300 IN NS ns1
ns1 300 IN A 192.0.2.53
${Array.from({ length: NAMES }, (_, i) => `n${i} 300 IN A 10.0.${i >> 8}.${i & 255}`).join('\n')}
`,
)
writeFileSync(
  join(directory, 'Corefile'),
  `plain.example:${PORT} {
    bind 127.0.0.1
    errors
    file db.plain.example plain.example
}
`,
)
const queries = join(directory, 'queries.txt')
writeFileSync(queries, Array.from({ length: NAMES }, (_, i) => `n${i}.plain.example A\n`).join(''))

/** User and system milliseconds of a process so far. */
function cpuMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
  return { user: Number(fields[11]) * 10, system: Number(fields[12]) * 10 }
}

async function start(way) {
  const server = spawn(
    process.execPath,
    [join(root, 'dist/main.js'), 'serve', '-conf', 'Corefile'],
    {
      cwd: directory,
      env: { ...process.env, SEXTANT_UDP: way },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  await new Promise((resolve, reject) => {
    let text = ''
    server.once('exit', (code) => reject(new Error(`the server ended with ${code}`)))
    server.stdout.on('data', (chunk) => {
      if (text.length < 10_000) text += chunk
      if (/^Sextant-/m.test(text)) resolve()
    })
  })
  server.removeAllListeners('exit')
  return server
}

function dnsperf(length) {
  const target = ['-s', '127.0.0.1', '-p', String(PORT)]
  const load = ['-d', queries, '-l', String(length), '-c', '8', '-q', '200']
  return execFileSync('dnsperf', [...target, ...load], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

/** p50 and p99 in microseconds of queries that are asked one after the other. */
async function singleLatency() {
  const socket = createSocket('udp4')
  socket.connect(PORT, '127.0.0.1')
  await once(socket, 'connect')
  const header = Buffer.from('000100000001000000000000', 'hex')
  const query = Buffer.concat([
    header,
    Buffer.from('\x02n0\x05plain\x07example\0\0\x01\0\x01', 'latin1'),
  ])
  const took = []
  for (let i = 0; i < SINGLE_QUERIES; i++) {
    const begun = process.hrtime.bigint()
    socket.send(query)
    await once(socket, 'message')
    took.push(Number(process.hrtime.bigint() - begun) / 1000)
  }
  socket.close()
  took.sort((a, b) => a - b)
  return { p50: took[took.length >> 1], p99: took[Math.floor(took.length * 0.99)] }
}

async function measure(way) {
  const server = await start(way)
  dnsperf(1)
  const { p50, p99 } = await singleLatency()
  const before = cpuMs(server.pid)
  const report = dnsperf(seconds)
  const after = cpuMs(server.pid)
  server.kill('SIGKILL')
  await once(server, 'exit')
  const completed = Number(/Queries completed:\s+(\d+)/.exec(report)?.[1])
  return {
    qps: Number(/Queries per second:\s+([\d.]+)/.exec(report)?.[1]),
    lost: Number(/Queries lost:\s+(\d+)/.exec(report)?.[1]),
    userUs: ((after.user - before.user) * 1000) / completed,
    systemUs: ((after.system - before.system) * 1000) / completed,
    p50,
    p99,
  }
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]
const results = { dgram: [], batch: [] }
for (let round = 0; round < rounds; round++) {
  for (const way of WAYS) results[way].push(await measure(way))
}
console.log(`median of ${rounds} rounds of ${seconds} s, node ${process.version}`)
for (const way of WAYS) {
  const of = (key, digits) => median(results[way].map((result) => result[key])).toFixed(digits)
  console.log(
    `${way.padEnd(6)} ${of('qps', 0).padStart(7)} q/s  user ${of('userUs', 2)} us  system ${of('systemUs', 2)} us  lost ${of('lost', 0)}  single p50 ${of('p50', 0)} us p99 ${of('p99', 0)} us`,
  )
}
const ratio = (key) => median(results.batch.map((batch, i) => batch[key] / results.dgram[i][key]))
console.log(
  `batch / dgram: ${ratio('qps').toFixed(2)} x queries/s, ${ratio('userUs').toFixed(2)} x user CPU per query`,
)
