// What nftables takes: elements committed per second, and the time of one new element with 0 and 100 000 present. Needs root.
//   npm run build && node bench/egress-nft.mjs
import { execFileSync } from 'node:child_process'
import { systemClock } from '../dist/base/clock.js'
import { systemTimers } from '../dist/base/timers.js'
import { startNftEnforcer } from '../dist/node/nft/start-enforcer.js'

const ELEMENTS = 100_000
const SINGLE = 1000
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
function allowOne(first, last) {
  const i = made++
  const pair = {
    client: `10.1.0.${i % CLIENTS}`,
    address: `198.${18 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`,
  }
  const endMs = systemClock.monotonic() + 3_600_000
  return enforcer.allow(pair, [{ ports: { protocol: 'tcp', first, last }, endMs }])
}

async function single(what, first, last) {
  const times = []
  for (let i = 0; i < SINGLE; i++) {
    const start = performance.now()
    const fault = await allowOne(first, last)
    if (fault !== '') throw new Error(fault)
    times.push(performance.now() - start)
  }
  times.sort((a, b) => a - b)
  const at = (share) => times[Math.floor(SINGLE * share)].toFixed(2).padStart(7)
  console.log(`p50 ${at(0.5)} ms, p99 ${at(0.99)} ms: one new element, ${what}`)
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
