import { getSystemErrorName } from 'node:util'
import { cBinder, requireKoffi } from '../../../base/koffi.ts'
import { type Libc, loadLibc } from '../batch/libc.ts'

/** The system calls of AF_XDP, in addition to those of `Libc`. Same rules for pointers and errors. */
export interface XdpKernel extends Libc {
  sendto(
    fd: number,
    address: number,
    octets: number,
    flags: number,
    to: number,
    toOctets: number,
  ): number
  /** Returns the address of a new mapping, or -1. */
  mmap(
    address: number,
    octets: number,
    protection: number,
    flags: number,
    fd: number,
    offset: number,
  ): number
  munmap(address: number, octets: number): number
  ioctl(fd: number, request: number, argument: number): number
  /** bpf(2). */
  bpf(command: number, attributes: number, octets: number): number
  /** The octets at `address`, without a copy. They must stay mapped while the buffer is in use. */
  view(address: number, octets: number): ArrayBuffer
}

/** Number of the system call bpf(2), which the C library does not wrap. */
const SYS_BPF: Readonly<Record<string, number>> = { x64: 321, arm64: 280 }

let loaded: XdpKernel | undefined

/** Loads the system calls, once. Throws an Error with the reason in one line if that is impossible. */
export function loadXdpKernel(): XdpKernel {
  loaded ??= load()
  return loaded
}

function load(): XdpKernel {
  const libc = loadLibc()
  const number = SYS_BPF[process.arch]
  if (number === undefined) throw new Error(`AF_XDP is not supported on ${process.arch}`)
  const koffi = requireKoffi()
  const bind = cBinder(koffi)
  const syscall: (number: number, command: number, attributes: number, octets: number) => number =
    bind('long syscall(long number, long command, uintptr_t attributes, ulong octets)')
  return {
    ...libc,
    sendto: bind(
      'long sendto(int fd, uintptr_t address, ulong octets, int flags, uintptr_t to, uint toOctets)',
    ),
    mmap: bind(
      'intptr_t mmap(uintptr_t address, ulong octets, int protection, int flags, int fd, int64_t offset)',
    ),
    munmap: bind('int munmap(uintptr_t address, ulong octets)'),
    ioctl: bind('int ioctl(int fd, ulong request, uintptr_t argument)'),
    bpf: (command, attributes, octets) => syscall(number, command, attributes, octets),
    view: (address, octets) => koffi.view(address, octets),
  }
}

/** The failure of a system call, with its code (`EBUSY`). `hint`: what an operator can do about it. */
export class KernelError extends Error {
  readonly code: string

  constructor(call: string, errno: number, hint = '') {
    const code = getSystemErrorName(-errno)
    super(`${call}: ${code}${hint}`)
    this.code = code
  }
}
