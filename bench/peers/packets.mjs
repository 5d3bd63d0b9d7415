// Packets, message headers and sockets of the load generators: memory that the kernel gets the addresses of.
import { readFileSync } from 'node:fs'
import { systemError, writeSockaddr } from '../../dist/transport/sockaddr.js'
import { loadLibc } from '../../dist/transport/udp/batch/libc.js'

const TYPES = { A: 1, NS: 2, SOA: 6, TXT: 16, AAAA: 28, DNSKEY: 48 }

export const BATCH = 64
export const REPLY_OCTETS = 2048
export const MMSGHDR_OCTETS = 64
export const IOVEC_OCTETS = 16
/** Packets that differ; a case of one name still has many client subnets. */
const PACKETS_MIN = 65_536

export const libc = loadLibc()

/** Memory that the kernel gets the address of. */
export function allocate(octets) {
  const bytes = new Uint8Array(new ArrayBuffer(octets))
  return { bytes, words: new Uint32Array(bytes.buffer), address: libc.addressOf(bytes) }
}

/**
 * All packets one behind the other, with address and length of each; the id of packet i is i modulo 65 536. `file`: lines
 * `NAME TYPE`. `form`: see generator.mjs.
 */
export function composePool(file, form) {
  const lines = readFileSync(file, 'latin1').trimEnd().split('\n')
  const count = Math.max(lines.length, PACKETS_MIN)
  const memory = allocate(count * 192)
  const start = new Float64Array(count)
  const length = new Uint32Array(count)
  let at = 0
  for (let i = 0; i < count; i++) {
    const [name, type] = lines[i % lines.length].split(' ')
    start[i] = at
    at = composeQuery(memory.bytes, at, { index: i, name, type, form })
    length[i] = at - start[i]
  }
  const low = new Uint32Array(count)
  const high = new Uint32Array(count)
  for (let i = 0; i < count; i++) {
    low[i] = (memory.address + start[i]) % 2 ** 32
    high[i] = Math.floor((memory.address + start[i]) / 2 ** 32)
  }
  return { count, low, high, length, memory }
}

/** Returns the end of the query. `type`: as in `TYPES`. */
export function composeQuery(bytes, start, { index, name, type, form }) {
  const words = form.split(',')
  const header = words.includes('proxy') ? composeProxyHeader() : []
  bytes.set(header, start)
  const message = start + header.length
  const options = words.flatMap(composeOption)
  const isPlain = options.length === 0 && !words.includes('edns') && !words.includes('do')
  const dnssecOk = words.includes('do') ? 0x80 : 0
  const opt = isPlain ? [] : [0, 0, 41, 4, 208, 0, 0, dnssecOk, 0, 0, options.length]
  const recursionDesired = words.includes('rd') ? 1 : 0
  bytes.set(
    [index >> 8, index, recursionDesired, 0, 0, 1, 0, 0, 0, 0, 0, opt.length === 0 ? 0 : 1],
    message,
  )
  let at = message + 12
  for (const label of name.split('.')) {
    bytes[at++] = label.length
    for (let i = 0; i < label.length; i++) bytes[at++] = label.charCodeAt(i)
  }
  // The OPT has a payload size of 1232 octets (RFC 6891).
  const rest = [0, 0, TYPES[type], 0, 1, ...opt, ...options]
  bytes.set(rest, at)
  return at + rest.length
}

/** PROXY header of version 2, UDP over IPv4: a client of 10.0.0.0/8, and this machine. */
function composeProxyHeader() {
  const signature = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10]
  const client = [10, random256(), random256(), random256()]
  return [...signature, 0x21, 0x12, 0, 12, ...client, 127, 0, 0, 1, 0x9c, 0x40, 0, 53]
}

/** Client Subnet of family 1, /24 (RFC 7871); a client cookie (RFC 7873). */
function composeOption(name) {
  if (name === 'ecs') {
    const subnet = [1 + Math.floor(Math.random() * 222), random256(), random256()]
    return [0, 8, 0, 7, 0, 1, 24, 0, ...subnet]
  }
  return name === 'cookie' ? [0, 10, 0, 8, ...Array.from({ length: 8 }, random256)] : []
}

function random256() {
  return Math.floor(Math.random() * 256)
}

/** mmsghdr and iovec of BATCH datagrams, as x86-64 and other 64-bit Linux have them. */
export function composeHeaders(repliesAddress) {
  const headers = allocate(BATCH * (MMSGHDR_OCTETS + IOVEC_OCTETS))
  const iovecs = BATCH * MMSGHDR_OCTETS
  const putAddress = (at, address) => {
    headers.words[at >> 2] = address % 2 ** 32
    headers.words[(at >> 2) + 1] = Math.floor(address / 2 ** 32)
  }
  for (let i = 0; i < BATCH; i++) {
    putAddress(i * MMSGHDR_OCTETS + 16, headers.address + iovecs + i * IOVEC_OCTETS)
    headers.words[(i * MMSGHDR_OCTETS + 24) >> 2] = 1
    if (repliesAddress === undefined) continue
    putAddress(iovecs + i * IOVEC_OCTETS, repliesAddress + i * REPLY_OCTETS)
    headers.words[(iovecs + i * IOVEC_OCTETS + 8) >> 2] = REPLY_OCTETS
  }
  return { ...headers, iovecs: iovecs >> 2 }
}

/** Writes the address of an octet of `memory` into two of its words. */
export function point(memory, word, octet) {
  memory.words[word] = (memory.address + octet) % 2 ** 32
  memory.words[word + 1] = Math.floor((memory.address + octet) / 2 ** 32)
}

/** A socket at `host`, connected to `port` of 127.0.0.1; returns its descriptor. */
export function openSocket(host, port) {
  const [AF_INET, SOCK_DGRAM, NONBLOCK, SOL_SOCKET, SO_RCVBUF] = [2, 2, 0x800, 1, 8]
  const fd = libc.socket(AF_INET, SOCK_DGRAM | NONBLOCK, 0)
  const scratch = allocate(64)
  scratch.words[0] = 1 << 20
  libc.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, scratch.address, 4)
  const named = writeSockaddr(scratch.bytes, 0, host, 0)
  if (libc.bind(fd, scratch.address, named) !== 0) {
    throw systemError('bind', libc.errno(), { host, port: 0 })
  }
  const octets = writeSockaddr(scratch.bytes, 0, '127.0.0.1', port)
  if (libc.connect(fd, scratch.address, octets) !== 0) {
    throw systemError('connect', libc.errno(), { host: '127.0.0.1', port })
  }
  return fd
}
