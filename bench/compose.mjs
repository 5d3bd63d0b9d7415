/*
 * Claim: compose takes at most 300 ns for a typical answer. The whole of Server.serve around it is
 * shown for comparison. Run after `npm run build`.
 */

import { systemClock } from '../dist/base/clock.js'
import { Random } from '../dist/base/random.js'
import { CookieJar } from '../dist/dns/edns/cookie.js'
import { CookieSecrets } from '../dist/dns/edns/cookie-secrets.js'
import { compose } from '../dist/dns/message/compose.js'
import { parseQuery } from '../dist/dns/message/parse-query.js'
import { Query } from '../dist/dns/message/query.js'
import { Response } from '../dist/dns/message/response.js'
import { ServerCounts } from '../dist/server/counters.js'
import { Server } from '../dist/server/server.js'
import { report } from './rounds.mjs'

const PLAIN = '12340120000100000000000003617070016b076578616d706c6503636f6d0000010001'
const ECS = Buffer.from(`${PLAIN}00002904d000008000000b0008000700011800510245`, 'hex')
ECS[11] = 1
const COOKIE = Buffer.from(`${PLAIN}00002904d000008000000c000a00082464c4abcf10c957`, 'hex')
COOKIE[11] = 1
const wire = (name) =>
  Buffer.concat([
    ...name.split('.').map((l) => Buffer.concat([Buffer.from([l.length]), Buffer.from(l)])),
    Buffer.from([0]),
  ])
const arena = new Uint8Array(new SharedArrayBuffer(1024))
let used = 0
const place = (bytes) => {
  arena.set(bytes, used)
  used += bytes.length
  return used - bytes.length
}

const out = new Uint8Array(65535)
const query = new Query()
parseQuery(query, ECS, ECS.length)
const address = place([192, 0, 2, 1])
const target = wire('eu.klb.app.k.example.com')
const alias = place(target)
const soa = Buffer.concat([
  wire('ns1.k.example.com'),
  wire('hostmaster.k.example.com'),
  Buffer.alloc(20),
])
const soaAt = place(soa)
const apex = place(wire('k.example.com'))

function fresh() {
  const response = new Response()
  response.reset(query)
  return response
}
const one = fresh()
one.add(0, query.qname, 0, 1, 1, 60, arena, address, 4)
const four = fresh()
for (let i = 0; i < 4; i++) four.add(0, query.qname, 0, 1, 1, 60, arena, address, 4)
const chain = fresh()
chain.add(0, query.qname, 0, 5, 1, 60, arena, alias, target.length)
for (let i = 0; i < 2; i++) chain.add(0, arena, alias, 1, 1, 60, arena, address, 4)
const negative = fresh()
// A zone's apex is a suffix of the qname, and that is how lookups name it.
negative.add(1, query.qname, query.labelOffset[1], 6, 1, 60, arena, soaAt, soa.length)

report(
  'compose, one A with OPT and ECS',
  () => compose(query, one, out, 1232),
  compose(query, one, out, 1232),
)
report('compose, four A', () => compose(query, four, out, 1232), compose(query, four, out, 1232))
report(
  'compose, CNAME and two A of its target',
  () => compose(query, chain, out, 1232),
  compose(query, chain, out, 1232),
)
report(
  'compose, NXDOMAIN with SOA',
  () => compose(query, negative, out, 1232),
  compose(query, negative, out, 1232),
)

const handler = {
  name: 'bench',
  serve(tx) {
    tx.response.add(0, tx.query.qname, 0, 1, 1, 60, arena, address, 4)
    return 0
  },
}
const zone = arena.slice(apex, apex + 15)
const block = {
  zone,
  zoneText: 'k.example.com.',
  chain: handler,
  filters: [],
  viewName: '',
  bufsizeOctets: 1232,
  debug: false,
}
const options = {
  address: 'dns://:53',
  blocks: [block],
  clock: systemClock,
  random: new Random(1),
  log: console,
  counters: new ServerCounts(),
}
for (const [name, packet, cookies] of [
  ['Server.serve, parse to reply, ECS', ECS, undefined],
  ['Server.serve, with a server cookie', COOKIE, new CookieJar(new CookieSecrets())],
]) {
  const server = new Server({ ...options, cookies })
  const tx = server.acquire()
  tx.query.packet = packet
  tx.query.packetOctets = packet.length
  const want = server.serve(tx, out)
  report(name, () => server.serve(tx, out), want)
}
