import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type ListenOptions } from 'node:net'

const FIRST = 10_000
/** Behind the last; less where the system gives out lower ones by itself. From there on `sextant demo` takes its own. */
const END = 20_000
const ATTEMPTS = 200

/**
 * A port of 127.0.0.1 that is free for UDP and for TCP; another each time, in whatever test process. None that the system
 * gives to sockets that ask for no certain one: it would be gone before it is used.
 */
export async function freePort(): Promise<number> {
  const end = endOfRange()
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const port = FIRST + Math.floor(Math.random() * (end - FIRST))
    if ((await claim(port)) && (await isFree(port))) return port
  }
  throw new Error(`no free port in ${ATTEMPTS} attempts`)
}

/** Where the system's own begin (ip(7)), unless that leaves too few. */
function endOfRange(): number {
  const own = Number.parseInt(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'latin1'), 10)
  return own - FIRST > 1000 ? Math.min(own, END) : END
}

/**
 * False = a test process has claimed it, be it this one. A claim is a name in the abstract namespace of Unix sockets (unix(7)):
 * like ports these are those of the network namespace, and the kernel takes them back however a process ends.
 */
async function claim(port: number): Promise<boolean> {
  return (await listen({ path: `\0sextant-test-port-${port}` })) !== undefined
}

async function isFree(port: number): Promise<boolean> {
  const tcp = await listen({ port, host: '127.0.0.1' })
  if (tcp === undefined) return false
  const udp = createSocket('udp4')
  const isUdpFree = await new Promise<boolean>((done) => {
    udp.once('error', () => done(false))
    udp.bind(port, '127.0.0.1', () => done(true))
  })
  const closed = Promise.all([once(udp, 'close'), once(tcp, 'close')])
  udp.close()
  tcp.close()
  await closed
  return isUdpFree
}

/** Undefined = the address is in use. Does not keep the process from ending. */
async function listen(options: ListenOptions) {
  const server = createServer().listen(options).unref()
  try {
    await once(server, 'listening')
    return server
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined
    throw error
  }
}
