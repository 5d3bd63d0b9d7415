import type { Query } from '../../../dns/message/query.ts'
import { parsePeerAddress } from '../../peer-address.ts'
import type { ProxyRules } from '../../proxy/rules.ts'
import * as sockaddr from '../../sockaddr.ts'
import { systemError, writeSockaddr } from '../../sockaddr.ts'
import * as udp from '../udp.ts'
import { Backlog, type BacklogOptions } from './backlog.ts'
import * as layouts from './layout.ts'
import { Layout } from './layout.ts'
import type { Libc } from './libc.ts'
import { LATE, type LoopSocket } from './loop.ts'
import { copyIPv4, copyIPv6 } from './octets.ts'
import { type GroupingOptions, Outbox } from './outbox.ts'
import { readAsked } from './pktinfo.ts'
import { describeCopy, ProxiedPackets, setProxyOctets } from './proxied.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const {
  AF_INET,
  AF_INET6,
  NAME_IPV4,
  NAME_IPV6,
  NAME_PORT,
  SOCKADDR_IN6_OCTETS,
  SOCKADDR_IN_OCTETS,
} = sockaddr
const {
  BATCH,
  CONTROL_OCTETS,
  HEADER_CONTROLLEN,
  HEADER_LEN,
  HEADER_NAMELEN,
  LATE_MAX,
  MMSGHDR_OCTETS,
  NAME_OCTETS,
  PACKET_HEAD_OCTETS,
  UNIT_CONTROL,
  UNIT_PACKET,
} = layouts
const { QUERY_OCTETS_MAX, REPLY_OCTETS_MAX } = udp

/** A bound socket that more than one thread uses: one opened it, and the others attach to it. */
interface SocketPlace {
  readonly fd: number
  /** The host that it was opened with. */
  readonly host: string
  readonly port: number
}

interface BatchSocketOptions {
  /** An IP address; `::` accepts IPv4 too. */
  readonly host: string
  /** 0 = any free port. */
  readonly port: number
  /**
   * True lets other sockets with this option bind the same address. The kernel distributes the
   * peers over them.
   */
  readonly reusePort?: boolean | undefined
  /** Size of the kernel's receive buffer; undefined = the system's default. */
  readonly receiveBufferOctets?: number | undefined
  readonly sendBufferOctets?: number | undefined
}

// The constants of <sys/socket.h>, <netinet/in.h> and <errno.h> on the architectures of `libc.ts`.
const SOCK_DGRAM = 2
const SOCK_NONBLOCK = 0x800
const SOCK_CLOEXEC = 0x80000
const SOL_SOCKET = 1
const SO_SNDBUF = 7
const SO_RCVBUF = 8
const SO_REUSEPORT = 15
const SO_SNDBUFFORCE = 32
const SO_RCVBUFFORCE = 33
const SO_MEMINFO = 55
/** Result of SO_MEMINFO (<linux/sock_diag.h>): nine 32-bit integers, the last is SK_MEMINFO_DROPS. */
const MEMINFO_DROPS = 8
const MEMINFO_OCTETS = 36
const IPPROTO_IP = 0
const IP_PKTINFO = 8
const IPPROTO_IPV6 = 41
const IPV6_V6ONLY = 26
const IPV6_RECVPKTINFO = 49
const MSG_DONTWAIT = 0x40
const EINTR = 4
const EAGAIN = 11
/** An ICMP error for an earlier reply (udp(7)). The call that returns it did nothing. */
const ECONNREFUSED = 111

/** No DNS client sends queries from this port (RFC 863). */
const DISCARD_PORT = 9

/**
 * A UDP socket that receives and sends datagrams in batches, one system call each:
 *
 *     receive ─▶ n ─▶ for each slot: describe(slot, query), answer, reply(slot, …) ─▶ flush
 *
 * The next `receive` overwrites the slots. A query that must wait is copied (`copyUnit`). Another
 * socket of the same place keeps the copy in a unit and answers from it (`takeUnit`, `releaseUse`).
 * Never waits; nothing here allocates per packet.
 */
export class BatchSocket implements SocketPlace, LoopSocket {
  readonly host: string
  readonly port: number
  /** The file descriptor, for polling; `close` closes it. */
  readonly fd: number
  readonly #libc: Libc
  readonly #layout: Layout
  readonly #localAddress: Uint8Array = new Uint8Array(16)
  readonly #localFamily: number
  /** Octets of control messages to request: 0 if the bound address is the destination of all packets. */
  readonly #controlOctets: number
  /** By slot: its packet, if that is no longer than a head. */
  readonly #heads: readonly Uint8Array[]
  /** A packet longer than a head, joined when it is described. */
  readonly #long: Uint8Array = new Uint8Array(QUERY_OCTETS_MAX)
  /** Destination address of the last packet, on a wildcard bind. */
  readonly #asked: Uint8Array = new Uint8Array(16)
  /** Unit BATCH + i, while it is in use: a copy. */
  readonly #taken: (Uint8Array | undefined)[] = []
  /** Units that were in use and are free again. */
  readonly #spare: number[] = []
  /** Receive slots whose headers the kernel has written to. */
  #used = BATCH
  readonly #outbox: Outbox
  /** Undefined = no datagram is late. */
  readonly #backlog: Backlog | undefined
  /** Undefined = packets have no PROXY headers. */
  #proxied: ProxiedPackets | undefined

