import { randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { framed, query, randomLabel } from './query.mjs'

const SOCKETS = 20
const BATCH = 20
const NETWORKS = 200
/** Octets of queries on a connection whose client reads nothing: more than the server reads before it stops. */
const UNREAD_OCTETS = 1 << 18

/** An address of a network of its own: a /24. */
const attackerOf = (i, attack) =>
  `127.${100 + attack}.${i % NETWORKS}.${1 + (Math.floor(i / NETWORKS) % 250)}`

/** Sends what `make` returns over UDP as fast as it can, from many ports; `rate` limits the packets per second. */
function flood(port, attack, make, rate = Number.POSITIVE_INFINITY) {
  for (let i = 0; i < SOCKETS; i++) {
    const socket = createSocket('udp4')
    socket.on('message', () => {})
    socket.on('error', () => {})
    const send = () => {
      for (let k = 0; k < BATCH; k++)
        socket.send(make(), port, '127.0.0.1', k === 0 ? () => pause(send) : undefined)
    }
    const pauseMs = (1000 * BATCH * SOCKETS) / rate
    const pause = (next) => (pauseMs > 0 ? setTimeout(next, pauseMs) : setImmediate(next))
    socket.bind(0, attackerOf(i, attack), send)
  }
}

/** Keeps `count` connections open; `begin` gets each one. */
function hold(port, count, attack, begin) {
  const open = (i) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress: attackerOf(i, attack) })
    socket.on('error', () => {})
    socket.on('close', () => setTimeout(open, 20, i))
    socket.on('connect', () => begin(socket, i))
  }
  for (let i = 0; i < count; i++) setTimeout(open, i, i)
}

/** Writes one octet of `message` a second. */
function drip(socket, message) {
  let at = 0
  const timer = setInterval(() => socket.write(message.subarray(at, ++at)), 1000)
  socket.on('close', () => clearInterval(timer))
}

const network = () => [...randomBytes(4)]
const FLOOD_RATE = 20_000
const FORWARD_RATE = 2000

/** By name: starts the attack, which ends with its process. */
export const ATTACKS = {
  names: ({ dns }) => flood(dns, 1, () => query(`${randomLabel()}.example.org`, 1), FLOOD_RATE),
  damaged: ({ dns }) => {
    flood(
      dns,
      2,
      () => {
        const packet = query(`${randomLabel()}.example.org`, 1)
        packet[Math.floor(Math.random() * packet.length)] = Math.floor(Math.random() * 256)
        return packet.subarray(0, 5 + Math.floor(Math.random() * packet.length))
      },
      FLOOD_RATE,
    )
  },
  ecs: ({ dns }) => flood(dns, 3, () => query(`${randomLabel()}.test`, 1, network()), FORWARD_RATE),
  silent: ({ dns }) => flood(dns, 4, () => query(`${randomLabel()}.silent.test`, 1), FORWARD_RATE),
  long: ({ dns }) => flood(dns, 5, () => query(`${randomLabel()}.long.test`, 16), FORWARD_RATE),
  'long-tcp': ({ dns }) => {
    hold(dns, 1000, 6, (socket) => {
      socket.pause()
      for (let k = 0; k < 60; k++) socket.write(framed(query(`${randomLabel()}.long.test`, 16)))
    })
  },
  slow: ({ dns }) =>
    hold(dns, 2500, 7, (socket) => drip(socket, framed(query('h1.example.org', 1)))),
  unread: ({ dns }) => {
    hold(dns, 1000, 8, (socket) => {
      socket.pause()
      const many = Buffer.concat(
        Array.from({ length: 500 }, () => framed(query('h1.example.org', 255))),
      )
      // More would only wait in the attacker's own send buffer, which here counts as TCP memory of the server's host.
      const isEnough = () => socket.bytesWritten > UNREAD_OCTETS
      const write = () => !isEnough() && socket.write(many) && setTimeout(write, 50)
      socket.on('drain', write)
      write()
    })
  },
  churn: ({ dns }) => {
    hold(dns, 200, 9, (socket) => {
      socket.write(framed(query('h1.example.org', 1)))
      socket.once('data', () => socket.resetAndDestroy())
    })
  },
  transfers: ({ dns }) => {
    hold(dns, 300, 10, (socket) => {
      socket.pause()
      socket.write(framed(query('example.org', 252)))
    })
  },
  http: ({ health }) => {
    const request = Buffer.from(
      'GET /health HTTP/1.1\r\nHost: x\r\nX-Padding: abcdefghijklmnopqrstuvwxyz\r\n\r\n',
    )
    hold(health, 1500, 11, (socket) => drip(socket, request))
  },
  'http-churn': ({ health }) => {
    hold(health, 100, 12, (socket) => {
      socket.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n')
      socket.once('data', () => socket.destroy())
    })
  },
}
