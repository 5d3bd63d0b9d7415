import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import type { Test } from 'tap'
import type { HostPort } from '../../src/dns/host-port.ts'
import { RRClass, RRType } from '../../src/dns/iana/index.ts'
import { OptionCode } from '../../src/dns/iana/options.ts'
import { composeMessage } from '../../src/dns/message/compose-message.ts'
import { HeaderFlag } from '../../src/dns/message/header.ts'
import type { EdnsOption, Message, ResourceRecord } from '../../src/dns/message/message.ts'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { freePort } from './free-port.ts'

const LOOPBACK = '127.0.0.1'

/** A query that a `ScriptedServer` got. */
export interface Asked {
  readonly query: Message
  readonly octets: Uint8Array
  readonly isTcp: boolean
  /** The sender's port and address. */
  readonly from: number
  readonly fromHost: string
  /** Sends octets to the sender: over TCP with their length before them. */
  readonly send: (octets: Uint8Array) => void
  /** The TCP connection. */
  readonly socket: Socket | undefined
}

/** Sends what the test wants: any octets, nothing, or the end of the connection. */
export type Answer = (asked: Asked) => void

/** Records of the answer section; a number = that rcode; undefined = silence. */
export type Script = (
  query: Message,
  isTcp: boolean,
) => readonly ResourceRecord[] | number | undefined

/** A DNS server, on 127.0.0.1 by default, UDP and TCP, that answers as the test says. */
export class ScriptedServer {
  readonly host: string
  readonly port: number
  readonly asked: Asked[] = []
  answer: Answer
  /** TCP connections so far. */
  connections = 0
  #udp: UdpSocket | undefined
  #tcp: Server | undefined
  readonly #sockets = new Set<Socket>()

  private constructor({ host, port }: HostPort, answer: Answer) {
    this.host = host
    this.port = port
    this.answer = answer
  }

  static open(t: Test, script: Script, host = LOOPBACK): Promise<ScriptedServer> {
    return ScriptedServer.openRaw(t, answerOf(script), host)
  }

  static async openRaw(t: Test, answer: Answer, host = LOOPBACK): Promise<ScriptedServer> {
    const server = new ScriptedServer({ host, port: await freePort() }, answer)
    await server.start()
    t.teardown(() => server.stop())
    return server
  }

  get address(): string {
    return `${this.host}:${this.port}`
  }

  set script(script: Script) {
    this.answer = answerOf(script)
  }

  async start(): Promise<void> {
    const udp = createSocket('udp4')
    udp.on('message', (octets, { port, address }) => {
      const send = (reply: Uint8Array): void => udp.send(reply, port, address)
      this.#take({ octets, isTcp: false, from: port, fromHost: address, send, socket: undefined })
    })
    udp.bind(this.port, this.host)
    const tcp = createServer((socket) => this.serve(socket)).listen(this.port, this.host)
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
        const { remotePort = 0, remoteAddress = '' } = socket
        this.#take({ octets, isTcp: true, from: remotePort, fromHost: remoteAddress, send, socket })
      }
    })
  }

  #take(received: Omit<Asked, 'query'>): void {
    const asked = { ...received, query: parseMessage(received.octets)! }
    this.asked.push(asked)
    this.answer(asked)
  }
}

/**
 * Sends the reply of an authoritative server. Silence ends a TCP connection. `timeSeconds`: its clock, as in the cookie
 * of RFC 9018 that it adds; missing = it adds none.
 */
export function answerOf(script: Script, timeSeconds?: () => number): Answer {
  return ({ query, isTcp, send, socket }) => {
    const answer = script(query, isTcp)
    if (answer === undefined) return void socket?.destroy()
    const rcode = typeof answer === 'number' ? answer : 0
    const records = typeof answer === 'number' ? [] : answer
    const flags = HeaderFlag.QR | HeaderFlag.AA
    const sections = { answer: records, authority: [], additional: [] }
    const options = timeSeconds === undefined ? [] : cookiesOf(query, timeSeconds())
    const edns = options.length === 0 ? undefined : { ...query.edns!, options }
    send(composeMessage({ ...query, flags, rcode, ...sections, edns }))
  }
}

function cookiesOf({ edns }: Message, timeSeconds: number): EdnsOption[] {
  const asked = edns?.options.find(({ code }) => code === OptionCode.COOKIE)
  if (asked === undefined) return []
  const data = Buffer.alloc(24)
  data.set(asked.data.subarray(0, 8))
  data[8] = 1
  data.writeUInt32BE(Math.floor(timeSeconds), 12)
  return [{ code: OptionCode.COOKIE, data }]
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
