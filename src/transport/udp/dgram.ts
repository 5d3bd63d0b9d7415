import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { isIP } from 'node:net'
import { Protocol, type Query } from '../../dns/message/query.ts'
import { Drain } from '../drain.ts'
import { type ListenPlace, openHost, type PacketDriver } from '../driver.ts'
import type { Exchange, QueryHandler } from '../exchange.ts'
import { parsePeerAddress } from '../peer-address.ts'
import { ProxiedDatagrams } from '../proxy/datagrams.ts'
import { type ProxiedPlace, proxyRulesOf } from '../proxy/rules.ts'
import { ReplyStack, STACK_LOSSES, type StackLosses } from './reply-stack.ts'
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

/** An address, and what directives of its blocks set. */
interface DgramPlace extends ListenPlace, ProxiedPlace {}

/** How replies wait for the socket in a stack; undefined = they wait in the queue of the socket. */
interface StackOptions {
  readonly server: string
  readonly losses: StackLosses
}

/**
 * Opens a UDP socket over node:dgram and answers queries, one packet at a time, on any platform.
 * Rejects with the system's error (EADDRINUSE, …) if it can't be bound.
 */
export function listenDgram(options: UdpOptions): Promise<UdpServer> {
  return openHost(options.host, (host) => open(options, host))
}

/** Serves UDP over node:dgram, one socket per address. */
export function dgramDriver(
  options: Pick<UdpOptions, 'receiveBufferOctets' | 'sendBufferOctets'> = {},
): PacketDriver<DgramPlace> {
  const counters = createUdpCounters()
  return {
    kind: 'packets',
    name: 'udp',
    open: async (place, handler) => {
      const { host, port } = place
      const server = await listenDgram({ ...options, host, port, handler, counters })
      server.setPlace(place)
      return server
    },
    losses: () => ({ overloaded: counters.dropped, unsent: counters.sendErrors }),
  }
}

async function open(options: UdpOptions, host: string): Promise<UdpServer> {
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

/** A listener of `listenDgram`. */
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
  /** Undefined = packets have no PROXY headers. */
  #proxied: ProxiedDatagrams | undefined = undefined
  #stackOptions: StackOptions | undefined = undefined
  /** Created for the first reply that waits. If the options change, the waiting replies are still sent. */
  #stack: ReplyStack | undefined = undefined
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

  /** See `PacketListener`. */
  setPlace(place: ProxiedPlace): void {
    const { address, configs } = place
    const rules = proxyRulesOf(place)
    if (rules === undefined) this.#proxied = undefined
    else if (this.#proxied !== undefined) this.#proxied.use(rules)
    else this.#proxied = new ProxiedDatagrams(address, rules)
    const [losses] = configs.flatMap(({ shared }) => shared.find(STACK_LOSSES) ?? [])
    losses?.begin()
    this.#stackOptions = losses && { server: address, losses }
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
    if (this.#stackOptions !== undefined && this.#stack?.isFull === true) {
      this.#stackOptions.losses.dropQuery(this.#stackOptions.server)
      return
    }
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
    if (this.#proxied !== undefined && !openProxied(this.#proxied, query)) {
      this.#release(handler, exchange)
      return
    }
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
    if (this.#stackOptions !== undefined && !this.#closed && socket.getSendQueueCount() > 0) {
      this.#push(this.#stackOptions, exchange, octets, peer)
      // The reply is in flight until it is sent or replaced.
      handler.release(exchange)
      return
    }
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
    if (this.#closed || this.#socket.getSendQueueCount() > 0) return
    for (const { handler, exchange } of this.#unsent.splice(0)) this.#release(handler, exchange)
    if (this.#stack !== undefined) this.#sendNewest(this.#stack)
  }

  #push({ server, losses }: StackOptions, exchange: Exchange, octets: number, peer: RemoteInfo) {
    this.#stack ??= new ReplyStack()
    const { port, address } = peer
    const isLost = this.#stack.push({ octets: exchange.reply.slice(0, octets), port, address })
    if (!isLost) return
    losses.dropReply(server)
    this.#drain.leave()
  }

  /** Sends replies of the stack until the socket's own queue has one. */
  #sendNewest(stack: ReplyStack): void {
    while (this.#socket.getSendQueueCount() === 0) {
      const reply = stack.pop()
      if (reply === undefined) return
      this.#socket.send(reply.octets, reply.port, reply.address, this.#onSent)
      this.#drain.leave()
    }
  }

  #release(handler: QueryHandler, exchange: Exchange): void {
    handler.release(exchange)
    this.#drain.leave()
  }
}

/** Returns false if the packet must be dropped. */
function openProxied(proxied: ProxiedDatagrams, query: Query): boolean {
  const { packet, packetOctets } = query
  const start = proxied.open(query, packet, 0, packetOctets)
  if (start === -1) return false
  query.packet = packet.subarray(start)
  query.packetOctets = packetOctets - start
  return true
}
