// What the agent of a node costs, with an enforcer that acknowledges at once: answers learned per second with 1 000 clients
// and 10 000 selectors, the longest pause of a collection and of a change of all rules, memory at 60 000 allowed addresses,
// and the size of its file.
//   npm run build && node --expose-gc bench/egress-agent.mjs [seconds]
import { performance } from 'node:perf_hooks'
import { createLogger } from '../dist/base/telemetry/log.js'
import { NameBuffer } from '../dist/dns/name/hashed-name.js'
import { scanName } from '../dist/dns/name/name.js'
import { printState } from '../dist/egress/agent/agent-file.js'
import { AGENT_LIMITS_DEFAULT } from '../dist/egress/agent/agent-limits.js'
import { EgressAgent } from '../dist/egress/agent/egress-agent.js'
import { AddressRules } from '../dist/egress/learned/address-rules.js'
import { scanSelector } from '../dist/egress/selectors/scan-selector.js'
import { median } from './median.mjs'

const CLIENTS = 1000
const PROFILES = 20
const SELECTORS = 10_000
const GRANTS = 60_000
const seconds = Number(process.argv[2] ?? 2)

let offsetMs = 0
const clock = {
  now: () => 1_700_000_000_000 + performance.now() + offsetMs,
  monotonic: () => performance.now() + offsetMs,
}
const timers = { every: () => () => {}, after: () => () => {} }
const log = createLogger(
  '',
  () => {},
  () => false,
)
let calls = 0
const enforcer = {
  setClients: async () => '',
  allow: () => {
    calls++
    return undefined
  },
  close: async () => {},
}

function rulesOf(profile, lasts) {
  const each = SELECTORS / PROFILES
  const rules = Array.from({ length: each }, (_, i) => ({
    action: 'accept',
    networks: [],
    names: [scanSelector(`n${i}.p${profile}.example.com`, 'npep')],
    ports: [{ protocol: 'tcp', first: 443, last: 443 }],
    lasts,
    origin: '',
  }))
  rules.push({ ...rules[0], names: [scanSelector('*.example.net', 'npep')] })
  const dns = [{ ports: undefined, names: [scanSelector('*', 'cilium-1.19')] }]
  return { lists: [[{ rules, otherwise: 'deny' }]], dns }
}

function clientsOf(lasts) {
  const profiles = Array.from({ length: PROFILES }, (_, i) => rulesOf(i, lasts))
  return Array.from({ length: CLIENTS }, (_, i) => ({
    id: `default/pod-${i}/uid`,
    addresses: [`10.1.${i >> 8}.${i & 255}`],
    rules: profiles[i % PROFILES],
  }))
}

function agentOf() {
  const connections = { dump: async () => '', watch: () => {}, cut: () => {}, close: () => {} }
  return new EgressAgent({
    enforcer,
    rules: new AddressRules([], []),
    connections,
    limits: AGENT_LIMITS_DEFAULT,
    maxDelayMs: 100,
    cutsConnections: false,
    statePath: '',
    clock,
    timers,
    log,
  })
}

function answer(text, addresses, ttlSeconds = 300) {
  const facts = addresses.map((address) => ({ family: 1, address, ttlSeconds }))
  return { kind: 'answer', name: scanName(text), family: 1, atMs: 0, server: '', facts }
}

const address = (n) => `198.${18 + ((n >> 16) & 1)}.${(n >> 8) & 255}.${n & 255}`

/** Answers per second of user time. */
function rate(what, learn) {
  const times = []
  let count = 0
  for (; count < 3000; count++) learn(count)
  for (const end = performance.now() + seconds * 1000; performance.now() < end; ) {
    const start = process.cpuUsage()
    for (let i = 0; i < 1000; i++) learn(count++)
    const { user, system } = process.cpuUsage(start)
    times.push((user + system) / 1000)
  }
  const us = median(times)
  const text = `${us.toFixed(1).padStart(7)} µs, ${Math.round(1e6 / us)} per second`
  console.log(`${text}: ${what}`)
}

