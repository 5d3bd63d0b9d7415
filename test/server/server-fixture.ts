import { Random } from '../../src/base/random.ts'
import { createLogger } from '../../src/base/telemetry/log.ts'
import type { CookieJar } from '../../src/dns/edns/cookie.ts'
import type { Handler } from '../../src/plugin/handler.ts'
import type { Transaction } from '../../src/plugin/transaction.ts'
import { ServerCounts, ServerTotals } from '../../src/server/counters.ts'
import type { RoutedBlock } from '../../src/server/routing.ts'
import { Server } from '../../src/server/server.ts'
import {
  type QuerySpec,
  readMessage,
  type WireMessage,
  wireName,
  wireQuery,
} from '../support/wire.ts'

/** A chain that answers every query with TXT `text`. */
export function says(text: string): Handler {
  const rdata = Buffer.concat([Buffer.from([text.length]), Buffer.from(text)])
  return {
    name: 'toy',
    serve({ query, response }) {
      response.authoritative = true
      response.add(0, query.qname, 0, 16, 1, 60, rdata, 0, rdata.length)
      return 0
    },
  }
}

export function chain(serve: Handler['serve']): Handler {
  return { name: 'toy', serve }
}

export function block(zone: string, over: Partial<RoutedBlock> = {}): RoutedBlock {
  return {
    zone: wireName(zone),
    zoneText: zone,
    chain: says(zone),
    filters: [],
    viewName: '',
    bufsizeOctets: 1232,
    debug: false,
    ...over,
  }
}

interface Fixture {
  readonly server: Server
  readonly counters: ServerTotals
  readonly lines: string[]
}

export function start(blocks: readonly RoutedBlock[], cookies?: CookieJar): Fixture {
  const lines: string[] = []
  const counters = new ServerCounts()
  const server = new Server({
    address: 'dns://:53',
    blocks,
    clock: { now: () => 1559731985_000, monotonic: () => 0 },
    random: new Random(1),
    log: createLogger(
      '',
      (line) => lines.push(line),
      () => false,
    ),
    counters,
    cookies,
    tcpIdleMs: 10_000,
  })
  return { server, counters: new ServerTotals(counters), lines }
}

export const out = new Uint8Array(65535)

export function open(server: Server, packet: Uint8Array, protocol: 0 | 1 = 0): Transaction {
  const tx = server.acquire()
  tx.query.packet = packet
  tx.query.packetOctets = packet.length
  tx.query.protocol = protocol
  tx.query.peerAddress.set([198, 51, 100, 100])
  tx.query.peerFamily = 1
  tx.query.peerPort = 5353
  return tx
}

/** Serves a query of a chain that doesn't wait; undefined = silence. */
export function ask(
  server: Server,
  spec: QuerySpec | Uint8Array,
  protocol: 0 | 1 = 0,
): WireMessage | undefined {
  const tx = open(server, spec instanceof Uint8Array ? spec : wireQuery(spec), protocol)
  const octets = server.serve(tx, out)
  server.release(tx)
  if (typeof octets !== 'number') throw new Error('the chain waits')
  return octets === 0 ? undefined : readMessage(out.slice(0, octets))
}

export function text(message: WireMessage | undefined): string {
  if (message === undefined) return 'silence'
  if (message.rcode !== 0) return `rcode ${message.rcode}`
  return Buffer.from(message.answer[0]?.rdata.subarray(1) ?? []).toString()
}
