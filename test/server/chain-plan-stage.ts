import t from 'tap'
import { FileZones, FileZoneTable } from '../../src/authority/file-zones.ts'
import { giveRegion, packetOctets, takeRegion } from '../../src/base/packet-memory.ts'
import { Random } from '../../src/base/random.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import { CookieJar } from '../../src/dns/edns/cookie.ts'
import { CookieSecrets } from '../../src/dns/edns/cookie-secrets.ts'
import type { Query } from '../../src/dns/message/query.ts'
import { Fallthrough, NO_FALLTHROUGH } from '../../src/plugin/arguments/fallthrough.ts'
import { CHAIN_END } from '../../src/plugin/chain-end.ts'
import { CounterSlots } from '../../src/plugin/counter-slots.ts'
import type { Handler } from '../../src/plugin/handler.ts'
import type { Transaction } from '../../src/plugin/transaction.ts'
import { KuadrantHandler } from '../../src/plugins/kuadrant/kuadrant.ts'
import { ServerCounts } from '../../src/server/counters.ts'
import type { RoutedBlock } from '../../src/server/routing.ts'
import { Server } from '../../src/server/server.ts'
import { ZoneAnswerer } from '../../src/zone/lookup/answer.ts'
import type { Steerer } from '../../src/zone/lookup/steerer.ts'
import { wireName } from '../support/wire.ts'
import { imageOf } from '../support/zone-lines.ts'
import { wire } from '../support/zone-names.ts'

export const ZONE = [
  'example.org. 3600 SOA 60',
  'example.org. 300 NS ns1.example.org.',
  'example.org. 300 A 192.0.2.80',
  'www.example.org. 300 A 192.0.2.1',
  'www.example.org. 300 AAAA 32 1',
  'www.example.org. 60 TXT 7',
  'mail.example.org. 300 MX 10 www.example.org.',
  'alias.example.org. 300 CNAME www.example.org.',
  'chain.example.org. 300 CNAME geoalias.example.org.',
  'geoalias.example.org. 60 CNAME www.example.org. | 1',
  'geoalias.example.org. 60 CNAME alias.example.org.',
  'geoalias.example.org. 60 CNAME x.wild.example.org.',
  'loop.example.org. 60 CNAME loop.example.org.',
  'dangling.example.org. 60 CNAME nowhere.example.org.',
  'outside.example.org. 60 CNAME www.example.com.',
  'below.example.org. 60 CNAME www.deep.example.org.',
  'shop.example.org. 300 CNAME KLB.shop.example.org.',
  'klb.shop.example.org. 60 CNAME Eu.klb.Shop.example.org. | 1',
  'klb.shop.example.org. 60 CNAME www.example.com.',
  'klb.shop.example.org. 60 CNAME dangling.example.org.',
  'eu.klb.shop.example.org. 60 CNAME g0-eu.klb.shop.example.org. | 1',
  'eu.klb.shop.example.org. 60 CNAME shop.example.org.',
  'eu.klb.shop.example.org. 60 CNAME many.example.org.',
  'g0-eu.klb.shop.example.org. 60 A 192.0.2.12',
  'up.klb.shop.example.org. 60 CNAME shop.example.org.',
  ...Array.from({ length: 18 }, (_, i) => `c${i}.example.org. 60 CNAME c${i + 1}.example.org.`),
  'c18.example.org. 60 A 192.0.2.13',
  '*.wild.example.org. 300 A 192.0.2.2',
  'two.example.org. 300 A 192.0.2.3',
  'two.example.org. 300 A 192.0.2.4',
  'geo.example.org. 300 A 192.0.2.5 | 1',
  'geo.example.org. 300 A 192.0.2.6',
  'geo.example.org. 300 A 192.0.2.7',
  'abc.example.org. 5 A 192.0.2.8',
  'abcd.example.org. 5 A 192.0.2.9',
  'a.b.c.d.example.org. 5 A 192.0.2.10',
  'localhost.example.org. 300 A 192.0.2.11',
  ...Array.from({ length: 40 }, (_, i) => `many.example.org. 9 A 192.0.2.${i}`),
  'localhost. 30 SOA 90',
  'www.localhost. 30 A 198.51.100.3',
  'example.com. 30 SOA 90',
  'www.example.com. 30 A 198.51.100.1',
]

/** Serves what the first octet of the client's address says. */
export const steerer: Steerer = {
  choose(query, response, _words, _offset, choice) {
    choice.count = query.clientAddress[0]! % 4
    for (let i = 0; i < choice.count; i++) choice.index[i] = (i + query.clientAddress[1]!) % 3
    choice.ttlSeconds = query.clientAddress[2]! % 2 === 0 ? -1 : 77
    if (query.clientIsEcs) response.scopeBits = query.clientBits % 3
  },
}

