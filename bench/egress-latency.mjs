// What the directive `egress` adds to the latency of a query, beside the same server without it. Needs root.
//   npm run build && node bench/egress-latency.mjs [queries of each kind]
// Both forward each query to a third server, as node agents do.
// 1 000 Pods, 10 000 selectors. One query at a time, each from a port of its own; all kinds and both servers in turn:
//   granted  a name of a Pod whose address is allowed already
//   new      a name of a Pod that nobody asked for before
//   others   a query that is not of a client
import { loadavg } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { enterOwnNetwork } from './egress/own-network.mjs'

enterOwnNetwork()
const { ask } = await import('./egress/ask.mjs')
const { OTHER, podAddress, selectedName, startServer, writeContent } = await import(
  './egress/servers.mjs'
)

const queries = Number(process.argv[2] ?? 5000)
const PODS = 100
const KNOWN = 1000
const WARM_UP = 500
/** So often, timers and the collection of garbage of this process get a turn. */
const TURN = 50

writeContent(KNOWN + queries + WARM_UP)
const upstream = (await startServer('upstream')).port
const servers = [
  await startServer('plain', { upstream }),
  await startServer('egress', { upstream }),
]
let next = 0
const kinds = {
  granted: (i) => [podAddress(0), selectedName(i % KNOWN)],
  new: () => [podAddress(1 + (next % PODS)), selectedName(KNOWN + next++)],
  others: (i) => [OTHER, selectedName(i % KNOWN)],
}
const times = new Map(Object.keys(kinds).map((kind) => [kind, servers.map(() => [])]))

function askAll(i, isCounted) {
  for (const [kind, choose] of Object.entries(kinds)) {
    const [source, name] = choose(i)
    for (const [k, { port }] of servers.entries()) {
      const us = ask(source, port, name)
      if (isCounted) times.get(kind)[k].push(us)
    }
  }
}

for (let i = 0; i < KNOWN; i++)
  for (const { port } of servers) ask(podAddress(0), port, selectedName(i))
for (let i = 0; i < WARM_UP; i++) askAll(i, false)
console.log(`${queries} queries of each kind, µs; load average ${loadavg()[0].toFixed(1)}`)
for (let i = 0; i < queries; i++) {
  askAll(i, true)
  if (i % TURN === 0) await delay(1)
}
for (const [kind, lists] of times) {
  for (const list of lists) list.sort((a, b) => a - b)
  for (const share of [0.5, 0.9, 0.99]) {
    const [without, withIt] = lists.map((list) => list[Math.floor(list.length * share)])
    const text = (us) => us.toFixed(0).padStart(6)
    const label = `${kind.padEnd(8)} p${share * 100}`
    console.log(
      `${label}  without ${text(without)}  with ${text(withIt)}  added ${text(withIt - without)}`,
    )
  }
}
console.log(`load average ${loadavg()[0].toFixed(1)}`)
process.exit()
