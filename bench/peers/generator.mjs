// A load generator in batches: recvmmsg and sendmmsg straight between the kernel and one run of packets.
//   node bench/peers/generator.mjs FILE PORT SECONDS SOCKETS WINDOW [FORM] [segments|batch] [RCODE] [SOURCE]
// FILE: lines `NAME TYPE`, as dnsperf takes them. FORM: `plain`, or some of `edns`, `do`, `ecs`, `cookie`, `rd` and `proxy`.
// With `edns` each packet has an OPT record; with `do` it has the bit DO; with `ecs` each packet has a Client Subnet, a /24 of its own; with `cookie` a client cookie; with `rd` the bit RD; with `proxy`
// a PROXY header of version 2 that names a client. A reply is wrong if it
// has another RCODE (default 0), or if it has neither an answer nor an authority record and RCODE is not 5.
// With SOURCE, an IPv4 address, socket n sends from the n-th address that follows; 127.0.0.1 stays what it is.
// Each socket keeps WINDOW queries under way. With `segments` those of one length that it sends at a time are one message
// that the kernel cuts (UDP_SEGMENT): less CPU for the generator, the same datagrams for the server.
// Prints one line of JSON: completed, lost, wrong, qps.
import { systemError } from '../../dist/transport/sockaddr.js'
import { SEGMENT_SPACE, writeSegment } from '../../dist/transport/udp/batch/grouping/udp-segment.js'
import {
  allocate,
  BATCH,
  composeHeaders,
  composePool,
  IOVEC_OCTETS,
  libc,
  MMSGHDR_OCTETS,
  openSocket,
  point,
  REPLY_OCTETS,
} from './packets.mjs'

const [file, portText, secondsText, socketsText, windowText, form = 'plain', way, ...others] =
  process.argv.slice(2)
const [rcodeText = '0', source = ''] = others
const REFUSED = 5
const rcode = Number(rcodeText)
const port = Number(portText)
const seconds = Number(secondsText)
const window = Number(windowText)

/** A socket that got nothing for so long has lost what it waits for. */
const LOST_MS = 200

const pool = composePool(file, form)

/** As above, of messages with a control message each, and with iovecs that are dealt out to them. */
function composeSegments() {
  const each = MMSGHDR_OCTETS + IOVEC_OCTETS + SEGMENT_SPACE
  const memory = allocate(BATCH * each)
  const controls = BATCH * (MMSGHDR_OCTETS + IOVEC_OCTETS)
  for (let i = 0; i < BATCH; i++) {
    const header = (i * MMSGHDR_OCTETS) >> 2
    point(memory, header + 8, controls + i * SEGMENT_SPACE)
    memory.words[header + 10] = SEGMENT_SPACE
  }
  return { ...memory, iovecs: (BATCH * MMSGHDR_OCTETS) >> 2, controls }
}

/** The address of a socket. */
function sourceOf(index) {
  if (source === '' || source === '127.0.0.1') return '127.0.0.1'
  const number = source.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0) + index
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join('.')
}

const replies = allocate(BATCH * REPLY_OCTETS)
const receiving = composeHeaders(replies.address)
const sending = composeHeaders(undefined)
const sockets = Array.from({ length: Number(socketsText) }, (_, index) => {
  const fd = openSocket(sourceOf(index), port)
  return { fd, underWay: 0, heardMs: performance.now() }
})
const polled = allocate(sockets.length * 8)
sockets.forEach(({ fd }, i) => {
  polled.words[i * 2] = fd
  polled.words[i * 2 + 1] = 1
})
const segments = composeSegments()
/** By place in what is sent at a time: the last turn in which it was put into a message. */
const queuedIn = new Float64Array(BATCH)
let turn = 0
let nextPacket = Math.floor(Math.random() * pool.count)
const total = { completed: 0, lost: 0, wrong: 0 }

/** The packet that comes `i` after the next one. */
function packetAt(i) {
  return nextPacket + i < pool.count ? nextPacket + i : nextPacket + i - pool.count
}

function sendSingly(socket, count) {
  const { words, iovecs } = sending
  for (let i = 0; i < count; i++) setIovec(words, iovecs + i * 4, packetAt(i))
  return libc.sendmmsg(socket.fd, sending.address, count, 0x40)
}

function setIovec(words, at, packet) {
  words[at] = pool.low[packet]
  words[at + 1] = pool.high[packet]
  words[at + 2] = pool.length[packet]
}

function sendSegments(socket, count) {
  const { words, iovecs, controls } = segments
  let [messages, filled] = [0, 0]
  turn++
  for (let i = 0; i < count; i++) {
    if (queuedIn[i] === turn) continue
    const length = pool.length[packetAt(i)]
    const header = (messages * MMSGHDR_OCTETS) >> 2
    point(segments, header + 4, (iovecs + filled * 4) * 4)
    const first = filled
    for (let j = i; j < count; j++) {
      if (pool.length[packetAt(j)] !== length) continue
      queuedIn[j] = turn
      setIovec(words, iovecs + filled++ * 4, packetAt(j))
    }
    words[header + 6] = filled - first
    writeSegment(words, controls + messages * SEGMENT_SPACE, length)
    messages++
  }
  for (let sent = 0; sent < messages; ) {
    const headers = segments.address + sent * MMSGHDR_OCTETS
    const more = libc.sendmmsg(socket.fd, headers, messages - sent, 0)
    if (more <= 0) throw systemError('sendmmsg', libc.errno(), { host: '127.0.0.1', port })
    sent += more
  }
  return count
}

function send(socket) {
  let room = window - socket.underWay
  while (room > 0) {
    const count = Math.min(room, BATCH)
    const sent = way === 'segments' ? sendSegments(socket, count) : sendSingly(socket, count)
    if (sent <= 0) return
    nextPacket = (nextPacket + sent) % pool.count
    socket.underWay += sent
    room -= sent
    if (sent < count) return
  }
}

/** True if anything came. */
function receive(socket, nowMs) {
  const count = libc.recvmmsg(socket.fd, receiving.address, BATCH, 0x40, 0)
  if (count <= 0) {
    if (socket.underWay > 0 && nowMs - socket.heardMs > LOST_MS) {
      total.lost += socket.underWay
      socket.underWay = 0
      socket.heardMs = nowMs
    }
    return false
  }
  for (let i = 0; i < count; i++) {
    const at = i * REPLY_OCTETS
    const isReply = (replies.bytes[at + 2] & 0x80) !== 0 && (replies.bytes[at + 3] & 15) === rcode
    const records = replies.bytes[at + 7] + replies.bytes[at + 9]
    if (!isReply || (records === 0 && rcode !== REFUSED)) total.wrong++
  }
  total.completed += count
  // What was given up and came after all is not waited for.
  socket.underWay = Math.max(0, socket.underWay - count)
  socket.heardMs = nowMs
  return true
}

const startMs = performance.now()
const endMs = startMs + seconds * 1000
let nowMs = startMs
while (nowMs < endMs) {
  let isIdle = true
  for (const socket of sockets) {
    if (receive(socket, nowMs)) isIdle = false
    send(socket)
  }
  if (isIdle) libc.poll(polled.address, sockets.length, 20)
  nowMs = performance.now()
}
const elapsedMs = nowMs - startMs
console.log(JSON.stringify({ ...total, qps: (total.completed * 1000) / elapsedMs }))
