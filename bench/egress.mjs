// What the directive egressfirewall costs: the goal is at most 100 ns for a query that nothing selects. Also: the cost of
// a selected query whose addresses are written already, and the memory of 10 000 names with 100 000 addresses.
//   npm run build && node --expose-gc bench/egress.mjs [rounds]
// Times are user CPU time per query of a whole server without sockets, all cases in turn in every round.
import { Random } from '../dist/base/random.js'
import { createLogger } from '../dist/base/telemetry/log.js'
import { NO_METRICS } from '../dist/base/telemetry/metrics.js'
import { systemTimers } from '../dist/base/timers.js'
import { AddressRules } from '../dist/egress/learned/address-rules.js'
import { DEFAULT_LIMITS } from '../dist/egress/policies/openshift/resolved-names.js'
import { scanSelector } from '../dist/egress/selectors/scan-selector.js'
import { SelectorIndex } from '../dist/egress/selectors/selector-index.js'
import { CounterSlots } from '../dist/plugin/counter-slots.js'
import { EgressFirewall } from '../dist/plugins/egressfirewall/egressfirewall.js'
import { NameFollower } from '../dist/plugins/egressfirewall/name-follower.js'
import { bareServer, REPLY_OCTETS } from './bare-server.mjs'
import { median } from './median.mjs'

const NAMES = 10_000
const ADDRESSES = 10
const rounds = Number(process.argv[2] ?? 15)
const QUERIES = 300_000
const SELECTED_QUERIES = 30_000

// The time of day stands, so that the next lookup of an address stays the same.
const clock = { now: () => 1_700_000_000_000, monotonic: () => 0 }
const log = createLogger(
  '',
  () => {},
  () => false,
)

/** An API whose objects are listed, and that accepts no write. */
function apiOf(list) {
  const metadata = { resourceVersion: '5' }
  const reply = (status, body) => ({ status, retryAfterSeconds: 0, body: bodyOf(body) })
  async function* bodyOf(body) {
    if (body === undefined) await new Promise(() => {})
    else yield Buffer.from(JSON.stringify(body))
  }
  const get = async (path) => {
    if (path.includes('sendInitialEvents')) return reply(422, { kind: 'Status', code: 422 })
    if (path.includes('watch=')) return reply(200, undefined)
    const items = path.includes('dnsnameresolvers') ? list() : []
    return reply(200, { kind: 'List', metadata, items })
  }
  return { place: 'memory', refresh: () => {}, get, send: get }
}

const address = (i, n) => `10.${i >> 8}.${i & 255}.${n}`
function objectOf(i, name, count) {
  const lastLookupTime = '2023-11-14T22:13:20Z'
  const resolvedAddresses = Array.from({ length: count }, (_, n) => {
    return { ip: address(i, n), ttlSeconds: 60, lastLookupTime }
  })
  const conditions = [{ type: 'Degraded', status: 'False', reason: 'NOERROR', message: 'No Error' }]
  return {
    metadata: { namespace: 'ovn-kubernetes', name: `dns-${i}`, uid: `${i}`, resourceVersion: '4' },
    spec: { name },
    status: { resolvedNames: [{ dnsName: name, resolvedAddresses, conditions }] },
  }
}

async function followerOf(list) {
  const follower = new NameFollower({
    api: apiOf(list),
    namespaces: [],
    limits: DEFAULT_LIMITS,
    mode: { kind: 'gate', deadlineMs: 50 },
    clock,
    timers: systemTimers,
    random: new Random(1),
    log,
    metrics: NO_METRICS,
  })
  follower.start()
  await follower.settled()
  return follower
}

function indexOf(texts) {
  const index = new SelectorIndex()
  for (const object of texts) {
    index.set({ consumer: '', namespace: '', object }, [scanSelector(object, 'openshift')])
  }
  return index
}

const CLIENT = new Uint8Array([192, 0, 2, 1])

/** A server; with `source`, the directive is in its chain. */
function caseOf(what, source, queries = QUERIES) {
  const rules = new AddressRules([], [])
  const slots = new CounterSlots()
  const parts = { name: 'egressfirewall', source, rules, clock, slots }
  const over = (next) => (source === undefined ? next : new EgressFirewall(next, parts))
  const answer = bareServer({ clock, over })
  const run = () => {
    let wrong = 0
    for (let i = 0; i < queries; i++) if (answer(CLIENT, 0) !== REPLY_OCTETS) wrong++
    if (wrong > 0) throw new Error(`${what}: ${wrong} wrong replies`)
  }
  return { what, run, queries, times: [] }
}

const namesOf = (name) => indexOf(Array.from({ length: NAMES }, (_, i) => name(i)))
const object = objectOf(0, 'www.example.org.', 0)
object.status.resolvedNames[0].resolvedAddresses = [
  { ip: '192.0.2.1', ttlSeconds: 60, lastLookupTime: '2023-11-14T22:13:20Z' },
]
const observer = await followerOf(() => [object])
const cases = [
  caseOf('without the directive', undefined),
  caseOf('no selectors', { selectors: indexOf([]), observer: undefined }),
  caseOf('10 000 selectors, of other domains', {
    selectors: namesOf((i) => `www.n${i}.example.com.`),
    observer: undefined,
  }),
  caseOf('10 000 selectors, of the same domain', {
    selectors: namesOf((i) => `n${i}.example.org.`),
    observer: undefined,
  }),
  caseOf(
    'selected, the address is written already',
    { selectors: observer.selectors, observer },
    SELECTED_QUERIES,
  ),
]
for (let round = 0; round < rounds; round++) {
  for (const { run, queries, times } of cases) {
    const start = process.cpuUsage()
    run()
    times.push((process.cpuUsage(start).user * 1000) / queries)
  }
}
const base = median(cases[0].times)
for (const { what, times } of cases) {
  const ns = median(times)
  const added = (ns - base).toFixed(0)
  console.log(`${ns.toFixed(0).padStart(6)} ns, ${added.padStart(5)} ns more: ${what}`)
}
observer.close()

/** MiB in use; the value of `keep` counts. */
function heapMib() {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 2 ** 20
}

const beforeMib = heapMib()
const start = performance.now()
const follower = await followerOf(() => {
  return Array.from({ length: NAMES }, (_, i) => objectOf(i, `www.n${i}.example.com.`, ADDRESSES))
})
const seconds = (performance.now() - start) / 1000
const mib = heapMib() - beforeMib
const what = `${follower.selectors.size} names with ${ADDRESSES} addresses each`
console.log(`${mib.toFixed(1)} MiB, read in ${seconds.toFixed(2)} s: ${what}`)
const texts = follower.texts()
const withThread = heapMib()
const index = indexOf(texts)
console.log(`${(heapMib() - withThread).toFixed(1)} MiB: their selectors in a data thread`)
if (index.size !== NAMES) throw new Error('names are missing')
follower.close()
process.exit()
