// What the kernel lets through: takes batches of plain queries and sends each back as an answer with one
// fixed A record, those to one port in groups that the kernel cuts; one by one where SEXTANT_GSO is off. No server
// can be quicker by these system calls.
//   node bench/peers/echo.mjs PORT THREADS
import { isMainThread, Worker, workerData } from 'node:worker_threads'
import { systemError, writeSockaddr } from '../../dist/transport/sockaddr.js'
import { SEGMENT_SPACE, writeSegment } from '../../dist/transport/udp/batch/grouping/udp-segment.js'
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
  const isGrouping = process.env.SEXTANT_GSO !== 'off'
  const received = MMSGHDR_OCTETS + IOVEC_OCTETS + SOCKADDR_OCTETS + PACKET_OCTETS
  const octets = BATCH * (received + MMSGHDR_OCTETS + IOVEC_OCTETS + SEGMENT_SPACE)
  const bytes = new Uint8Array(new ArrayBuffer(octets))
  const words = new Uint32Array(bytes.buffer)
  const address = libc.addressOf(bytes)
  const iovecs = BATCH * MMSGHDR_OCTETS
  const names = iovecs + BATCH * IOVEC_OCTETS
  const packets = names + BATCH * SOCKADDR_OCTETS
  const groups = packets + BATCH * PACKET_OCTETS
  const pieces = groups + BATCH * MMSGHDR_OCTETS
  const controls = pieces + BATCH * IOVEC_OCTETS
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
  const groupOf = new Uint8Array(BATCH)
  /** Fills in `groups` with what is in `packets`; returns how many messages there are. */
  const group = (count) => {
    let messages = 0
    let piece = 0
    groupOf.fill(0)
    for (let i = 0; i < count; i++) {
      if (groupOf[i] !== 0) continue
      const length = lengthOf(i)
      const first = piece
      for (let j = i; j < count; j++) {
        const isSame = groupOf[j] === 0 && portOf(j) === portOf(i) && lengthOf(j) === length
        if (!isSame || (j > i && !isGrouping)) continue
        groupOf[j] = 1
        point(pieces + piece * IOVEC_OCTETS, packets + j * PACKET_OCTETS)
        words[((pieces + piece * IOVEC_OCTETS) >> 2) + 2] = length
        piece++
      }
      const header = groups + messages * MMSGHDR_OCTETS
      const control = controls + messages * SEGMENT_SPACE
      point(header, names + i * SOCKADDR_OCTETS)
      words[(header >> 2) + 2] = SOCKADDR_OCTETS
      point(header + 16, pieces + first * IOVEC_OCTETS)
      words[(header >> 2) + 6] = piece - first
      point(header + 32, control)
      words[(header >> 2) + 10] = piece - first > 1 ? SEGMENT_SPACE : 0
      writeSegment(words, control, length)
      messages++
    }
    return messages
  }
  const portOf = (i) => words[(names + i * SOCKADDR_OCTETS) >> 2]
  const lengthOf = (i) => words[((iovecs + i * IOVEC_OCTETS) >> 2) + 2]
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
    const messages = group(count)
    for (let sent = 0; sent < messages; ) {
      const at = address + groups + sent * MMSGHDR_OCTETS
      const more = libc.sendmmsg(fd, at, messages - sent, 0)
      if (more <= 0) break
      sent += more
    }
  }
}
