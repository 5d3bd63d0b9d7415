import { closeSync, openSync, readFileSync } from 'node:fs'
import type { Test } from 'tap'
import { cBinder, requireKoffi } from '../../src/base/koffi.ts'
import { AF_INET, AF_INET6 } from '../../src/transport/sockaddr.ts'
import { loadLibc } from '../../src/transport/udp/batch/libc.ts'
import type { UdpListener } from '../../src/transport/udp/udp.ts'
import type { XdpSettings } from '../../src/transport/udp/xdp/settings.ts'
import { HostNetwork } from '../support/host-network.ts'
import { udpClient } from './client.ts'
import { Echo } from './echo.ts'
import { EchoThreads } from './echo-threads.ts'
import type { Transport } from './transports.ts'

// Constants of <sched.h> and <sys/socket.h>.
const CLONE_NEWNET = 0x4000_0000
const SOCK_DGRAM = 2
const SOCK_NONBLOCK = 0x800
const SOCK_CLOEXEC = 0x80000

export interface XdpTransport extends Transport<UdpListener> {
  /** What the threads found wrong, and warnings about the interface. */
  readonly faults: readonly string[]
  /** UDP datagrams that sockets of the server have received. */
  socketDatagrams(): number
}

/**
 * The batch transport with an interface whose packets bypass its sockets. Until the test ends, this thread is in
 * the network namespace of the server; clients have sockets of another one.
 */
export async function xdpTransport(t: Test, mode: XdpSettings['mode']): Promise<XdpTransport> {
  const ipv4 = { server: '192.0.2.1', client: '192.0.2.2' }
  const ipv6 = { server: '2001:db8::1', client: '2001:db8::2' }
  const network = await HostNetwork.create(t)
  await network.addHost('server', [`${ipv4.server}/24`, `${ipv6.server}/64`])
  await network.addHost('client', [`${ipv4.client}/24`, `${ipv6.client}/64`])

  const home = '/proc/thread-self/ns/net'
  const before = openSync(home, 'r')
  enter(network.nameOf('server'))
  t.teardown(() => {
    setNamespace(before)
    closeSync(before)
  })
  const own = openSync(home, 'r')
  t.teardown(() => closeSync(own))
  const threads = new EchoThreads({ interfaceName: 'eth0', queues: 0, mode })
  t.teardown(() => threads.stop())
  // Without any listener, the periodic check would detach the interface, and a new attachment may find it busy.
  const kept = await threads.listen({ host: ipv4.server, port: 0, handler: new Echo() })
  t.teardown(() => kept.close())

  const libc = loadLibc()
  const openInClient = (host: string): number => {
    enter(network.nameOf('client'))
    try {
      const family = host.includes(':') ? AF_INET6 : AF_INET
      return libc.socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
    } finally {
      setNamespace(own)
    }
  }
  return {
    name: `xdp ${mode}`,
    protocol: 0,
    ipv4,
    ipv6,
    faults: threads.faults,
    listen: (options) => threads.listen(options),
    use: (listener, echo) => threads.use(listener, echo),
    connect: (port, host = ipv4.server) => udpClient(port, host, openInClient(host)),
    socketDatagrams: () => {
      const of = (file: string, pattern: RegExp): number =>
        Number(pattern.exec(readFileSync(`/proc/thread-self/net/${file}`, 'latin1'))![1])
      return of('snmp', /^Udp: (\d+)/m) + of('snmp6', /^Udp6InDatagrams\s+(\d+)/m)
    },
  }
}

type SetNs = (fd: number, kind: number) => number
let loaded: SetNs | undefined

function setNamespace(fd: number): void {
  loaded ??= cBinder(requireKoffi())('int setns(int fd, int kind)') as SetNs
  const setns = loaded
  if (setns(fd, CLONE_NEWNET) !== 0) throw new Error('setns failed')
}

function enter(name: string): void {
  const fd = openSync(`/run/netns/${name}`, 'r')
  try {
    setNamespace(fd)
  } finally {
    closeSync(fd)
  }
}
