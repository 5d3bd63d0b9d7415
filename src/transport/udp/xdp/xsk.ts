import { KernelError, type XdpKernel } from './kernel.ts'
import {
  DESCRIPTOR_OCTETS,
  FRAME_ENTRY_OCTETS,
  RING_ENTRIES,
  Ring,
  type RingPlace,
} from './ring.ts'

/** Octets of a frame in memory. A power of two; the kernel accepts 2048 and the size of a page. */
export const FRAME_OCTETS = 2048
/** As many as a ring has entries: then no ring ever lacks room. */
const FRAMES = RING_ENTRIES
export const FRAMES_OCTETS = FRAMES * FRAME_OCTETS
/**
 * Octets in front of a received frame, beside the kernel's 256: then the DNS message of an IPv4
 * packet starts at a multiple of 64.
 */
const HEADROOM_OCTETS = 22
const KERNEL_HEADROOM_OCTETS = 256
/** Longest frame that is received. The kernel drops longer ones. */
export const RECEIVED_OCTETS_MAX = FRAME_OCTETS - KERNEL_HEADROOM_OCTETS - HEADROOM_OCTETS

/** An open AF_XDP socket: everything that a thread needs to serve it. */
export interface XskPlace {
  readonly fd: number
  readonly ifindex: number
  /** Its receive queue. */
  readonly queue: number
  readonly frames: { readonly address: number; readonly octets: number }
  readonly rx: RingPlace
  readonly tx: RingPlace
  readonly fill: RingPlace
  readonly completion: RingPlace
  /** The card reads and writes the frames; false = the kernel copies them. */
  readonly isZeroCopy: boolean
}

// The constants of <linux/if_xdp.h>, <sys/socket.h> and <sys/mman.h> on x86-64 and arm64.
const AF_XDP = 44
const SOCK_RAW = 3
const SOCK_CLOEXEC = 0x80000
const SOL_SOCKET = 1
const SO_ERROR = 4
const SO_SNDBUFFORCE = 32
const SOL_XDP = 283
const XDP_MMAP_OFFSETS = 1
const XDP_RX_RING = 2
const XDP_TX_RING = 3
const XDP_UMEM_REG = 4
const XDP_UMEM_FILL_RING = 5
const XDP_UMEM_COMPLETION_RING = 6
const XDP_STATISTICS = 7
const XDP_OPTIONS = 8
const XDP_MAX_TX_SKB_BUDGET = 9
const XDP_OPTIONS_ZEROCOPY = 1
const XDP_COPY = 2
const XDP_USE_NEED_WAKEUP = 8
const PGOFF_RX = 0
const PGOFF_TX = 0x8000_0000
const PGOFF_FILL = 0x1_0000_0000
const PGOFF_COMPLETION = 0x1_8000_0000
const PROT_READ_WRITE = 3
const MAP_SHARED = 1
const MAP_PRIVATE = 2
const MAP_ANONYMOUS = 0x20
const MAP_POPULATE = 0x8000

const EPERM = 1
const ENOMEM = 12
const ENOBUFS = 105

/** Replies per system call. The default of the kernel is 32. */
const TX_BUDGET = 256
/** The copies of the replies that the card has not sent yet count against it. */
const SEND_BUFFER_OCTETS = 2 ** 22

/** `struct xdp_mmap_offsets`: RX, TX, fill and completion, each producer, consumer, desc, flags. */
const OFFSETS_OCTETS = 128
const STATISTICS_OCTETS = 48

interface XskOptions {
  readonly ifindex: number
  readonly queue: number
  /** True = do not use zero-copy, even if the driver supports it. */
  readonly copies: boolean
}

/**
 * An AF_XDP socket of one receive queue, with its frames and rings. It is opened and closed by one
 * thread, and served by another (`XdpSocket`). It gets packets once it is in the map of a program.
 */
export class Xsk {
  readonly place: XskPlace
  readonly #kernel: XdpKernel
  readonly #mapped: { readonly address: number; readonly octets: number }[] = []
  /** Arguments of the kernel. They must be reachable during a call. */
  readonly #argument = new DataView(new ArrayBuffer(256))
  #fd = -1
  #isOpen = true