  /**
   * Opens and binds a socket, or attaches to a bound one. Throws the system's error, with code,
   * syscall, address and port. `grouping`: replies to the same peer may be grouped
   * (`cutsMessages`). `backlog`: what waited longer is dropped (of an attached socket only).
   */
  constructor(
    libc: Libc,
    options: BatchSocketOptions | SocketPlace,
    grouping?: GroupingOptions | undefined,
    backlog?: BacklogOptions | undefined,
  ) {
    this.#libc = libc
    // A thread that attaches serves the socket in a loop, and uses the memory only until it detaches.
    this.#layout = new Layout(libc, 'fd' in options)
    this.#localFamily = parsePeerAddress(options.host, this.#localAddress)
    const domain = this.#localFamily === 1 ? AF_INET : AF_INET6
    const isWildcard = this.#localAddress.every((octet) => octet === 0)
    this.#controlOctets = isWildcard ? CONTROL_OCTETS : 0
    this.host = options.host
    const layout = this.#layout
    const view = (at: number, octets: number) => layout.octets.subarray(at, at + octets)
    this.#heads = Array.from({ length: BATCH }, (_, slot) => {
      return view(layout.unit(slot) + UNIT_PACKET, PACKET_HEAD_OCTETS)
    })
    const attaches = 'fd' in options
    this.fd = attaches
      ? options.fd
      : libc.socket(domain, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
    if (this.fd === -1) throw systemError('socket', libc.errno(), options)
    this.#outbox = new Outbox(libc, layout, {
      fd: this.fd,
      nameOctets: domain === AF_INET ? SOCKADDR_IN_OCTETS : SOCKADDR_IN6_OCTETS,
      hasControl: isWildcard,
      grouping,
    })
    if (attaches) {
      this.port = options.port
      if (backlog !== undefined) this.#backlog = new Backlog(libc, layout, this.fd, backlog)
      return
    }
    try {
      this.#configure(domain, isWildcard, options)
      this.port = this.#bind(options)
    } catch (error) {
      libc.close(this.fd)
      throw error
    }
  }

  /** Replies that could not be sent. */
  get sendErrors(): number {
    return this.#outbox.sendErrors
  }

  /** False while every spare unit is in use. */
  get canTake(): boolean {
    return this.#taken.length < LATE_MAX || this.#spare.length > 0
  }

  /**
   * Receives up to a batch. Returns the number of filled slots: 0 if nothing has arrived, -1 on an
   * error.
   */
  receive(): number {
    const { base, receiveHeaders } = this.#layout
    if (this.#used > 0) this.#offerRooms()
    const count = this.#libc.recvmmsg(this.fd, base + receiveHeaders, BATCH, MSG_DONTWAIT, 0)
    if (count > 0) {
      this.#used = count
      this.#backlog?.note(count)
      return count
    }
    const errno = this.#libc.errno()
    if (errno === ECONNREFUSED) return this.receive()
    return errno === EAGAIN || errno === EINTR ? 0 : -1
  }

  /**
   * Restores the address lengths in the headers, which the kernel has overwritten with the lengths
   * that it used.
   */
  #offerRooms(): void {
    const { words, receiveHeaders } = this.#layout
    const controlOctets = this.#backlog?.isNoting === true ? CONTROL_OCTETS : this.#controlOctets
    for (let slot = 0; slot < this.#used; slot++) {
      const header = (receiveHeaders + slot * MMSGHDR_OCTETS) >> 2
      words[header + (HEADER_NAMELEN >> 2)] = NAME_OCTETS
      words[header + (HEADER_CONTROLLEN >> 2)] = controlOctets
    }
    this.#used = 0
  }

  /** All packets that are not late are of the one lane. @hot */
  laneOf(slot: number): number {
    const backlog = this.#backlog
    return backlog?.isNoting === true && backlog.isLate(slot) ? LATE : 0
  }

  setProxy(server: string, rules: ProxyRules | undefined): void {
    if (rules === undefined) this.#proxied = undefined
    else if (this.#proxied !== undefined) this.#proxied.use(rules)
    else this.#proxied = new ProxiedPackets(this.#layout, server, rules)
  }

  /** Fills in the packet in `slot`, and its source and destination addresses. False = drop the packet. @hot */
  describe(slot: number, query: Query): boolean {
    const octets = this.packetOctets(slot)
    query.packetAt = octets <= PACKET_HEAD_OCTETS ? this.packetAt(slot) : -1
    query.packet = octets <= PACKET_HEAD_OCTETS ? this.#heads[slot]! : this.#assemble(slot, octets)
    query.packetOctets = octets
    this.#describePlace(this.#layout.unit(slot), query, this.#asked)
    if (this.#proxied === undefined) return true
    return this.#proxied.describe(query, query.packet, 0)
  }

  /** Octets read of the datagram in `slot`: at most QUERY_OCTETS_MAX. */
  packetOctets(slot: number): number {
    return this.#layout.words[(this.#layout.receiveHeader(slot) + HEADER_LEN) >> 2]!
  }

  /**
   * Returns a copy of the datagram in `slot` and its addresses, for `takeUnit` of another socket of
   * the same place.
   */
  copyUnit(slot: number, query: Query): Uint8Array {
    const at = this.#layout.unit(slot)
    if (this.#proxied !== undefined) return this.#proxied.copyUnit(at, query)
    const octets = this.packetOctets(slot)
    const copy = new Uint8Array(UNIT_PACKET + octets)
    copy.set(this.#layout.octets.subarray(at, at + UNIT_PACKET))
    const packet = octets <= PACKET_HEAD_OCTETS ? this.#heads[slot]! : this.#assemble(slot, octets)
    copy.set(packet.subarray(0, octets), UNIT_PACKET)
    setProxyOctets(copy, 0)
    return copy
  }

  /**
   * Keeps the result of `copyUnit` until `releaseUse`, and describes it in `query`. Call it only if
   * `canTake`.
   */
  takeUnit(copy: Uint8Array, query: Query): number {
    const index = this.#spare.pop() ?? this.#taken.length
    this.#taken[index] = copy
    // Other units may be described before this one is answered, so it has its own addresses.
    const place = this.#layout.unit(BATCH)
    this.#layout.octets.set(copy.subarray(0, UNIT_PACKET), place)
    this.#describePlace(place, query, new Uint8Array(16))
    describeCopy(copy, query)
    return BATCH + index
  }

  giveBack(unit: number): void {
    this.#taken[unit - BATCH] = undefined
    this.#spare.push(unit - BATCH)
  }

  #assemble(slot: number, octets: number): Uint8Array {
    const at = this.#layout.tail(slot)
    this.#long.set(this.#heads[slot]!)
    const rest = octets - PACKET_HEAD_OCTETS
    this.#long.set(this.#layout.octets.subarray(at, at + rest), PACKET_HEAD_OCTETS)
    return this.#long
  }

  /** Fills in the addresses of the unit at `at`. `asked`: room for the destination address. */
  #describePlace(at: number, query: Query, asked: Uint8Array): void {
    const { words, octets } = this.#layout
    const head = words[at >> 2]!
    query.peerFamily =
      (head & 0xffff) === AF_INET
        ? copyIPv4(octets, at + NAME_IPV4, query.peerAddress)
        : copyIPv6(octets, at + NAME_IPV6, query.peerAddress)
    // In network byte order, read in the machine's byte order.
    query.peerPort = ((head >>> 8) & 0xff00) | (head >>> 24)
    query.localPort = this.port
    if (this.#controlOctets === 0) {
      query.localFamily = this.#localFamily
      query.localAddress = this.#localAddress
      return
    }
    const family = readAsked(words, octets, at + UNIT_CONTROL, asked)
    query.localFamily = family === 0 ? this.#localFamily : family
    query.localAddress = family === 0 ? this.#localAddress : asked
  }

  /**
   * Room for the next reply, REPLY_OCTETS_MAX octets: `reply` does not copy a reply that is written
   * there. Undefined while the socket's buffer is full. @hot
   */
  room(): Uint8Array | undefined {
    return this.#outbox.room()
  }

  /** Offset of `room()` in the packet memory; -1 = it is elsewhere. */
  get needsTurn(): boolean {
    return false
  }

  get roomAt(): number {
    return this.#outbox.roomAt
  }

  /** Counts a reply for which there was no room. */
  countUnsent(): void {
    this.#outbox.sendErrors++
  }

  /**
   * Queues `octets` of `bytes` for the peer of `unit` (a slot, or a unit from `takeUnit`), from the
   * destination address of its packet. `flush` sends it before the next `receive`, or earlier if
   * there is no more room. A reply that can't be sent, or that exceeds REPLY_OCTETS_MAX, is
   * counted. @hot
   */
  reply(unit: number, bytes: Uint8Array, octets: number): void {
    if (this.#outbox.room() === undefined || octets > REPLY_OCTETS_MAX) this.countUnsent()
    else this.#outbox.reply(this.#placeOf(unit), bytes, octets)
  }

  /**
   * Offset of the packet in `slot`, or at least of its head, in the packet memory; -1 = outside of
   * it.
   */
  packetAt(slot: number): number {
    const { region } = this.#layout
    return region === -1 ? -1 : region + this.#layout.unit(slot) + UNIT_PACKET
  }

  /** Offset of the addresses of a unit for the next reply. */
  #placeOf(unit: number): number {
    const layout = this.#layout
    if (unit < BATCH) return layout.unit(unit)
    const place = layout.sendPlace(this.#outbox.next)
    layout.octets.set(this.#taken[unit - BATCH]!.subarray(0, UNIT_PACKET), place)
    return place
  }

  /**
   * Sends what is queued. Returns false if the socket's buffer is full: try again once it is
   * writable.
   */
  flush(): boolean {
    return this.#outbox.flush()
  }

  /** Number of datagrams that the kernel dropped because the socket's buffer was full. */
  unbuffered(): number {
    const { words, base, scratch } = this.#layout
    const lengthAt = scratch + MEMINFO_OCTETS
    words[lengthAt >> 2] = MEMINFO_OCTETS
    const { fd } = this
    const got = this.#libc.getsockopt(fd, SOL_SOCKET, SO_MEMINFO, base + scratch, base + lengthAt)
    return got === 0 ? words[(scratch >> 2) + MEMINFO_DROPS]! : 0
  }

  /**
   * Makes the kernel give new datagrams to the other sockets of the address (SO_REUSEPORT). What
   * has arrived can still be received and answered. The method connects the socket to the discard
   * port of this machine: a connected socket accepts only datagrams of its peer, and that port
   * sends none. Returns false if the kernel refused: the socket then gets datagrams until it is
   * closed.
   */
  retire(): boolean {
    if (this.#controlOctets === 0) return this.#connect(this.host)
    if (this.#localFamily === 1) return this.#connect('127.0.0.1')
    // A machine with IPv6 disabled may still accept IPv4 on `::`.
    return this.#connect('::1') || this.#connect('127.0.0.1')
  }

  close(): void {
    this.detach()
    this.#libc.close(this.fd)
  }

  /** Counts what will not be sent any more. The thread that opened the socket closes it. */
  detach(): void {
    this.#outbox.drop()
    this.#layout.give()
  }

  #configure(domain: number, isWildcard: boolean, options: BatchSocketOptions): void {
    const set = (level: number, name: number, value: number): void => {
      if (this.#set(level, name, value)) return
      throw systemError('setsockopt', this.#libc.errno(), options)
    }
    // Exceeds the system's limit (net.core.rmem_max) if the process may, else is capped by it.
    const setBuffer = (octets: number | undefined, forced: number, plain: number): void => {
      if (octets === undefined || this.#set(SOL_SOCKET, forced, octets)) return
      set(SOL_SOCKET, plain, octets)
    }
    if (options.reusePort) set(SOL_SOCKET, SO_REUSEPORT, 1)
    setBuffer(options.receiveBufferOctets, SO_RCVBUFFORCE, SO_RCVBUF)
    setBuffer(options.sendBufferOctets, SO_SNDBUFFORCE, SO_SNDBUF)
    if (!isWildcard) return
    if (domain === AF_INET) {
      set(IPPROTO_IP, IP_PKTINFO, 1)
      return
    }
    set(IPPROTO_IPV6, IPV6_V6ONLY, 0)
    set(IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
  }

  /** Sets an option that is one int. */
  #set(level: number, name: number, value: number): boolean {
    const { words, base, scratch } = this.#layout
    words[scratch >> 2] = value
    return this.#libc.setsockopt(this.fd, level, name, base + scratch, 4) === 0
  }

  #connect(host: string): boolean {
    const { base, scratch, octets } = this.#layout
    const length = writeSockaddr(octets, scratch, host, DISCARD_PORT)
    return this.#libc.connect(this.fd, base + scratch, length) === 0
  }

  /** Binds the socket, and returns the port. */
  #bind(options: BatchSocketOptions): number {
    const { words, octets, base, scratch } = this.#layout
    const length = writeSockaddr(octets, scratch, options.host, options.port)
    if (this.#libc.bind(this.fd, base + scratch, length) === -1) {
      throw systemError('bind', this.#libc.errno(), options)
    }
    const lengthAt = scratch + NAME_OCTETS
    words[lengthAt >> 2] = NAME_OCTETS
    if (this.#libc.getsockname(this.fd, base + scratch, base + lengthAt) === -1) {
      throw systemError('getsockname', this.#libc.errno(), options)
    }
    return (octets[scratch + NAME_PORT]! << 8) | octets[scratch + NAME_PORT + 1]!
  }
}
