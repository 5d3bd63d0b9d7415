// Queries per second of 1 000 Pods with 10 000 selectors, beside the same server without the directive `egress`. Needs
// root.
//   npm run build && node bench/egress-rate.mjs [rounds] [seconds]
// 250 of the Pods ask at a time, other ones in each round. Each has an address, a port and a query in progress of its
// own, and asks for names whose addresses are allowed already. The servers are loaded in turn within each round; a ratio
// is the median of the rounds' ratios.
//   others  the same queries, not of clients
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { enterOwnNetwork } from './egress/own-network.mjs'
import { median } from './median.mjs'
import { write } from './peers/files.mjs'
import { saturate } from './peers/load.mjs'
import { cpuUs } from './peers/server-process.mjs'

enterOwnNetwork()
const { directory, OTHER, PODS, podAddress, selectedName, startServer, writeContent } =
  await import('./egress/servers.mjs')

const rounds = Number(process.argv[2] ?? 8)
const seconds = Number(process.argv[3] ?? 1)
const WARM_UP_SECONDS = 2
/** Pods that ask at the same time. */
const ASKING = 250
/** Names that Pods ask for: few, because each Pod and name is an address that is allowed. */
const NAMES = 20

writeContent(NAMES)
const file = join(directory, 'queries')
write(
  file,
  Array.from({ length: NAMES }, (_, i) => `${selectedName(i)} A\n`),
)
const servers = [await startServer('plain'), await startServer('egress')]
const kinds = {
  clients: (round) => podAddress((round * ASKING) % PODS),
  others: () => OTHER,
}

async function measure({ port, server }, source, duration) {
  const target = { port, file, clients: ASKING, outstanding: ASKING, generator: 'batch', source }
  const before = cpuUs(server.pid)
  const { completed, lost, qps } = await saturate(target, duration)
  const after = cpuUs(server.pid)
  if (server.failure !== undefined) throw new Error(server.failure)
  const us = (after.user - before.user + after.system - before.system) / completed
  return { qps, lost, us }
}

for (let round = 0; round * ASKING < PODS; round++) {
  for (const server of servers) await measure(server, kinds.clients(round), WARM_UP_SECONDS)
}
console.log(`${rounds} rounds of ${seconds} s; load average ${loadavg()[0].toFixed(1)}`)
const figures = new Map(Object.keys(kinds).map((kind) => [kind, servers.map(() => [])]))
for (let round = 0; round < rounds; round++) {
  for (const [kind, sourceOf] of Object.entries(kinds)) {
    const order = round % 2 === 0 ? [0, 1] : [1, 0]
    for (const i of order) {
      figures.get(kind)[i].push(await measure(servers[i], sourceOf(round), seconds))
    }
  }
}
for (const [kind, lists] of figures) {
  for (const [i, list] of lists.entries()) {
    const of = (key) => median(list.map((figure) => figure[key]))
    const ratio = median(list.map(({ qps }, round) => qps / lists[0][round].qps)).toFixed(2)
    const lost = list.reduce((sum, figure) => sum + figure.lost, 0)
    const rate = `${Math.round(of('qps')).toString().padStart(7)} queries/s`
    const cost = `${of('us').toFixed(1).padStart(6)} us CPU`
    console.log(
      `${kind.padEnd(8)} ${servers[i].way.padEnd(7)} ${rate} ${cost}  lost ${lost}  ${ratio} x plain`,
    )
  }
}
console.log(`load average ${loadavg()[0].toFixed(1)}`)
process.exit()
