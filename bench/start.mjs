// What a start costs: commands to their end, servers to their start-up lines; what servers have in memory then, and
// 1.5 s later.
//   node bench/start.mjs [OTHER_ROOT|-] [ROUNDS] [CASE]
// OTHER_ROOT: another built checkout, started in turn with this one; each round has a ratio of its own. CASE: how the names of
// those to be measured begin. Linux.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { median } from './median.mjs'

const here = fileURLToPath(new URL('..', import.meta.url))
const [other, rounds = '7', chosen = ''] = process.argv.slice(2)
const roots = other === undefined || other === '-' ? [here] : [here, resolve(other)]
const directory = mkdtempSync(join(tmpdir(), 'sextant-start-'))
/** Ticks of /proc are hundredths of a second. */
const MS_PER_TICK = 10

const WHOAMI = 'example.org:0 {\n bind 127.0.0.1\n whoami\n}\n'
const KUADRANT = `k.example.com:0 {
  bind 127.0.0.1
  prometheus 127.0.0.1:0
  ready 127.0.0.1:0
  errors
  log
  geoip
  kuadrant {
    manifests records
  }
}
`
mkdirSync(join(directory, 'records'))
writeFileSync(join(directory, 'whoami'), WHOAMI)
writeFileSync(join(directory, 'kuadrant'), KUADRANT)

const ZONES = 5000
const BLOCKS = 1000
const RECORDS = 20_000
const zoneText = (zone, names) =>
  `$ORIGIN ${zone}\n$TTL 300\n@ SOA ns1 admin 1 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\n${names}`
const addresses = (count) =>
  Array.from(
    { length: count },
    (_, i) => `n${i} A 10.${i >> 16}.${(i >> 8) & 255}.${i & 255}\n`,
  ).join('')

/** Writes the zones of a case, unless an earlier round did. */
function writeZones() {
  if (existsSync(join(directory, 'zone-files'))) return
  mkdirSync(join(directory, 'zone-files'))
  for (let i = 0; i < ZONES; i++)
    writeFileSync(
      join(directory, `zone-files/db.z${i}.example`),
      zoneText(`z${i}.example.`, addresses(9)),
    )
}

/** Corefiles of servers with many zones, or with many names. */
const LARGE = {
  zones() {
    writeZones()
    return '.:0 {\n bind 127.0.0.1\n auto {\n directory zone-files db\\.(.*) {1}\n }\n}\n'
  },
  blocks() {
    writeZones()
    const block = (_, i) =>
      `z${i}.example:0 {\n bind 127.0.0.1\n file zone-files/db.z${i}.example\n}\n`
    return Array.from({ length: BLOCKS }, block).join('')
  },
  names() {
    const file = join(directory, 'large')
    if (!existsSync(file)) writeFileSync(file, zoneText('example.org.', addresses(1_000_000)))
    return 'example.org:0 {\n bind 127.0.0.1\n file large\n}\n'
  },
  kept() {
    LARGE.names()
    return 'example.org:0 {\n bind 127.0.0.1\n file large {\n  snapshot kept-zone\n }\n}\n'
  },
  manifests() {
    writeRecords()
    return KUADRANT.replace('manifests records', 'manifests many')
  },
}

/** RECORDS records of four endpoints, 1 000 in a file, in flow style. */
function writeRecords() {
  if (existsSync(join(directory, 'many'))) return
  mkdirSync(join(directory, 'many'))
  const head = 'apiVersion: kuadrant.io/v1alpha1\nkind: DNSRecord\n'
  const codes = ['US', 'GEO-EU', '*', 'GEO-AS']
  for (let file = 0; file < RECORDS / 1000; file++) {
    const records = Array.from({ length: 1000 }, (_, i) => {
      const host = `h${file * 1000 + i}.k.example.com`
      const endpoints = codes.map((code, at) => {
        const properties = `[{ name: weight, value: "${60 - at * 10}" }, { name: geo-code, value: "${code}" }]`
        return `    - { dnsName: ${host}, recordType: A, recordTTL: 60, setIdentifier: s${at}, targets: [192.0.${at}.${i % 250}], providerSpecific: ${properties} }\n`
      })
      const metadata = `metadata: { name: r${file * 1000 + i}, namespace: ns }\n`
      return `${head}${metadata}spec:\n  rootHost: ${host}\n  endpoints:\n${endpoints.join('')}`
    })
    writeFileSync(join(directory, `many/f${file}.yaml`), records.join('---\n'))
  }
}
const SETTLED_MS = 1500

