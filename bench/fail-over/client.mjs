// Asks each server for the addresses of a name every 20 ms, and prints each answer: milliseconds since the epoch, the
// server, and the addresses, sorted.
//   node client.mjs NAME PORT SERVER...
import { createSocket } from 'node:dgram'

const [name, port, ...servers] = process.argv.slice(2)
const EACH_MS = 20
const HEADER_OCTETS = 12

const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)])
const query = Uint8Array.from([0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 1, 0, 1])

const socket = createSocket('udp4')
// A server that is down refuses.
socket.on('error', () => {})
socket.on('message', (reply, { address }) => {
  const found = addresses(reply).sort()
  process.stdout.write(`${[Date.now(), address, ...found].join(' ')}\n`)
})
setInterval(() => {
  for (const server of servers) socket.send(query, Number(port), server)
}, EACH_MS)

function addresses(reply) {
  const found = []
  let at = HEADER_OCTETS + labels.length + 5
  for (let i = reply.readUInt16BE(6); i > 0; i--) {
    at = skipName(reply, at)
    const octets = reply.readUInt16BE(at + 8)
    if (reply.readUInt16BE(at) === 1) found.push(reply.subarray(at + 10, at + 14).join('.'))
    at += 10 + octets
  }
  return found
}

function skipName(reply, start) {
  let at = start
  while (reply[at] !== 0 && reply[at] < 0xc0) at += reply[at] + 1
  return at + (reply[at] === 0 ? 1 : 2)
}
