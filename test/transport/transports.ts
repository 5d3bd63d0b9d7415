import t from 'tap'
import type { Listener } from '../../src/transport/exchange.ts'
import { listenTcp } from '../../src/transport/tcp.ts'
import { listenDgram } from '../../src/transport/udp/dgram.ts'
import type { UdpListener } from '../../src/transport/udp/udp.ts'
import { type Client, TcpClient, udpClient } from './client.ts'
import type { Echo } from './echo.ts'
import { type EchoListenOptions, EchoThreads } from './echo-threads.ts'

/** Addresses of one family: of the host that listens, and of its clients. */
export interface Ends {
  readonly server: string
  readonly client: string
}

/** One way for queries to come and for replies to go. */
export interface Transport<L extends Listener = Listener> {
  readonly name: string
  readonly protocol: number
  readonly ipv4: Ends
  readonly ipv6: Ends
  listen(options: EchoListenOptions): Promise<L>
  /** Lets another echo answer later queries. */
  use(listener: L, echo: Echo): Promise<void>
  connect(port: number, host?: string): Promise<Client>
}

const LOOPBACK = {
  ipv4: { server: '127.0.0.1', client: '127.0.0.1' },
  ipv6: { server: '::1', client: '::1' },
}

const use = async (listener: Listener, echo: Echo): Promise<void> => listener.setHandler(echo)

const threads = new EchoThreads()
t.teardown(() => threads.stop())

/** Call it last: what the threads of `batch` found wrong. */
export const faults = (): readonly string[] => threads.faults

export const UDP_TRANSPORTS: readonly Transport<UdpListener>[] = [
  { name: 'dgram', protocol: 0, ...LOOPBACK, listen: listenDgram, use, connect: udpClient },
  {
    name: 'batch',
    protocol: 0,
    ...LOOPBACK,
    listen: (options) => threads.listen(options),
    use: (listener, echo) => threads.use(listener, echo),
    connect: udpClient,
  },
]

export const TRANSPORTS: readonly Transport[] = [
  ...UDP_TRANSPORTS,
  {
    name: 'tcp',
    protocol: 1,
    ...LOOPBACK,
    listen: ({ host, port, handler, drainMs = 5000 }) =>
      listenTcp({
        host,
        port,
        handler,
        limits: { drainMs, messageOctetsMin: 1, messageOctetsMax: 65_535 },
      }),
    use,
    connect: (port, host) => TcpClient.connect(port, host),
  },
]
