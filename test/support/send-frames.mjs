// Sends the frames of standard input, one line of hexadecimal digits each, through the interface `eth0`.
import { createInterface } from 'node:readline'
import { readDevice } from '../../dist/transport/udp/xdp/device.js'
import { loadXdpKernel } from '../../dist/transport/udp/xdp/kernel.js'

const AF_PACKET = 17
const SOCK_RAW = 3
const kernel = loadXdpKernel()
const device = readDevice(kernel, 'eth0')
const fd = kernel.socket(AF_PACKET, SOCK_RAW, 0)
// struct sockaddr_ll: family, protocol, ifindex.
const place = Buffer.alloc(20)
place.writeUInt16LE(AF_PACKET, 0)
place.writeInt32LE(device.ifindex, 4)
if (kernel.bind(fd, kernel.addressOf(place), place.length) === -1) throw new Error('bind')
const frame = Buffer.alloc(65_536)
let sent = 0
for await (const line of createInterface({ input: process.stdin })) {
  const octets = frame.write(line, 'hex')
  if (kernel.write(fd, kernel.addressOf(frame), octets) === octets) sent++
}
process.stdout.write(`${sent} frames sent\n`)
