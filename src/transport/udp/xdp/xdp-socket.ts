import * as packets from '../../../base/packet-memory.ts'
import { Query } from '../../../dns/message/query.ts'
import * as layouts from '../batch/layout.ts'
import type { LoopSocket } from '../batch/loop.ts'
import type { BatchSocket } from '../batch/socket.ts'
import * as udp from '../udp.ts'
import * as frames from './frame.ts'
import { copyAndSum, copyWords, scanFrame, turnIPv4, turnIPv6 } from './frame.ts'
import type { XdpKernel } from './kernel.ts'
import * as rings from './ring.ts'
import { Ring } from './ring.ts'
import type { Targets } from './targets.ts'
import { putUnit } from './unit.ts'
import type { XskPlace } from './xsk.ts'
import * as xsks from './xsk.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { packetOctets, packetWords, BYPASS_REGION } = packets
const { BATCH, UNIT_PACKET } = layouts
const { REPLY_OCTETS_MAX } = udp
const { ETHERNET_OCTETS, IPV4_DESTINATION, IPV4_MESSAGE, IPV4_PORTS, IPV4_SOURCE } = frames
const { IPV6_DESTINATION, IPV6_MESSAGE, IPV6_PORTS, IPV6_SOURCE, IS_IPV6, REFUSED } = frames
const { FRAME_OCTETS } = xsks
const { RING_ENTRIES } = rings

/** Places in the packet memory. All sockets of a thread use them, one packet at a time. */
const QUERY_AT = BYPASS_REGION
const REPLY_AT = BYPASS_REGION + FRAME_OCTETS
const QUERY_PLACE = packetOctets.subarray(QUERY_AT, QUERY_AT + FRAME_OCTETS)
const REPLY_PLACE = packetOctets.subarray(REPLY_AT, REPLY_AT + REPLY_OCTETS_MAX)
const FRAME_MASK = FRAME_OCTETS - 1
/** A frame starts at a multiple of 4 plus this: its IP header starts at a word. */
const FRAME_ALIGN = 2
const ALIGN_MASK = 3

const MSG_DONTWAIT = 0x40
const EINTR = 4
const EAGAIN = 11
const EBUSY = 16
const ENOBUFS = 105
/** More frames in TX, and the completion ring is polled. */
const FRAMES_SENT_MAX = RING_ENTRIES / 2
/** Calls without progress after which replies wait for a later flush. */
const STALLS_MAX = 16

/** The UDP socket of a target: it sends what AF_XDP can't, from this thread or the control thread. */
interface XdpLane {
  readonly socket: BatchSocket
}

/** The addresses that an AF_XDP socket serves. */
interface XdpRoutes {
  readonly targets: Targets
  readonly lanes: readonly XdpLane[]
  /** Octets of the longest packet that the interface sends, its IP header included. */
  readonly mtuOctets: number
}

/**
 * The serving side of an AF_XDP socket (`Xsk`), in the thread of a loop. Frames circulate:
 *
 *     fill ring ─▶ kernel ─▶ RX ring ─▶ scan ─▶ message copied ─▶ answer ─▶ reply copied into the same frame ─▶ TX ring
 *         ▲                               │ no reply                                                          │
 *         └───────────────────────────────┴──────────────────────────── completion ring ◀─ kernel ◀───────────┘
 *
 * A frame is taken from the RX ring only when its batch is flushed. So if this thread ends, the next
 * one finds every frame. Nothing here allocates per packet, except for replies longer than a frame.
 */
export class XdpSocket implements LoopSocket {
  readonly fd: number
  readonly ifindex: number
  sendErrors = 0
  readonly roomAt = REPLY_AT
  readonly #kernel: XdpKernel
  readonly #isZeroCopy: boolean
  /** The frames. Both views stay reachable as long as the kernel's memory is in use. */
  readonly #octets: Uint8Array
  readonly #words: Int32Array
  readonly #rx: Ring
  readonly #tx: Ring
  readonly #fill: Ring
  readonly #completion: Ring
  #routes: XdpRoutes
  readonly #asked: Uint8Array = new Uint8Array(new ArrayBuffer(16))
  readonly #askedWords: Int32Array = new Int32Array(this.#asked.buffer)
  /** For replies that the UDP socket sends. */
  readonly #spareQuery = new Query()
  /** The batch, by slot: words of the frame's IP header and message, octets of the message, lane. */
  readonly #ip: Int32Array = new Int32Array(BATCH)
  readonly #message: Int32Array = new Int32Array(BATCH)
  readonly #messageOctets: Int32Array = new Int32Array(BATCH)
  readonly #lane: Int32Array = new Int32Array(BATCH)
  /** Slots whose frame is in the TX ring. */
  readonly #isSent: Uint8Array = new Uint8Array(BATCH)
  #received = 0
  /** Counters of this side of the rings. */
  #rxConsumer: number
  #txProducer: number
  #fillProducer: number
  #completionConsumer: number