export interface Setting {
  readonly lines: readonly string[]
  /** Makes the chain above what answers. */
  readonly above: (next: Handler, logged: string[], slots: CounterSlots) => Handler
  readonly blocks?: readonly Partial<RoutedBlock>[]
  readonly fromFile?: boolean
  /** Gives names that do not exist to the next handler. */
  readonly fallsThrough?: boolean
  /** Default: the one above. */
  readonly steerer?: Steerer
  /** Hides the links of the chain from the server, so that it runs the chain without a plan. */
  readonly isOpaque?: boolean
}

export const clock = { now: () => 1559731985_000, monotonic: () => 1 }

/** A server with those zones, what it logged, and what it counted. */
export function start({ lines, above, blocks = [{}], isOpaque, ...rest }: Setting) {
  const image = imageOf(lines)
  const answerer = new ZoneAnswerer(image.reader(), rest.steerer ?? steerer)
  const logged: string[] = []
  const slots = new CounterSlots()
  const fallthrough = rest.fallsThrough ? new Fallthrough([wire('.')]) : NO_FALLTHROUGH
  const bottom = rest.fromFile ? fileZones(answerer) : kuadrant(answerer, fallthrough)
  const planned = above(bottom, logged, slots)
  const chain = isOpaque === true ? opaque(planned) : planned
  const server = new Server({
    address: 'dns://:53',
    blocks: blocks.map((over) => ({
      zone: wireName(''),
      zoneText: '.',
      chain,
      filters: [],
      viewName: '',
      bufsizeOctets: 1232,
      debug: false,
      ...over,
    })),
    clock,
    random: new Random(1),
    log: createLogger(
      '',
      () => {},
      () => false,
    ),
    counters: new ServerCounts(),
    cookies: new CookieJar(CookieSecrets.of(new Uint8Array(16))),
  })
  return { image, server, logged, slots }
}

/** A handler that declares nothing. */
export function opaque(chain: Handler): Handler {
  return { name: 'opaque', serve: (tx) => chain.serve(tx) }
}

export function kuadrant(answerer: ZoneAnswerer, fallthrough = NO_FALLTHROUGH): Handler {
  return new KuadrantHandler(CHAIN_END, { answerer }, fallthrough)
}

function fileZones(answerer: ZoneAnswerer): Handler {
  const table = new FileZoneTable()
  table.change([{ zone: wire('example.org.'), answerer }])
  return new FileZones(CHAIN_END, { name: 'file', table, fallthrough: NO_FALLTHROUGH })
}

const PEER = Uint8Array.of(198, 51, 100, 100)
function describePeer(query: Query): void {
  query.peerAddress.fill(0)
  query.peerAddress.set(PEER)
  query.peerFamily = 1
  query.peerPort = 5353
}

const out = new Uint8Array(65535)
const region = takeRegion()
t.teardown(() => giveRegion(region))
const AT = region + 96
const OUT_AT = region + 8192

/** The reply to a packet in the packet memory, made there too. */
export function inMemory({ server }: { server: Server }, packet: Uint8Array): Uint8Array {
  // Octets behind the packet and of the reply before must not matter.
  packetOctets.fill(0xa5, AT, OUT_AT + 4096)
  packetOctets.set(packet, AT)
  const tx = server.acquire()
  tx.query.packet = packetOctets.subarray(AT, AT + packet.length)
  tx.query.packetAt = AT
  const octets = serve(server, tx, packet, packetOctets.subarray(OUT_AT, OUT_AT + 4096), OUT_AT)
  return packetOctets.slice(OUT_AT, OUT_AT + octets)
}

/** The reply to a packet that is elsewhere. */
export function elsewhere({ server }: { server: Server }, packet: Uint8Array): Uint8Array {
  const tx = server.acquire()
  tx.query.packet = packet
  tx.query.packetAt = -1
  return out.slice(0, serve(server, tx, packet, out, -1))
}

function serve(
  server: Server,
  tx: Transaction,
  packet: Uint8Array,
  room: Uint8Array,
  roomAt: number,
): number {
  tx.query.packetOctets = packet.length
  tx.query.protocol = 0
  describePeer(tx.query)
  const octets = server.serve(tx, room, roomAt)
  server.release(tx)
  if (typeof octets !== 'number') throw new Error('a chain waits')
  return octets
}
