import * as udp from '../udp.ts'
import { Grouping, type Replies } from './grouping/grouping.ts'
import * as segments from './grouping/udp-segment.ts'
import { writeSegment } from './grouping/udp-segment.ts'
import type { Layout } from './layout.ts'
import * as layouts from './layout.ts'
import type { Libc } from './libc.ts'
import { turnAround } from './pktinfo.ts'

// Bound in this module: V8 folds its constants, but looks up and checks an import at every use.
const {
  BATCH,
  HEADER_CONTROLLEN,
  HEADER_IOVLEN,
  HEADER_NAMELEN,
  IOVEC_LEN,
  MMSGHDR_OCTETS,
  REPLY_CHUNKS,
  REPLY_CHUNK_OCTETS,
  UNIT_CONTROL,
} = layouts
const { REPLY_OCTETS_MAX } = udp
const { SEGMENT_SPACE } = segments

// The constants of <sys/socket.h> and <errno.h> on the architectures of `libc.ts`.
const MSG_DONTWAIT = 0x40
const EINTR = 4
const EIO = 5
const EAGAIN = 11
const EINVAL = 22
const EOPNOTSUPP = 95
/** An ICMP error for an earlier reply (udp(7)). The call that returns it did nothing. */
const ECONNREFUSED = 111

/**
 * Errors of a kernel that can't segment. All other errors that affect a group and not a single
 * reply are temporary: a narrow path (EMSGSIZE), lack of memory, a firewall that is full or counts
 * (EPERM).
 */
const UNCUTTABLE: readonly number[] = [EIO, EINVAL, EOPNOTSUPP]

/**
 * After this many batches without a group, only one of this many batches is checked for groups. A
 * power of two.
 */
const GROUPLESS_MAX = 16

/** How replies to one client port are grouped. */
export interface GroupingOptions {
  /** Called if the kernel does not accept groups after all: replies are sent one by one from now on. */
  onRefused(errno: number): void
}

interface OutboxOptions {
  readonly fd: number
  /** Octets of the peers' addresses. */
  readonly nameOctets: number
  /** Whether packets have a control message with their destination address. */
  readonly hasControl: boolean
  /** Undefined = replies are sent one by one. */
  readonly grouping?: GroupingOptions | undefined
}

/**
 * The replies of a batch, until the kernel has accepted them:
 *
 *     reply ─▶ slots ─▶ flush: messages, of one reply or of a group each ─▶ sendmmsg
 *              0 ‥ #laid ‥ #queued      0 ‥ #sent ‥ #messages
 *
 * Replies of one length to one peer are sent as one message, which the kernel segments
 * (UDP_SEGMENT): it looks up the route and passes through the network stack once for all of them.
 * Nothing here allocates per packet.
 */
