import { assert } from '../../../base/assert.ts'
import { giveRegion, packetOctets, REGION_OCTETS, takeRegion } from '../../../base/packet-memory.ts'
import { QUERY_OCTETS_MAX, REPLY_OCTETS_MAX } from '../udp.ts'
import type { Libc } from './libc.ts'

/** Datagrams per system call. A larger batch is not faster, and delays its replies. */
export const BATCH = 64

/** Queries that may wait for late replies; each keeps its unit until then. */
export const LATE_MAX = 1024

/**
 * Octets of the packet next to its addresses. The rest is stored elsewhere, so that a batch fits
 * into the CPU cache.
 */
export const PACKET_HEAD_OCTETS = 512

/** `struct mmsghdr` and `struct iovec` of 64-bit Linux, little endian (see `Layout`). */
export const MMSGHDR_OCTETS = 64
const IOVEC_OCTETS = 16
export const HEADER_NAMELEN = 8
export const HEADER_IOVLEN = 24
export const HEADER_CONTROLLEN = 40
export const HEADER_LEN = 56
export const IOVEC_LEN = 8

/** Room for a `struct sockaddr_in6` (28 octets). */
export const NAME_OCTETS = 32
/**
 * Room for one IPV6_PKTINFO message (40 octets), and the time of arrival before it (32, `Backlog`), or in
 * replies a UDP_SEGMENT message after it (24).
 */
export const CONTROL_OCTETS = 96
export const UNIT_CONTROL = NAME_OCTETS
export const UNIT_PACKET = UNIT_CONTROL + CONTROL_OCTETS
/** In a copied unit, which has no time of arrival: octets of the PROXY header in front of the message, 16 bits. */
export const UNIT_PROXY = UNIT_PACKET - 2

/** Room for a message without the header of its proxy, and because it is read by four octets. */
export const MESSAGE_OCTETS = QUERY_OCTETS_MAX + 64

const UNIT_OCTETS = UNIT_PACKET + PACKET_HEAD_OCTETS
const TAIL_OCTETS = QUERY_OCTETS_MAX - PACKET_HEAD_OCTETS

/** Replies follow each other; each starts at a chunk, and long ones use several chunks. */
export const REPLY_CHUNK_OCTETS = 512
export const REPLY_CHUNKS = BATCH

/**
 * The memory that one socket shares with the kernel: allocated once, addressed by offsets, never moved.
 *
 *     receive slot i                       unit i
 *     mmsghdr[i]                           ┌ sockaddr ┬ control ┬ head of the packet ┐
 *     │ 0 msg_name ───────────────────────▶│ 0        │ 32      │ 128 .. 128 + 511   │
 *     │ 8 msg_namelen                      └──────────┴─▲───────┴─▲──────────────────┘
 *     │16 msg_iov ───▶ iovec[2i]   0 iov_base ──────────┼─────────┘
 *     │24 msg_iovlen = 2           8 iov_len            │            tail i
 *     │                iovec[2i+1] 0 iov_base ──────────┼─────────▶ ┌ rest of it ┐
 *     │32 msg_control ──────────────────────────────────┘           └────────────┘
 *     │40 msg_controllen
 *     │48 msg_flags
 *     │56 msg_len
 *
 * A send slot points to the sockaddr and the control message of the unit that it answers. For
 * addresses from elsewhere, it points to a place of its own. Its only iovec points to a chunk of the
 * replies. A message of several replies has its own header and iovecs, and copies their pointers
 * from the slots. The unit after that of the last slot is for reading addresses from elsewhere.
 */
export class Layout {
  readonly octets: Uint8Array
  readonly words: Uint32Array
  /** Address of octet 0. */
  readonly base: number
  readonly receiveHeaders: number
  readonly sendHeaders: number
  readonly #receiveIovecs: number
  readonly #sendIovecs: number
  readonly #sendPlaces: number
  /** Like the send headers, for messages of several replies; their iovecs follow each other. */
  readonly groupHeaders: number
  readonly #groupIovecs: number
  readonly #tails: number
  readonly #units: number
  /** Chunk 0 of the replies. */
  readonly replies: number
  /** For arguments of system calls: 256 octets. */
  readonly scratch: number
  /** For one message: MESSAGE_OCTETS. */
  readonly message: number
  /** Offset in the packet memory; -1 = outside of it. */
  region: number
  #end = 0

