// A load generator at a fixed rate, whatever the server does: the latency of a query counts from when it was due.
//   node bench/tails/open-loop.mjs FILE PORT RATE SECONDS PORTS
// FILE: lines `NAME TYPE`. RATE: queries/s, in turn from PORTS client ports. Prints one line of JSON: sent, lost (no answer
// within 300 ms of the end), p50, p99, p999 in microseconds.
import { cBinder, requireKoffi } from '../../dist/base/koffi.js'
import {
  allocate,
  BATCH,
  composeHeaders,
  composePool,
  libc,
  openSocket,
  REPLY_OCTETS,
} from '../peers/packets.mjs'

const [file, ...numbers] = process.argv.slice(2)
const [port, rate, seconds, ports] = numbers.map(Number)
const LAST_REPLY_MS = 300
const EVENTS = 64
const EPOLLIN = 1
const EPOLL_CTL_ADD = 1
/** `struct epoll_event` is packed on x86-64 only. */
const EVENT_WORDS = process.arch === 'x64' ? 3 : 4
const EVENT_DATA = EVENT_WORDS - 2

const bind = cBinder(requireKoffi())
const epollCreate = bind('int epoll_create1(int flags)')
const epollControl = bind('int epoll_ctl(int epfd, int op, int fd, uintptr_t event)')
const epollWait = bind('int epoll_wait(int epfd, uintptr_t events, int max, int timeoutMs)')

const pool = composePool(file, 'plain')
const replies = allocate(BATCH * REPLY_OCTETS)
const receiving = composeHeaders(replies.address)
const sending = composeHeaders(undefined)
const events = allocate(EVENTS * EVENT_WORDS * 4)
const epoll = epollCreate(0)
const sockets = Array.from({ length: ports }, () => {
  const fd = openSocket('127.0.0.1', port)
  events.words[0] = EPOLLIN
  events.words[EVENT_DATA] = fd
  epollControl(epoll, EPOLL_CTL_ADD, fd, events.address)
  return fd
})

const total = Math.floor(rate * seconds)
/** By id of the query, in ms after the start; negative = answered. */
const dueMs = new Float64Array(65_536).fill(-1)
const latencyUs = new Float64Array(total)
let [sent, answered] = [0, 0]

function send(fd) {
  const packet = sent % pool.count
  const at = sending.iovecs
  sending.words[at] = pool.low[packet]
  sending.words[at + 1] = pool.high[packet]
  sending.words[at + 2] = pool.length[packet]
  // The id of packet i is i modulo 65 536, and the pool holds a multiple of that.
  dueMs[sent & 0xffff] = (sent * 1000) / rate
  libc.sendmmsg(fd, sending.address, 1, 0x40)
  sent++
}

function receive(fd, startMs) {
  const count = libc.recvmmsg(fd, receiving.address, BATCH, 0x40, 0)
  const nowMs = performance.now() - startMs
  for (let i = 0; i < count; i++) {
    const at = i * REPLY_OCTETS
    const id = replies.bytes[at] * 256 + replies.bytes[at + 1]
    const wasAnswered = (replies.bytes[at + 3] & 15) === 0 && replies.bytes[at + 7] > 0
    if (dueMs[id] < 0 || !wasAnswered) continue
    latencyUs[answered++] = (nowMs - dueMs[id]) * 1000
    dueMs[id] = -1
  }
}

if (pool.count % 65_536 !== 0) throw new Error('more names than ids')
const startMs = performance.now()
const endMs = startMs + seconds * 1000 + LAST_REPLY_MS
for (let nowMs = startMs; nowMs < endMs; nowMs = performance.now()) {
  const due = Math.min(total, Math.floor(((nowMs - startMs) * rate) / 1000))
  for (let n = 0; n < BATCH && sent < due; n++) send(sockets[sent % ports])
  const ready = epollWait(epoll, events.address, EVENTS, 0)
  for (let i = 0; i < ready; i++) receive(events.words[i * EVENT_WORDS + EVENT_DATA], startMs)
}
const sorted = latencyUs.subarray(0, answered).sort()
const at = (share) => Math.round(sorted[Math.floor((answered - 1) * share)] ?? Number.NaN)
console.log(
  JSON.stringify({ sent, lost: sent - answered, p50: at(0.5), p99: at(0.99), p999: at(0.999) }),
)
