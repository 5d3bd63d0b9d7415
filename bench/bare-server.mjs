// A server without sockets over one zone, for the cost of what stands before the zone: one query, answered by one address.

import { packetOctets } from '../dist/base/packet-memory.js'
import { Random } from '../dist/base/random.js'
import { NO_FALLTHROUGH } from '../dist/plugin/arguments/fallthrough.js'
import { CHAIN_END } from '../dist/plugin/chain-end.js'
import { KuadrantHandler } from '../dist/plugins/kuadrant/kuadrant.js'
import { ServerCounts } from '../dist/server/counters.js'
import { Server } from '../dist/server/server.js'
import { copyIPv4 } from '../dist/transport/udp/batch/octets.js'
import { ZoneImage } from '../dist/zone/image/writer.js'
import { ZoneAnswerer } from '../dist/zone/lookup/answer.js'

const AT = 4096
const ROOM = 512
/** Octets of the address record in the reply. */
const RECORD_OCTETS = 16

const wire = (name) =>
  Buffer.concat([
    ...name.split('.').map((l) => Buffer.concat([Buffer.from([l.length]), Buffer.from(l)])),
    Buffer.from([0]),
  ])
const header = Buffer.from('123401000001000000000000', 'hex')
const QUERY = Buffer.concat([header, wire('www.example.org'), Buffer.from([0, 1, 0, 1])])
export const REPLY_OCTETS = QUERY.length + RECORD_OCTETS

const image = new ZoneImage()
const apex = new Uint8Array(wire('example.org'))
const zone = image.addZone(apex)
image.putRRset(zone, apex, { type: 6, ttlSeconds: 60, rdata: [new Uint8Array(22)] })
const www = new Uint8Array(wire('www.example.org'))
image.putRRset(zone, www, { type: 1, ttlSeconds: 60, rdata: [Uint8Array.of(192, 0, 2, 1)] })
image.publish()

/**
 * Returns a function that answers the query of the client whose IPv4 address is at `addresses[at]`, and returns the octets
 * of the reply. `over`: makes the chain above the zone. `limiter`: of the server block.
 */
export function bareServer({ clock, over = (next) => next, limiter = undefined }) {
  const answerer = new ZoneAnswerer(image.reader())
  const block = {
    zone: apex,
    zoneText: 'example.org.',
    chain: over(new KuadrantHandler(CHAIN_END, { answerer }, NO_FALLTHROUGH)),
    filters: [],
    limiter,
    viewName: '',
    bufsizeOctets: 1232,
    debug: false,
  }
  const server = new Server({
    address: 'dns://:53',
    blocks: [block],
    clock,
    random: new Random(1),
    log: console,
    counters: new ServerCounts(),
  })
  const tx = server.acquire()
  const { query } = tx
  const out = packetOctets.subarray(AT + ROOM, AT + 2 * ROOM)
  return (addresses, at) => {
    packetOctets.set(QUERY, AT)
    query.packetAt = AT
    query.packetOctets = QUERY.length
    query.protocol = 0
    query.peerFamily = copyIPv4(addresses, at, query.peerAddress)
    return server.serve(tx, out, AT + ROOM)
  }
}
