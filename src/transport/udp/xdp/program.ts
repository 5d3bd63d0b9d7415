import { RECEIVED_OCTETS_MAX } from './xsk.ts'

/** One address and port whose packets are redirected. */
export interface XdpTarget {
  /** 1 = IPv4, 2 = IPv6. */
  readonly family: number
  /** 16 octets; IPv4 in octets 0..3. */
  readonly address: Uint8Array
  readonly port: number
}

/** Most targets of one program. Each costs up to five instructions per packet. */
export const TARGETS_MAX = 64

// Instructions (RFC 9669): class | size or source | mode or operation.
const LOAD_8 = 0x71
const LOAD_16 = 0x69
const LOAD_32 = 0x61
const LOAD_IMMEDIATE_64 = 0x18
const MOVE = 0xbf
const MOVE_IMMEDIATE = 0xb7
const ADD_IMMEDIATE = 0x07
const AND_IMMEDIATE = 0x57
const JUMP = 0x05
const JUMP_IF_GREATER = 0x2d
const JUMP_IF_LESS = 0xad
const JUMP_32_IF_EQUAL = 0x16
const JUMP_32_UNLESS_EQUAL = 0x56
const CALL = 0x85
const EXIT = 0x95
const PSEUDO_MAP_FD = 1
const BPF_REDIRECT_MAP = 51
const XDP_PASS = 2

/** Fields of `struct xdp_md`. */
const DATA = 0
const DATA_END = 4
const RX_QUEUE = 16

// Offsets in a frame without a VLAN tag.
const ETHERTYPE = 12
const IP = 14
const IPV4_FRAGMENT = IP + 6
const IPV4_PROTOCOL = IP + 9
const IPV4_DESTINATION = IP + 16
const IPV4_UDP = IP + 20
const IPV6_NEXT_HEADER = IP + 6
const IPV6_DESTINATION = IP + 24
const IPV6_UDP = IP + 40
const UDP_DESTINATION = 2
const UDP_OCTETS = 8
const PROTOCOL_UDP = 17

const INSTRUCTION_OCTETS = 8

interface Instruction {
  readonly code: number
  readonly to?: number
  readonly from?: number
  readonly offset?: number
  readonly immediate?: number
  /** Jump to this label. */
  readonly label?: string
}

class Assembler {
  readonly #instructions: Instruction[] = []
  readonly #labels = new Map<string, number>()

  add(...instructions: readonly Instruction[]): void {
    this.#instructions.push(...instructions)
  }

  /** Marks the place of the next instruction. */
  mark(label: string): void {
    this.#labels.set(label, this.#instructions.length)
  }

  /** Each instruction: code, registers, 16-bit offset, 32-bit immediate; little endian. */
  octets(): Uint8Array<ArrayBuffer> {
    const octets = new Uint8Array(this.#instructions.length * INSTRUCTION_OCTETS)
    const view = new DataView(octets.buffer)
    this.#instructions.forEach((instruction, i) => {
      const { code, to = 0, from = 0, offset = 0, immediate = 0, label } = instruction
      const at = i * INSTRUCTION_OCTETS
      octets[at] = code
      octets[at + 1] = (from << 4) | to
      const jump = label === undefined ? offset : this.#labels.get(label)! - i - 1
      view.setInt16(at + 2, jump, true)
      view.setInt32(at + 4, immediate, true)
    })
    return octets
  }
}

/**
 * Assembles the eBPF program of an interface: it redirects UDP packets for `mac` and one of the
 * targets to the AF_XDP socket of their receive queue. Everything else, and every packet of a queue
 * without a socket, passes to the kernel: other protocols, VLAN tags, fragments, IPv4 options, IPv6
 * extension headers, and frames longer than the memory for one.
 *
 *     r6 context   r2 frame   r3 its end   r5 the field to compare   r7 r8 r9 r0 destination address
 *
 * Fields in network byte order are compared as a little-endian load reads them. `mapFd`: the XSKMAP.
 */
