// Queries per second and CPU per query of the whole server over UDP, driven by dnsperf.
//   npm run build && node bench/udp.mjs [rounds] [seconds]
// Needs dnsperf (Debian: dnsperf). Cases are interleaved round by round; the median is printed.
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const rounds = Number(process.argv[2] ?? 3)
const seconds = Number(process.argv[3] ?? 5)
const PORT = 15353
const NAMES = 1000

const directory = mkdtempSync(join(tmpdir(), 'sextant-bench-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))

const endpoint = (geo, address, weight) => `    - dnsName: app.k.example.com
      recordType: A
      recordTTL: 60
      setIdentifier: ${geo}-${weight}
      targets:
        - ${address}
      providerSpecific:
        - name: geo-code
          value: ${geo}
        - name: weight
          value: "${weight}"
`
mkdirSync(join(directory, 'records'))
writeFileSync(
  join(directory, 'records/app.yaml'),
  `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: app
  namespace: bench
spec:
  rootHost: app.k.example.com
  endpoints:
${endpoint('GEO-EU', '192.0.2.1', 120)}${endpoint('GEO-EU', '192.0.2.2', 60)}${endpoint('GEO-NA', '192.0.2.11', 120)}`,
)
writeFileSync(
  join(directory, 'db.plain.example'),
  `$ORIGIN plain.example.
@ 300 IN SOA ns1 hostmaster 1 7200 1800 86400 60
@ 300 IN NS ns1
ns1 300 IN A 192.0.2.53
${Array.from({ length: NAMES }, (_, i) => `n${i} 300 IN A 10.0.${i >> 8}.${i & 255}`).join('\n')}
`,
)
const corefile = (extra) => `k.example.com:${PORT} plain.example:${PORT} {
    bind 127.0.0.1
    errors
    geoip {
        edns-subnet
    }
    kuadrant k.example.com {
        manifests records
        fallthrough
    }
    file db.plain.example plain.example
${extra}
}
`
const queryFile = (name, lines) => {
  const path = join(directory, name)
  writeFileSync(path, `${lines.join('\n')}\n`)
  return path
}
const plain = queryFile(
  'plain.txt',
  Array.from({ length: NAMES }, (_, i) => `n${i}.plain.example A`),
)
const steered = queryFile('steered.txt', ['app.k.example.com A'])

const CASES = [
  { name: 'plain A, 1 000 names', file: plain, options: [], extra: '' },
  { name: 'GEO + weight + ECS', file: steered, options: ['-E', '8:00011800510245'], extra: '' },
  {
    name: 'plain A, log and prometheus',
    file: plain,
    options: [],
    extra: '    log\n    prometheus 127.0.0.1:19153\n',
  },
]

/** User and system milliseconds of a process so far. */
function cpuMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
  return { user: Number(fields[11]) * 10, system: Number(fields[12]) * 10 }
}

async function measure({ file, options, extra }) {
  writeFileSync(join(directory, 'Corefile'), corefile(extra))
  const server = spawn(
    process.execPath,
    [join(root, 'dist/main.js'), 'serve', '-conf', 'Corefile'],
    {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  await new Promise((resolve) => {
    let text = ''
    server.stdout.on('data', (chunk) => {
      if (text.length < 10_000) text += chunk
      if (/^Sextant-/m.test(text)) resolve()
    })
  })
  const dnsperf = (length) =>
    execFileSync(
      'dnsperf',
      [
        '-s',
        '127.0.0.1',
        '-p',
        String(PORT),
        '-d',
        file,
        '-l',
        String(length),
        '-c',
        '8',
        // More at once overflow a default socket buffer before the server is warm.
        '-q',
        '100',
        ...options,
      ],
      { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
    )
  dnsperf(1)
  const before = cpuMs(server.pid)
  const report = dnsperf(seconds)
  const after = cpuMs(server.pid)
  server.kill('SIGKILL')
  await new Promise((resolve) => server.once('exit', resolve))
  const completed = Number(/Queries completed:\s+(\d+)/.exec(report)?.[1])
  return {
    qps: Number(/Queries per second:\s+([\d.]+)/.exec(report)?.[1]),
    lost: Number(/Queries lost:\s+(\d+)/.exec(report)?.[1]),
    userUs: ((after.user - before.user) * 1000) / completed,
    systemUs: ((after.system - before.system) * 1000) / completed,
  }
}

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]
const results = CASES.map(() => [])
for (let round = 0; round < rounds; round++) {
  for (const [index, entry] of CASES.entries()) results[index].push(await measure(entry))
}
console.log(`median of ${rounds} rounds of ${seconds} s, node ${process.version}`)
for (const [index, { name }] of CASES.entries()) {
  const of = (key) => median(results[index].map((result) => result[key]))
  console.log(
    `${name.padEnd(30)} ${of('qps').toFixed(0).padStart(7)} q/s  user ${of('userUs').toFixed(2)} us  system ${of('systemUs').toFixed(2)} us  lost ${of('lost')}`,
  )
}