export class Outbox {
  /** Replies that could not be sent. */
  sendErrors = 0
  readonly #libc: Libc
  readonly #layout: Layout
  readonly #fd: number
  readonly #hasControl: boolean
  readonly #options: GroupingOptions | undefined
  #grouping: Grouping | undefined
  /** By chunk: room for a reply that starts there. */
  readonly #rooms: readonly Uint8Array[]
  /** By send slot. */
  readonly #replies: Replies = {
    placeOf: new Uint32Array(BATCH),
    spaceOf: new Uint32Array(BATCH),
    lengthOf: new Uint32Array(BATCH),
  }
  /** By send slot: offset of its reply. */
  readonly #replyOf: Uint32Array = new Uint32Array(BATCH)
  /** Chunk where the next reply starts. */
  #chunk = 0
  #queued = 0
  /** Slots before this one are in messages. */
  #laid = 0
  /** Offset of the headers of the messages. */
  #headers = 0
  #messages = 0
  #sent = 0
  /**
   * Set if the next message is the first reply of a refused group: the error of the group. 0 = it
   * is not.
   */
  #doubt = 0
  /** Batches in a row without a group. */
  #groupless = 0

  constructor(libc: Libc, layout: Layout, options: OutboxOptions) {
    this.#libc = libc
    this.#layout = layout
    this.#fd = options.fd
    this.#hasControl = options.hasControl
    this.#options = options.grouping
    this.#grouping = options.grouping === undefined ? undefined : new Grouping()
    this.#rooms = Array.from({ length: REPLY_CHUNKS }, (_, chunk) => {
      const at = layout.chunk(chunk)
      return layout.octets.subarray(at, at + REPLY_OCTETS_MAX)
    })
    for (let slot = 0; slot < BATCH; slot++) {
      this.#replyOf[slot] = layout.chunk(slot)
      this.#replies.placeOf[slot] = layout.unit(slot)
      layout.words[(layout.sendHeader(slot) + HEADER_NAMELEN) >> 2] = options.nameOctets
      layout.words[(layout.groupHeader(slot) + HEADER_NAMELEN) >> 2] = options.nameOctets
    }
  }

  /** The slot of the next reply. */
  get next(): number {
    return this.#queued
  }

  /**
   * Room for the next reply, REPLY_OCTETS_MAX octets. Undefined while the socket's buffer is full.
   * @hot
   */
  room(): Uint8Array | undefined {
    if ((this.#chunk === REPLY_CHUNKS || this.#queued === BATCH) && !this.flush()) return undefined
    return this.#rooms[this.#chunk]
  }

  get roomAt(): number {
    const { region } = this.#layout
    return region === -1 ? -1 : region + this.#layout.chunk(this.#chunk)
  }

  /**
   * Queues `octets` of `bytes`, which may already be in `room()`, for the peer at `place`. Call
   * `room` first. @hot
   */
  reply(place: number, bytes: Uint8Array, octets: number): void {
    const room = this.#rooms[this.#chunk]!
    if (bytes !== room) room.set(bytes.subarray(0, octets))
    if (!this.replyAt(place, this.#layout.chunk(this.#chunk), octets)) return
    this.#chunk += octets <= REPLY_CHUNK_OCTETS ? 1 : Math.ceil(octets / REPLY_CHUNK_OCTETS)
    if (this.#chunk > REPLY_CHUNKS) this.#chunk = REPLY_CHUNKS
  }

  /**
   * Queues the octets at `offset` for the peer at `place`, from the destination address of that
   * packet. Call it only if there is a slot. Returns false if there is no such peer. @hot
   */
  replyAt(place: number, offset: number, octets: number): boolean {
    const layout = this.#layout
    const { words } = layout
    // The upper half is the port. Port 0 is not an address to send to.
    if (words[place >> 2]! >>> 16 === 0) {
      this.sendErrors++
      return false
    }
    const slot = this.#queued
    const { placeOf, spaceOf, lengthOf } = this.#replies
    if (placeOf[slot] !== place) {
      layout.pointPlace(slot, place)
      placeOf[slot] = place
    }
    if (this.#hasControl) {
      const space = turnAround(words, place + UNIT_CONTROL)
      words[(layout.sendHeader(slot) + HEADER_CONTROLLEN) >> 2] = space
      spaceOf[slot] = space
    }
    if (this.#replyOf[slot] !== offset) {
      layout.pointReply(slot, offset)
      this.#replyOf[slot] = offset
    }
    words[(layout.sendIovec(slot) + IOVEC_LEN) >> 2] = octets
    lengthOf[slot] = octets
    this.#queued++
    return true
  }

  /**
   * Sends what is queued. Returns false if the socket's buffer is full: try again once it is
   * writable. @hot
   */
  flush(): boolean {
    for (;;) {
      if (this.#sent < this.#messages && !this.#send()) return false
      if (this.#laid === this.#queued) break
      this.#layOut()
    }
    this.#clear()
    return true
  }

  /** Counts queued replies that will not be sent. */
  drop(): void {
    this.sendErrors += this.#queued - this.#laid
    for (let message = this.#sent; message < this.#messages; message++) {
      this.sendErrors += this.#repliesIn(message)
    }
    this.#clear()
  }

  #clear(): void {
    this.#chunk = 0
    this.#queued = 0
    this.#laid = 0
    this.#messages = 0
    this.#sent = 0
  }

  /** Builds messages from the replies that are not in a message yet. */
  #layOut(): void {
    const from = this.#laid
    const to = this.#queued
    this.#laid = to
    this.#sent = 0
    if (this.#grouping !== undefined && to - from > 1 && this.#isWorthLooking()) {
      const groups = this.#grouping.group(this.#layout.words, this.#replies, from, to)
      if (groups < to - from) {
        this.#groupless = 0
        this.#layOutGroups(this.#grouping, groups)
        return
      }
    }
    this.#headers = this.#layout.sendHeader(from)
    this.#messages = to - from
  }

  /**
   * Peers that use each port once are never grouped: after many batches without a group, check only
   * now and then.
   */
  #isWorthLooking(): boolean {
    this.#groupless++
    return this.#groupless <= GROUPLESS_MAX || this.#groupless % GROUPLESS_MAX === 0
  }

  #layOutGroups({ order, starts }: Grouping, groups: number): void {
    const layout = this.#layout
    const { words } = layout
    let iovec = layout.groupIovec(0) >> 2
    for (let group = 0; group < groups; group++) {
      const start = starts[group]!
      const end = starts[group + 1]!
      this.#addressGroup(group, order[start]!, end - start > 1)
      layout.pointGroup(group, start, end - start)
      for (let i = start; i < end; i++) {
        const from = layout.sendIovec(order[i]!) >> 2
        words[iovec] = words[from]!
        words[iovec + 1] = words[from + 1]!
        words[iovec + 2] = words[from + 2]!
        iovec += 4
      }
    }
    this.#headers = layout.groupHeader(0)
    this.#messages = groups
  }

  /** Gives a message the addresses of the reply in `slot`. If `isCut`, the kernel segments it. */
  #addressGroup(group: number, slot: number, isCut: boolean): void {
    const layout = this.#layout
    const { words } = layout
    const { placeOf, spaceOf, lengthOf } = this.#replies
    const header = layout.groupHeader(group) >> 2
    const from = layout.sendHeader(slot) >> 2
    // Two pointers: msg_name and msg_control.
    words[header] = words[from]!
    words[header + 1] = words[from + 1]!
    words[header + 8] = words[from + 8]!
    words[header + 9] = words[from + 9]!
    const space = spaceOf[slot]!
    if (isCut) writeSegment(words, placeOf[slot]! + UNIT_CONTROL + space, lengthOf[slot]!)
    words[header + (HEADER_CONTROLLEN >> 2)] = isCut ? space + SEGMENT_SPACE : space
  }

  /** Sends the messages. Returns false if the socket's buffer is full. */
  #send(): boolean {
    const { base } = this.#layout
    let refused = -1
    while (this.#sent < this.#messages) {
      const headers = base + this.#headers + this.#sent * MMSGHDR_OCTETS
      const count = this.#messages - this.#sent
      const sent = this.#libc.sendmmsg(this.#fd, headers, count, MSG_DONTWAIT)
      if (sent > 0) {
        this.#sent += sent
        if (this.#doubt !== 0) this.#endGrouping()
        continue
      }
      const errno = this.#libc.errno()
      if (errno === EAGAIN) return false
      if (errno === EINTR) continue
      if (errno === ECONNREFUSED && refused !== this.#sent) {
        refused = this.#sent
        continue
      }
      // Only the first message can't be sent (unreachable, forbidden, too long). The others may be.
      if (this.#repliesIn(this.#sent) > 1) {
        this.#ungroup()
        this.#doubt = UNCUTTABLE.includes(errno) ? errno : 0
        refused = -1
        continue
      }
      this.#doubt = 0
      this.sendErrors++
      this.#sent++
    }
    return true
  }

  #repliesIn(message: number): number {
    const header = this.#headers + message * MMSGHDR_OCTETS
    return this.#layout.words[(header + HEADER_IOVLEN) >> 2]!
  }

  /** Builds one message per reply from the messages that are not sent. */
  #ungroup(): void {
    const layout = this.#layout
    const { order, starts } = this.#grouping!
    const start = starts[this.#sent]!
    const end = starts[this.#messages]!
    for (let i = start; i < end; i++) {
      this.#addressGroup(i - start, order[i]!, false)
      layout.pointGroup(i - start, i, 1)
    }
    this.#sent = 0
    this.#messages = end - start
  }

  /** Called if a group was refused, but its first reply alone was not. */
  #endGrouping(): void {
    const errno = this.#doubt
    this.#doubt = 0
    this.#grouping = undefined
    this.#options?.onRefused(errno)
  }
}
