import { type AttachMode, Bpf } from './bpf.ts'
import type { Device } from './device.ts'
import { KernelError, type XdpKernel } from './kernel.ts'
import { assembleProgram, type XdpTarget } from './program.ts'
import { Xsk } from './xsk.ts'

/** `auto`: the best that works. `native`, `generic`: only that. `copy`: as `auto`, without zero-copy. */
type XdpMode = 'auto' | 'native' | 'generic' | 'copy'

interface AttachOptions {
  readonly mode: XdpMode
  /** Number of receive queues to serve, from 0 on. */
  readonly queues: number
}

/**
 * Drivers whose native XDP copies every packet once more. Generic XDP is faster there, and sets no
 * conditions.
 */
const GENERIC_FIRST = ['veth']

/**
 * Our program on one interface, and an AF_XDP socket per receive queue. The kernel removes the
 * program when the process ends, however it ends.
 *
 *     constructor: map, link of a program without targets (all packets pass to the kernel)
 *     openSockets: sockets, into the map
 *     setTargets:  packets for the targets go to the sockets from now on
 */
export class Attachment {
  readonly device: Device
  readonly attached: AttachMode
  readonly #kernel: XdpKernel
  readonly #bpf: Bpf
  readonly #options: AttachOptions
  readonly #sockets: Xsk[] = []
  #map = -1
  #link = -1

  /** Throws a KernelError. EBUSY or EEXIST = the interface has another program. */
  constructor(kernel: XdpKernel, device: Device, options: AttachOptions) {
    this.#kernel = kernel
    this.#bpf = new Bpf(kernel)
    this.#options = options
    this.device = device
    try {
      this.#map = this.#bpf.createMap(options.queues)
      this.attached = this.#attach(options.mode)
    } catch (error) {
      this.close()
      throw error
    }
  }

  get sockets(): readonly Xsk[] {
    return this.#sockets
  }

  /** For the log: `generic (veth), copy, 1 queue`. */
  get description(): string {
    const { driver } = this.device
    const copies = this.sockets.every(({ place }) => place.isZeroCopy) ? 'zero-copy' : 'copy'
    const queues = this.sockets.length === 1 ? '1 queue' : `${this.sockets.length} queues`
    return `${this.attached}${driver === '' ? '' : ` (${driver})`}, ${copies}, ${queues}`
  }

  /**
   * Opens the sockets that are still missing. Throws a KernelError; EBUSY = another socket has a queue,
   * perhaps one that was closed a moment ago.
   */
  openSockets(): void {
    const { mode, queues } = this.#options
    const copies = mode === 'copy' || this.attached === 'generic'
    while (this.#sockets.length < queues) {
      const queue = this.#sockets.length
      const socket = new Xsk(this.#kernel, { ifindex: this.device.ifindex, queue, copies })
      this.#sockets.push(socket)
      this.#bpf.setSocket(this.#map, queue, socket.place.fd)
    }
  }

  /** From the next packet on, these targets are redirected, and no others. */
  setTargets(targets: readonly XdpTarget[]): void {
    this.#withProgram(targets, (program) => this.#bpf.update(this.#link, program))
  }

  /** From the next packet on, all packets go to the kernel. The sockets still hold what has arrived. */
  detach(): void {
    if (this.#link !== -1) this.#kernel.close(this.#link)
    if (this.#map !== -1) this.#kernel.close(this.#map)
    this.#link = -1
    this.#map = -1
  }

  /** Call it once no thread serves the sockets any more. */
  close(): void {
    this.detach()
    for (const socket of this.#sockets) socket.close()
  }

  #attach(mode: XdpMode): AttachMode {
    const modes = this.#modes(mode)
    let failure: unknown
    for (const one of modes) {
      try {
        this.#withProgram([], (program) => {
          this.#link = this.#bpf.link(program, this.device.ifindex, one)
        })
        return one
      } catch (error) {
        failure ??= error
        // Another program prevents the other modes too.
        if (error instanceof KernelError && isBusy(error)) break
      }
    }
    throw failure
  }

  #modes(mode: XdpMode): readonly AttachMode[] {
    if (mode === 'native' || mode === 'generic') return [mode]
    return GENERIC_FIRST.includes(this.device.driver)
      ? ['generic', 'native']
      : ['native', 'generic']
  }

  /** The link holds the program, so its descriptor is needed only for a moment. */
  #withProgram(targets: readonly XdpTarget[], use: (program: number) => void): void {
    const program = this.#bpf.load(assembleProgram(this.device.mac, targets, this.#map))
    try {
      use(program)
    } finally {
      this.#kernel.close(program)
    }
  }
}

/** Whether another process has what we asked for. */
export function isBusy({ code }: KernelError): boolean {
  return code === 'EBUSY' || code === 'EEXIST'
}
