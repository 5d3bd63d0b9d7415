// Claims: in a signed zone of 100 000 DNSRecords, a change of one record is signed and published within 20 ms.
// Usage: node bench/signed-records.mjs [records]      (after npm run build)
import { performance } from 'node:perf_hooks'
import { systemClock } from '../dist/base/clock.js'
import { Random } from '../dist/base/random.js'
import { systemTimers } from '../dist/base/timers.js'
import { Algorithm } from '../dist/dns/dnssec/algorithms.js'
import { FLAGS_KSK, generatePrivateKey, signingKey } from '../dist/dns/dnssec/dnskey.js'
import { RRType } from '../dist/dns/iana/types.js'
import { nameKey, scanName } from '../dist/dns/name/name.js'
import { AnswerEvents } from '../dist/publish/build/answer-events.js'
import { NOTHING_KNOWN } from '../dist/publish/build/served-health.js'
import { NO_PEERING } from '../dist/publish/options.js'
import { OfferedVersions } from '../dist/publish/zone/offered-versions.js'
import { SerialIndex } from '../dist/publish/zone/serials/serial-index.js'
import { PublishedZones } from '../dist/publish/zone/zones.js'
import { packRecord } from '../dist/records/pack.js'
import { StoredRecord } from '../dist/records/record-source.js'
import { DEFAULT_SIGNING } from '../dist/signing/zone-keys.js'
import { ZoneOwnership } from '../dist/sources/zone-ownership.js'
import { SteeringTable } from '../dist/steering/table.js'
import { ZoneVersions } from '../dist/xfr/zone-versions.js'
import { ZoneImage } from '../dist/zone/image/writer.js'
import { median } from './median.mjs'

const count = Number(process.argv[2] ?? 100_000)
const CHANGES = 200
const APEX = scanName('k.example.com.')
const { EcdsaP256 } = Algorithm
const key = signingKey(await generatePrivateKey(EcdsaP256), EcdsaP256, FLAGS_KSK)
const keys = {
  dnskeys: [key.dnskey],
  dnskeyTtlSeconds: 3600,
  cds: [],
  cdnskeys: [],
  keySigners: [key],
  zoneSigners: [key],
}
const source = { find: () => keys, subscribe: () => () => {}, notePublished: () => {} }

/** Two endpoints with weights. */
function record(i, last = 1, name = `n${i}`) {
  const owner = scanName(`${name}.k.example.com.`)
  const endpoints = [last, 200].map((octet, n) => ({
    owner,
    type: RRType.A,
    ttlSeconds: 60,
    setIdentifier: `${n}`,
    weight: 100,
    codes: [],
    isDefault: false,
    rdata: [Uint8Array.of(192, 0, 2, octet)],
  }))
  const packed = packRecord({
    namespace: 'n',
    name: `r${i}`,
    zoneLabel: '',
    rootHost: owner,
    isAggregate: false,
    isWildcardHost: false,
    createdSeconds: 0,
    endpoints,
  })
  return new StoredRecord(`n/r${i}`, packed)
}

const records = Array.from({ length: count }, (_, i) => record(i))
const image = new ZoneImage()
const offered = new ZoneVersions()
const random = new Random(1)
const table = new SteeringTable({ locator: undefined, random, onError: console.error })
const options = {
  zones: [APEX],
  signed: new Map([[nameKey(APEX), { keys: source, policy: DEFAULT_SIGNING, claim: () => {} }]]),
  position: { file: 'Corefile', line: 1 },
  rname: '',
  nameservers: [],
  allowedNamespaces: undefined,
  peering: NO_PEERING,
}
let published = () => {}
const zones = new PublishedZones(options, {
  image,
  table,
  health: { ...NOTHING_KNOWN, subscribe: () => () => {} },
  serials: new SerialIndex(),
  serialFile: undefined,
  versions: new OfferedVersions(image, offered, offered.source()),
  events: new AnswerEvents({ source: '', others: undefined, find: () => undefined }),
  place: 'bench',
  clock: systemClock,
  timers: systemTimers,
  log: { debug() {}, info: console.log, warning: console.log, error: console.log },
  onCommit: () => published(),
})

const ownership = new ZoneOwnership()
ownership.claim([APEX])
let notify = () => {}
const known = new Map(records.map((one) => [one.key, one]))
const startMs = performance.now()
await zones.follow(
  {
    records: () => known.values(),
    find: (name) => known.get(name),
    recordCount: count,
    problems: () => [],
    unreadyReason: () => '',
    subscribe: (listener) => {
      notify = listener
      return () => {}
    },
  },
  ownership,
)
console.log(`${count} records signed from nothing in ${seconds(startMs)} s`)

/** Times of changes, from the changed record to the published zone. */
async function measure(what, changed) {
  const times = []
  for (let i = 0; i < CHANGES; i++) {
    const n = (i * 7919) % count
    const before = known.get(`n/r${n}`)
    const after = changed(n, i)
    const begin = performance.now()
    const done = new Promise((resolve) => {
      published = resolve
    })
    notify([{ before, after }])
    await done
    times.push(performance.now() - begin)
    known.set(after.key, after)
    await new Promise((resolve) => setImmediate(resolve))
  }
  times.sort((a, b) => a - b)
  const p99 = times[Math.floor(times.length * 0.99)]
  console.log(
    `${what}: median ${median(times).toFixed(1)} ms, 99 % ${p99.toFixed(1)} ms, slowest ${times.at(-1).toFixed(1)} ms`,
  )
}

await measure('an address changed', (n, i) => record(n, 2 + (i % 100)))
await measure('a name changed', (n, i) => record(n, 1, `renamed${i}`))
process.exit(0)

function seconds(sinceMs) {
  return ((performance.now() - sinceMs) / 1000).toFixed(1)
}