/** Milliseconds and CPU milliseconds of a command, from its start to its end. */
function command(...args) {
  return (main) => {
    const time = 'TIMEFORMAT="%R %U %S"; time "$@" >/dev/null 2>&1'
    const words = ['-c', time, 'bash', process.execPath, main, ...args]
    const { stderr, status } = spawnSync('bash', words, { cwd: directory, encoding: 'utf8' })
    if (status !== 0) throw new Error(`${args.join(' ')}: exit code ${status}`)
    const [real, user, system] = stderr.trim().split(' ').map(Number)
    return { wallMs: real * 1000, cpuMs: (user + system) * 1000 }
  }
}

/** The same of a server, from its start to the last of its lines; and what it has in memory then. */
function server(corefile) {
  return async (main) => {
    const compose = LARGE[corefile]
    if (compose !== undefined) writeFileSync(join(directory, corefile), compose())
    const startMs = performance.now()
    const args = [main, 'serve', '-conf', corefile]
    const child = spawn(process.execPath, args, { cwd: directory, stdio: ['ignore', 'pipe', 1] })
    const exited = once(child, 'exit')
    let last = ''
    for await (const line of createInterface({ input: child.stdout })) {
      last = line
      if (line.startsWith('Sextant-')) break
    }
    if (!last.startsWith('Sextant-')) throw new Error(`${corefile}: it did not start: ${last}`)
    const wallMs = performance.now() - startMs
    const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1].split(' ')
    await new Promise((resume) => setTimeout(resume, SETTLED_MS))
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8')
    const mibOf = (field) => Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)[1]) / 1024
    const [residentMib, peakMib] = [mibOf('VmRSS'), mibOf('VmHWM')]
    child.kill('SIGTERM')
    await exited
    return {
      wallMs,
      cpuMs: (Number(stat[11]) + Number(stat[12])) * MS_PER_TICK,
      residentMib,
      peakMib,
    }
  }
}

const cases = {
  '-version': command('-version'),
  'check, whoami': command('check', '-conf', 'whoami'),
  'check, kuadrant': command('check', '-conf', 'kuadrant'),
  'serve, whoami': server('whoami'),
  'serve, kuadrant': server('kuadrant'),
  'zones, 5 000 of 12 records': server('zones'),
  'blocks, 1 000 with a zone': server('blocks'),
  'names, a million': server('names'),
  'snapshot, a million names': server('kept'),
  'records, 20 000 in manifests': server('manifests'),
}

for (const [name, run] of Object.entries(cases)) {
  if (!name.startsWith(chosen)) continue
  const measured = roots.map(() => [])
  for (let round = 0; round <= Number(rounds); round++) {
    for (const [i, root] of roots.entries()) {
      const one = await run(join(root, 'dist/main.js'))
      // The first round warms the caches of the system.
      if (round > 0) measured[i].push(one)
    }
  }
  for (const key of Object.keys(measured[0][0])) {
    const values = measured.map((runs) => runs.map((one) => one[key]))
    const texts = values.map((one) => median(one).toFixed(0).padStart(6))
    const ratios = values[0].map((value, i) => value / (values[1]?.[i] ?? value))
    const ratio = roots.length === 1 ? '' : `  ${median(ratios).toFixed(2)} of it`
    console.log(`${name.padEnd(26)} ${key.padEnd(12)} ${texts.join(' against ')}${ratio}`)
  }
}
rmSync(directory, { recursive: true })