  /** Throws a KernelError; EBUSY = another socket has the queue. */
  constructor(kernel: XdpKernel, options: XskOptions) {
    this.#kernel = kernel
    try {
      this.place = this.#open(options)
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** Packets that the kernel dropped because no frame or no room in the ring was left. */
  dropped(): number {
    if (!this.#isOpen || !this.#get(SOL_XDP, XDP_STATISTICS, STATISTICS_OCTETS)) return 0
    const dropped = this.#argument.getBigUint64(0, true)
    const ringFull = this.#argument.getBigUint64(24, true)
    return Number(dropped + ringFull)
  }

  /**
   * Returns true once after the interface was removed or moved to another network namespace. The program
   * may still redirect packets to the socket, and the kernel drops them.
   */
  isCutOff(): boolean {
    this.#argument.setUint32(0, 0, true)
    return this.#get(SOL_SOCKET, SO_ERROR, 4) && this.#argument.getUint32(0, true) !== 0
  }

  /** Call it once no thread uses the socket any more. */
  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    if (this.#fd !== -1) this.#kernel.close(this.#fd)
    // The kernel has pinned the frames for as long as it uses them.
    for (const { address, octets } of this.#mapped) this.#kernel.munmap(address, octets)
  }

  #open({ ifindex, queue, copies }: XskOptions): XskPlace {
    const kernel = this.#kernel
    const fd = kernel.socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0)
    if (fd === -1) {
      const errno = kernel.errno()
      const hint = errno === EPERM ? ' (it requires CAP_NET_RAW)' : ''
      throw new KernelError('socket AF_XDP', errno, hint)
    }
    this.#fd = fd
    const frames = { octets: FRAMES_OCTETS, address: this.#allocate() }
    this.#register(frames.address)
    for (const ring of [XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING, XDP_TX_RING]) {
      this.#set(ring, RING_ENTRIES)
    }
    if (!this.#get(SOL_XDP, XDP_MMAP_OFFSETS, OFFSETS_OCTETS))
      this.#fail('getsockopt XDP_MMAP_OFFSETS')
    const offsets = Array.from({ length: 16 }, (_, i) => {
      return Number(this.#argument.getBigUint64(i * 8, true))
    })
    const rx = this.#mapRing(offsets.slice(0, 4), PGOFF_RX, DESCRIPTOR_OCTETS)
    const tx = this.#mapRing(offsets.slice(4, 8), PGOFF_TX, DESCRIPTOR_OCTETS)
    const fill = this.#mapRing(offsets.slice(8, 12), PGOFF_FILL, FRAME_ENTRY_OCTETS)
    const completion = this.#mapRing(offsets.slice(12), PGOFF_COMPLETION, FRAME_ENTRY_OCTETS)
    this.#offerFrames(fill)
    // Older kernels do not know this option.
    this.#trySet(SOL_XDP, XDP_MAX_TX_SKB_BUDGET, TX_BUDGET)
    this.#trySet(SOL_SOCKET, SO_SNDBUFFORCE, SEND_BUFFER_OCTETS)
    this.#bind(ifindex, queue, copies)
    const isZeroCopy =
      this.#get(SOL_XDP, XDP_OPTIONS, 4) &&
      (this.#argument.getUint32(0, true) & XDP_OPTIONS_ZEROCOPY) !== 0
    return { fd, ifindex, queue, frames, rx, tx, fill, completion, isZeroCopy }
  }

  #allocate(): number {
    const flags = MAP_PRIVATE | MAP_ANONYMOUS
    return this.#map(FRAMES_OCTETS, flags, -1, 0)
  }

  #map(octets: number, flags: number, fd: number, offset: number): number {
    const address = this.#kernel.mmap(0, octets, PROT_READ_WRITE, flags, fd, offset)
    if (address === -1) this.#fail('mmap')
    this.#mapped.push({ address, octets })
    return address
  }

  /** `struct xdp_umem_reg`: address, octets, octets of a frame, headroom, flags. */
  #register(address: number): void {
    const { byteLength } = this.#argument
    new Uint8Array(this.#argument.buffer).fill(0, 0, byteLength)
    this.#argument.setBigUint64(0, BigInt(address), true)
    this.#argument.setBigUint64(8, BigInt(FRAMES_OCTETS), true)
    this.#argument.setUint32(16, FRAME_OCTETS, true)
    this.#argument.setUint32(20, HEADROOM_OCTETS, true)
    const { setsockopt, errno } = this.#kernel
    if (setsockopt(this.#fd, SOL_XDP, XDP_UMEM_REG, this.#address(), 32) === 0) return
    const isLocked = errno() === ENOBUFS || errno() === ENOMEM
    const hint = ` (it requires ${FRAMES_OCTETS >> 20} MiB of locked memory per queue, ulimit -l)`
    throw new KernelError('setsockopt XDP_UMEM_REG', errno(), isLocked ? hint : '')
  }

  #mapRing(offsets: readonly number[], page: number, entryOctets: number): RingPlace {
    const [producer = 0, consumer = 0, entries = 0, flags = 0] = offsets
    const octets = entries + RING_ENTRIES * entryOctets
    const address = this.#map(octets, MAP_SHARED | MAP_POPULATE, this.#fd, page)
    return { address, octets, producer, consumer, flags, entries }
  }

  /** Gives all frames to the kernel. */
  #offerFrames(place: RingPlace): void {
    const memory = this.#kernel.view(place.address, place.octets)
    const fill = new Ring(memory, place, FRAME_ENTRY_OCTETS)
    for (let i = 0; i < FRAMES; i++) fill.putFrame(i, i * FRAME_OCTETS)
    fill.producer = FRAMES
  }

  /** `struct sockaddr_xdp`: family, flags, ifindex, queue, fd of the socket that shares its frames. */
  #bind(ifindex: number, queue: number, copies: boolean): void {
    this.#argument.setUint16(0, AF_XDP, true)
    this.#argument.setUint16(2, XDP_USE_NEED_WAKEUP | (copies ? XDP_COPY : 0), true)
    this.#argument.setUint32(4, ifindex, true)
    this.#argument.setUint32(8, queue, true)
    this.#argument.setUint32(12, 0, true)
    if (this.#kernel.bind(this.#fd, this.#address(), 16) === -1) {
      this.#fail(`bind AF_XDP queue ${queue}`)
    }
  }

  #set(name: number, value: number): void {
    if (!this.#trySet(SOL_XDP, name, value)) this.#fail('setsockopt SOL_XDP')
  }

  #trySet(level: number, name: number, value: number): boolean {
    this.#argument.setUint32(0, value, true)
    return this.#kernel.setsockopt(this.#fd, level, name, this.#address(), 4) === 0
  }

  /** Reads an option to the start of the argument. */
  #get(level: number, name: number, octets: number): boolean {
    const length = this.#argument.byteLength - 4
    this.#argument.setUint32(length, octets, true)
    const address = this.#address()
    return this.#kernel.getsockopt(this.#fd, level, name, address, address + length) === 0
  }

  #address(): number {
    return this.#kernel.addressOf(this.#argument)
  }

  #fail(call: string): never {
    throw new KernelError(call, this.#kernel.errno())
  }
}
