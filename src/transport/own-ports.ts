import { fstatSync, readdirSync, readFileSync } from 'node:fs'
import { parsePeerAddress } from './peer-address.ts'

/** A bound socket in a table of /proc/net. The address has 16 octets; those of IPv4 are in the first 4. */
interface BoundSocket {
  readonly family: number
  readonly address: Uint8Array
  readonly port: number
  readonly inode: number
}

/** State of a listening TCP socket. */
const LISTEN = '0A'

/**
 * Returns whether only this process has sockets that compete with `host` and `port`, and none of
 * them has exactly that address. It can then open the address beside them (SO_REUSEPORT): the kernel
 * would also share it with another process of the same user, so it can't answer this. For TCP, only
 * listening sockets count. Returns false if the system has no /proc.
 */
export function isPortOwn(protocol: 'udp' | 'tcp', host: string, port: number): boolean {
  const address = new Uint8Array(16)
  const wanted = { family: parsePeerAddress(host, address), address, port }
  try {
    const own = ownInodes()
    return [protocol, `${protocol}6`].every((table) =>
      readTable(table).every((socket) => {
        if (!competes(socket, wanted)) return true
        return own.has(socket.inode) && !isSameAddress(socket, wanted)
      }),
    )
  } catch {
    return false
  }
}

type Place = Omit<BoundSocket, 'inode'>

/** An IPv6 wildcard receives IPv4 too, unless IPV6_V6ONLY is set; the table does not show that. */
function competes(socket: Place, wanted: Place): boolean {
  if (socket.port !== wanted.port) return false
  return (
    isWildcardFor(socket, wanted) || isWildcardFor(wanted, socket) || isSameAddress(socket, wanted)
  )
}

function isWildcardFor({ family, address }: Place, other: Place): boolean {
  return address.every((octet) => octet === 0) && (family === 2 || other.family === 1)
}

function isSameAddress(a: Place, b: Place): boolean {
  return a.family === b.family && Buffer.compare(a.address, b.address) === 0
}

function ownInodes(): ReadonlySet<number> {
  const inodes = new Set<number>()
  for (const fd of readdirSync('/proc/self/fd')) {
    try {
      const stat = fstatSync(Number(fd))
      if (stat.isSocket()) inodes.add(stat.ino)
    } catch {
      // It is the directory that was read, and is closed.
    }
  }
  return inodes
}

/** Reads /proc/net/udp, udp6, tcp or tcp6. */
function readTable(name: string): BoundSocket[] {
  let text: string
  try {
    text = readFileSync(`/proc/net/${name}`, 'latin1')
  } catch (error) {
    // A kernel without IPv6.
    if (name.endsWith('6') && (error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
  const rows = text.trimEnd().split('\n').slice(1)
  return rows.flatMap((row) => {
    // Local address, remote address, state, queues, timer, retransmissions, user, timeout, inode.
    const [, local = '', , state, , , , , , inode] = row.trim().split(/\s+/)
    if (name.startsWith('tcp') && state !== LISTEN) return []
    const [digits = '', port = ''] = local.split(':')
    const address = new Uint8Array(16)
    // Words in the byte order of the machine, which is little endian.
    const words = Buffer.from(digits, 'hex')
    for (let i = 0; i < words.length; i++) address[i] = words[i ^ 3]!
    const family = words.length === 4 ? 1 : 2
    return [{ family, address, port: Number.parseInt(port, 16), inode: Number(inode) }]
  })
}
