import { KernelError, type XdpKernel } from './kernel.ts'

/** A network interface, as the kernel describes it now. */
export interface Device {
  readonly name: string
  readonly ifindex: number
  readonly mac: Uint8Array
  readonly mtuOctets: number
  readonly isUp: boolean
  /** Receive queues that have a transmit queue of the same number: only they can reply. */
  readonly queues: number
  /** `veth`; '' = unknown. */
  readonly driver: string
}

// The constants and structures of <linux/sockios.h>, <linux/if.h> and <linux/ethtool.h>.
const SIOCGIFNAME = 0x8910
const SIOCGIFFLAGS = 0x8913
const SIOCGIFMTU = 0x8921
const SIOCGIFHWADDR = 0x8927
const SIOCGIFINDEX = 0x8933
const SIOCETHTOOL = 0x8946
const IFF_UP = 1
const ARPHRD_ETHER = 1
const ETHTOOL_GDRVINFO = 0x03
const ETHTOOL_GCHANNELS = 0x3c
/** `struct ifreq`: the name, and a union. */
const NAME_OCTETS = 16
const IFREQ_OCTETS = 40
/** `struct ethtool_drvinfo`. */
const COMMAND_OCTETS = 196
const DRIVER = 4
const DRIVER_OCTETS = 32
/** `struct ethtool_channels`: rx_count, tx_count, combined_count. */
const RX_COUNT = 20
const TX_COUNT = 24
const COMBINED_COUNT = 32

const AF_INET = 2
const SOCK_DGRAM = 2
const SOCK_CLOEXEC = 0x80000
const ENODEV = 19

/**
 * Reads the properties of an interface of this network namespace. Returns undefined if there is no
 * such interface. Throws a KernelError, or an Error if it is not an Ethernet interface.
 */
export function readDevice(kernel: XdpKernel, name: string): Device | undefined {
  const fd = kernel.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)
  if (fd === -1) throw new KernelError('socket', kernel.errno())
  try {
    return new DeviceReader(kernel, fd, name).read()
  } finally {
    kernel.close(fd)
  }
}

class DeviceReader {
  readonly #kernel: XdpKernel
  readonly #fd: number
  readonly #name: string
  readonly #request = new Uint8Array(IFREQ_OCTETS)
  readonly #view = new DataView(this.#request.buffer)
  readonly #command = new Uint8Array(COMMAND_OCTETS)

  constructor(kernel: XdpKernel, fd: number, name: string) {
    this.#kernel = kernel
    this.#fd = fd
    this.#name = name
  }

  read(): Device | undefined {
    if (!this.#ask(SIOCGIFINDEX)) return undefined
    const ifindex = this.#view.getUint32(NAME_OCTETS, true)
    if (!this.#ask(SIOCGIFNAME, ifindex)) return undefined
    const name = textOf(this.#request.subarray(0, NAME_OCTETS))
    // The system lists addresses by this name only.
    if (name !== this.#name)
      throw new Error(`${this.#name} is another name of ${name}: use ${name}`)
    if (!this.#ask(SIOCGIFHWADDR)) return undefined
    const kind = this.#view.getUint16(NAME_OCTETS, true)
    if (kind !== ARPHRD_ETHER) {
      throw new Error(`${this.#name} is not an Ethernet interface`)
    }
    const mac = this.#request.slice(NAME_OCTETS + 2, NAME_OCTETS + 8)
    if (!this.#ask(SIOCGIFMTU)) return undefined
    const mtuOctets = this.#view.getUint32(NAME_OCTETS, true)
    if (!this.#ask(SIOCGIFFLAGS)) return undefined
    const isUp = (this.#view.getUint16(NAME_OCTETS, true) & IFF_UP) !== 0
    const queues = this.#queues()
    const driver = this.#driver()
    return { name: this.#name, ifindex, mac, mtuOctets, isUp, queues, driver }
  }

  /** Returns false if the interface is gone. `argument`: the union of the request. */
  #ask(request: number, argument = 0): boolean {
    const { addressOf, ioctl, errno } = this.#kernel
    this.#request.fill(0)
    this.#request.set(Buffer.from(this.#name).subarray(0, NAME_OCTETS - 1))
    this.#view.setUint32(NAME_OCTETS, argument, true)
    if (ioctl(this.#fd, request, addressOf(this.#request)) === 0) return true
    if (errno() === ENODEV) return false
    throw new KernelError(`ioctl ${this.#name}`, errno())
  }

  /** Drivers that do not report their queues have one. */
  #queues(): number {
    if (!this.#askDriver(ETHTOOL_GCHANNELS)) return 1
    const view = new DataView(this.#command.buffer)
    const pairs = Math.min(view.getUint32(RX_COUNT, true), view.getUint32(TX_COUNT, true))
    return Math.max(1, pairs + view.getUint32(COMBINED_COUNT, true))
  }

  #driver(): string {
    if (!this.#askDriver(ETHTOOL_GDRVINFO)) return ''
    return textOf(this.#command.subarray(DRIVER, DRIVER + DRIVER_OCTETS))
  }

  #askDriver(command: number): boolean {
    const { addressOf } = this.#kernel
    this.#command.fill(0)
    this.#command[0] = command
    const address = addressOf(this.#command)
    this.#request.fill(0)
    this.#request.set(Buffer.from(this.#name).subarray(0, NAME_OCTETS - 1))
    this.#view.setBigUint64(NAME_OCTETS, BigInt(address), true)
    return this.#kernel.ioctl(this.#fd, SIOCETHTOOL, addressOf(this.#request)) === 0
  }
}

/** The text before the first zero. */
function textOf(octets: Uint8Array): string {
  return Buffer.from(octets.subarray(0, Math.max(0, octets.indexOf(0)))).toString()
}
