import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIP } from 'node:net'
import { Protocol } from '../../dns/message/query.ts'
import { Drain } from '../drain.ts'
import type { PacketDriver } from '../driver.ts'
import { openHost } from '../driver.ts'
import type { Exchange, QueryHandler } from '../exchange.ts'
import { parsePeerAddress } from '../peer-address.ts'
import {
  createUdpCounters,
  DRAIN_MS_DEFAULT,
  QUERY_OCTETS_MAX,
  type UdpCounters,
  type UdpListener,
  type UdpOptions,
} from './udp.ts'

/** Most replies that may wait in user space for the socket. More are dropped and counted. */
const SEND_QUEUE_MAX = 1024

/**
 * Opens a UDP socket over node:dgram and answers queries, one packet at a time, on any platform.
 * Rejects with the system's error (EADDRINUSE, …) if it can't be bound.
 */
export function listenDgram(options: UdpOptions): Promise<UdpListener> {
  return openHost(options.host, (host) => open(options, host))
}

/** Serves UDP over node:dgram, one socket per address. */
export function dgramDriver(
  options: Pick<UdpOptions, 'receiveBufferOctets' | 'sendBufferOctets'> = {},
): PacketDriver {
  const counters = createUdpCounters()
  return {
    kind: 'packets',
    name: 'udp',
    open: ({ host, port }, handler) => listenDgram({ ...options, host, port, handler, counters }),
    losses: () => ({ overloaded: counters.dropped, unsent: counters.sendErrors }),
  }
}

async function open(options: UdpOptions, host: string): Promise<UdpListener> {
  const socket = createSocket({
    type: isIP(host) === 6 ? 'udp6' : 'udp4',
    reuseAddr: false,
    // Peers are addresses, never names. The default would use the resolver, one tick late.
    lookup: (address, _options, callback) => callback(null, address, isIP(address)),
  })
  // Listen for the event first: with a lookup that calls back at once, `bind` is done when it returns.
  const listening = once(socket, 'listening')
  socket.bind(options.port, host)
  try {
    await listening
  } catch (error) {
    socket.close()
    throw error
  }
  if (options.receiveBufferOctets !== undefined) {
    socket.setRecvBufferSize(options.receiveBufferOctets)
  }
  if (options.sendBufferOctets !== undefined) socket.setSendBufferSize(options.sendBufferOctets)
  return new UdpServer(socket, options)
}

class UdpServer implements UdpListener {
  readonly port: number
  readonly counters: UdpCounters
  readonly #socket: Socket
  readonly #localAddress: Uint8Array = new Uint8Array(16)
  readonly #localFamily: number
  readonly #drain: Drain
  #handler: QueryHandler
  #closing: Promise<void> | undefined = undefined
  #closed = false
  /** Replies that wait for the socket to become writable. */
  readonly #unsent: { readonly handler: QueryHandler; readonly exchange: Exchange }[] = []
  readonly #onSent = (error: Error | null): void => this.#afterSend(error)

  constructor(socket: Socket, options: UdpOptions) {
    this.#socket = socket
    this.counters = options.counters ?? createUdpCounters()
    this.#handler = options.handler
    this.#drain = new Drain(options.drainMs ?? DRAIN_MS_DEFAULT)
    const local = socket.address()
    this.port = local.port
    this.#localFamily = parsePeerAddress(local.address, this.#localAddress)
    socket.on('message', (packet, peer) => this.#receive(packet, peer))
    socket.on('error', () => {
      this.counters.socketErrors++
    })
  }

  setHandler(handler: QueryHandler): void {
    this.#handler = handler
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#drain.wait()
    this.#closed = true
    const closed = once(this.#socket, 'close')
    this.#socket.close()
    await closed
  }

  #receive(packet: Uint8Array, peer: RemoteInfo): void {
    if (this.#closing !== undefined) return
    const handler = this.#handler
    const exchange = handler.acquire()
    if (exchange === undefined) {
      this.counters.dropped++
      return
    }
    this.#drain.enter()
    const query = exchange.query
    query.packet = packet
    query.packetAt = -1
    query.packetOctets = Math.min(packet.length, QUERY_OCTETS_MAX)
    query.protocol = Protocol.Udp
    query.peerFamily = parsePeerAddress(peer.address, query.peerAddress)
    query.peerPort = peer.port
    query.localAddress = this.#localAddress
    query.localFamily = this.#localFamily
    query.localPort = this.port
    const octets = handler.serve(exchange)
    if (typeof octets === 'number') this.#reply(handler, exchange, octets, peer)
    else void octets.then((later) => this.#reply(handler, exchange, later, peer))
  }

  #reply(handler: QueryHandler, exchange: Exchange, octets: number, peer: RemoteInfo): void {
    if (octets === 0) {
      this.#release(handler, exchange)
      return
    }
    const socket = this.#socket
    if (this.#closed || peer.port === 0 || socket.getSendQueueCount() >= SEND_QUEUE_MAX) {
      this.counters.sendErrors++
      this.#release(handler, exchange)
      return
    }
    socket.send(exchange.reply, 0, octets, peer.port, peer.address, this.#onSent)
    // Usually the kernel has copied the reply by now. If not, the reply must not change.
    if (socket.getSendQueueCount() === 0) this.#release(handler, exchange)
    else this.#unsent.push({ handler, exchange })
  }

  #afterSend(error: Error | null): void {
    if (error !== null) this.counters.sendErrors++
    if (this.#unsent.length === 0 || this.#closed) return
    if (this.#socket.getSendQueueCount() > 0) return
    for (const { handler, exchange } of this.#unsent.splice(0)) this.#release(handler, exchange)
  }

  #release(handler: QueryHandler, exchange: Exchange): void {
    handler.release(exchange)
    this.#drain.leave()
  }
}
