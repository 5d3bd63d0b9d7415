import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import type { Test } from 'tap'
import {
  composeMessage,
  HeaderFlag,
  type Message,
  parseMessage,
  type ResourceRecord,
} from '../../src/dns/message/message.ts'
import { freePort } from './server.ts'

/** Records of the answer section; a number = that rcode; undefined = silence. */
export type Script = (
  query: Message,
  isTcp: boolean,
) => readonly ResourceRecord[] | number | undefined

/** A DNS server on 127.0.0.1, UDP and TCP, that answers as the test says. */
export class ScriptedServer {
  readonly port: number
  readonly asked: { readonly query: Message; readonly isTcp: boolean }[] = []
  script: Script = () => undefined
  #udp: UdpSocket | undefined
  #tcp: Server | undefined
  readonly #sockets = new Set<Socket>()

  private constructor(port: number) {
    this.port = port
  }

  static async open(t: Test, script: Script): Promise<ScriptedServer> {
    const server = new ScriptedServer(await freePort())
    server.script = script
    await server.start()
    t.teardown(() => server.stop())
    return server
  }

  async start(): Promise<void> {
    const udp = createSocket('udp4')
    udp.on('message', (packet, { port, address }) => {
      const reply = this.#reply(packet, false)
      if (reply !== undefined) udp.send(reply, port, address)
    })
    udp.bind(this.port, '127.0.0.1')
    const tcp = createServer((socket) => this.#serve(socket)).listen(this.port, '127.0.0.1')
    this.#udp = udp
    this.#tcp = tcp
    await Promise.all([once(udp, 'listening'), once(tcp, 'listening')])
  }

  /** As a process that was killed: nobody listens there. */
  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    const closed = this.#tcp === undefined ? undefined : once(this.#tcp, 'close')
    this.#udp?.close()
    this.#tcp?.close()
    this.#udp = undefined
    this.#tcp = undefined
    await closed
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      const reply = this.#reply(chunk.subarray(2), true)
      if (reply === undefined) return void socket.destroy()
      socket.write(Buffer.concat([Buffer.from([reply.length >> 8, reply.length & 0xff]), reply]))
    })
  }

  #reply(packet: Uint8Array, isTcp: boolean): Uint8Array | undefined {
    const query = parseMessage(packet)!
    this.asked.push({ query, isTcp })
    const answer = this.script(query, isTcp)
    if (answer === undefined) return undefined
    const rcode = typeof answer === 'number' ? answer : 0
    const records = typeof answer === 'number' ? [] : answer
    const flags = HeaderFlag.QR | HeaderFlag.AA
    const sections = { answer: records, authority: [], additional: [] }
    return composeMessage({ ...query, flags, rcode, ...sections, edns: undefined })
  }
}
