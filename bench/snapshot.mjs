// Claims: a server with 1 M A records answers from its snapshot within a second of reading it, with less
// than 250 MB more than an empty server; writing it holds up the control thread for milliseconds.
// Usage: node bench/snapshot.mjs [names] [image]      (after npm run build; `image`: without servers)
import { execFileSync, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { scanName } from '../dist/dns/name/name.js'
import { ZoneImage } from '../dist/zone/image/writer.js'
import { readSnapshot, restoreSnapshot } from '../dist/zone/snapshot/read.js'
import { writeInThread } from '../dist/zone/snapshot/write-in-thread.js'

const names = Number(process.argv[2] ?? 1_000_000)
/** As many endpoints as a DNSRecord may have. */
const PER_RECORD = 1000
const RECORDS_PER_FILE = 10
const PORT = 15399
const directory = mkdtempSync(join(tmpdir(), 'snapshot-'))
const MAIN = new URL('../dist/main.js', import.meta.url).pathname
const mb = (octets) => (octets / 1048576).toFixed(0)
const seconds = (ms) => `${(ms / 1000).toFixed(2)} s`

await measureWrite()
measureLoad()
if (process.argv[3] !== 'image') {
  writeManifests()
  await measureServers()
}
rmSync(directory, { recursive: true })

/** How long the thread that asked for a write is held up by it. */
async function measureWrite() {
  const image = new ZoneImage()
  const zone = image.addZone(scanName('k.example.com.'))
  for (let i = 0; i < names; i++) {
    const rdata = [new Uint8Array([10, (i >> 16) & 255, (i >> 8) & 255, i & 255])]
    image.putRRset(zone, scanName(`n${i}.k.example.com.`), { type: 1, ttlSeconds: 60, rdata })
  }
  image.publish()
  await delay(200)
  const delays = monitorEventLoopDelay({ resolution: 1 })
  delays.enable()
  await delay(1000)
  const quiet = delays.max
  delays.reset()
  const start = performance.now()
  const captureStart = performance.now()
  const captured = image.capture()
  const written = writeInThread({ path: join(directory, 'image'), image: captured, facts: '{}' })
  const calledMs = performance.now() - captureStart
  const octets = await written
  const ms = performance.now() - start
  delays.disable()
  console.log(`${names} names: ${mb(octets)} MB written in ${seconds(ms)} by another thread`)
  console.log(
    `  the call took ${calledMs.toFixed(1)} ms; longest pause of this thread ${(delays.max / 1e6).toFixed(1)} ms` +
      ` (${(quiet / 1e6).toFixed(1)} ms without a write; timers of 1 ms)`,
  )
}

/** What the server does with the file at its start, in CPU time: the wall clock knows the neighbours too. */
function measureLoad() {
  const path = join(directory, 'image')
  const before = process.memoryUsage().rss
  const start = performance.now()
  const cpu = process.cpuUsage()
  const read = readSnapshot(path)
  const readUsed = process.cpuUsage(cpu)
  restoreSnapshot(read, () => true)
  const used = process.cpuUsage(cpu)
  const ms = performance.now() - start
  const cpuMs = ({ user, system }) => `${((user + system) / 1000).toFixed(0)} ms`
  const grown = mb(process.memoryUsage().rss - before)
  console.log(
    `  loaded and checked in ${seconds(ms)}: CPU ${cpuMs(used)}, of it ${cpuMs(readUsed)} to read and sum; +${grown} MB`,
  )
}

function writeManifests() {
  mkdirSync(join(directory, 'zones'))
  mkdirSync(join(directory, 'none'))
  let text = ''
  for (let record = 0; record * PER_RECORD < names; record++) {
    text += `---\napiVersion: kuadrant.io/v1alpha1\nkind: DNSRecord\nmetadata:\n  name: r${record}\nspec:\n  rootHost: k.example.com\n  endpoints:\n`
    for (let i = record * PER_RECORD; i < Math.min(names, (record + 1) * PER_RECORD); i++) {
      text += `  - dnsName: n${i}.k.example.com\n    recordType: A\n    recordTTL: 60\n    targets:\n    - 10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}\n`
    }
    if (record % RECORDS_PER_FILE < RECORDS_PER_FILE - 1 && (record + 1) * PER_RECORD < names)
      continue
    writeFileSync(join(directory, 'zones', `${record}.yaml`), text)
    text = ''
  }
}

function start(manifests, snapshot) {
  const corefile = `k.example.com:${PORT} {
    bind 127.0.0.1
    multisocket 1
    kuadrant {
        manifests ${join(directory, manifests)}
        ${snapshot ? `snapshot ${join(directory, 'snapshot')} 1s` : ''}
    }
}
`
  writeFileSync(join(directory, 'Corefile'), corefile)
  const startMs = performance.now()
  const child = spawn(process.execPath, [MAIN, 'serve', '-conf', join(directory, 'Corefile')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let printed = ''
  child.stdout.on('data', (chunk) => {
    printed += chunk
  })
  const resident = () =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`))[1]) * 1024
  const stop = async () => {
    child.kill('SIGTERM')
    while (child.exitCode === null && child.signalCode === null) await delay(20)
  }
  return { child, startMs, printed: () => printed, resident, stop }
}

/** Milliseconds from the start of the server until it answers for the name. */
async function firstAnswer(server, name) {
  const socket = createSocket('udp4').on('error', () => {})
  let isAnswered = false
  socket.on('message', (reply) => {
    if ((reply[3] & 15) === 0 && reply[7] > 0) isAnswered = true
  })
  const labels = `${name}.k.example.com`.split('.')
  const question = Buffer.concat([
    Buffer.from([0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]),
    ...labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)]),
    Buffer.from([0, 0, 1, 0, 1]),
  ])
  while (!isAnswered) {
    socket.send(question, PORT, '127.0.0.1', () => {})
    await delay(5)
  }
  const ms = performance.now() - server.startMs
  socket.close()
  return ms
}

async function waitFor(server, pattern) {
  while (!pattern.test(server.printed())) await delay(20)
  return performance.now() - server.startMs
}

async function measureServers() {
  const empty = start('none', false)
  await waitFor(empty, /Sextant-/)
  const emptyMs = performance.now() - empty.startMs
  await delay(1000)
  const emptyOctets = empty.resident()
  await empty.stop()
  console.log(`empty server: up in ${seconds(emptyMs)}, ${mb(emptyOctets)} MB resident`)

  const fromRecords = start('zones', true)
  const ms = await firstAnswer(fromRecords, `n${names - 1}`)
  console.log(
    `from manifests: first answer after ${seconds(ms)}, +${mb(fromRecords.resident() - emptyOctets)} MB`,
  )
  while (!existsSync(join(directory, 'snapshot'))) await delay(50)
  await delay(2000)
  console.log(`  after writing the snapshot: +${mb(fromRecords.resident() - emptyOctets)} MB`)
  await fromRecords.stop()

  execFileSync('sync')
  const loaded = start('zones', true)
  const loadedMs = await firstAnswer(loaded, `n${names - 1}`)
  const loadedOctets = loaded.resident()
  const said = /snapshot \S+ (loaded in .*)/.exec(loaded.printed())?.[1]
  console.log(`from snapshot of ${mb(statSync(join(directory, 'snapshot')).size)} MB: ${said}`)
  console.log(
    `  first answer after ${seconds(loadedMs)}, +${mb(loadedOctets - emptyOctets)} MB resident`,
  )
  const caughtUpMs = await waitFor(loaded, /zone k\.example\.com\.: /)
  await delay(1000)
  console.log(
    `  records read after ${seconds(caughtUpMs)}: +${mb(loaded.resident() - emptyOctets)} MB`,
  )
  await loaded.stop()
}