  constructor(kernel: XdpKernel, place: XskPlace, routes: XdpRoutes) {
    this.#kernel = kernel
    this.fd = place.fd
    this.ifindex = place.ifindex
    this.#isZeroCopy = place.isZeroCopy
    this.#routes = routes
    const memory = kernel.view(place.frames.address, place.frames.octets)
    this.#octets = new Uint8Array(memory)
    this.#words = new Int32Array(memory)
    const ring = (at: rings.RingPlace, entryOctets: number) =>
      new Ring(kernel.view(at.address, at.octets), at, entryOctets)
    this.#rx = ring(place.rx, rings.DESCRIPTOR_OCTETS)
    this.#tx = ring(place.tx, rings.DESCRIPTOR_OCTETS)
    this.#fill = ring(place.fill, rings.FRAME_ENTRY_OCTETS)
    this.#completion = ring(place.completion, rings.FRAME_ENTRY_OCTETS)
    this.#rxConsumer = this.#rx.consumer
    this.#txProducer = this.#tx.producer
    this.#fillProducer = this.#fill.producer
    this.#completionConsumer = this.#completion.consumer
  }

  setRoutes(routes: XdpRoutes): void {
    this.#routes = routes
    // The rest of a batch that an exception interrupted is dropped: its lanes are those of before.
    this.#lane.fill(-1)
  }

