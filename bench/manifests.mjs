// Claims: 100 000 DNSRecords in manifests load in <= 5 s and <= 300 MB resident, with a progress line;
// one edited record is served after <= 10 ms of processing, without a rebuild of the zone.
// Usage: node bench/manifests.mjs [records] [files] [json]      (after npm run build)
// json: each document is JSON on one line, in the same files.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { systemClock } from '../dist/base/clock.js'
import { Random } from '../dist/base/random.js'
import { systemTimers } from '../dist/base/timers.js'
import { scanName } from '../dist/dns/name/name.js'
import { NO_FALLTHROUGH } from '../dist/plugin/arguments/fallthrough.js'
import { AnswerEvents } from '../dist/publish/build/answer-events.js'
import { OfferedVersions } from '../dist/publish/zone/offered-versions.js'
import { SerialIndex } from '../dist/publish/zone/serials/serial-index.js'
import { PublishedZones } from '../dist/publish/zone/zones.js'
import { ManifestSource } from '../dist/sources/manifests/manifest-source.js'
import { OwnedSource } from '../dist/sources/owned-source.js'
import { SteeringTable } from '../dist/steering/table.js'
import { ZoneVersions } from '../dist/xfr/zone-versions.js'
import { ZoneImage } from '../dist/zone/image/writer.js'
import { median } from './median.mjs'

const recordCount = Number(process.argv[2] ?? 100_000)
const fileCount = Number(process.argv[3] ?? 100)
const isJson = process.argv[4] === 'json'
const EDITS = 41

const endpoint = (host, id, geo, address) => `  - dnsName: ${host}
    providerSpecific:
    - name: weight
      value: "120"
    - name: geo-code
      value: ${geo}
    recordTTL: 60
    recordType: A
    setIdentifier: ${id}
    targets:
    - ${address}
`
const octet = (i) => `192.0.2.${i % 250}`

function document(i, shift = 0) {
  const text = yamlDocument(i, shift)
  return isJson ? `---\n${JSON.stringify(parse(text))}\n` : text
}

function yamlDocument(i, shift) {
  const host = `app-${i}.k.example.com`
  return `---
apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  labels:
    kuadrant.io/coredns-zone-name: k.example.com
  name: app-${i}
  namespace: team-${i % 50}
spec:
  endpoints:
${endpoint(host, 'eu', 'GEO-EU', octet(i + shift))}${endpoint(host, 'na', 'GEO-NA', octet(i + 1))}  rootHost: ${host}
`
}

const directory = mkdtempSync(join(tmpdir(), 'manifests-'))
const path = (file) => join(directory, `${String(file).padStart(4, '0')}.yaml`)
const perFile = Math.ceil(recordCount / fileCount)
let octets = 0
for (let file = 0; file < fileCount; file++) {
  let text = ''
  for (let i = file * perFile; i < Math.min(recordCount, (file + 1) * perFile); i++)
    text += document(i)
  octets += text.length
  writeFileSync(path(file), text)
}

const log = { debug() {}, info: console.log, warning: console.log, error: console.log }
const residentMb = () => (process.memoryUsage().rss / 1048576).toFixed(0)
const peakMb = () => {
  const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync('/proc/self/status', 'utf8'))
  return peak === null ? '?' : (Number(peak[1]) / 1024).toFixed(0)
}

console.log(`${recordCount} records in ${fileCount} files, ${(octets / 1048576).toFixed(0)} MB`)
console.log(`before: ${residentMb()} MB resident`)
const start = performance.now()
const cpuBefore = process.cpuUsage().user
const parts = { clock: systemClock, timers: systemTimers, log }
const shared = new OwnedSource(new ManifestSource({ directory, ...parts }), parts)
await shared.start()
const image = new ZoneImage()
const table = new SteeringTable({
  locator: undefined,
  random: new Random(1),
  onError: console.error,
})
let commits = 0
let commitMs = 0
const onCommit = (seconds) => {
  commits++
  commitMs = seconds * 1000
}
const options = {
  zones: [scanName('k.example.com.')],
  manifests: directory,
  position: { file: 'Corefile', line: 1 },
  rname: '',
  nameservers: [],
  allowedNamespaces: undefined,
  fallthrough: NO_FALLTHROUGH,
}
const offered = new ZoneVersions()
const zones = new PublishedZones(options, {
  image,
  table,
  health: shared.source.health,
  serials: new SerialIndex(),
  serialFile: undefined,
  versions: new OfferedVersions(image, offered, offered.source()),
  events: new AnswerEvents({ source: '', others: undefined, find: () => undefined }),
  place: 'bench',
  onCommit,
  ...parts,
})
shared.ownership.claim(options.zones)
await zones.follow(shared.source, shared.ownership)
console.log(`loaded and published in ${((performance.now() - start) / 1000).toFixed(2)} s`)
const cpu = (process.cpuUsage().user - cpuBefore) / 1e6
console.log(
  `  user time ${cpu.toFixed(2)} s, ${((cpu / recordCount) * 1e6).toFixed(0)} µs per record`,
)
console.log(`after: ${residentMb()} MB resident, peak ${peakMb()} MB`)
console.log(`image: ${(image.stats.usedOctets / 1048576).toFixed(0)} MB`)
const { heapUsed, external, arrayBuffers } = process.memoryUsage()
console.log({ heapUsed, external, arrayBuffers })

await shared.source.settled()
const written = []
const commitTimes = []
for (let edit = 0; edit < EDITS; edit++) {
  const file = edit % fileCount
  let text = ''
  for (let i = file * perFile; i < Math.min(recordCount, (file + 1) * perFile); i++) {
    text += document(i, i === file * perFile + 7 ? edit + 1 : 0)
  }
  const before = commits
  const at = performance.now()
  writeFileSync(path(file), text)
  while (commits === before) await new Promise((resolve) => setImmediate(resolve))
  written.push(performance.now() - at)
  commitTimes.push(commitMs)
  await shared.source.settled()
}
const medianMs = (times) => median(times).toFixed(2)
const worst = (times) => Math.max(...times).toFixed(2)
console.log(
  `edit of one record, file written to published: median ${medianMs(written)} ms, worst ${worst(written)} ms`,
)
console.log('  (4 ms of it is waiting for the writer to finish)')
console.log(
  `  changed record to published: median ${medianMs(commitTimes)} ms, worst ${worst(commitTimes)} ms`,
)
console.log(`after edits: ${residentMb()} MB resident, peak ${peakMb()} MB`)
shared.close()
rmSync(directory, { recursive: true })
