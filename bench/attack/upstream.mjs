// The upstream of the attacked server, in a process of its own: node upstream.mjs PORT
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'

/** Octets of a long reply. */
const LONG_OCTETS = 60_000

/** An upstream: silent for names of `silent.test`, over UDP truncated and over TCP long for `long.test`, else one A. */
async function start(port) {
  const udp = createSocket('udp4')
  udp.on('message', (packet, { port, address }) => {
    const reply = answer(packet, false)
    if (reply !== undefined) udp.send(reply, port, address)
  })
  udp.bind(port, '127.0.0.1')
  await once(udp, 'listening')
  const tcp = createServer((socket) => {
    let rest = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk])
      while (rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE(0)) {
        const reply = answer(rest.subarray(2, 2 + rest.readUInt16BE(0)), true)
        rest = rest.subarray(2 + rest.readUInt16BE(0))
        if (reply === undefined) continue
        const length = Buffer.alloc(2)
        length.writeUInt16BE(reply.length)
        socket.write(Buffer.concat([length, reply]))
      }
    })
  })
  tcp.listen(port, '127.0.0.1')
  await once(tcp, 'listening')
}

function answer(packet, overTcp) {
  const text = packet.toString('latin1')
  if (text.includes('\x06silent')) return undefined
  let at = 12
  while (packet[at] !== 0) at += packet[at] + 1
  const question = packet.subarray(12, at + 5)
  const isLong = text.includes('\x04long')
  const truncated = isLong && !overTcp
  const records = truncated ? [] : isLong ? longRecords() : [record(1, Buffer.from([192, 0, 2, 1]))]
  const header = Buffer.alloc(12)
  packet.copy(header, 0, 0, 2)
  header[2] = 0x84 | (truncated ? 2 : 0)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(records.length, 6)
  return Buffer.concat([header, question, ...records])
}

function record(type, rdata) {
  const fixed = Buffer.from([
    0xc0,
    12,
    0,
    type,
    0,
    1,
    0,
    0,
    14,
    16,
    rdata.length >> 8,
    rdata.length & 255,
  ])
  return Buffer.concat([fixed, rdata])
}

let long
function longRecords() {
  if (long === undefined) {
    const text = Buffer.concat([Buffer.from([255]), Buffer.alloc(255, 0x78)])
    long = Array.from({ length: Math.floor(LONG_OCTETS / 268) }, (_, i) => {
      const rdata = Buffer.from(text)
      rdata.writeUInt32BE(i, 1)
      return record(16, rdata)
    })
  }
  return long
}

await start(Number(process.argv[2]))