export function assembleProgram(
  mac: Uint8Array,
  targets: readonly XdpTarget[],
  mapFd: number,
): Uint8Array<ArrayBuffer> {
  const a = new Assembler()
  a.add(
    { code: MOVE, to: 6, from: 1 },
    { code: LOAD_32, to: 2, from: 6, offset: DATA },
    { code: LOAD_32, to: 3, from: 6, offset: DATA_END },
  )
  requireOctets(a, IPV4_UDP + UDP_OCTETS)
  a.add(
    { code: MOVE, to: 4, from: 2 },
    { code: ADD_IMMEDIATE, to: 4, immediate: RECEIVED_OCTETS_MAX },
    { code: JUMP_IF_LESS, to: 4, from: 3, label: 'pass' },
  )
  a.add({ code: LOAD_32, to: 5, from: 2, offset: 0 }, unlessEqual(5, word(mac, 0), 'pass'))
  a.add({ code: LOAD_16, to: 5, from: 2, offset: 4 }, unlessEqual(5, half(mac, 4), 'pass'))
  a.add({ code: LOAD_16, to: 5, from: 2, offset: ETHERTYPE })
  const ofIPv6 = targets.filter(({ family }) => family === 2)
  if (ofIPv6.length > 0) {
    a.add({ code: JUMP_32_IF_EQUAL, to: 5, immediate: 0xdd86, label: 'IPv6' })
  }
  a.add(unlessEqual(5, 0x0008, 'pass'))
  addIPv4(a, targets)
  if (ofIPv6.length > 0) addIPv6(a, ofIPv6)
  a.mark('pass')
  a.add({ code: MOVE_IMMEDIATE, to: 0, immediate: XDP_PASS }, { code: EXIT })
  // The kernel refuses a program with instructions that nothing leads to.
  if (targets.length === 0) return a.octets()
  a.mark('redirect')
  a.add(
    { code: LOAD_IMMEDIATE_64, to: 1, from: PSEUDO_MAP_FD, immediate: mapFd },
    { code: 0 },
    { code: LOAD_32, to: 2, from: 6, offset: RX_QUEUE },
    // The result if the map has no socket for the queue.
    { code: MOVE_IMMEDIATE, to: 3, immediate: XDP_PASS },
    { code: CALL, immediate: BPF_REDIRECT_MAP },
    { code: EXIT },
  )
  return a.octets()
}

function addIPv4(a: Assembler, targets: readonly XdpTarget[]): void {
  a.add(
    // Version 4, a header of 20 octets.
    { code: LOAD_8, to: 5, from: 2, offset: IP },
    unlessEqual(5, 0x45, 'pass'),
    // "More fragments" and the fragment offset.
    { code: LOAD_16, to: 5, from: 2, offset: IPV4_FRAGMENT },
    { code: AND_IMMEDIATE, to: 5, immediate: 0xff3f },
    unlessEqual(5, 0, 'pass'),
    { code: LOAD_8, to: 5, from: 2, offset: IPV4_PROTOCOL },
    unlessEqual(5, PROTOCOL_UDP, 'pass'),
    { code: LOAD_32, to: 7, from: 2, offset: IPV4_DESTINATION },
    { code: LOAD_16, to: 5, from: 2, offset: IPV4_UDP + UDP_DESTINATION },
  )
  for (const { family, address, port } of targets) {
    if (family !== 1) continue
    a.add(skipUnlessEqual(7, word(address, 0), 1), redirectIfPort(port))
  }
  a.add({ code: JUMP, label: 'pass' })
}

function addIPv6(a: Assembler, targets: readonly XdpTarget[]): void {
  a.mark('IPv6')
  requireOctets(a, IPV6_UDP + UDP_OCTETS)
  a.add(
    { code: LOAD_8, to: 5, from: 2, offset: IP },
    { code: AND_IMMEDIATE, to: 5, immediate: 0xf0 },
    unlessEqual(5, 0x60, 'pass'),
    { code: LOAD_8, to: 5, from: 2, offset: IPV6_NEXT_HEADER },
    unlessEqual(5, PROTOCOL_UDP, 'pass'),
    { code: LOAD_32, to: 7, from: 2, offset: IPV6_DESTINATION },
    { code: LOAD_32, to: 8, from: 2, offset: IPV6_DESTINATION + 4 },
    { code: LOAD_32, to: 9, from: 2, offset: IPV6_DESTINATION + 8 },
    { code: LOAD_32, to: 0, from: 2, offset: IPV6_DESTINATION + 12 },
    { code: LOAD_16, to: 5, from: 2, offset: IPV6_UDP + UDP_DESTINATION },
  )
  for (const { address, port } of targets) {
    a.add(
      // The last octets differ most often.
      skipUnlessEqual(0, word(address, 12), 4),
      skipUnlessEqual(9, word(address, 8), 3),
      skipUnlessEqual(8, word(address, 4), 2),
      skipUnlessEqual(7, word(address, 0), 1),
      redirectIfPort(port),
    )
  }
}

/** Passes frames that are shorter. The verifier requires this check before each access. */
function requireOctets(a: Assembler, octets: number): void {
  a.add(
    { code: MOVE, to: 4, from: 2 },
    { code: ADD_IMMEDIATE, to: 4, immediate: octets },
    { code: JUMP_IF_GREATER, to: 4, from: 3, label: 'pass' },
  )
}

function unlessEqual(register: number, immediate: number, label: string): Instruction {
  return { code: JUMP_32_UNLESS_EQUAL, to: register, immediate, label }
}

function skipUnlessEqual(register: number, immediate: number, offset: number): Instruction {
  return { code: JUMP_32_UNLESS_EQUAL, to: register, immediate, offset }
}

function redirectIfPort(port: number): Instruction {
  const immediate = (port >> 8) | ((port & 0xff) << 8)
  return { code: JUMP_32_IF_EQUAL, to: 5, immediate, label: 'redirect' }
}

function word(octets: Uint8Array, at: number): number {
  return half(octets, at) | (half(octets, at + 2) << 16)
}

function half(octets: Uint8Array, at: number): number {
  return octets[at]! | (octets[at + 1]! << 8)
}
