import { isPortOwn } from '../own-ports.ts'
import { AF_INET, AF_INET6, isInUse, systemError, writeSockaddr } from '../sockaddr.ts'
import type { Libc } from '../udp/batch/libc.ts'
import { type Adopt, Handover } from './handover.ts'

// Constants of <sys/socket.h>, <netinet/in.h> and <linux/filter.h>.
const SOCK_STREAM = 1
const SOCK_NONBLOCK = 0x800
const SOCK_CLOEXEC = 0x80000
const SOL_SOCKET = 1
const SO_REUSEADDR = 2
const SO_SNDBUF = 7
const SO_RCVBUF = 8
const SO_REUSEPORT = 15
const SO_ATTACH_REUSEPORT_CBPF = 51
const IPPROTO_IPV6 = 41
const IPV6_V6ONLY = 26
const BPF_RET_K = 6

/**
 * Send and receive buffer of an accepted connection, in octets; the kernel allows twice as much, for its own overhead.
 * Otherwise a send buffer grows to 4 MiB (`tcp_wmem`), and clients that read nothing could fill the memory of all TCP
 * connections (`tcp_mem`), and that of a container.
 */
const BUFFER_OCTETS = 65_536
/** Send buffer of a connection with a reply of many messages, up to `wmem_max`: 5 MB/s if a round trip takes 0.1 s. */
const STREAM_BUFFER_OCTETS = 524_288

/** Offsets of values in the scratch memory of a call. */
const VALUE = 32
const FILTER = 40
const PROGRAM = 48
const SCRATCH_OCTETS = 64

/**
 * Binds TCP addresses that a later process can take over (SO_REUSEPORT). node:net can't do that, so
 * its `listen` gets the bound socket.
 */
export class ReusePortBinder {
  readonly #libc: Libc
  readonly #takesOver: boolean
  readonly #warn: (message: string) => void
  readonly #scratch: Uint8Array = new Uint8Array(SCRATCH_OCTETS)
  readonly #base: number

  /** `takesOver`: another process, which is about to end, has the addresses. */
  constructor(libc: Libc, takesOver: boolean, warn: (message: string) => void) {
    this.#libc = libc
    this.#warn = warn
    this.#takesOver = takesOver
    this.#base = libc.addressOf(this.#scratch)
  }

  /** Returns a bound socket. The caller owns it. Throws the system's error. */
  bind(host: string, port: number): number {
    try {
      return this.#bind(host, port, this.#takesOver)
    } catch (error) {
      // A reload from all addresses to one, or back: the old socket listens until the new one does.
      if (!isInUse(error) || !isPortOwn('tcp', host, port)) throw error
      return this.#bind(host, port, true)
    }
  }

  #bind(host: string, port: number, isShared: boolean): number {
    const libc = this.#libc
    const place = { host, port }
    const length = writeSockaddr(this.#scratch, 0, host, port)
    const domain = this.#scratch[0] === AF_INET ? AF_INET : AF_INET6
    const fd = libc.socket(domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
    if (fd === -1) throw systemError('socket', libc.errno(), place)
    try {
      this.#set(fd, SOL_SOCKET, SO_REUSEADDR, 1)
      if (domain === AF_INET6) this.#set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0)
      // Accepted connections inherit the sizes of their buffers.
      this.#set(fd, SOL_SOCKET, SO_SNDBUF, BUFFER_OCTETS)
      this.#set(fd, SOL_SOCKET, SO_RCVBUF, BUFFER_OCTETS)
      if (isShared) this.#set(fd, SOL_SOCKET, SO_REUSEPORT, 1)
      if (libc.bind(fd, this.#base, length) === -1) throw systemError('bind', libc.errno(), place)
      // Only now, so that binding the address of a server without takeover fails with "already in use".
      this.#set(fd, SOL_SOCKET, SO_REUSEPORT, 1)
      return fd
    } catch (error) {
      libc.close(fd)
      throw error
    }
  }

  /**
   * Makes the kernel give new connections to this listening socket, not to that of the process that
   * ends: closing a socket resets the connections in its queue. The kernel runs a program that
   * picks a socket by its number. If that socket does not exist, the kernel picks one itself. The
   * ending process has number 0. This one has number 1, and becomes 0 when the other has closed.
   */
  claim(fd: number): void {
    if (!this.#takesOver) return
    const view = new DataView(this.#scratch.buffer)
    // struct sock_filter: code 0..1, jt 2, jf 3, k 4..7; struct sock_fprog: len 0..1, filter 8..15.
    view.setUint32(FILTER, BPF_RET_K, true)
    view.setUint32(FILTER + 4, 1, true)
    view.setUint32(PROGRAM, 1, true)
    view.setBigUint64(PROGRAM + 8, BigInt(this.#base + FILTER), true)
    // If this fails, the kernel distributes connections by hash until the other process ends:
    // worse, but correct.
    const at = this.#base + PROGRAM
    this.#libc.setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, at, 16)
  }

  /** Returns the next connection that waits at a listening socket; -1 = none. The caller owns it. */
  accept(fd: number): number {
    return this.#libc.accept4(fd, 0, 0, SOCK_NONBLOCK | SOCK_CLOEXEC)
  }

  /** Makes room for the messages of a long reply in the send buffer of an accepted connection. */
  growSendBuffer(fd: number): void {
    this.#set(fd, SOL_SOCKET, SO_SNDBUF, STREAM_BUFFER_OCTETS)
  }

  /**
   * Returns the handover that moves connections to a later process, and accepts them from an
   * earlier one.
   */
  createHandover(host: string, port: number, adopt: Adopt): Handover {
    return new Handover(this.#libc, `${host}#${port}`, this.#takesOver, adopt, this.#warn)
  }

  #set(fd: number, level: number, name: number, value: number): void {
    new DataView(this.#scratch.buffer).setInt32(VALUE, value, true)
    if (this.#libc.setsockopt(fd, level, name, this.#base + VALUE, 4) === -1) {
      throw systemError('setsockopt', this.#libc.errno(), { host: '', port: 0 })
    }
  }
}