  /** `wantsRegion`: allocate in the packet memory, if it has room. */
  constructor(libc: Libc, wantsRegion = false) {
    this.scratch = this.#take(256)
    this.receiveHeaders = this.#take(BATCH * MMSGHDR_OCTETS)
    this.sendHeaders = this.#take(BATCH * MMSGHDR_OCTETS)
    this.#receiveIovecs = this.#take(BATCH * 2 * IOVEC_OCTETS)
    this.#sendIovecs = this.#take(BATCH * IOVEC_OCTETS)
    this.groupHeaders = this.#take(BATCH * MMSGHDR_OCTETS)
    this.#groupIovecs = this.#take(BATCH * IOVEC_OCTETS)
    this.#sendPlaces = this.#take(BATCH * UNIT_PACKET)
    this.#units = this.#take((BATCH + 1) * UNIT_OCTETS)
    // Replies are written by four octets, so one may need room for three more.
    this.replies = this.#take((REPLY_CHUNKS - 1) * REPLY_CHUNK_OCTETS + REPLY_OCTETS_MAX + 3)
    // The system allocates pages on first use: memory after this point costs nothing until then.
    this.#tails = this.#take(BATCH * TAIL_OCTETS)
    this.message = this.#take(MESSAGE_OCTETS)
    assert(this.#end <= REGION_OCTETS, 'a region of the packet memory holds a layout')
    this.region = wantsRegion ? takeRegion() : -1
    this.octets =
      this.region === -1
        ? new Uint8Array(this.#end)
        : packetOctets.subarray(this.region, this.region + this.#end)
    this.words = new Uint32Array(this.octets.buffer, this.octets.byteOffset, this.#end >> 2)
    this.base = libc.addressOf(this.octets)
    for (let i = 0; i < BATCH; i++) {
      this.#link(this.receiveHeader(i), this.#receiveIovecs + i * 2 * IOVEC_OCTETS, 2)
      this.#pointUnit(i)
      this.#link(this.sendHeader(i), this.sendIovec(i), 1)
      this.pointPlace(i, this.unit(i))
      this.pointReply(i, this.chunk(i))
    }
  }

  /** Releases the memory. */
  give(): void {
    if (this.region !== -1) giveRegion(this.region)
    this.region = -1
  }

  receiveHeader(slot: number): number {
    return this.receiveHeaders + slot * MMSGHDR_OCTETS
  }

  sendHeader(slot: number): number {
    return this.sendHeaders + slot * MMSGHDR_OCTETS
  }

  sendIovec(slot: number): number {
    return this.#sendIovecs + slot * IOVEC_OCTETS
  }

  groupHeader(group: number): number {
    return this.groupHeaders + group * MMSGHDR_OCTETS
  }

  groupIovec(index: number): number {
    return this.#groupIovecs + index * IOVEC_OCTETS
  }

  /** Gives a group's message `count` iovecs, from index `index` on. */
  pointGroup(group: number, index: number, count: number): void {
    this.#link(this.groupHeader(group), this.groupIovec(index), count)
  }

  /** Like the start of a unit: room for addresses that are not in a unit. */
  sendPlace(slot: number): number {
    return this.#sendPlaces + slot * UNIT_PACKET
  }

  /** Offset at which a reply may start. */
  chunk(index: number): number {
    return this.replies + index * REPLY_CHUNK_OCTETS
  }

  /** Offset of the part of the packet in `slot` after its head. */
  tail(slot: number): number {
    return this.#tails + slot * TAIL_OCTETS
  }

  unit(index: number): number {
    return this.#units + index * UNIT_OCTETS
  }

  /** Makes `slot` use the addresses at `place`, which are laid out as in a unit. */
  pointPlace(slot: number, place: number): void {
    const header = this.sendHeader(slot)
    this.#point(header, place)
    this.#point(header + 32, place + UNIT_CONTROL)
  }

  /** Makes `slot` send the octets at `offset`. */
  pointReply(slot: number, offset: number): void {
    this.#point(this.sendIovec(slot), offset)
  }

  /** Makes the kernel write the datagrams of `slot` into its unit. */
  #pointUnit(slot: number): void {
    const header = this.receiveHeader(slot)
    const iovec = this.#receiveIovecs + slot * 2 * IOVEC_OCTETS
    const at = this.unit(slot)
    this.#point(header, at)
    this.#point(header + 32, at + UNIT_CONTROL)
    this.#point(iovec, at + UNIT_PACKET)
    this.words[(iovec + IOVEC_LEN) >> 2] = PACKET_HEAD_OCTETS
    this.#point(iovec + IOVEC_OCTETS, this.tail(slot))
    this.words[(iovec + IOVEC_OCTETS + IOVEC_LEN) >> 2] = TAIL_OCTETS
  }

  #take(octets: number): number {
    const at = this.#end
    this.#end = (at + octets + 63) & ~63
    return at
  }

  #link(header: number, iovec: number, count: number): void {
    this.#point(header + 16, iovec)
    this.words[(header + 24) >> 2] = count
  }

  /** Writes the address of the octet at `offset` as a 64-bit pointer. */
  #point(at: number, offset: number): void {
    const address = this.base + offset
    this.words[at >> 2] = address % 0x1_0000_0000
    this.words[(at >> 2) + 1] = Math.floor(address / 0x1_0000_0000)
  }
}
