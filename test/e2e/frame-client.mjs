// Sends the frames of standard input through the interface `eth0`, one line of hexadecimal digits each, and prints each DNS
// reply that arrives there. Ends with standard input.
import { createInterface } from 'node:readline'
import { readDevice } from '../../dist/transport/udp/xdp/device.js'
import { loadXdpKernel } from '../../dist/transport/udp/xdp/kernel.js'

const AF_PACKET = 17
const SOCK_RAW = 3
const SOCK_NONBLOCK = 0x800
const ETH_P_ALL = 3
const DNS_PORT = 53
/** Source port of UDP, by EtherType: without options and extension headers. */
const PORT_AT = { 2048: 34, 34525: 54 }
const READ_MS = 5

const kernel = loadXdpKernel()
const device = readDevice(kernel, 'eth0')
const fd = kernel.socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0)
// struct sockaddr_ll: family, protocol, ifindex.
const place = Buffer.alloc(20)
place.writeUInt16LE(AF_PACKET, 0)
place.writeUInt16BE(ETH_P_ALL, 2)
place.writeInt32LE(device.ifindex, 4)
if (kernel.bind(fd, kernel.addressOf(place), place.length) === -1) throw new Error('bind')

const received = Buffer.alloc(65_536)
function read() {
  for (;;) {
    const octets = kernel.read(fd, kernel.addressOf(received), received.length)
    if (octets <= 0) return
    const at = PORT_AT[received.readUInt16BE(12)]
    if (at === undefined || received.readUInt16BE(at) !== DNS_PORT) continue
    process.stdout.write(`${received.toString('hex', at + 8, octets)}\n`)
  }
}
const reading = setInterval(read, READ_MS)

const frame = Buffer.alloc(65_536)
let sent = 0
for await (const line of createInterface({ input: process.stdin })) {
  const octets = frame.write(line, 'hex')
  if (kernel.write(fd, kernel.addressOf(frame), octets) === octets) sent++
}
clearInterval(reading)
process.stdout.write(`${sent} frames sent\n`)
