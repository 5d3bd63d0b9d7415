// Answers every query past the sockets with the same record: what frames, rings and the kernel cost without any lookup.
//   node bench/xdp/fixed.mjs ADDRESS PORT
import { Query } from '../../dist/dns/message/query.js'
import { Attachment } from '../../dist/transport/udp/xdp/attachment.js'
import { readDevice } from '../../dist/transport/udp/xdp/device.js'
import { loadXdpKernel } from '../../dist/transport/udp/xdp/kernel.js'
import { Targets } from '../../dist/transport/udp/xdp/targets.js'
import { XdpSocket } from '../../dist/transport/udp/xdp/xdp-socket.js'

const POLLIN = 1
const WAIT_MS = 1000
const [address, port] = process.argv.slice(2)
const octets = new Uint8Array(16)
octets.set(address.split('.').map(Number))
const target = { family: 1, address: octets, port: Number(port), lane: 0 }
const kernel = loadXdpKernel()
const device = readDevice(kernel, 'eth0')
const attachment = new Attachment(kernel, device, { mode: 'generic', queues: 1 })
attachment.openSockets()
const targets = new Targets([target], [])
const routes = { targets, lanes: [], mtuOctets: device.mtuOctets }
const socket = new XdpSocket(kernel, attachment.sockets[0].place, routes)
attachment.setTargets([target])

/** An A record of the name of the question. */
const ANSWER = Buffer.from('c00c000100010000012c0004c0000202', 'hex')
const HEADER_OCTETS = 12
const query = new Query()
const fds = Int32Array.of(socket.fd, POLLIN)
const fdsAddress = kernel.addressOf(fds)

function answer(slot) {
  const room = socket.room()
  socket.describe(slot, query)
  const { packet } = query
  let end = HEADER_OCTETS
  while (packet[end] !== 0) end += packet[end] + 1
  end += 5
  for (let i = 0; i < end; i++) room[i] = packet[i]
  room[2] = 0x84
  room[3] = 0
  room[7] = 1
  room[11] = 0
  for (let i = 0; i < ANSWER.length; i++) room[end + i] = ANSWER[i]
  socket.reply(slot, room, end + ANSWER.length)
}

for (;;) {
  const count = socket.receive()
  for (let slot = 0; slot < count; slot++) if (socket.laneOf(slot) >= 0) answer(slot)
  socket.flush()
  if (count === 0) kernel.poll(fdsAddress, 1, WAIT_MS)
}
