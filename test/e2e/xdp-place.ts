import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Test } from 'tap'
import { HostNetwork, type NetworkHost } from '../support/host-network.ts'
import { type RunningServer, root, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

export const SERVER = '192.0.2.1'
export const SERVER6 = '2001:db8::1'
export const CLIENT = '192.0.2.2'

const LONG = Array.from({ length: 60 }, (_, i) => `long TXT "${'x'.repeat(50)}${i}"`).join('\n')
const ZONE = `$ORIGIN example.org.
$TTL 300
@ SOA ns hostmaster 1 3600 600 86400 60
@ NS ns
ns A ${SERVER}
www A 198.51.100.1
${LONG}
`

/** `xdp`: the properties, or '' for none. */
export const corefile = (xdp = 'xdp eth0', extra = ''): string => `.:53 {
    ${xdp}
    errors
    bufsize 4096
    whoami
}
example.org:53 {
    ${xdp}
    errors
    bufsize 4096
    file zone
}
waits.example:53 {
    errors
    forward . ${CLIENT}:9
}
${extra}
`

/** A server and a client on one switch: network namespaces with veth interfaces. */
export class XdpPlace {
  readonly #t: Test
  readonly #network: HostNetwork
  readonly server: NetworkHost
  readonly client: NetworkHost

  private constructor(t: Test, network: HostNetwork, server: NetworkHost, client: NetworkHost) {
    this.#t = t
    this.#network = network
    this.server = server
    this.client = client
  }

  static async create(t: Test): Promise<XdpPlace> {
    const network = await HostNetwork.create(t)
    const server = await network.addHost('server', [`${SERVER}/24`, `${SERVER6}/64`])
    const client = await network.addHost('client', [`${CLIENT}/24`, '2001:db8::2/64'])
    return new XdpPlace(t, network, server, client)
  }

  start(text = corefile(), options: { args?: string[]; beside?: RunningServer } = {}) {
    const { args = ['-pidfile', 'pid'], beside } = options
    const hook = pathToFileURL(join(root, 'test/support/end-thread.mjs'))
    return startServer(this.#t, {
      corefile: text,
      files: { zone: ZONE },
      args,
      env: { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${hook}` },
      beside: beside ?? { port: 53, directory: temporaryDirectory(this.#t) },
      wrapper: ['ip', 'netns', 'exec', this.#network.nameOf('server')],
    })
  }

  /** What dig prints. One try, so that a lost query shows. */
  async dig(...words: readonly string[]): Promise<string> {
    return this.client.run('dig', '+tries=1', '+time=5', ...words)
  }

  /** UDP datagrams that sockets of the server's host have received, by the kernel's counters. */
  async socketDatagrams(): Promise<number> {
    const snmp = await this.server.run('cat', '/proc/net/snmp', '/proc/net/snmp6')
    const ipv4 = /^Udp: (\d+)/m.exec(snmp)![1]
    const ipv6 = /^Udp6InDatagrams\s+(\d+)/m.exec(snmp)![1]
    return Number(ipv4) + Number(ipv6)
  }

  /** Whether a query of the client is answered past the sockets; undefined = it is not answered. */
  async isPast(host = SERVER, ...words: readonly string[]): Promise<boolean | undefined> {
    const before = await this.socketDatagrams()
    const text = await this.dig(`@${host}`, 'www.example.org', '+short', ...words)
    if (text.trim() !== '198.51.100.1') return undefined
    return (await this.socketDatagrams()) === before
  }

  async untilPast(isPast: boolean, host = SERVER, ...words: readonly string[]): Promise<void> {
    const what = isPast ? 'a query past the sockets' : 'a query through the sockets'
    await until(async () => (await this.isPast(host, ...words)) === isPast, what)
  }

  /** Sends frames, in hexadecimal digits, from the client. */
  sendFrames(frames: readonly string[]): string {
    const own = this.#network.nameOf('client')
    const script = join(root, 'test/support/send-frames.mjs')
    return execFileSync('ip', ['netns', 'exec', own, process.execPath, script], {
      input: frames.join('\n'),
      encoding: 'utf8',
    })
  }

  /** The MAC address of a host, as octets. */
  async macOf(host: NetworkHost): Promise<number[]> {
    const text = await host.run('cat', '/sys/class/net/eth0/address')
    return text
      .trim()
      .split(':')
      .map((octet) => Number.parseInt(octet, 16))
  }

  /** Removes the interface of the server. */
  async removeInterface(): Promise<void> {
    await this.server.run('ip', 'link', 'del', 'eth0')
  }

  /** Connects the server again, by a new interface with the same name. */
  async addInterface(queues = 1): Promise<void> {
    const hub = this.#network.nameOf('switch')
    const { server } = this
    const peer = ['peer', 'name', 'server', 'netns', hub]
    const numbers = ['numrxqueues', String(queues), 'numtxqueues', String(queues)]
    await server.run('ip', 'link', 'add', 'eth0', ...numbers, 'type', 'veth', ...peer)
    await server.run('ip', '-n', hub, 'link', 'set', 'server', 'master', 'br0', 'up')
    await server.run('ip', 'address', 'add', `${SERVER}/24`, 'dev', 'eth0')
    await server.run('ip', 'link', 'set', 'eth0', 'up')
    // Otherwise the client sends to the MAC address of the old interface for half a minute.
    await this.client.run('ip', 'neigh', 'flush', 'dev', 'eth0')
  }
}
