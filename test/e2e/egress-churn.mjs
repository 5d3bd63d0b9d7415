/*
 * A DNS server whose name has 5 000 addresses, of which each answer has eight at random, with a TTL of 5 s:
 * `egress-churn.mjs ADDRESS PORT`. Prints `ready`.
 */
import { createSocket } from 'node:dgram'

const [address, port] = process.argv.slice(2)
const ADDRESSES = 5000
const PER_ANSWER = 8

const socket = createSocket('udp4')
socket.on('message', (query, from) => {
  // The question ends behind the root label, the type and the class.
  const end = query.indexOf(0, 12) + 5
  const isA = query.readUInt16BE(end - 4) === 1
  const header = Buffer.from(query.subarray(0, 12))
  header.writeUInt16BE(0x8580, 2)
  header.writeUInt16BE(isA ? PER_ANSWER : 0, 6)
  header.writeUInt32BE(0, 8)
  const records = []
  for (let i = 0; isA && i < PER_ANSWER; i++) {
    const host = Math.floor(Math.random() * ADDRESSES)
    records.push(0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 198, 19, host >> 8, host & 255)
  }
  const reply = Buffer.concat([header, query.subarray(12, end), Buffer.from(records)])
  socket.send(reply, from.port, from.address)
})
socket.bind(Number(port), address, () => console.log('ready'))
