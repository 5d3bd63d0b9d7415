// The time from an answer that the agent learns until nftables has committed what it allows: agent, enforcer and
// nft(8), without the server. Needs root.
//   npm run build && node bench/egress-enforced.mjs [answers]
// 100 clients with one rule. Each answer has a new name and new addresses. `at once`: they wait at the same time.
import { loadavg } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { systemClock } from '../dist/base/clock.js'
import { createLogger } from '../dist/base/telemetry/log.js'
import { systemTimers } from '../dist/base/timers.js'
import { scanName } from '../dist/dns/name/name.js'
import { AGENT_LIMITS_DEFAULT } from '../dist/egress/agent/agent-limits.js'
import { EgressAgent } from '../dist/egress/agent/egress-agent.js'
import { AddressRules } from '../dist/egress/learned/address-rules.js'
import { scanSelector } from '../dist/egress/selectors/scan-selector.js'
import { startNftEnforcer } from '../dist/egress/sinks/nft/start-enforcer.js'
import { enterOwnNetwork } from './egress/own-network.mjs'

enterOwnNetwork()
const answers = Number(process.argv[2] ?? 2000)
const PRESENT = 100_000
const CLIENTS = 100
const clock = systemClock
const timers = systemTimers
const log = createLogger(
  '',
  (line) => console.error(line),
  () => false,
)
const enforcer = startNftEnforcer({
  table: 'egress',
  elementsMax: 2 * PRESENT,
  clusterNetworks: [],
  dnsPort: 5300,
  dnsAddresses: [],
  isDenied: () => false,
  command: ['nft'],
  clock,
  timers,
  onFault: (fault) => console.error(fault),
  onRepair: (what) => console.error(`repaired: ${what}`),
})
const agent = new EgressAgent({
  enforcer,
  rules: new AddressRules([], []),
  connections: undefined,
  limits: AGENT_LIMITS_DEFAULT,
  // Longer than anything here: a wait that ends before nftables has committed would be no figure.
  maxDelayMs: 60_000,
  cutsConnections: false,
  statePath: '',
  clock,
  timers,
  log,
})
const accept = {
  action: 'accept',
  networks: [],
  names: [scanSelector('*.example.com', 'npep')],
  ports: [{ protocol: 'tcp', first: 443, last: 443 }],
  lasts: 'ttl',
  origin: '',
}
const rules = { lists: [[{ rules: [accept], otherwise: 'deny' }]], dns: undefined }
const clients = Array.from({ length: CLIENTS }, (_, i) => {
  return { id: `a/${i}/1`, addresses: [`10.1.0.${i}`], rules }
})
const fault = await agent.setClients(clients)
if (fault !== '') throw new Error(fault)

let names = 0
let made = 0
function answer(count) {
  const facts = Array.from({ length: count }, () => {
    const i = made++
    const address = `${198 + (i >> 17)}.${18 + ((i >> 16) & 1)}.${(i >> 8) & 255}.${i & 255}`
    return { family: 1, address, ttlSeconds: 3600 }
  })
  const name = scanName(`n${names++}.example.com.`)
  return { kind: 'answer', name, family: 1, atMs: 0, server: '', facts }
}

/** Milliseconds until the addresses of a new answer are in force. */
async function learn(addresses) {
  const start = performance.now()
  const result = await agent.learn(clients[names % CLIENTS], answer(addresses))
  if (result !== 'acknowledged') throw new Error(result)
  return performance.now() - start
}

async function measure(what, addresses, atOnce) {
  const times = []
  while (times.length < answers) {
    times.push(...(await Promise.all(Array.from({ length: atOnce }, () => learn(addresses)))))
    // So that each answer starts with an idle process, as a query does.
    await delay(1)
  }
  times.sort((a, b) => a - b)
  const at = (share) => times[Math.floor(times.length * share)].toFixed(2).padStart(7)
  console.log(`p50 ${at(0.5)} ms, p99 ${at(0.99)} ms: ${what}`)
}

console.log(`${answers} answers of each kind; load average ${loadavg()[0].toFixed(1)}`)
for (let i = 0; i < 200; i++) await learn(1)
await measure('1 address', 1, 1)
await measure('8 addresses', 8, 1)
await measure('1 address, 20 answers at once', 1, 20)
await Promise.all(Array.from({ length: PRESENT / 100 }, () => learn(100)))
await measure(`1 address, ${PRESENT} others in force`, 1, 1)
console.log(`load average ${loadavg()[0].toFixed(1)}`)
process.exit()
