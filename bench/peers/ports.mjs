import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'

/** Below the ports that Linux gives to clients, so that no load generator sits on one. */
let next = 25_400

/** A port of 127.0.0.1 that nobody has, neither for UDP nor for TCP. */
export async function freePort() {
  for (;;) if ((await isFree(++next)) && (await isFreeForTcp(next))) return next
}

function isFree(port) {
  const socket = createSocket('udp4')
  return new Promise((resolve) => {
    socket.once('error', () => resolve(false))
    socket.bind(port, '127.0.0.1', () => socket.close(() => resolve(true)))
  })
}

function isFreeForTcp(port) {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
