// How long the DNS of a node is silent after `kill -9` of its agent, by the number of names that it knows. Needs root.
//   npm run build && node bench/egress-restart.mjs [names...]
// The agent is started again at once. A client asks every 5 ms for a name that it has asked for before.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { enterOwnNetwork } from './egress/own-network.mjs'

enterOwnNetwork()
const { directory, PODS, podAddress, selectedName, startServer, writeContent } = await import(
  './egress/servers.mjs'
)
const counts = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [1000, 50_000, 100_000]
const TICK_MS = 5
const IN_FLIGHT = 200
const STATE_MS = 12_000
const LIMIT_MS = 60_000

function query(name, id) {
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)])
  return Buffer.from([id >> 8, id & 255, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 1, 0, 1])
}

async function openSocket(address) {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 1 << 20 })
  socket.on('error', () => {})
  socket.bind(0, address)
  await once(socket, 'listening')
  return socket
}

/** Each of `names` names is asked for by one Pod, until it is answered. */
async function learn(port, names) {
  const sockets = await Promise.all(
    Array.from({ length: PODS }, (_, i) => openSocket(podAddress(i))),
  )
  let [next, done] = [0, 0]
  const ask = () => {
    if (next >= names) return
    const i = next++
    sockets[i % PODS].send(query(selectedName(i), 1), port, '127.0.0.1')
  }
  for (const socket of sockets) {
    socket.on('message', () => {
      done++
      ask()
    })
  }
  for (let i = 0; i < IN_FLIGHT; i++) ask()
  for (let before = -1; done < names; before = done) {
    await new Promise((resolve) => setTimeout(resolve, 1000))
    if (done === before) for (let i = 0; i < IN_FLIGHT && next < names; i++) ask()
    if (done === before && next >= names) break
  }
  for (const socket of sockets) socket.close()
  return done
}

for (const names of counts) {
  writeContent(names)
  const first = await startServer('egress', { state: `${directory}/state-${names}` })
  const learned = await learn(first.port, names)
  // The state is written a few seconds after a change.
  await new Promise((resolve) => setTimeout(resolve, STATE_MS))
  const socket = await openSocket(podAddress(0))
  let second
  const silentMs = await new Promise((resolve, reject) => {
    let killedMs = 0
    const timer = setInterval(
      () => socket.send(query(selectedName(0), 2), first.port, '127.0.0.1'),
      TICK_MS,
    )
    setTimeout(() => reject(new Error('no answer')), LIMIT_MS).unref()
    setTimeout(async () => {
      await first.server.stop()
      killedMs = performance.now()
      socket.on('message', () => {
        clearInterval(timer)
        resolve(performance.now() - killedMs)
      })
      second = startServer('egress', { state: `${directory}/state-${names}`, port: first.port })
    }, 200)
  })
  socket.close()
  // Others are answered before the first answer to a Pod is in force.
  await second.then(({ server }) => server.stop())
  console.log(`${learned} names: ${(silentMs / 1000).toFixed(2)} s without an answer`)
}
process.exit()
