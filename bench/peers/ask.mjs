// Asks a server single questions, to see that it answers what the others answer before it is timed.
import { createSocket } from 'node:dgram'
import { addressesOf } from '../../test/support/reply-addresses.mjs'
import { CLIENTS, ENDPOINTS, GEO_NAME, PLAIN_ZONE, plainAddress, simpleName } from './content.mjs'

const ASKS = 200
/** Over 200 asks a share strays by 0.03 (one sigma); five of them are no accident. */
const TOLERANCE = 0.17

/** Resolves with the addresses of one answer's A records, or undefined after a while. */
export async function ask(port, name, subnet, waitMs = 2000) {
  const socket = createSocket('udp4')
  try {
    return await new Promise((resolve, reject) => {
      setTimeout(() => resolve(undefined), waitMs).unref()
      socket.once('error', reject)
      socket.once('message', (reply) => resolve(addressesOf(reply).sort()))
      socket.connect(port, '127.0.0.1', () => socket.send(query(name, subnet)))
    })
  } finally {
    socket.close()
  }
}

/** Waits until the server answers at all; `failure` tells that it has ended. */
export async function untilUp(server, port, { geo }, limitMs) {
  const end = Date.now() + limitMs
  while (Date.now() < end) {
    const found = await ask(port, geo ? GEO_NAME : simpleName(0), geo && CLIENTS.EU, 200).catch(
      () => {},
    )
    if (found?.length > 0) return
    if (server.failure !== undefined) throw new Error(server.failure)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`${server.name} did not answer on port ${port} within ${limitMs} ms`)
}

export async function verify(peer, port, { geo, names }) {
  if (!geo) return verifyPlain(peer, port, names)
  for (const [code, endpoints] of Object.entries(ENDPOINTS)) {
    const counts = new Map()
    for (let i = 0; i < ASKS; i++) {
      const found = await ask(port, GEO_NAME, CLIENTS[code])
      const address = found?.join('+')
      counts.set(address, (counts.get(address) ?? 0) + 1)
    }
    verifyShares(peer, code, peer.unweighted ? endpoints.slice(0, 1) : endpoints, counts)
  }
}

function verifyShares(peer, code, endpoints, counts) {
  const total = endpoints.reduce((sum, { weight }) => sum + weight, 0)
  const seen = JSON.stringify([...counts])
  if (counts.size > endpoints.length) throw new Error(`${peer.name}, ${code}: answered ${seen}`)
  for (const { address, weight } of endpoints) {
    const share = (counts.get(address) ?? 0) / ASKS
    if (Math.abs(share - weight / total) <= TOLERANCE) continue
    throw new Error(`${peer.name}, ${code}: ${address} has a share of ${share}; answered ${seen}`)
  }
}

async function verifyPlain(peer, port, names) {
  for (let i = 0; i < ASKS; i++) {
    const index = i === 0 ? names - 1 : Math.floor(Math.random() * names)
    const found = await ask(port, simpleName(index))
    if (found?.join() === plainAddress(index)) continue
    throw new Error(`${peer.name}: ${simpleName(index)} (of ${PLAIN_ZONE}) is ${found}`)
  }
}

function query(name, subnet) {
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)])
  const option = subnet ? [0, 8, 0, 7, 0, 1, 24, 0, ...subnet] : []
  // OPT with a payload size of 1232 (RFC 6891).
  const opt = subnet ? [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, option.length, ...option] : []
  const header = [0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, subnet ? 1 : 0]
  return Uint8Array.from([...header, ...labels, 0, 0, 1, 0, 1, ...opt])
}
