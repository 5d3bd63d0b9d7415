// Latency of explanations of a running server, under load and without.
//   npm run build && node bench/explain.mjs [explanations] [records]
// Needs dnsperf (Debian: dnsperf). Each explanation is one POST /v1/explain on a kept connection, for
// a changing name and client. CPU: of the control thread, per explanation. The slowest 1 % have their
// time in parts; the rest is the client's own. Goal: p99 <= 5 ms, with 100 000 records in one manifest too.
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const explanations = Number(process.argv[2] ?? 1000)
const records = Number(process.argv[3] ?? 1000)
const PORT = 15353
const ADMIN_PORT = 19154
const QUERIES_PER_SECOND = 50_000

const directory = mkdtempSync(join(tmpdir(), 'sextant-bench-'))
const started = []
process.on('exit', () => {
  for (const child of started) child.kill('SIGKILL')
  rmSync(directory, { recursive: true, force: true })
})

const nameOf = (i) => `app${i}.k.example.com`
const endpoint = (i, geo, number) => `    - dnsName: ${nameOf(i)}
      recordType: A
      recordTTL: 60
      setIdentifier: ${geo}-${number}
      targets: [10.${(i >> 8) & 255}.${i & 255}.${number}]
      providerSpecific: [{ name: geo-code, value: ${geo} }, { name: weight, value: "${number}" }]
`
const record = (i) => `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: { name: app${i}, namespace: bench }
spec:
  rootHost: ${nameOf(i)}
  endpoints:
${endpoint(i, 'GEO-EU', 1)}${endpoint(i, 'GEO-EU', 2)}${endpoint(i, 'GEO-NA', 3)}`
mkdirSync(join(directory, 'records'))
writeFileSync(
  join(directory, 'records/all.yaml'),
  Array.from({ length: records }, (_, i) => record(i)).join(''),
)
writeFileSync(
  join(directory, 'names.txt'),
  Array.from({ length: Math.min(records, 1000) }, (_, i) => `${nameOf(i)} A\n`).join(''),
)
writeFileSync(
  join(directory, 'Corefile'),
  `k.example.com:${PORT} {
    bind 127.0.0.1
    admin 127.0.0.1:${ADMIN_PORT}
    geoip {
        edns-subnet
    }
    kuadrant {
        manifests records
    }
}
`,
)

function start(command, args) {
  const child = spawn(command, args, { cwd: directory, stdio: ['ignore', 'pipe', 'inherit'] })
  started.push(child)
  return child
}

const server = start(process.execPath, [join(root, 'dist/main.js'), 'serve', '-conf', 'Corefile'])
await new Promise((resolve) => {
  let text = ''
  server.stdout.on('data', (chunk) => {
    if (text.length < 10_000) text += chunk
    if (/^Sextant-/m.test(text)) resolve()
  })
})

const agent = new Agent({ keepAlive: true, maxSockets: 1 })

/** Returns the milliseconds until the reply has arrived. */
function explain(i) {
  const body = JSON.stringify({
    name: nameOf((i * 7919) % records),
    subnet: `${1 + (i % 220)}.${i % 256}.0.0/24`,
    seed: i,
  })
  const startMs = performance.now()
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length }
    const options = { port: ADMIN_PORT, path: '/v1/explain', method: 'POST', headers, agent }
    const sent = request({ host: '127.0.0.1', ...options }, (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => {
        const isRight = response.statusCode === 200 && JSON.parse(text).rcode === 'NOERROR'
        if (isRight) resolve(performance.now() - startMs)
        else reject(new Error(`${response.statusCode} ${text.slice(0, 500)}`))
      })
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** Milliseconds that the control thread has run, and has waited for a CPU, so far. */
function scheduled() {
  const text = readFileSync(`/proc/${server.pid}/task/${server.pid}/schedstat`, 'utf8')
  const [runNs, waitNs] = text.split(' ')
  return { cpu: Number(runNs) / 1e6, wait: Number(waitNs) / 1e6 }
}

async function measure(what) {
  const all = []
  for (let i = 0; i < explanations; i++) {
    const before = scheduled()
    const time = await explain(i)
    const after = scheduled()
    all.push({ time, cpu: after.cpu - before.cpu, wait: after.wait - before.wait })
  }
  all.sort((a, b) => a.time - b.time)
  const at = (part) => {
    return all[Math.min(all.length - 1, Math.floor(all.length * part))].time.toFixed(2)
  }
  const mean = (some, key) => {
    return (some.reduce((sum, one) => sum + one[key], 0) / some.length).toFixed(2)
  }
  const figures = `p50 ${at(0.5)} ms  p99 ${at(0.99)} ms  maximum ${at(1)} ms`
  console.log(`${what.padEnd(20)} ${figures}  CPU ${mean(all, 'cpu')} ms`)
  const slow = all.slice(Math.floor(all.length * 0.99))
  const parts = `CPU ${mean(slow, 'cpu')} ms  wait for a CPU ${mean(slow, 'wait')} ms`
  console.log(`  slowest 1 %        ${mean(slow, 'time')} ms  of the control thread: ${parts}`)
}

console.log(`${explanations} explanations of ${records} records, node ${process.version}`)
console.log(`first explanation    ${(await explain(0)).toFixed(1)} ms`)
await measure('without load')
const load = start('dnsperf', [
  ...['-s', '127.0.0.1', '-p', String(PORT), '-d', 'names.txt', '-l', '3600'],
  ...['-c', '8', '-q', '100', '-Q', String(QUERIES_PER_SECOND), '-E', '8:00011800510245'],
])
load.stdout.resume()
await measure(`${QUERIES_PER_SECOND} queries/s`)
process.exit()
