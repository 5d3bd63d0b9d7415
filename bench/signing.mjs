// Claims: in a signed zone of 100 000 names, a change of one record is signed and published within 20 ms; 100 000
// records are signed from nothing within 40 s, in the background. Prints the memory, too, and on Linux the CPU time of
// the changes: on a busy machine, most of the time of the slow ones is waiting for a CPU.
// Usage: node bench/signing.mjs [names] [nsec|nsec3|compact] [answers] [changes]      (after npm run build)
import { existsSync, readFileSync } from 'node:fs'
import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import { systemClock } from '../dist/base/clock.js'
import { systemTimers } from '../dist/base/timers.js'
import { Algorithm } from '../dist/dns/dnssec/algorithms.js'
import { FLAGS_KSK, generatePrivateKey, signingKey } from '../dist/dns/dnssec/dnskey.js'
import { RRType } from '../dist/dns/iana/types.js'
import { scanName } from '../dist/dns/name/name.js'
import { ZoneSigner } from '../dist/signing/zone/zone-signer.js'
import { DEFAULT_SIGNING } from '../dist/signing/zone-keys.js'
import { encodeSteering, NO_POLICY } from '../dist/steering/encode.js'
import { ZoneImage } from '../dist/zone/image/writer.js'
import { median } from './median.mjs'

const names = Number(process.argv[2] ?? 100_000)
const denial = process.argv[3] ?? 'nsec'
const answers = Number(process.argv[4] ?? 1)
const changes = Number(process.argv[5] ?? 2400)
const schedstat = `/proc/self/task/${process.pid}/schedstat`
const KINDS = ['edit', 'add', 'edit', 'remove']
const APEX = scanName('k.example.com.')
const { EcdsaP256 } = Algorithm
const key = signingKey(await generatePrivateKey(EcdsaP256), EcdsaP256, FLAGS_KSK)
const keys = {
  dnskeys: [key.dnskey],
  dnskeyTtlSeconds: 3600,
  cds: [],
  cdnskeys: [key.dnskey],
  keySigners: [key],
  zoneSigners: [key],
}
const source = { find: () => keys, subscribe: () => () => {}, notePublished: () => {} }
const mb = (octets) => (octets / 1048576).toFixed(0)

let signer
const image = new ZoneImage({ names: names * (denial === 'nsec3' ? 2 : 1) })
const zone = image.addZone(APEX)
put(APEX, RRType.NS, [scanName('ns.example.com.')])
for (let i = 0; i < names; i++) putAddresses(`n${i}`, i)
const unsigned = image.stats.usedOctets

signer = newSigner()
const cpu = process.cpuUsage()
const delays = monitorEventLoopDelay({ resolution: 1 })
delays.enable()
await report(`sign ${names} names from nothing`, () => publish())
delays.disable()
const used = process.cpuUsage(cpu)
console.log(
  `  CPU time ${((used.user + used.system) / 1e6).toFixed(1)} s; event loop held for at most ${(delays.max / 1e6).toFixed(0)} ms`,
)
console.log(
  `  image ${mb(unsigned)} MB unsigned, ${mb(image.stats.usedOctets)} MB signed, ${mb(image.stats.liveOctets)} MB live`,
)
console.log(`  process ${mb(process.memoryUsage.rss())} MB`)

/** Milliseconds of the changes by their kind, and of those at whose end a compaction ended. */
const times = { edit: [], add: [], remove: [], compact: [] }
/** CPU milliseconds of this thread by change. */
const cpuTimes = []
let compactions = 0
image.onSwap(() => compactions++)
for (let i = 0; i < changes; i++) {
  const before = compactions
  const kind = KINDS[i % KINDS.length]
  const startCpu = threadCpuMs()
  const time = await change(i, kind)
  cpuTimes.push(threadCpuMs() - startCpu)
  times[kind].push(time)
  if (compactions > before) times.compact.push(time)
}
console.log(`${changes} changes of one record each, with ${compactions} compactions of the image:`)
for (const [kind, all] of Object.entries(times)) print(kind, all)
print('CPU time of all', cpuTimes)
signer.close()
signer = newSigner()
const before = signer.state.made
await report('sign all again as after a restart', () => publish())
console.log(`  signatures made: ${signer.state.made - before}`)
signer.close()

function newSigner() {
  const parts = { clock: systemClock, timers: systemTimers }
  const policy = { ...DEFAULT_SIGNING, denial }
  return new ZoneSigner(image, zone, APEX, { keys: source, policy }, parts)
}

/** Edits a name, adds a new one, or removes one of the first ones. */
async function change(i, kind) {
  const start = performance.now()
  if (kind === 'edit') putAddresses(`n${names / 2 + ((i * 7919) % (names / 2))}`, i)
  else if (kind === 'add') putAddresses(`new${(i * 7919) % 1_000_003}`, i)
  else remove(`n${(i * 7919) % (names / 2)}`)
  await publish()
  return performance.now() - start
}

function print(what, all) {
  if (all.length === 0) return
  all.sort((a, b) => a - b)
  const late = all[Math.floor(all.length * 0.99)]
  console.log(
    `  ${what}: median ${median(all).toFixed(1)} ms, 99 % ${late.toFixed(1)} ms, most ${all.at(-1).toFixed(1)} ms`,
  )
}

/** CPU time of the main thread, in steps of up to 4 ms; NaN = not known. */
function threadCpuMs() {
  if (!existsSync(schedstat)) return Number.NaN
  return Number(readFileSync(schedstat, 'latin1').split(' ')[0]) / 1e6
}

async function publish() {
  put(APEX, RRType.SOA, [soa()], 3600)
  for (let work = signer.sign(); work !== undefined; work = signer.sign()) await work
  image.publish()
}

async function report(text, run) {
  const start = performance.now()
  await run()
  console.log(`${text}: ${((performance.now() - start) / 1000).toFixed(1)} s`)
}

function put(owner, type, rdata, ttlSeconds = 60, steering = undefined) {
  image.putRRset(zone, owner, { type, ttlSeconds, rdata, steering })
  signer?.note(owner, type)
}

function remove(name) {
  const owner = scanName(`${name}.k.example.com.`)
  image.removeRRset(zone, owner, RRType.A)
  signer.note(owner, RRType.A)
}

function putAddresses(name, i) {
  const rdata = Array.from({ length: answers }, (_, k) => {
    return new Uint8Array([10 + k, (i >> 16) & 255, (i >> 8) & 255, i & 255])
  })
  put(scanName(`${name}.k.example.com.`), RRType.A, rdata, 60, answers > 1 ? steered() : undefined)
}

function steered() {
  const tier = Array.from({ length: answers }, (_, k) => {
    return { weight: 1, ttlSeconds: 60, rdataIndexes: [k] }
  })
  return encodeSteering(NO_POLICY, [tier])
}

function soa() {
  const numbers = Buffer.alloc(20)
  for (const [i, n] of [image.version + 1, 7200, 900, 86_400, 60].entries())
    numbers.writeUInt32BE(n, i * 4)
  return Buffer.concat([scanName('ns.example.com.'), scanName('admin.example.com.'), numbers])
}
