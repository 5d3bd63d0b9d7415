import { createSocket } from 'node:dgram'

/** Below the ports that Linux gives to clients, so that no load generator sits on one. */
let next = 25_400

/** A UDP port of 127.0.0.1 that nobody has. */
export async function freePort() {
  for (;;) if (await isFree(++next)) return next
}

function isFree(port) {
  const socket = createSocket('udp4')
  return new Promise((resolve) => {
    socket.once('error', () => resolve(false))
    socket.bind(port, '127.0.0.1', () => socket.close(() => resolve(true)))
  })
}
