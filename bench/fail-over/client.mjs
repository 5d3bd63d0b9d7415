// Asks each server for the addresses of a name every 20 ms, and prints each answer: milliseconds since the epoch, the
// server, and the addresses, sorted.
//   node client.mjs NAME PORT SERVER...
import { createSocket } from 'node:dgram'
import { addressesOf } from '../../test/support/reply-addresses.mjs'

const [name, port, ...servers] = process.argv.slice(2)
const EACH_MS = 20

const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)])
const query = Uint8Array.from([0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 1, 0, 1])

const socket = createSocket('udp4')
// A server that is down refuses.
socket.on('error', () => {})
socket.on('message', (reply, { address }) => {
  const found = addressesOf(reply).sort()
  process.stdout.write(`${[Date.now(), address, ...found].join(' ')}\n`)
})
setInterval(() => {
  for (const server of servers) socket.send(query, Number(port), server)
}, EACH_MS)
