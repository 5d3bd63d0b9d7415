// What the kernel lets through: takes batches of plain queries and sends each back as an answer with one
// fixed A record. No server can be quicker by these system calls.
//   node bench/peers/echo.mjs PORT THREADS
import { isMainThread, Worker, workerData } from 'node:worker_threads'
import { systemError, writeSockaddr } from '../../dist/transport/sockaddr.js'
import { loadLibc } from '../../dist/transport/udp/batch/libc.js'

const BATCH = 64
const PACKET_OCTETS = 512
const MMSGHDR_OCTETS = 64
const IOVEC_OCTETS = 16
const SOCKADDR_OCTETS = 16
/** A pointer to the name of the question, A, IN, 60 s, 192.0.2.1. */
const ANSWER = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]
const MSG_WAITFORONE = 0x10000
const [AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_REUSEPORT] = [2, 2, 1, 15]

if (isMainThread) {
  const [port, threads] = process.argv.slice(2).map(Number)
  for (let i = 0; i < threads; i++) new Worker(new URL(import.meta.url), { workerData: port })
} else {
  echo(workerData)
}

function echo(port) {
  const libc = loadLibc()
  const octets = BATCH * (MMSGHDR_OCTETS + IOVEC_OCTETS + SOCKADDR_OCTETS + PACKET_OCTETS)
  const bytes = new Uint8Array(new ArrayBuffer(octets))
  const words = new Uint32Array(bytes.buffer)
  const address = libc.addressOf(bytes)
  const iovecs = BATCH * MMSGHDR_OCTETS
  const names = iovecs + BATCH * IOVEC_OCTETS
  const packets = names + BATCH * SOCKADDR_OCTETS
  const point = (at, to) => {
    words[at >> 2] = (address + to) % 2 ** 32
    words[(at >> 2) + 1] = Math.floor((address + to) / 2 ** 32)
  }
  for (let i = 0; i < BATCH; i++) {
    const header = i * MMSGHDR_OCTETS
    point(header, names + i * SOCKADDR_OCTETS)
    words[(header >> 2) + 2] = SOCKADDR_OCTETS
    point(header + 16, iovecs + i * IOVEC_OCTETS)
    words[(header >> 2) + 6] = 1
    point(iovecs + i * IOVEC_OCTETS, packets + i * PACKET_OCTETS)
  }
  const fd = libc.socket(AF_INET, SOCK_DGRAM, 0)
  words[packets >> 2] = 1
  libc.setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, address + packets, 4)
  const nameOctets = writeSockaddr(bytes, packets, '127.0.0.1', port)
  if (libc.bind(fd, address + packets, nameOctets) !== 0) {
    throw systemError('bind', libc.errno(), { host: '127.0.0.1', port })
  }
  const setLength = (i, length) => {
    words[((iovecs + i * IOVEC_OCTETS) >> 2) + 2] = length
  }
  for (;;) {
    for (let i = 0; i < BATCH; i++) setLength(i, PACKET_OCTETS - ANSWER.length)
    const count = libc.recvmmsg(fd, address, BATCH, MSG_WAITFORONE, 0)
    for (let i = 0; i < count; i++) {
      const start = packets + i * PACKET_OCTETS
      const end = words[(i * MMSGHDR_OCTETS + 56) >> 2]
      bytes[start + 2] |= 0x84
      bytes[start + 7] = 1
      for (let j = 0; j < ANSWER.length; j++) bytes[start + end + j] = ANSWER[j]
      setLength(i, end + ANSWER.length)
    }
    for (let sent = 0; sent < count; ) {
      const more = libc.sendmmsg(fd, address + sent * MMSGHDR_OCTETS, count - sent, 0)
      if (more <= 0) break
      sent += more
    }
  }
}
