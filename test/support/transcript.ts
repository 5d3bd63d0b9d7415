import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import type { Test } from 'tap'
import { getText } from './get-text.ts'
import type { RunningServer } from './server.ts'
import { readMessage } from './wire.ts'

/** One datagram to send, and how to compare what comes back. */
export interface Ask {
  readonly what: string
  readonly packet: Uint8Array
  /** Address of the server; default 127.0.0.1. */
  readonly to?: string
  /** Where answers are drawn at random: how often to ask for their shares. */
  readonly draws?: number
}

/** What came back: replies in hex, '' = silence, with how often each did. */
export type Replies = ReadonlyMap<string, number>

/** No server's answer to a question looks like this: NOTIMP with an id and an opcode of its own. */
const MARK_ID = 0xbeef
const MARK_FLAGS = 0x1000
const MARK = Buffer.from([
  MARK_ID >> 8,
  MARK_ID & 0xff,
  MARK_FLAGS >> 8,
  0,
  ...new Array(8).fill(0),
])

const COOKIE = 10
const CLIENT_COOKIE_OCTETS = 8

const LATE_PIECES = 10

/** Many sockets, so that the kernel spreads their queries over a server's sockets. */
const SOCKETS = 16

/** Asks one thing after the other; the same sockets for every server, so that ports are the same as well. */
export class SpreadClient {
  readonly #ipv4: readonly Socket[]
  readonly #ipv6: readonly Socket[]

  private constructor(ipv4: readonly Socket[], ipv6: readonly Socket[]) {
    this.#ipv4 = ipv4
    this.#ipv6 = ipv6
  }

  static async open(t: Test): Promise<SpreadClient> {
    const ipv4 = await Promise.all(Array.from({ length: SOCKETS }, () => bind('127.0.0.1')))
    const ipv6 = [await bind('::1')]
    t.teardown(() => {
      for (const socket of [...ipv4, ...ipv6]) socket.close()
    })
    return new SpreadClient(ipv4, ipv6)
  }

  /**
   * What the server on `port` replies to each, in order. `lateMs`: how long to wait for replies that
   * others may overtake, for each.
   */
  async askAll(
    asks: readonly Ask[],
    port: number,
    lateMs: readonly number[] = [],
  ): Promise<Replies[]> {
    const all: Replies[] = []
    for (const [i, { packet, to = '127.0.0.1', draws = 1 }] of asks.entries()) {
      const replies = new Map<string, number>()
      const sockets = isIPv6(to) ? this.#ipv6 : this.#ipv4
      for (let draw = 0; draw < draws; draw++) {
        const socket = sockets[(i + draw) % sockets.length]!
        const reply = await exchange(socket, packet, { port, to, lateMs: lateMs[i] ?? 0 })
        replies.set(reply, (replies.get(reply) ?? 0) + 1)
      }
      all.push(replies)
    }
    return all
  }

  /** What the server on `port` replies to the same packet from each IPv4 socket, at the same time. */
  askFromEach(packet: Uint8Array, port: number): Promise<string[]> {
    const server = { port, to: '127.0.0.1', lateMs: 0 }
    return Promise.all(this.#ipv4.map((socket) => exchange(socket, packet, server)))
  }
}

async function bind(host: string): Promise<Socket> {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  socket.bind(0, host)
  await once(socket, 'listening')
  return socket
}

/** Whatever comes before the reply to a mark that is sent behind `packet` is the reply to `packet`. */
function exchange(
  socket: Socket,
  packet: Uint8Array,
  { port, to, lateMs }: { port: number; to: string; lateMs: number },
): Promise<string> {
  return new Promise((resolve, reject) => {
    const replies: string[] = []
    let isMarked = false
    let timer = setTimeout(() => reject(new Error(`no reply at all from ${to}`)), 60_000)
    const finish = (): void => {
      clearTimeout(timer)
      socket.off('message', take)
      resolve(replies.join(' and '))
    }
    /** In pieces: where this process had no turn for long, what came meanwhile is read between two of them. */
    const waitOn = (pieces: number): void => {
      timer = setTimeout(() => (pieces > 1 ? waitOn(pieces - 1) : finish()), lateMs / LATE_PIECES)
    }
    const take = (reply: Buffer): void => {
      if (reply.readUInt16BE(0) === MARK_ID) {
        isMarked = true
        clearTimeout(timer)
        waitOn(LATE_PIECES)
      } else replies.push(withoutServerCookie(packet, reply).toString('hex'))
      if (isMarked && (lateMs === 0 || replies.length > 0)) finish()
    }
    socket.on('message', take)
    socket.send(packet, port, to)
    socket.send(MARK, port, to)
  })
}

/** A server cookie holds the time, and is made with a key that each process has its own of. */
function withoutServerCookie(packet: Uint8Array, reply: Buffer): Buffer {
  if (!packet.includes(COOKIE)) return reply
  const cookie = cookieOf(reply)
  if (cookie === undefined) return reply
  const at = reply.indexOf(cookie)
  return Buffer.from(reply).fill(0, at + CLIENT_COOKIE_OCTETS, at + cookie.length)
}

function cookieOf(reply: Buffer): Uint8Array | undefined {
  try {
    return readMessage(reply).options.get(COOKIE)
  } catch {
    return undefined
  }
}

/** Log lines in an order of their own, without what differs from run to run. */
export function logOf(server: RunningServer): string[] {
  return server
    .output()
    .split('\n')
    .filter((line) => line !== '' && !/^\[INFO\] (?:udp|memory): /.test(line))
    .map((line) =>
      line.replace(/\b\d+\.\d+s\b/g, 'TIMEs').replace(/\bin \d+\.\d\d s\b/g, 'in TIME s'),
    )
    .sort()
}

const TIMINGS = /seconds|_bytes \d|^process_|^nodejs_/

const OTHER_EACH_TIME =
  /^coredns_health_request_duration|^sextant_kuadrant_endpoint_answers|reason="(buffer|late)"/

/** A metrics page without timings, draws and sizes of the process; counts of timed things stay. */
export function countsOf(page: string): string[] {
  return page
    .split('\n')
    .filter((line) => !line.startsWith('#') && line !== '')
    .filter((line) => !TIMINGS.test(line) || /_seconds_count\b/.test(line))
    .filter((line) => !OTHER_EACH_TIME.test(line))
    .sort()
}

export async function pageOf(port: number, path: string): Promise<string> {
  const { status, text } = await getText(`http://127.0.0.1:${port}${path}`)
  return `${status} ${text}`
}

/** Ends the server as an operator would; resolves once it is gone. */
export async function endServer(server: RunningServer): Promise<void> {
  server.process.kill('SIGTERM')
  await server.exited()
}
