import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import type { Test } from 'tap'
import { RRClass, RRType } from '../../src/dns/iana/index.ts'
import {
  composeMessage,
  HeaderFlag,
  type Message,
  parseMessage,
  type ResourceRecord,
} from '../../src/dns/message/message.ts'
import { freePort } from './free-port.ts'

/** A query that a `RawUpstream` got. */
export interface Received {
  readonly query: Message
  readonly octets: Uint8Array
  readonly isTcp: boolean
  /** The sender's port. */
  readonly from: number
  /** Sends octets to the sender: over TCP with their length before them. */
  readonly send: (octets: Uint8Array) => void
  /** The TCP connection. */
  readonly socket: Socket | undefined
}

export type Answer = (received: Received) => void

/** A server on 127.0.0.1, UDP and TCP, that sends any octets. */
export class RawUpstream {
  readonly port: number
  readonly received: Received[] = []
  answer: Answer
  connections = 0
  #udp: UdpSocket | undefined
  #tcp: Server | undefined
  readonly #sockets = new Set<Socket>()

  private constructor(port: number, answer: Answer) {
    this.port = port
    this.answer = answer
  }

  static async open(t: Test, answer: Answer): Promise<RawUpstream> {
    const upstream = new RawUpstream(await freePort(), answer)
    await upstream.start()
    t.teardown(() => upstream.stop())
    return upstream
  }

  get address(): string {
    return `127.0.0.1:${this.port}`
  }

  async start(): Promise<void> {
    const udp = createSocket('udp4')
    udp.on('message', (octets, { port, address }) => {
      const send = (reply: Uint8Array): void => udp.send(reply, port, address)
      this.take({ octets, isTcp: false, from: port, send, socket: undefined })
    })
    udp.bind(this.port, '127.0.0.1')
    const tcp = createServer((socket) => this.serve(socket)).listen(this.port, '127.0.0.1')
    this.#udp = udp
    this.#tcp = tcp
    await Promise.all([once(udp, 'listening'), once(tcp, 'listening')])
  }

  /** As a process that was killed: no process listens on the port. */
  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    const closed = this.#tcp === undefined ? undefined : once(this.#tcp, 'close')
    this.#udp?.close()
    this.#tcp?.close()
    this.#udp = undefined
    this.#tcp = undefined
    await closed
  }

  /** Answers the queries of a connection. */
  serve(socket: Socket): void {
    this.connections++
    this.#sockets.add(socket)
    socket.on('error', () => {})
    let pending = Buffer.alloc(0)
    const send = (reply: Uint8Array): void => void socket.write(framed(reply))
    socket.on('data', (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk])
      while (pending.length >= 2 && pending.length >= 2 + pending.readUInt16BE(0)) {
        const end = 2 + pending.readUInt16BE(0)
        const octets = pending.subarray(2, end)
        pending = pending.subarray(end)
        this.take({ octets, isTcp: true, from: socket.remotePort ?? 0, send, socket })
      }
    })
  }

  take(raw: Omit<Received, 'query'>): void {
    const received = { ...raw, query: parseMessage(raw.octets)! }
    this.received.push(received)
    this.answer(received)
  }
}

/** A message behind its length, as on TCP. */
export function framed(octets: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([octets.length >> 8, octets.length & 0xff]), octets])
}

/** The reply of a resolver: one A record 192.0.2.1, unless `more` says otherwise. */
export function replyTo(query: Message, more: Partial<Message> = {}): Uint8Array {
  const flags = HeaderFlag.QR | HeaderFlag.RD | HeaderFlag.RA
  const answer = [addressRecord(query, '192.0.2.1')]
  return composeMessage({ ...query, flags, answer, edns: undefined, ...more })
}

export function addressRecord(query: Message, address: string): ResourceRecord {
  const owner = query.question!.name
  const rdata = new Uint8Array(address.split('.').map(Number))
  return { owner, type: RRType.A, rrclass: RRClass.IN, ttlSeconds: 60, rdata }
}
