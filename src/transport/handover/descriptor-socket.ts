import { constants } from 'node:os'
import type { Libc } from '../udp/batch/libc.ts'

// Constants of <sys/socket.h>.
const AF_UNIX = 1
const SOCK_SEQPACKET = 5
const SOCK_NONBLOCK = 0x800
const SOCK_CLOEXEC = 0x80000
const FLAGS = SOCK_NONBLOCK | SOCK_CLOEXEC
const SOL_SOCKET = 1
const SO_PEERCRED = 17
const SCM_RIGHTS = 1
const MSG_TRUNC = 0x20
const MSG_NOSIGNAL = 0x4000
const MSG_CMSG_CLOEXEC = 0x40000000

/** Processes that may have connected and not been accepted. */
const BACKLOG = 128
/** Octets of `sun_path`, whose first is 0 for an abstract name. */
const NAME_OCTETS_MAX = 107

/**
 * The memory of a call, on 64-bit little endian Linux:
 *
 *     0  struct msghdr  0 name, 8 namelen, 16 iov, 24 iovlen, 32 control, 40 controllen, 48 flags
 *     56 struct iovec   0 base, 8 len
 *     72 struct cmsghdr 0 len, 8 level, 12 type, 16 the descriptor
 *     96 values of socket options
 */
const IOVEC = 56
const CONTROL = 72
const CONTROL_OCTETS = 24
const CONTROL_LEN = 20
const VALUE = 96
const SCRATCH_OCTETS = 128

/** What `receive` returns: a message, or that none waits, or that the peer has closed the socket. */
type ReceivedMessage = { readonly octets: Uint8Array; readonly fd: number } | 'none' | 'end'

/** A UNIX socket that carries messages, each with one descriptor, between processes of one user. No call blocks. */
export class DescriptorSocket {
  readonly fd: number
  readonly #libc: Libc
  readonly #scratch = new Uint8Array(SCRATCH_OCTETS)
  readonly #view = new DataView(this.#scratch.buffer)
  readonly #base: number
  #buffer: Uint8Array | undefined

  /** Owns `fd`. */
  constructor(libc: Libc, fd: number) {
    this.#libc = libc
    this.fd = fd
    this.#base = libc.addressOf(this.#scratch)
  }

  /** Undefined if the name is in use, or the system allows no such socket. */
  static listen(libc: Libc, name: string): DescriptorSocket | undefined {
    return open(libc, name, (fd, address, octets) => {
      return libc.bind(fd, address, octets) === 0 && libc.listen(fd, BACKLOG) === 0
    })
  }

  /** Undefined if no process of this user listens on the name. */
  static connect(libc: Libc, name: string): DescriptorSocket | undefined {
    const socket = open(libc, name, (fd, address, octets) => {
      return libc.connect(fd, address, octets) === 0
    })
    return socket === undefined ? undefined : socket.#ofSameUser()
  }

  /** Accepts all waiting connections of this user, in order of arrival. */
  accept(): DescriptorSocket[] {
    const sockets: DescriptorSocket[] = []
    for (;;) {
      const fd = this.#libc.accept4(this.fd, 0, 0, FLAGS)
      if (fd === -1) return sockets
      const socket = new DescriptorSocket(this.#libc, fd).#ofSameUser()
      if (socket !== undefined) sockets.push(socket)
    }
  }

  /** Sends a message with a copy of the descriptor. False = not sent, with the reason in `errno`. */
  send(octets: Uint8Array, fd: number): boolean {
    this.#describe(octets, CONTROL_LEN)
    const view = this.#view
    view.setInt32(CONTROL + 8, SOL_SOCKET, true)
    view.setInt32(CONTROL + 12, SCM_RIGHTS, true)
    view.setInt32(CONTROL + 16, fd, true)
    return this.#libc.sendmsg(this.fd, this.#base, MSG_NOSIGNAL) !== -1
  }

  /** Receives one message of at most `octetsMax`; without a descriptor, `fd` is -1. The caller owns the descriptor. */
  receive(octetsMax: number): ReceivedMessage {
    this.#buffer ??= new Uint8Array(octetsMax)
    this.#describe(this.#buffer, 0)
    const octets = this.#libc.recvmsg(this.fd, this.#base, MSG_CMSG_CLOEXEC)
    if (octets === -1) return this.#isEmpty() ? 'none' : 'end'
    if (octets === 0) return 'end'
    const view = this.#view
    const isRights =
      view.getUint32(40, true) >= CONTROL_LEN && view.getInt32(CONTROL + 12, true) === SCM_RIGHTS
    const fd = isRights ? view.getInt32(CONTROL + 16, true) : -1
    const isWhole = (view.getInt32(48, true) & MSG_TRUNC) === 0
    return { octets: this.#buffer.slice(0, isWhole ? octets : 0), fd }
  }

  close(): void {
    this.#libc.close(this.fd)
  }

  #isEmpty(): boolean {
    const errno = this.#libc.errno()
    return errno === constants.errno.EAGAIN || errno === constants.errno.EINTR
  }

  /** Fills in the header of a message that lies in `octets`. */
  #describe(octets: Uint8Array, controlLength: number): void {
    const view = this.#view
    view.setBigUint64(16, BigInt(this.#base + IOVEC), true)
    view.setBigUint64(24, 1n, true)
    view.setBigUint64(32, BigInt(this.#base + CONTROL), true)
    view.setBigUint64(40, BigInt(CONTROL_OCTETS), true)
    view.setBigUint64(IOVEC, BigInt(this.#libc.addressOf(octets)), true)
    view.setBigUint64(IOVEC + 8, BigInt(octets.length), true)
    view.setBigUint64(CONTROL, BigInt(controlLength), true)
  }

  /** Closes the socket if the process at its other end is of another user. */
  #ofSameUser(): DescriptorSocket | undefined {
    const [credentials, length] = [VALUE, VALUE + 12]
    this.#view.setUint32(length, 12, true)
    const { fd } = this
    const base = this.#base
    const failed = this.#libc.getsockopt(
      fd,
      SOL_SOCKET,
      SO_PEERCRED,
      base + credentials,
      base + length,
    )
    // struct ucred: process 0..3, user 4..7, group 8..11.
    if (failed === 0 && this.#view.getUint32(credentials + 4, true) === process.geteuid?.())
      return this
    this.close()
    return undefined
  }
}

function open(
  libc: Libc,
  name: string,
  attach: (fd: number, address: number, octets: number) => boolean,
): DescriptorSocket | undefined {
  const path = Buffer.from(`\0${name}`)
  if (path.length > NAME_OCTETS_MAX) return undefined
  const address = Buffer.concat([Buffer.of(AF_UNIX, 0), path])
  const fd = libc.socket(AF_UNIX, SOCK_SEQPACKET | FLAGS, 0)
  if (fd === -1) return undefined
  if (attach(fd, libc.addressOf(address), address.length)) return new DescriptorSocket(libc, fd)
  libc.close(fd)
  return undefined
}
