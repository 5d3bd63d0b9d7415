import * as packets from '../../../base/packet-memory.ts'
import { giveRegion, takeRegion } from '../../../base/packet-memory.ts'
import { Query } from '../../../dns/message/query.ts'
import * as layouts from '../batch/layout.ts'
import type { LoopSocket } from '../batch/loop.ts'
import { copyIPv4, copyIPv6 } from '../batch/octets.ts'
import type { BatchSocket } from '../batch/socket.ts'
import * as udp from '../udp.ts'
import * as frames from './frame.ts'
import { copyMessage, scanFrame, turnIPv4, turnIPv6 } from './frame.ts'
import type { XdpKernel } from './kernel.ts'
import * as rings from './ring.ts'
import { Ring } from './ring.ts'
import type { Targets } from './targets.ts'
import { putUnit } from './unit.ts'
import type { XskPlace } from './xsk.ts'
import * as xsks from './xsk.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const { packetView } = packets
const { BATCH, UNIT_PACKET } = layouts
const { REPLY_OCTETS_MAX } = udp
const { IPV4_DESTINATION, IPV4_MESSAGE, IPV4_SOURCE, IPV6_DESTINATION } = frames
const { IPV6_MESSAGE, IPV6_SOURCE, IS_IPV6, REFUSED } = frames
const { FRAME_OCTETS } = xsks

/** Octets of an Ethernet header. */
const ETHERNET_OCTETS = 14
/** Places in the region of the packet memory. The rest of the reply's place is never written. */
const QUERY_AT = 0
const REPLY_AT = FRAME_OCTETS
const FRAME_MASK = FRAME_OCTETS - 1

const MSG_DONTWAIT = 0x40
const EINTR = 4
const EAGAIN = 11
const EBUSY = 16
const ENOBUFS = 105
/** Calls without progress after which replies wait for a later flush. */
const STALLS_MAX = 16

/** The UDP socket of a target: it sends what AF_XDP can't, from this thread or the control thread. */
export interface XdpLane {
  readonly socket: BatchSocket
}

/** The addresses that an AF_XDP socket serves. */
export interface XdpRoutes {
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
  readonly roomAt: number
  readonly #kernel: XdpKernel
  readonly #isZeroCopy: boolean
  /** Both views stay reachable as long as the kernel's memory is in use. */
  readonly #octets: Uint8Array
  readonly #view: DataView
  readonly #rx: Ring
  readonly #tx: Ring
  readonly #fill: Ring
  readonly #completion: Ring
  readonly #region: number
  readonly #queryAt: number
  readonly #query: Uint8Array
  readonly #room: Uint8Array
  #routes: XdpRoutes
  readonly #asked: Uint8Array = new Uint8Array(16)
  /** For replies that the UDP socket sends. */
  readonly #spareQuery = new Query()
  /** The batch, by slot: offset of the frame, octets of its message, offset of its message, its lane. */
  readonly #frameAt: Int32Array = new Int32Array(BATCH)
  readonly #messageOctets: Int32Array = new Int32Array(BATCH)
  readonly #messageAt: Int32Array = new Int32Array(BATCH)
  readonly #lane: Int32Array = new Int32Array(BATCH)
  /** Slots whose frame is in the TX ring. */
  readonly #isSent: Uint8Array = new Uint8Array(BATCH)
  #received = 0
  /** Counters of this side of the rings. */
  #rxConsumer: number
  #txProducer: number
  #fillProducer: number
  #completionConsumer: number

