// Claims: while manifests with 100 000 records are renamed, copied, swapped or removed, the control thread pauses for
// at most 50 ms.
// Usage: node bench/renames.mjs [records] [files]      (after npm run build)
// Prints, for each change, the longest time between two turns of a 5 ms timer, the longest processor time of one such
// time (on a machine with other work the wall clock says more about that), and how long the change took.
import {
  cpSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../dist/base/clock.js'
import { Random } from '../dist/base/random.js'
import { systemTimers } from '../dist/base/timers.js'
import { scanName } from '../dist/dns/name/name.js'
import { NO_FALLTHROUGH } from '../dist/plugin/arguments/fallthrough.js'
import { OfferedVersions } from '../dist/publish/zone/offered-versions.js'
import { SerialIndex } from '../dist/publish/zone/serials/serial-index.js'
import { PublishedZones } from '../dist/publish/zone/zones.js'
import { ManifestSource } from '../dist/sources/manifests/manifest-source.js'
import { OwnedSource } from '../dist/sources/owned-source.js'
import { SteeringTable } from '../dist/steering/table.js'
import { ZoneVersions } from '../dist/xfr/zone-versions.js'
import { ZoneImage } from '../dist/zone/image/writer.js'

const recordCount = Number(process.argv[2] ?? 100_000)
const fileCount = Number(process.argv[3] ?? 1)

const manifest = (i, address = `192.0.2.${i % 250}`) => `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: app-${i}
  namespace: team-${i % 50}
spec:
  endpoints:
  - dnsName: app-${i}.k.example.com
    recordTTL: 60
    recordType: A
    targets:
    - ${address}
  rootHost: app-${i}.k.example.com
`

const root = mkdtempSync(join(tmpdir(), 'renames-'))
process.on('exit', () => rmSync(root, { recursive: true, force: true }))
const directory = join(root, 'zones')
mkdirSync(join(directory, 'a'), { recursive: true })
const perFile = Math.ceil(recordCount / fileCount)
for (let file = 0; file < fileCount; file++) {
  const texts = []
  for (let i = file * perFile; i < Math.min(recordCount, (file + 1) * perFile); i++)
    texts.push(manifest(i))
  writeFileSync(join(directory, 'a', `${file}.yaml`), texts.join(''))
}

/** The longest pause since it was asked last. */
class Pauses {
  #wallMs = 0
  #cpuMs = 0
  #lastMs = performance.now()
  #lastCpu = process.threadCpuUsage?.() ?? process.cpuUsage()

  constructor() {
    setInterval(() => this.#note(), 5).unref()
  }

  #note() {
    const nowMs = performance.now()
    const cpu = process.threadCpuUsage?.() ?? process.cpuUsage()
    const usedMs = (cpu.user + cpu.system - this.#lastCpu.user - this.#lastCpu.system) / 1000
    this.#wallMs = Math.max(this.#wallMs, nowMs - this.#lastMs)
    this.#cpuMs = Math.max(this.#cpuMs, usedMs)
    this.#lastMs = nowMs
    this.#lastCpu = cpu
  }

  take() {
    this.#note()
    const found = `${this.#wallMs.toFixed(0).padStart(6)} ms pause, ${this.#cpuMs.toFixed(0).padStart(5)} ms of it processor time`
    this.#wallMs = 0
    this.#cpuMs = 0
    return found
  }
}

const lines = []
const note = (text) => lines.push(text)
const log = { debug() {}, info: note, warning: note, error: note }
const parts = { clock: systemClock, timers: systemTimers, log }
const pauses = new Pauses()
const shared = new OwnedSource(new ManifestSource({ directory, ...parts }), parts)
await shared.start()
const image = new ZoneImage()
const table = new SteeringTable({
  locator: undefined,
  random: new Random(1),
  onError: console.error,
})
let commits = 0
const offered = new ZoneVersions()
const options = {
  zones: [scanName('k.example.com.')],
  nameservers: [],
  source: { kind: 'manifests', directory },
  rname: '',
  fallthrough: NO_FALLTHROUGH,
  position: { file: 'bench', line: 1 },
}
const zones = new PublishedZones(options, {
  image,
  table,
  health: shared.source.health,
  serials: new SerialIndex(),
  serialFile: undefined,
  place: 'bench',
  ...parts,
  onCommit: () => commits++,
  versions: new OfferedVersions(image, offered, offered.source()),
})
shared.ownership.claim(options.zones)
await zones.follow(shared.source, shared.ownership)
await new Promise((resolve) => setTimeout(resolve, 2000))
console.log(`${recordCount} records in ${fileCount} files`)
console.log(`${'start'.padEnd(28)} ${pauses.take()}`)

/** Resolves once nothing was done for a while. */
async function quiet() {
  for (let last = -1; ; ) {
    const { source } = shared
    await new Promise((resolve) => setTimeout(resolve, 400))
    await source.settled()
    const now = source.filesRead + lines.length + commits
    if (now === last) return
    last = now
  }
}

async function measure(what, change) {
  const { user, system } = process.cpuUsage()
  lines.length = 0
  commits = 0
  change()
  // What the change itself takes is not the server's.
  await new Promise((resolve) => setTimeout(resolve, 0))
  pauses.take()
  const startMs = performance.now()
  await quiet()
  const cpu = process.cpuUsage()
  const cpuMs = (cpu.user + cpu.system - user - system) / 1000
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1)
  const found = `${shared.source.recordCount} records, ${commits} commits, ${lines.length} lines`
  console.log(
    `${what.padEnd(28)} ${pauses.take()}; ${seconds} s, ${cpuMs.toFixed(0)} ms processor; ${found}`,
  )
}

const at = (...names) => join(directory, ...names)
const files = (folder) => readdirSync(at(folder))
await measure('mv of every file', () => {
  for (const file of files('a')) renameSync(at('a', file), at('a', `x${file}`))
})
await measure('mv of the folder', () => renameSync(at('a'), at('b')))
await measure('cp of the folder', () => cpSync(at('b'), at('c'), { recursive: true }))
await measure('rm of the original', () => rmSync(at('b'), { recursive: true }))
await measure('hard links beside', () => {
  for (const file of files('c')) linkSync(at('c', file), at('c', `0${file}`))
})
await measure('rm of the links', () => {
  for (const file of files('c')) if (file.startsWith('0')) rmSync(at('c', file))
})
await measure('another address in each', () => {
  const [first, ...others] = files('c')
  for (const file of others) rmSync(at('c', file))
  const texts = Array.from({ length: recordCount }, (_, i) => manifest(i, '192.0.2.251'))
  writeFileSync(at('c', first), texts.join(''))
})
await measure('a typo in each', () => {
  const texts = Array.from({ length: recordCount }, (_, i) =>
    manifest(i).replace('recordTTL', 'recordTtl'),
  )
  writeFileSync(at('c', files('c')[0]), texts.join(''))
})
await measure('each refused', () => {
  const texts = Array.from({ length: recordCount }, (_, i) => manifest(i, 'x'))
  writeFileSync(at('c', files('c')[0]), texts.join(''))
})
await measure('one record in all documents', () => {
  writeFileSync(at('c', files('c')[0]), manifest(0).repeat(recordCount))
})
await measure('a list in YAML', () => {
  const item = (i) => manifest(i).slice(4).trimEnd().replaceAll('\n', '\n  ')
  const items = Array.from({ length: recordCount }, (_, i) => `- ${item(i)}\n`)
  writeFileSync(at('c', files('c')[0]), `apiVersion: v1\nitems:\n${items.join('')}kind: List\n`)
})
await measure('rm of everything', () => rmSync(at('c'), { recursive: true }))
shared.close()
process.exit()
