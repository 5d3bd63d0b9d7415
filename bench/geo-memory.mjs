// Claims: what a server with `geoip` has in memory: once its classes are built, while a new geo code is built in, and
// where a log format reads metadata. By hand:
//   npm run build && node bench/geo-memory.mjs [DATABASE] [OTHER_ROOT]
// DATABASE: an MMDB file, such as GeoLite2-City; without one the bundled database is used. OTHER_ROOT: another built
// checkout, measured as well. 200 records of geo codes, two data threads. Linux, `dig`.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from './peers/ports.mjs'
import { cpuUs, startProcess } from './peers/server-process.mjs'

const here = fileURLToPath(new URL('..', import.meta.url))
const [database = '', other] = process.argv.slice(2)
const roots = other === undefined ? [here] : [here, resolve(other)]
const ZONE = 'k.example.com'
const RECORDS = 200
const CODES = ['GEO-EU', 'GEO-NA', 'GEO-AS', 'DE', 'FR', 'US', 'US-CA', 'JP']
/** In none of the records at the start. */
const NEW_CODE = 'GB'
const NEW_CLIENT = '81.2.69.0/24'
const SETTLE_MS = 4000
const PATIENCE_MS = 60_000

function record(name, host, code) {
  const geo = `    providerSpecific:\n    - name: geo-code\n      value: ${code}\n`
  const rest = '    providerSpecific:\n    - name: default\n      value: "true"\n'
  const endpoint = (set, target, properties) =>
    `  - dnsName: ${host}\n    recordType: A\n    recordTTL: 60\n    setIdentifier: ${set}\n` +
    `    targets:\n    - ${target}\n${properties}`
  return `---\napiVersion: kuadrant.io/v1alpha1\nkind: DNSRecord\nmetadata:\n  name: ${name}\nspec:\n  rootHost: ${host}\n  endpoints:\n${endpoint('place', '192.0.2.1', geo)}${endpoint('rest', '198.51.100.1', rest)}`
}

/** MiB of a process: resident now and at most so far, and of what is resident, the part that is its own. */
function memory(pid) {
  const field = (file, name) => {
    const text = readFileSync(`/proc/${pid}/${file}`, 'utf8')
    return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)[1]) / 1024
  }
  const own = field('smaps_rollup', 'Private_Dirty')
  return { resident: field('status', 'VmRSS'), most: field('status', 'VmHWM'), own }
}

function print(what, pid) {
  const { resident, most, own } = memory(pid)
  const mib = (value) => `${value.toFixed(0).padStart(4)} MiB`
  console.log(`  ${what.padEnd(44)} resident ${mib(resident)}, own ${mib(own)}, most ${mib(most)}`)
}

function ask(port, host, client) {
  const args = ['@127.0.0.1', '-p', `${port}`, `+subnet=${client}`, '+short', '+tries=1', host, 'A']
  return execFileSync('dig', args, { encoding: 'utf8' }).trim()
}

async function until(condition, what, server) {
  const endMs = performance.now() + PATIENCE_MS
  while (!condition()) {
    if (server.failure !== undefined) throw new Error(server.failure)
    if (performance.now() > endMs) throw new Error(`no ${what}: ${server.output()}`)
    await delay(20)
  }
}

async function measure(root, readsMetadata) {
  const directory = mkdtempSync(join(tmpdir(), 'geo-memory-'))
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }))
  mkdirSync(join(directory, 'records'))
  const texts = Array.from({ length: RECORDS }, (_, i) =>
    record(`r${i}`, `h${i}.${ZONE}`, CODES[i % CODES.length]),
  )
  writeFileSync(join(directory, 'records', 'all.yaml'), texts.join(''))
  const port = await freePort()
  const conf = join(directory, 'Corefile')
  const log = readsMetadata ? 'log . "{remote} {/geoip/city/name}"\n metadata' : 'errors'
  writeFileSync(
    conf,
    `${ZONE}:${port} {
 bind 127.0.0.1
 multisocket 2
 ready 127.0.0.1:${await freePort()}
 prometheus 127.0.0.1:${await freePort()}
 ${log}
 geoip ${database === '' ? '' : resolve(database)} {
  edns-subnet
 }
 kuadrant {
  manifests records
 }
}
`,
  )
  const args = [join(root, 'dist/main.js'), 'serve', '-conf', conf]
  process.chdir(directory)
  const server = startProcess('sextant', process.execPath, args)
  const startMs = performance.now()
  await until(() => /^Sextant-/m.test(server.output()), 'start', server)
  const { user, system } = cpuUs(server.pid)
  const seconds = ((performance.now() - startMs) / 1000).toFixed(2)
  console.log(`  started in ${seconds} s, ${((user + system) / 1e6).toFixed(2)} s of CPU`)
  print('started', server.pid)
  for (let i = 0; i < 100; i++) ask(port, `h${i}.${ZONE}`, '5.9.0.0/24')
  await delay(SETTLE_MS)
  print('after 100 queries and 4 s', server.pid)
  const newHost = `new.${ZONE}`
  writeFileSync(join(directory, 'records', 'new.yaml'), record('new', newHost, NEW_CODE))
  const writtenMs = performance.now()
  await until(() => ask(port, newHost, NEW_CLIENT) === '192.0.2.1', 'new code', server)
  console.log(`  new code served after ${((performance.now() - writtenMs) / 1000).toFixed(2)} s`)
  await delay(SETTLE_MS)
  print('after a new code and 4 s', server.pid)
  await server.stop()
}

for (const root of roots) {
  for (const readsMetadata of [false, true]) {
    console.log(`${root}, ${readsMetadata ? 'a log format with metadata' : 'classes only'}`)
    await measure(root, readsMetadata)
  }
}
process.exit(0)
