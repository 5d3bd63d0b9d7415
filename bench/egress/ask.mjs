// One query at a time, each from a port of its own.
import { systemError, writeSockaddr } from '../../dist/transport/sockaddr.js'
import { loadLibc } from '../../dist/transport/udp/batch/libc.js'

const HOST = '127.0.0.1'
const REPLY_LIMIT_MS = 5000
const OCTETS_MAX = 512

const libc = loadLibc()
const bytes = new Uint8Array(OCTETS_MAX)
const address = libc.addressOf(bytes)
const polled = new Int32Array(2)

function check(result, syscall, port = 0) {
  if (result < 0) throw systemError(syscall, libc.errno(), { host: HOST, port })
  return result
}

/** Asks for the A records of a name from the address `source`. Returns the microseconds until the reply. */
export function ask(source, port, name) {
  const [AF_INET, SOCK_DGRAM, POLLIN] = [2, 2, 1]
  const fd = check(libc.socket(AF_INET, SOCK_DGRAM, 0), 'socket')
  try {
    check(libc.bind(fd, address, writeSockaddr(bytes, 0, source, 0)), 'bind')
    check(libc.connect(fd, address, writeSockaddr(bytes, 0, HOST, port)), 'connect', port)
    const octets = writeQuery(name)
    polled[0] = fd
    polled[1] = POLLIN
    const start = performance.now()
    check(libc.write(fd, address, octets), 'write')
    const count = libc.poll(libc.addressOf(polled), 1, REPLY_LIMIT_MS)
    if (count > 0) check(libc.read(fd, address, OCTETS_MAX), 'read')
    const us = (performance.now() - start) * 1000
    const isAnswer = count > 0 && (bytes[3] & 15) === 0 && bytes[7] > 0
    if (!isAnswer) throw new Error(`no answer for ${name} to ${source}: rcode ${bytes[3] & 15}`)
    return us
  } finally {
    libc.close(fd)
  }
}

function writeQuery(name) {
  bytes.set([1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0])
  let at = 12
  for (const label of name.split('.')) {
    bytes[at++] = label.length
    for (let i = 0; i < label.length; i++) bytes[at++] = label.charCodeAt(i)
  }
  bytes.set([0, 0, 1, 0, 1], at)
  return at + 5
}