  /** Throws an Error if the packet memory has no room. */
  constructor(kernel: XdpKernel, place: XskPlace, routes: XdpRoutes) {
    this.#kernel = kernel
    this.fd = place.fd
    this.ifindex = place.ifindex
    this.#isZeroCopy = place.isZeroCopy
    this.#routes = routes
    this.#region = takeRegion()
    if (this.#region === -1) throw new Error('too many sockets per thread for AF_XDP')
    this.#queryAt = this.#region + QUERY_AT
    this.roomAt = this.#region + REPLY_AT
    this.#query = packets.packetOctets.subarray(this.#queryAt, this.#queryAt + FRAME_OCTETS)
    this.#room = packets.packetOctets.subarray(this.roomAt, this.roomAt + REPLY_OCTETS_MAX)
    const memory = kernel.view(place.frames.address, place.frames.octets)
    this.#octets = new Uint8Array(memory)
    this.#view = new DataView(memory)
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

  /** Reads up to a batch of frames, and finds the lane of each. @hot */
  receive(): number {
    this.#recycle()
    const rx = this.#rx
    const from = this.#rxConsumer
    const arrived = (rx.producer - from) | 0
    const count = Math.min(arrived, BATCH)
    for (let slot = 0; slot < count; slot++) {
      const at = rx.frameAt(from + slot)
      this.#frameAt[slot] = at
      this.#isSent[slot] = 0
      this.#lane[slot] = this.#scan(slot, at, rx.octetsAt(from + slot))
    }
    this.#received = count
    return count
  }

  /** @hot */
  laneOf(slot: number): number {
    return this.#lane[slot]!
  }

  room(): Uint8Array {
    return this.#room
  }

  /** @hot */
  describe(slot: number, query: Query): void {
    const octets = this.#messageOctets[slot]!
    const at = this.#frameAt[slot]!
    const messageAt = this.#messageAt[slot]!
    copyMessage(this.#view, messageAt, packetView, this.#queryAt, octets)
    query.packet = this.#query
    query.packetAt = this.#queryAt
    query.packetOctets = octets
    query.localAddress = this.#asked
    const isIPv6 = messageAt - at === IPV6_MESSAGE
    if (isIPv6) {
      query.peerFamily = copyIPv6(this.#octets, at + IPV6_SOURCE, query.peerAddress)
      query.localFamily = copyIPv6(this.#octets, at + IPV6_DESTINATION, this.#asked)
    } else {
      query.peerFamily = copyIPv4(this.#octets, at + IPV4_SOURCE, query.peerAddress)
      query.localFamily = copyIPv4(this.#octets, at + IPV4_DESTINATION, this.#asked)
    }
    query.peerPort = this.#view.getUint16(messageAt - 8)
    query.localPort = this.#view.getUint16(messageAt - 6)
  }

  /** @hot */
  reply(slot: number, bytes: Uint8Array, octets: number): void {
    const at = this.#frameAt[slot]!
    const messageAt = this.#messageAt[slot]!
    const ipOctets = messageAt - at - ETHERNET_OCTETS + octets
    if (ipOctets > this.#routes.mtuOctets || (messageAt & FRAME_MASK) + octets > FRAME_OCTETS) {
      this.#replyElsewhere(slot, bytes, octets)
      return
    }
    if (bytes !== this.#room) this.#room.set(bytes.subarray(0, octets))
    const sum = copyMessage(packetView, this.roomAt, this.#view, messageAt, octets)
    if (messageAt - at === IPV4_MESSAGE) turnIPv4(this.#view, at, octets, sum)
    else turnIPv6(this.#view, at, octets, sum)
    this.#tx.putDescriptor(this.#txProducer, at, messageAt - at + octets)
    this.#txProducer = (this.#txProducer + 1) | 0
    this.#isSent[slot] = 1
  }

  copyUnit(slot: number): Uint8Array {
    const octets = this.#messageOctets[slot]!
    const messageAt = this.#messageAt[slot]!
    const unit = new Uint8Array(UNIT_PACKET + octets)
    const { socket } = this.#routes.lanes[this.#lane[slot]!]!
    putUnit(unit, this.#octets, this.#frameAt[slot]!, {
      isIPv6: messageAt - this.#frameAt[slot]! === IPV6_MESSAGE,
      host: socket.host,
      ifindex: this.ifindex,
    })
    unit.set(this.#octets.subarray(messageAt, messageAt + octets), UNIT_PACKET)
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
        this.#fill.putFrame(fill, this.#frameAt[slot]! & ~FRAME_MASK)
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
    giveRegion(this.#region)
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
  #scan(slot: number, at: number, octets: number): number {
    const found = scanFrame(this.#view, at, octets)
    if (found === REFUSED) return -1
    const isIPv6 = (found & IS_IPV6) !== 0
    this.#messageOctets[slot] = found & ~IS_IPV6
    this.#messageAt[slot] = at + (isIPv6 ? IPV6_MESSAGE : IPV4_MESSAGE)
    const { targets } = this.#routes
    return isIPv6 ? targets.findIPv6(this.#view, at) : targets.findIPv4(this.#view, at)
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
