// What is probed: an HTTP server at many addresses of this machine, which notes when each host was asked for.
//   node gateways.mjs NETWORK COUNT PORT    NETWORK: `127.66`; it listens at 127.66.0.1 and on
// Sent by its parent `take`: what it noted since. It answers with {[host]: seconds[]}.
import { createServer } from 'node:http'

const [network, count, port] = process.argv.slice(2)
let seen = {}

function answer(request, reply) {
  const { host } = request.headers
  seen[host] ??= []
  seen[host].push(performance.now() / 1000)
  reply.end()
}

for (let i = 0; i < Number(count); i++) {
  const address = addressOf(network, i)
  await new Promise((resolve) => createServer(answer).listen(Number(port), address, resolve))
}

process.on('message', (message) => {
  if (message !== 'take') return
  process.send(seen)
  seen = {}
})
process.on('disconnect', () => process.exit())
process.send('listening')

function addressOf(base, i) {
  return `${base}.${(i + 1) >> 8}.${(i + 1) & 255}`
}
