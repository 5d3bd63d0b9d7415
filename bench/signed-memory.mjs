// Claims: a signed zone of 100 000 names with four outcomes each takes at most 2.5 times the memory that Knot takes.
//   npm run build && node bench/signed-memory.mjs [names] [--cases geo,plain]
// geo: an address for each of four continents; DNSRecords in manifests, and Knot's mod-geoip. plain: a zone file of four
// addresses for each name, which the server signs. All keys are ECDSA P-256, with NSEC. Needs knot, knot-module-geoip.
// Prints resident memory when all is signed and the most until then, time and CPU time of the start.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { ask } from './peers/ask.mjs'
import { CLIENTS, masterFile } from './peers/content.mjs'
import { write } from './peers/files.mjs'
import { composeMmdb } from './peers/mmdb.mjs'
import { freePort } from './peers/ports.mjs'
import { commandOf, cpuUs, startProcess } from './peers/server-process.mjs'
import { writeConfig } from './peers/servers/knot.mjs'
import { verifySigned } from './shapes/verify-signed.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { cases: { type: 'string', default: 'geo,plain' } },
})
const [names = 100_000] = positionals.map(Number)
const ZONE = 's.example.com'
const CODES = ['EU', 'NA', 'AS', 'AF']
const RECORDS_PER_FILE = 1000
const START_LIMIT_MS = 580_000
const SETTLED_MS = 3000

const directory = mkdtempSync(join(tmpdir(), 'sextant-signed-memory-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
const mmdb = join(directory, 'geo.mmdb')
writeFileSync(mmdb, composeMmdb())

const hostOf = (i) => `h${i}.${ZONE}`
const addressOf = (i, outcome) => `10.${outcome}.${(i >> 8) & 255}.${i & 255}`

function* plainLines() {
  for (let i = 0; i < names; i++) {
    for (const [k] of CODES.entries()) yield `h${i} 60 IN A ${addressOf(i, k)}\n`
  }
}

function* firstLines() {
  for (let i = 0; i < names; i++) yield `h${i} 60 IN A ${addressOf(i, 0)}\n`
}

function* views() {
  for (let i = 0; i < names; i++) {
    yield `${hostOf(i)}:\n`
    for (const [k, code] of CODES.entries()) yield `  - geo: "${code}"\n    A: ${addressOf(i, k)}\n`
  }
}

function* manifest(from) {
  for (let i = from; i < Math.min(names, from + RECORDS_PER_FILE); i++) {
    yield `---\napiVersion: kuadrant.io/v1alpha1\nkind: DNSRecord\nmetadata: { name: r${i}, namespace: n }\n`
    yield `spec:\n  rootHost: ${hostOf(i)}\n  endpoints:\n`
    for (const [k, code] of CODES.entries()) {
      const isDefault = k === 0 ? ', { name: default, value: "true" }' : ''
      yield `    - { dnsName: ${hostOf(i)}, recordType: A, recordTTL: 60, setIdentifier: ${code}, targets: [${addressOf(i, k)}], providerSpecific: [{ name: geo-code, value: GEO-${code} }${isDefault}] }\n`
    }
  }
}

const sextant = (source) => (folder, port) => {
  write(join(folder, 'Corefile'), [
    `${ZONE}:${port} {\n bind 127.0.0.1\n multisocket 1\n minimal\n geoip ${mmdb} {\n  edns-subnet\n }\n`,
    source(folder),
    ` dnssec {\n  keys ${folder}/keys\n }\n}\n`,
  ])
  const main = join(dirname(fileURLToPath(import.meta.url)), '../dist/main.js')
  return [main, 'serve', '-conf', join(folder, 'Corefile')]
}

const knot = (lines, isGeo) => (folder, port) => {
  write(join(folder, 'zone'), masterFile(ZONE, lines()))
  if (isGeo) write(join(folder, 'geo.conf'), views())
  const zone = { zone: ZONE, file: 'zone', signed: true, ...(isGeo ? { geo: 'geo' } : {}) }
  return writeConfig({ directory: folder, port, ...(isGeo ? { mmdb } : {}) }, [zone])
}

function kuadrant(folder) {
  mkdirSync(join(folder, 'records'))
  for (let from = 0; from < names; from += RECORDS_PER_FILE) {
    write(join(folder, `records/r${from}.yaml`), manifest(from))
  }
  return ` kuadrant ${ZONE} {\n  manifests ${folder}/records\n }\n`
}

function file(folder) {
  write(join(folder, 'zone'), masterFile(ZONE, plainLines()))
  return ` file ${folder}/zone ${ZONE}\n`
}

const CASES = {
  geo: [
    { name: 'Sextant', command: process.execPath, prepare: sextant(kuadrant) },
    { name: 'Knot', command: 'knotd', prepare: knot(firstLines, true) },
  ],
  plain: [
    { name: 'Sextant', command: process.execPath, prepare: sextant(file) },
    { name: 'Knot', command: 'knotd', prepare: knot(plainLines, false) },
  ],
}

/** Addresses that a client of a continent gets. */
const expected = (kind, i, code) =>
  kind === 'plain' ? CODES.map((_, k) => addressOf(i, k)).join() : addressOf(i, CODES.indexOf(code))

async function untilSigned(kind, server, port) {
  const end = Date.now() + START_LIMIT_MS
  const last = names - 1
  while (
    (await ask(port, hostOf(last), CLIENTS.EU, 500).catch(() => []))?.join() !==
    expected(kind, last, 'EU')
  ) {
    if (server.failure !== undefined) throw new Error(server.failure)
    if (Date.now() > end) throw new Error(`${server.name} did not answer: ${server.output()}`)
    await new Promise((resume) => setTimeout(resume, 50))
  }
}

/** Every client gets the addresses of its continent, and they are signed. */
async function verify(kind, server, port) {
  for (const [code, subnet] of Object.entries(CLIENTS)) {
    for (let i = 0; i < names; i += Math.ceil(names / 100)) {
      const found = (await ask(port, hostOf(i), subnet))?.join()
      if (found !== expected(kind, i, code)) {
        throw new Error(`${server.name}: ${hostOf(i)} from ${code} is ${found}`)
      }
    }
  }
  const lines = () => Array.from({ length: names }, (_, i) => `${hostOf(i)} A`)
  await verifySigned(server, port, { lines, form: 'do,ecs' })
}

async function measure(kind, peer) {
  const command = commandOf(peer)
  if (command === undefined) return
  const folder = join(directory, kind, peer.name)
  mkdirSync(folder, { recursive: true })
  const port = await freePort()
  const args = peer.prepare(folder, port)
  const startMs = performance.now()
  const server = startProcess(peer.name, command, args)
  await untilSigned(kind, server, port)
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1)
  const { user, system } = cpuUs(server.pid)
  await verify(kind, server, port)
  await new Promise((resume) => setTimeout(resume, SETTLED_MS))
  const status = readFileSync(`/proc/${server.pid}/status`, 'utf8')
  const mibOf = (field) =>
    (Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(status)[1]) / 1024).toFixed(0)
  console.log(
    `| ${kind} | ${peer.name} | ${mibOf('VmRSS')} | ${mibOf('VmHWM')} | ${seconds} | ${((user + system) / 1e6).toFixed(1)} |`,
  )
  await server.stop()
}

console.log(
  `${names} names\n| case | server | MiB | most | start, s | CPU, s |\n|---|---|---:|---:|---:|---:|`,
)
for (const kind of values.cases.split(','))
  for (const peer of CASES[kind]) await measure(kind, peer)
process.exit(0)
