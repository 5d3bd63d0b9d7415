import { workerData } from 'node:worker_threads'
import { Random } from '../../src/base/random.ts'
import { Query } from '../../src/dns/message/query.ts'
import { writeSockaddr } from '../../src/transport/sockaddr.ts'
import { UNIT_PACKET } from '../../src/transport/udp/batch/layout.ts'
import { loadLibc } from '../../src/transport/udp/batch/libc.ts'
import { BatchSocket } from '../../src/transport/udp/batch/socket.ts'

/*
 * Sends random octets to 127.0.0.1:port as fast as it can, until `state[0]` is not 0 or `seconds` are
 * over; counts the datagrams in `state[1]`. Some are all random, some have a query's header, and some are
 * `query` with octets changed or cut off.
 */
export interface FloodData {
  readonly port: number
  readonly seconds: number
  readonly seed: number
  readonly query: Uint8Array
  readonly state: Int32Array
}

const { port, seconds, seed, query, state } = workerData as FloodData
const SOCKETS = 8
/** Put together before, so that sending is all that is done then. */
const PACKETS = 2 ** 14
const OCTETS_MAX = 600

const random = new Random(seed)
const noise = new Uint8Array(2 ** 20)
for (let i = 0; i < noise.length; i++) noise[i] = random.below(256)

const peer = new Uint8Array(UNIT_PACKET + 12)
writeSockaddr(peer, 0, '127.0.0.1', port)
const members = Array.from({ length: SOCKETS }, () => {
  const socket = new BatchSocket(loadLibc(), { host: '127.0.0.1', port: 0 })
  return { socket, unit: socket.takeUnit(peer, new Query()) }
})

function compose(): Uint8Array {
  const packet = new Uint8Array(OCTETS_MAX)
  const from = random.below(noise.length - OCTETS_MAX)
  const octets = random.below(OCTETS_MAX)
  packet.set(noise.subarray(from, from + octets))
  switch (random.below(4)) {
    case 0:
      return packet.slice(0, octets)
    case 1:
      // A query with one question, of whatever follows.
      packet.set([0, 0, 0, 1, 0, 0, 0, 0, 0, random.below(2)], 2)
      return packet.slice(0, octets)
    case 2: {
      packet.set(query)
      for (let i = random.below(4); i >= 0; i--) packet[random.below(query.length)] = noise[from]!
      return packet.slice(0, query.length)
    }
    default:
      packet.set(query)
      return packet.slice(0, random.below(query.length + 20))
  }
}

const packets = Array.from({ length: PACKETS }, compose)
let next = 0

const endMs = performance.now() + seconds * 1000
while (Atomics.load(state, 0) === 0 && performance.now() < endMs) {
  for (const { socket, unit } of members) {
    for (let i = 0; i < 32; i++) {
      const packet = packets[next++ % PACKETS]!
      socket.reply(unit, packet, packet.length)
    }
    // What the kernel does not take is not sent: there is more.
    if (!socket.flush()) socket.detach()
    socket.receive()
    Atomics.add(state, 1, 32)
  }
}
for (const { socket } of members) socket.close()
