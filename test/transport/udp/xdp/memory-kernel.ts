import { loadLibc } from '../../../../src/transport/udp/batch/libc.ts'
import type { XdpKernel } from '../../../../src/transport/udp/xdp/kernel.ts'
import {
  DESCRIPTOR_OCTETS,
  FRAME_ENTRY_OCTETS,
  RING_ENTRIES,
  Ring,
  type RingPlace,
} from '../../../../src/transport/udp/xdp/ring.ts'
import {
  FRAME_OCTETS,
  FRAMES_OCTETS,
  type XskPlace,
} from '../../../../src/transport/udp/xdp/xsk.ts'

const HEADER_OCTETS = 64
/** Where the kernel puts a frame in its chunk: its own headroom, and ours. */
const FRAME_AT = 278
const EAGAIN = 11
const EBUSY = 16

/** The other side of an AF_XDP socket, in plain memory: the frames and rings that the kernel would have. */
export class MemoryKernel {
  readonly place: XskPlace
  readonly kernel: XdpKernel
  /** What was sent. */
  readonly sent: Buffer[] = []
  dropped = 0
  /** Frames per call of sendto. */
  budget = 32
  /** Where a frame is put in its chunk. */
  frameAt = FRAME_AT
  /** The errors of the next calls of sendto. */
  readonly errors: number[] = []
  readonly #memories = new Map<number, ArrayBuffer>()
  readonly #frames: Buffer
  readonly #rx: Ring
  readonly #tx: Ring
  readonly #fill: Ring
  readonly #completion: Ring
  #errno = 0

  constructor(isZeroCopy = false) {
    const frames = new ArrayBuffer(FRAMES_OCTETS)
    this.#memories.set(1, frames)
    this.#frames = Buffer.from(frames)
    const rings = [2, 3, 4, 5].map((address) => this.#addRing(address))
    const [rx, tx, fill, completion] = rings as [RingPlace, RingPlace, RingPlace, RingPlace]
    const ring = (place: RingPlace, octets: number): Ring =>
      new Ring(this.#memories.get(place.address)!, place, octets)
    this.#rx = ring(rx, DESCRIPTOR_OCTETS)
    this.#tx = ring(tx, DESCRIPTOR_OCTETS)
    this.#fill = ring(fill, FRAME_ENTRY_OCTETS)
    this.#completion = ring(completion, FRAME_ENTRY_OCTETS)
    for (let i = 0; i < RING_ENTRIES; i++) this.#fill.putFrame(i, i * FRAME_OCTETS)
    this.#fill.producer = RING_ENTRIES
    const at = { address: 1, octets: FRAMES_OCTETS }
    this.place = {
      ...{ fd: -1, ifindex: 9, queue: 0, frames: at, rx, tx, fill, completion },
      isZeroCopy,
    }
    this.kernel = {
      ...loadLibc(),
      sendto: () => this.#send(),
      mmap: () => -1,
      munmap: () => 0,
      ioctl: () => -1,
      bpf: () => -1,
      view: (address) => this.#memories.get(address)!,
      errno: () => this.#errno,
    }
  }

  /** Frames that the kernel can fill. */
  get free(): number {
    return this.#fill.producer - this.#fill.consumer
  }

  /** Frames that the socket has not given back: received, or to be sent. */
  get held(): number {
    return RING_ENTRIES - this.free - (this.#completion.producer - this.#completion.consumer)
  }

  receive(packet: Uint8Array): void {
    const from = this.#fill.consumer
    if (from === this.#fill.producer) {
      this.dropped++
      return
    }
    const frame = this.#fill.frameAt(from)
    if (frame % FRAME_OCTETS !== 0) throw new Error(`frame ${frame} does not start a chunk`)
    this.#fill.consumer = from + 1
    this.#frames.set(packet, frame + this.frameAt)
    this.#rx.putDescriptor(this.#rx.producer, frame + this.frameAt, packet.length)
    this.#rx.producer = this.#rx.producer + 1
  }

  #addRing(address: number): RingPlace {
    const octets = HEADER_OCTETS * 4 + RING_ENTRIES * DESCRIPTOR_OCTETS
    const memory = new ArrayBuffer(octets)
    // Needs a wakeup.
    new Int32Array(memory)[32] = 1
    this.#memories.set(address, memory)
    return { address, octets, producer: 0, consumer: 64, flags: 128, entries: 256 }
  }

  #send(): number {
    const error = this.errors.shift()
    this.#errno = error ?? EAGAIN
    // The device refused a packet, and the kernel dropped it.
    const budget = error === undefined ? this.budget : error === EBUSY ? 1 : 0
    for (let i = 0; i < budget && this.#tx.consumer !== this.#tx.producer; i++) {
      const from = this.#tx.consumer
      const at = this.#tx.frameAt(from)
      const packet = Buffer.from(this.#frames.subarray(at, at + this.#tx.octetsAt(from)))
      if (error === undefined) this.sent.push(packet)
      this.#tx.consumer = from + 1
      this.#completion.putFrame(this.#completion.producer, at)
      this.#completion.producer = this.#completion.producer + 1
    }
    // In zero-copy mode, the call only starts the device.
    if (error === undefined && this.place.isZeroCopy) return 0
    return error === undefined && this.#tx.consumer === this.#tx.producer ? 0 : -1
  }
}