for (const lasts of ['ttl', 'connections']) {
  const agent = agentOf()
  const clients = clientsOf(lasts)
  const start = performance.now()
  await agent.setClients(clients)
  console.log(
    `${(performance.now() - start).toFixed(0).padStart(7)} ms: set ${CLIENTS} clients, ${lasts}`,
  )
  const name = new NameBuffer()
  const wire = scanName('n7.p3.example.com.')
  name.set(wire, 0, wire.length)
  rate('is the name allowed to be asked for', (i) =>
    agent.mayAsk(clients[i % CLIENTS], 'udp', name),
  )
  const known = clients.map((_, i) =>
    answer(`n${i % 500}.p${i % PROFILES}.example.com.`, [address(i)]),
  )
  rate(`an answer that is known, 1 address, ${lasts}`, (i) => {
    agent.learn(clients[i % CLIENTS], known[i % CLIENTS])
  })
  rate(`the same a second later, ${lasts}`, (i) => {
    if (i % CLIENTS === 0) offsetMs += 1000
    agent.learn(clients[i % CLIENTS], known[i % CLIENTS])
  })
  const eight = (i) => Array.from({ length: 8 }, (_, k) => address(i * 8 + k))
  rate(`a new answer that is selected, 8 addresses, ${lasts}`, (i) => {
    if (i % 1000 === 0) agent.forget(() => true)
    agent.learn(clients[i % CLIENTS], answer(`n${i % 500}.p${i % PROFILES}.example.com.`, eight(i)))
  })
  rate(`a new answer that is not selected, 8 addresses, ${lasts}`, (i) => {
    if (i % 1000 === 0) agent.forget(() => true)
    agent.learn(clients[i % CLIENTS], answer(`n${i}.example.org.`, eight(i)))
  })
  agent.close()
}

function heapMib() {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 2 ** 20
}

const agent = agentOf()
const clients = clientsOf('connections')
const emptyMib = heapMib()
await agent.setClients(clients)
const clientsMib = heapMib()
const perClient = GRANTS / CLIENTS
for (const [i, client] of clients.entries()) {
  for (let k = 0; k < perClient; k += 4) {
    const own = Array.from({ length: 4 }, (_, n) => address(i * perClient + k + n))
    agent.learn(client, answer(`host-${k}.example.net.`, own))
  }
}
const grants = [...agent.states()].reduce((sum, { grantCount }) => sum + grantCount, 0)
if (grants !== GRANTS) throw new Error(`${grants} addresses are allowed`)
const fullMib = heapMib()
console.log(
  `${(clientsMib - emptyMib).toFixed(1).padStart(7)} MiB: ${CLIENTS} clients, ${SELECTORS} selectors`,
)
const octets = Math.round(((fullMib - clientsMib) * 2 ** 20) / GRANTS)
console.log(
  `${(fullMib - clientsMib).toFixed(1).padStart(7)} MiB: ${GRANTS} allowed addresses, ${octets} octets each`,
)

/** Also measures the longest time that other work waited. */
async function timed(what, work) {
  let longest = 0
  let last = performance.now()
  let isDone = false
  const tick = () => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
    if (!isDone) setImmediate(tick)
  }
  setImmediate(tick)
  const start = performance.now()
  await work()
  const ms = performance.now() - start
  isDone = true
  tick()
  const text = `${ms.toFixed(0).padStart(7)} ms, longest pause ${longest.toFixed(0)} ms`
  console.log(`${text}: ${what}`)
}
await timed('a collection that finds nothing', () => agent.collect())
let size = 0
const states = [...agent.states()].map((grants) => {
  return { client: grants.client, learned: grants.learned() }
})
for (const line of printState(states, clock)) size += line.length
console.log(`${(size / 2 ** 20).toFixed(1).padStart(7)} MiB: the file`)
calls = 0
const changed = clientsOf('ttl')
await timed('a change of the rules of all clients', () => agent.setClients(changed))
if (calls !== GRANTS) throw new Error(`${calls} calls`)
await agent.setClients(clients)
offsetMs += 301_000
await timed('a collection after which all addresses are zombies', () => agent.collect())
process.exit()
