import { KernelError, type XdpKernel } from './kernel.ts'

const MAP_CREATE = 0
const MAP_UPDATE_ELEM = 2
const PROG_LOAD = 5
const LINK_CREATE = 28
const LINK_UPDATE = 29

const MAP_TYPE_XSKMAP = 17
const PROG_TYPE_XDP = 6
const ATTACH_TYPE_XDP = 37
const XDP_FLAGS_SKB_MODE = 2
const XDP_FLAGS_DRV_MODE = 4

/** The longest `union bpf_attr` that is used, in 32-bit words. */
const ATTRIBUTE_WORDS = 36
const INSTRUCTION_OCTETS = 8
const LOG_OCTETS = 65_536

/** The driver's own XDP, or the one of the network stack, which works with every driver. */
export type AttachMode = 'native' | 'generic'

/** The objects of bpf(2) that redirect packets. All of them are file descriptors. */
export class Bpf {
  readonly #kernel: XdpKernel
  /** The kernel reads it during a call only, but it must be reachable until then. */
  readonly #attributes: Uint32Array = new Uint32Array(ATTRIBUTE_WORDS)
  readonly #arguments: Uint32Array = new Uint32Array(2)
  /** What the attributes point to. The kernel gets addresses, so it must be reachable from here. */
  readonly #pointees: Uint8Array[] = []

  constructor(kernel: XdpKernel) {
    this.#kernel = kernel
  }

  /** Creates a map from receive queue to AF_XDP socket. */
  createMap(entries: number): number {
    const attributes = this.#cleared()
    attributes.set([MAP_TYPE_XSKMAP, 4, 4, entries])
    return this.#call('BPF_MAP_CREATE', MAP_CREATE)
  }

  /** From now on, the packets of `queue` that the program redirects go to the socket `fd`. */
  setSocket(map: number, queue: number, fd: number): void {
    const attributes = this.#cleared()
    this.#arguments.set([queue, fd])
    const address = this.#kernel.addressOf(this.#arguments)
    attributes[0] = map
    putPointer(attributes, 2, address)
    putPointer(attributes, 4, address + 4)
    this.#call('BPF_MAP_UPDATE_ELEM', MAP_UPDATE_ELEM)
  }

  /** Loads a program (`assembleProgram`). */
  load(instructions: Uint8Array): number {
    try {
      return this.#load(instructions)
    } catch (error) {
      const { code } = error as KernelError
      if (code !== 'EINVAL' && code !== 'EACCES') throw error
      return this.#load(instructions, new Uint8Array(LOG_OCTETS))
    }
  }

  /** Attaches a program. The link ends when its last descriptor is closed, or with the process. */
  link(program: number, ifindex: number, mode: AttachMode): number {
    const attributes = this.#cleared()
    const flags = mode === 'native' ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE
    attributes.set([program, ifindex, ATTACH_TYPE_XDP, flags])
    return this.#call('BPF_LINK_CREATE', LINK_CREATE)
  }

  /** Replaces the program of a link without a gap. */
  update(link: number, program: number): void {
    this.#cleared().set([link, program])
    this.#call('BPF_LINK_UPDATE', LINK_UPDATE)
  }

  /** `log`: room for the reasons of the verifier, which go into the error. */
  #load(instructions: Uint8Array, log?: Uint8Array): number {
    const { addressOf } = this.#kernel
    const license = Uint8Array.of(0x47, 0x50, 0x4c, 0)
    this.#pointees.push(instructions, license, log ?? license)
    const attributes = this.#cleared()
    attributes[0] = PROG_TYPE_XDP
    attributes[1] = instructions.length / INSTRUCTION_OCTETS
    putPointer(attributes, 2, addressOf(instructions))
    putPointer(attributes, 4, addressOf(license))
    if (log !== undefined) {
      attributes[6] = 1
      attributes[7] = log.length
      putPointer(attributes, 8, addressOf(log))
    }
    attributes[17] = ATTACH_TYPE_XDP
    try {
      return this.#call('BPF_PROG_LOAD', PROG_LOAD)
    } catch (error) {
      if (log === undefined || !(error instanceof Error)) throw error
      const text = Buffer.from(log.subarray(0, Math.max(0, log.indexOf(0)))).toString('latin1')
      error.message += ` (${text.trim().split('\n').slice(-3).join('; ')})`
      throw error
    }
  }

  #cleared(): Uint32Array {
    return this.#attributes.fill(0)
  }

  #call(name: string, command: number): number {
    const { addressOf, bpf, errno } = this.#kernel
    const result = bpf(command, addressOf(this.#attributes), this.#attributes.byteLength)
    this.#pointees.length = 0
    if (result === -1) throw new KernelError(name, errno(), hintOf(errno()))
    return result
  }
}

const EPERM = 1

function hintOf(errno: number): string {
  return errno === EPERM ? ' (it requires CAP_NET_ADMIN and CAP_BPF)' : ''
}

function putPointer(words: Uint32Array, at: number, address: number): void {
  words[at] = address % 0x1_0000_0000
  words[at + 1] = Math.floor(address / 0x1_0000_0000)
}