  /**
   * True = most frames have not returned from TX. If a card pauses until all of them are there, it has
   * none to receive with, so `poll` never reports a packet. The frames return in `receive`.
   */
  get needsTurn(): boolean {
    return ((this.#txProducer - this.#completionConsumer) | 0) > FRAMES_SENT_MAX
  }

  /** Reads up to a batch of frames, and finds the lane of each. @hot */
  receive(): number {
    this.#recycle()
    const rx = this.#rx
    const from = this.#rxConsumer
    const arrived = (rx.producer - from) | 0
    const count = Math.min(arrived, BATCH)
    for (let slot = 0; slot < count; slot++) {
      let at = rx.frameAt(from + slot)
      const octets = rx.octetsAt(from + slot)
      if ((at & ALIGN_MASK) !== FRAME_ALIGN) at = this.#align(from + slot, at, octets)
      const ip = (at + ETHERNET_OCTETS) >> 2
      this.#ip[slot] = ip
      this.#isSent[slot] = 0
      this.#lane[slot] = this.#scan(slot, ip, octets)
    }
    this.#received = count
    return count
  }

  /** @hot */
  laneOf(slot: number): number {
    return this.#lane[slot]!
  }

  room(): Uint8Array {
    return REPLY_PLACE
  }

  /** @hot */
  describe(slot: number, query: Query): boolean {
    const words = this.#words
    const { peerWords } = query
    const octets = this.#messageOctets[slot]!
    const ip = this.#ip[slot]!
    const message = this.#message[slot]!
    copyWords(words, message, packetWords, QUERY_AT >> 2, octets)
    query.packet = QUERY_PLACE
    query.packetAt = QUERY_AT
    query.packetOctets = octets
    query.localAddress = this.#asked
    if (message - ip === IPV6_MESSAGE) {
      copyIPv6(words, ip + IPV6_SOURCE, peerWords)
      copyIPv6(words, ip + IPV6_DESTINATION, this.#askedWords)
      this.#describePorts(words[ip + IPV6_PORTS]!, query, 2)
    } else {
      copyIPv4(words[ip + IPV4_SOURCE]!, peerWords)
      copyIPv4(words[ip + IPV4_DESTINATION]!, this.#askedWords)
      this.#describePorts(words[ip + IPV4_PORTS]!, query, 1)
    }
    return true
  }

  /** @hot */
  reply(slot: number, bytes: Uint8Array, octets: number): void {
    const ip = this.#ip[slot]!
    const message = this.#message[slot]!
    const headerOctets = (message - ip) * 4
    const end = ((message * 4) & FRAME_MASK) + octets
    if (headerOctets + octets > this.#routes.mtuOctets || end > FRAME_OCTETS) {
      this.#replyElsewhere(slot, bytes, octets)
      return
    }
    if (bytes !== REPLY_PLACE) REPLY_PLACE.set(bytes.subarray(0, octets))
    const sum = copyAndSum(packetWords, REPLY_AT >> 2, this.#words, message, octets)
    if (message - ip === IPV4_MESSAGE) turnIPv4(this.#words, ip, octets, sum)
    else turnIPv6(this.#words, ip, octets, sum)
    const at = ip * 4 - ETHERNET_OCTETS
    this.#tx.putDescriptor(this.#txProducer, at, ETHERNET_OCTETS + headerOctets + octets)
    this.#txProducer = (this.#txProducer + 1) | 0
    this.#isSent[slot] = 1
  }

  copyUnit(slot: number): Uint8Array {
    const octets = this.#messageOctets[slot]!
    const ip = this.#ip[slot]!
    const message = this.#message[slot]!
    const unit = new Uint8Array(UNIT_PACKET + octets)
    const { socket } = this.#routes.lanes[this.#lane[slot]!]!
    putUnit(unit, this.#octets, ip, {
      isIPv6: message - ip === IPV6_MESSAGE,
      host: socket.host,
      ifindex: this.ifindex,
    })
    unit.set(this.#octets.subarray(message * 4, message * 4 + octets), UNIT_PACKET)
    return unit
  }

  countUnsent(): void {
    this.sendErrors++
  }

  /** Publishes the replies, returns the other frames, and makes the kernel send. @hot */
  flush(): boolean {
    const count = this.#received
    if (count > 0) {
      this.#received = 0
      let fill = this.#fillProducer
      for (let slot = 0; slot < count; slot++) {
        if (this.#isSent[slot] === 1) continue
        this.#fill.putFrame(fill, (this.#ip[slot]! * 4) & ~FRAME_MASK)
        fill = (fill + 1) | 0
      }
      this.#rxConsumer = (this.#rxConsumer + count) | 0
      this.#rx.consumer = this.#rxConsumer
      this.#publishFill(fill)
      this.#tx.producer = this.#txProducer
    }
    return this.#send()
  }

  detach(): void {
    // The packet memory belongs to the thread, the rest to the control thread.
  }

  /** A reply that does not fit into a frame or exceeds the MTU: the kernel fragments it. */
  #replyElsewhere(slot: number, bytes: Uint8Array, octets: number): void {
    const { socket } = this.#routes.lanes[this.#lane[slot]!]!
    if (!socket.canTake) {
      this.countUnsent()
      return
    }
    const unit = socket.takeUnit(this.copyUnit(slot), this.#spareQuery)
    socket.reply(unit, bytes, octets)
    socket.giveBack(unit)
    socket.flush()
  }

  /** Returns the lane of a frame, and notes where its message is. */
  #scan(slot: number, ip: number, octets: number): number {
    const words = this.#words
    const found = scanFrame(words, ip, octets)
    if (found === REFUSED) return -1
    const isIPv6 = (found & IS_IPV6) !== 0
    this.#messageOctets[slot] = found & ~IS_IPV6
    this.#message[slot] = ip + (isIPv6 ? IPV6_MESSAGE : IPV4_MESSAGE)
    const { targets } = this.#routes
    return isIPv6 ? targets.findIPv6(words, ip) : targets.findIPv4(words, ip)
  }

  /**
   * Moves a frame to where its IP header starts at a word, and returns its new offset. Only a driver
   * that adds headroom of its own makes this necessary.
   */
  #align(counter: number, at: number, octets: number): number {
    const aligned = at - ((at - FRAME_ALIGN) & ALIGN_MASK)
    this.#octets.copyWithin(aligned, at, at + octets)
    // For the next thread, if this one ends now.
    this.#rx.putDescriptor(counter, aligned, octets)
    return aligned
  }

  /** `ports`: the first word of the UDP header. */
  #describePorts(ports: number, query: Query, family: number): void {
    query.peerFamily = family
    query.localFamily = family
    query.peerPort = ((ports & 0xff) << 8) | ((ports >>> 8) & 0xff)
    query.localPort = ((ports >>> 8) & 0xff00) | (ports >>> 24)
  }

  /** Gives the frames of sent replies back to the kernel. */
  #recycle(): void {
    const completion = this.#completion
    const to = completion.producer
    let from = this.#completionConsumer
    if (from === to) return
    let fill = this.#fillProducer
    for (; from !== to; from = (from + 1) | 0) {
      this.#fill.putFrame(fill, completion.frameAt(from) & ~FRAME_MASK)
      fill = (fill + 1) | 0
    }
    this.#completionConsumer = from
    completion.consumer = from
    this.#publishFill(fill)
  }

  #publishFill(producer: number): void {
    if (producer === this.#fillProducer) return
    this.#fillProducer = producer
    this.#fill.producer = producer
  }

  #send(): boolean {
    const tx = this.#tx
    for (let stalls = 0; stalls < STALLS_MAX; ) {
      const consumer = tx.consumer
      if (consumer === this.#txProducer || !tx.needsWakeup) return true
      if (this.#kernel.sendto(this.fd, 0, 0, MSG_DONTWAIT, 0, 0) === -1) {
        const errno = this.#kernel.errno()
        // The device refused the packet.
        if (errno === EBUSY) this.sendErrors++
        else if (errno !== EAGAIN && errno !== ENOBUFS && errno !== EINTR) {
          this.sendErrors += (this.#txProducer - consumer) | 0
          // The interface is down or gone: waiting does not help.
          return true
        }
      } else if (this.#isZeroCopy) return true
      if (tx.consumer === consumer) stalls++
    }
    return false
  }
}

/** Writes an IPv4 address of a packet to 16 octets, padded with zeros. */
function copyIPv4(address: number, out: Int32Array): void {
  out[0] = address
  out[1] = 0
  out[2] = 0
  out[3] = 0
}

/** The address is not IPv4-mapped: such a source is refused, and such a destination is never ours. */
function copyIPv6(words: Int32Array, at: number, out: Int32Array): void {
  out[0] = words[at]!
  out[1] = words[at + 1]!
  out[2] = words[at + 2]!
  out[3] = words[at + 3]!
}
