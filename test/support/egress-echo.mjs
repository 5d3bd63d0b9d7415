/*
 * An echo server in a network of the test: `egress-echo.mjs TCP-PORTS UDP-ADDRESSES UDP-PORTS`. TCP on every address of its
 * host, UDP on the addresses that are named: a reply must leave from the address that was asked. Prints `ready`.
 */
import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'

const [ports, addresses, udpPorts] = process.argv.slice(2).map((list) => list.split(','))

const tcp = ports.map(Number).map((port) => {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.pipe(socket)
  })
  return new Promise((resolve) => server.listen({ port, host: '::' }, resolve))
})
const udp = addresses.flatMap((address) =>
  udpPorts.map(Number).map((port) => {
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4')
    socket.on('message', (data, from) => socket.send(data, from.port, from.address))
    return new Promise((resolve) => socket.bind(port, address, resolve))
  }),
)
await Promise.all([...tcp, ...udp])
console.log('ready')
