// What nftables takes: elements committed per second, and the time of one new element with 0 and 100 000 present. Needs root.
//   npm run build && node bench/egress-nft.mjs
// The time of so many transactions one after the other, for each tenth of them:
//   npm run build && node bench/egress-nft.mjs 1000000
import { execFileSync } from 'node:child_process'
import { systemClock } from '../dist/base/clock.js'
import { systemTimers } from '../dist/base/timers.js'
import { startNftEnforcer } from '../dist/egress/sinks/nft/start-enforcer.js'

const ELEMENTS = 100_000
const SINGLE = 1000
const TRANSACTIONS = Number(process.argv[2] ?? 0)
/** How long an address of many transactions is allowed: few are present at a time. */
const LIFETIME_MS = 2000
const CLIENTS = 100
const namespace = `bench${process.pid}`
execFileSync('ip', ['netns', 'add', namespace])
process.on('exit', () => execFileSync('ip', ['netns', 'del', namespace]))

const enforcer = startNftEnforcer({
  table: 'egress',
  elementsMax: 2 * ELEMENTS,
  clusterNetworks: [],
  dnsPort: 5300,
  dnsAddresses: [],
  cutsConnections: false,
  isDenied: () => false,
  command: ['ip', 'netns', 'exec', namespace, 'nft'],
  clock: systemClock,
  timers: systemTimers,
  onFault: (fault) => console.error(fault),
  onRepair: (what) => console.error(`repaired: ${what}`),
})
const rules = { lists: [[{ rules: [], otherwise: 'deny' }]], dns: undefined }
const clients = Array.from({ length: CLIENTS }, (_, i) => {
  return { id: `a/${i}/1`, addresses: [`10.1.0.${i}`], rules }
})
await enforcer.setClients(clients)

let made = 0
/** Allows one more address. */
function allowOne(first, last, lifetimeMs = 3_600_000) {
  const i = made++
  const pair = {
    client: `10.1.0.${i % CLIENTS}`,
    address: `198.${18 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`,
  }
  const endMs = systemClock.monotonic() + lifetimeMs
  return enforcer.allow(pair, [{ ports: { protocol: 'tcp', first, last }, endMs }])
}

async function single(what, first, last, count = SINGLE, lifetimeMs = undefined) {
  const times = []
  for (let i = 0; i < count; i++) {
    const start = performance.now()
    const fault = await allowOne(first, last, lifetimeMs)
    if (fault !== '') throw new Error(fault)
    times.push(performance.now() - start)
  }
  times.sort((a, b) => a - b)
  const at = (share) => times[Math.floor(count * share)].toFixed(2).padStart(7)
  console.log(`p50 ${at(0.5)} ms, p99 ${at(0.99)} ms: one new element, ${what}`)
}

if (TRANSACTIONS > 0) {
  for (let tenth = 1; tenth <= 10; tenth++) {
    await single(`tenth ${tenth} of ${TRANSACTIONS}`, 443, 443, TRANSACTIONS / 10, LIFETIME_MS)
  }
  await enforcer.close()
  process.exit()
}
await single('a port, few present', 443, 443)
const start = performance.now()
await Promise.all(Array.from({ length: ELEMENTS }, () => allowOne(443, 443)))
const seconds = (performance.now() - start) / 1000
console.log(`${Math.round(ELEMENTS / seconds)} elements committed per second`)
await single(`a port, ${ELEMENTS} present`, 443, 443)
await single(`a range of ports, ${ELEMENTS} others present`, 443, 450)
await enforcer.close()
process.exit()
