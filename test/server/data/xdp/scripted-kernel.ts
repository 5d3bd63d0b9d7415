import { loadLibc } from '../../../../src/transport/udp/batch/libc.ts'
import type { XdpKernel } from '../../../../src/transport/udp/xdp/kernel.ts'

const BPF_LINK_CREATE = 28
/** Commands that return a descriptor: map, program, link. */
const BPF_OPENS = [0, 5, BPF_LINK_CREATE]
const SIOCGIFINDEX = 0x8933
const SIOCGIFHWADDR = 0x8927
const SIOCGIFFLAGS = 0x8913
const SIOCETHTOOL = 0x8946
const SOL_SOCKET = 1
const SO_ERROR = 4
const EOPNOTSUPP = 95
/** `struct ifreq`: behind the name. */
const VALUE = 16

/**
 * The side of the kernel that the control thread uses for AF_XDP: one interface with one receive queue,
 * whose calls fail as the test scripts them.
 */
export class ScriptedKernel {
  readonly kernel: XdpKernel
  /** The errors of the next binds, and of the next links. */
  readonly bindErrors: number[] = []
  readonly linkErrors: number[] = []
  isUp = true
  /** SO_ERROR of the sockets. Reading it clears it. */
  socketError = 0
  /** `link`, `bind` and their errors, in order. */
  readonly calls: string[] = []
  /** Descriptors that are open. */
  readonly open = new Set<number>()
  readonly #memories = new Map<number, ArrayBufferView>()
  #last = 100
  #errno = 0

  constructor() {
    this.kernel = {
      ...loadLibc(),
      addressOf: (memory) => {
        this.#memories.set(++this.#last, memory)
        return this.#last
      },
      socket: () => this.#open(),
      close: (fd) => (this.open.delete(fd) ? 0 : -1),
      setsockopt: () => 0,
      getsockopt: (_, level, name, value) => this.#getsockopt(level, name, value),
      sendto: () => 0,
      mmap: () => ++this.#last,
      munmap: () => 0,
      view: (_, octets) => new ArrayBuffer(octets),
      bind: () => (this.#fails('bind', this.bindErrors) ? -1 : 0),
      ioctl: (_, request, argument) => this.#ioctl(request, argument),
      bpf: (command) => this.#bpf(command),
      errno: () => this.#errno,
    }
  }

  #open(): number {
    this.open.add(++this.#last)
    return this.#last
  }

  #getsockopt(level: number, name: number, value: number): number {
    if (level !== SOL_SOCKET || name !== SO_ERROR) return 0
    const { buffer, byteOffset } = this.#memories.get(value)!
    new DataView(buffer, byteOffset).setUint32(0, this.socketError, true)
    this.socketError = 0
    return 0
  }

  #fails(call: string, errors: number[]): boolean {
    this.#errno = errors.shift() ?? 0
    this.calls.push(this.#errno === 0 ? call : `${call} ${this.#errno}`)
    return this.#errno !== 0
  }

  #bpf(command: number): number {
    if (command === BPF_LINK_CREATE && this.#fails('link', this.linkErrors)) return -1
    return BPF_OPENS.includes(command) ? this.#open() : 0
  }

  #ioctl(request: number, argument: number): number {
    const { buffer, byteOffset } = this.#memories.get(argument)!
    const value = new DataView(buffer, byteOffset + VALUE)
    // An Ethernet interface.
    if ([SIOCGIFINDEX, SIOCGIFHWADDR].includes(request)) value.setUint16(0, 1, true)
    if (request === SIOCGIFFLAGS) value.setUint16(0, this.isUp ? 1 : 0, true)
    this.#errno = EOPNOTSUPP
    return request === SIOCETHTOOL ? -1 : 0
  }
}
