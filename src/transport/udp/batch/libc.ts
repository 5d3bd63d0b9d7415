import { endianness } from 'node:os'
import { cBinder, requireKoffi } from '../../../base/koffi.ts'

/**
 * The system calls of the batch transport and of handovers. Pointers are plain numbers (user space
 * ends below 2^53), which are cheaper to pass than Buffers. Their memory must stay reachable from
 * JavaScript for as long as the kernel may use it. A failed call returns -1 and leaves its reason
 * in `errno`.
 */
export interface Libc {
  socket(domain: number, type: number, protocol: number): number
  setsockopt(fd: number, level: number, name: number, value: number, octets: number): number
  getsockopt(fd: number, level: number, name: number, value: number, octets: number): number
  bind(fd: number, address: number, octets: number): number
  getsockname(fd: number, address: number, octets: number): number
  recvmmsg(fd: number, headers: number, count: number, flags: number, timeout: number): number
  sendmmsg(fd: number, headers: number, count: number, flags: number): number
  connect(fd: number, address: number, octets: number): number
  listen(fd: number, backlog: number): number
  accept4(fd: number, address: number, octets: number, flags: number): number
  sendmsg(fd: number, header: number, flags: number): number
  recvmsg(fd: number, header: number, flags: number): number
  /** `fds`: `count` structures of 8 octets: fd (32 bits), events (16), revents (16). -1 ms: for ever. */
  poll(fds: number, count: number, timeoutMs: number): number
  eventfd(initial: number, flags: number): number
  read(fd: number, address: number, octets: number): number
  write(fd: number, address: number, octets: number): number
  close(fd: number): number
  /** Returns free memory to the system. Does nothing if the C library has no such function (musl). */
  mallocTrim(keptOctets: number): void
  errno(): number
  /** Address of the first octet of `buffer`, which never moves. */
  addressOf(buffer: ArrayBufferView): number
}

/** Architectures that have the structures and constants of `layout.ts` and `socket.ts`. */
const ARCHITECTURES = ['x64', 'arm64', 'riscv64', 'loong64']

let loaded: Libc | undefined

/**
 * Loads the system calls, once. Throws an Error with the reason in one line if the machine does not
 * support them.
 */
export function loadLibc(): Libc {
  loaded ??= load()
  return loaded
}

function load(): Libc {
  if (process.platform !== 'linux')
    throw new Error(`recvmmsg is Linux, this is ${process.platform}`)
  if (!ARCHITECTURES.includes(process.arch) || endianness() !== 'LE') {
    throw new Error(`no structure layouts for ${process.arch}`)
  }
  const koffi = requireKoffi()
  const bind = cBinder(koffi)
  return {
    socket: bind('int socket(int domain, int type, int protocol)'),
    setsockopt: bind('int setsockopt(int fd, int level, int name, uintptr_t value, uint octets)'),
    getsockopt: bind(
      'int getsockopt(int fd, int level, int name, uintptr_t value, uintptr_t octets)',
    ),
    bind: bind('int bind(int fd, uintptr_t address, uint octets)'),
    getsockname: bind('int getsockname(int fd, uintptr_t address, uintptr_t octets)'),
    recvmmsg: bind(
      'int recvmmsg(int fd, uintptr_t headers, uint count, int flags, uintptr_t timeout)',
    ),
    sendmmsg: bind('int sendmmsg(int fd, uintptr_t headers, uint count, int flags)'),
    connect: bind('int connect(int fd, uintptr_t address, uint octets)'),
    listen: bind('int listen(int fd, int backlog)'),
    accept4: bind('int accept4(int fd, uintptr_t address, uintptr_t octets, int flags)'),
    sendmsg: bind('long sendmsg(int fd, uintptr_t header, int flags)'),
    recvmsg: bind('long recvmsg(int fd, uintptr_t header, int flags)'),
    poll: bind('int poll(uintptr_t fds, ulong count, int timeout)'),
    eventfd: bind('int eventfd(uint initial, int flags)'),
    read: bind('long read(int fd, uintptr_t address, ulong octets)'),
    write: bind('long write(int fd, uintptr_t address, ulong octets)'),
    close: bind('int close(int fd)'),
    mallocTrim: bindMallocTrim(bind),
    errno: () => koffi.errno(),
    addressOf: (buffer) => Number(koffi.address(buffer)),
  }
}

function bindMallocTrim(bind: <Call>(prototype: string) => Call): Libc['mallocTrim'] {
  try {
    return bind('int malloc_trim(ulong pad)')
  } catch {
    return () => {}
  }
}
