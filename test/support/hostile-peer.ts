import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import type { Test } from 'tap'
import { composeMessage } from '../../src/dns/message/compose-message.ts'
import { HeaderFlag } from '../../src/dns/message/header.ts'
import type { Message, ResourceRecord } from '../../src/dns/message/message.ts'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { freePort } from './server.ts'

/** Octets of a reply to `query`. */
export function replyTo(query: Message, answer: readonly ResourceRecord[]): Uint8Array {
  const flags = HeaderFlag.QR | HeaderFlag.AA
  const sections = { answer, authority: [], additional: [] }
  return composeMessage({ ...query, flags, rcode: 0, ...sections, edns: undefined })
}

/** With its length before it (RFC 1035 section 4.2.2). */
export function framed(message: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from([message.length >> 8, message.length & 0xff]), message])
}

/** What a hostile peer does. */
export interface Hostility {
  /** Reply over UDP; undefined = silence. */
  datagram(query: Message, packet: Uint8Array): Uint8Array | undefined
  /** Octets to send over TCP, for as long as they are taken; after the last nothing more comes. */
  stream(query: Message): Iterable<Uint8Array>
}

/** A peer on 127.0.0.1 that says whatever it likes, octet for octet. */
export class HostilePeer {
  readonly port: number
  hostility: Hostility
  /** Octets that were taken off it over TCP. */
  octetsSent = 0
  /** Queries that came over TCP. */
  streams = 0

  private constructor(port: number, hostility: Hostility) {
    this.port = port
    this.hostility = hostility
  }

  static async open(t: Test, hostility: Hostility): Promise<HostilePeer> {
    const peer = new HostilePeer(await freePort(), hostility)
    const udp = createSocket('udp4')
    udp.on('message', (packet, { port, address }) => {
      const query = parseMessage(packet)
      const reply = query && peer.hostility.datagram(query, packet)
      if (reply !== undefined) udp.send(reply, port, address)
    })
    udp.bind(peer.port, '127.0.0.1')
    const sockets = new Set<Socket>()
    const tcp = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.once('data', (chunk: Buffer) => void peer.#serve(socket, chunk))
    }).listen(peer.port, '127.0.0.1')
    await Promise.all([once(udp, 'listening'), once(tcp, 'listening')])
    t.teardown(() => {
      udp.close()
      tcp.close()
      for (const socket of sockets) socket.destroy()
    })
    return peer
  }

  async #serve(socket: Socket, chunk: Buffer): Promise<void> {
    const query = parseMessage(chunk.subarray(2))
    if (query === undefined) return
    this.streams++
    for (const octets of this.hostility.stream(query)) {
      if (socket.destroyed) return
      this.octetsSent += octets.length
      if (socket.write(octets)) continue
      await new Promise<void>((resolve) => {
        const goOn = (): void => {
          socket.off('drain', goOn)
          socket.off('close', goOn)
          resolve()
        }
        socket.on('drain', goOn)
        socket.on('close', goOn)
      })
    }
  }
}
