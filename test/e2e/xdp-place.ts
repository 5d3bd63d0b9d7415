import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Test } from 'tap'
import { HostNetwork, type NetworkHost } from '../support/host-network.ts'
import { run } from '../support/peer.ts'
import { type RunningServer, root, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { IPV4_PACKET, IPV6_PACKET, type PacketFields } from '../transport/udp/xdp/packets.ts'
import { FrameClient } from './xdp-frames.ts'

export const SERVER = '192.0.2.1'
export const SERVER6 = '2001:db8::1'
export const CLIENT = '192.0.2.2'

const LONG = Array.from({ length: 60 }, (_, i) => `long TXT "${'x'.repeat(50)}${i}"`).join('\n')
/** 1 400 octets of answer. */
const MID = Array.from({ length: 25 }, (_, i) => `mid TXT "${'x'.repeat(40)}${i}"`).join('\n')
const ZONE = `$ORIGIN example.org.
$TTL 300
@ SOA ns hostmaster 1 3600 600 86400 60
@ NS ns
ns A ${SERVER}
www A 198.51.100.1
${LONG}
${MID}
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

  /** `as`: a command that starts the server with other rights. */
  start(
    text = corefile(),
    options: { args?: string[]; beside?: RunningServer; as?: readonly string[] } = {},
  ) {
    const { args = ['-pidfile', 'pid'], beside, as = [] } = options
    const hook = pathToFileURL(join(root, 'test/e2e/end-thread.mjs'))
    return startServer(this.#t, {
      corefile: text,
      files: { zone: ZONE },
      args,
      env: { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${hook}` },
      beside: beside ?? { port: 53, directory: temporaryDirectory(this.#t) },
      wrapper: ['ip', 'netns', 'exec', this.#network.nameOf('server'), ...as],
    })
  }

  /** What dig prints. One try, so that a lost query shows. */
  async dig(...words: readonly string[]): Promise<string> {
    return this.client.run('dig', '+tries=1', '+time=5', ...words)
  }

  /** The kernel's counters of a host, by protocol and name. */
  async counters(host = this.server): Promise<Record<string, Record<string, number>>> {
    const text = await host.run('cat', '/proc/net/snmp', '/proc/net/snmp6')
    const result: Record<string, Record<string, number>> = {}
    for (const [, protocol = '', names = '', values = ''] of text.matchAll(
      /^(\w+): (\D.*)\n\1: (.*)$/gm,
    )) {
      const all = values.split(' ').map(Number)
      result[protocol] = Object.fromEntries(names.split(' ').map((name, i) => [name, all[i]!]))
    }
    for (const [, protocol = '', name = '', value] of text.matchAll(/^(\w+6)(\w+)\s+(\d+)$/gm)) {
      result[protocol] = { ...result[protocol], [name]: Number(value) }
    }
    return result
  }

  /** UDP datagrams that sockets of the server's host have received. */
  async socketDatagrams(): Promise<number> {
    const { Udp, Udp6 } = await this.counters()
    return Udp!.InDatagrams! + Udp6!.InDatagrams!
  }

  /** What the server exports at 127.0.0.1:9153. */
  async metrics(): Promise<string> {
    const script = `fetch('http://127.0.0.1:9153/metrics').then((r) => r.text()).then(console.log)`
    return this.server.run(process.execPath, '-e', script)
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

  /** A program of the client that sends frames. The end of the test ends it. */
  openFrames(): FrameClient {
    const own = this.#network.nameOf('client')
    const script = join(root, 'test/e2e/frame-client.mjs')
    const client = new FrameClient(['ip', 'netns', 'exec', own, process.execPath, script])
    this.#t.teardown(() => client.end())
    return client
  }

  /** As `ethtool -L eth0 rx` on the server; returns the error, or ''. */
  setQueues(queues: number): Promise<string> {
    return this.#ethtool('server', 'eth0', 'rx', String(queues))
  }

  /** Sets the MTU of the switch. */
  async setSwitchMtu(octets: number): Promise<void> {
    const hub = this.#network.nameOf('switch')
    for (const port of ['server', 'client']) {
      await run('ip', ['-n', hub, 'link', 'set', port, 'mtu', String(octets)])
    }
  }

  /** VLAN tags arrive within the frame, not beside it as from a card that removes them. */
  async keepVlanTags(): Promise<void> {
    await this.#ethtool('switch', 'server', 'txvlan', 'off')
  }

  async #ethtool(host: string, ...words: readonly string[]): Promise<string> {
    const script = join(root, 'test/e2e/ethtool.mjs')
    const own = ['netns', 'exec', this.#network.nameOf(host), process.execPath]
    return (await run('ip', [...own, script, ...words])).stdout.trim()
  }

  /** The MAC address of a host, as octets. */
  async macOf(host: NetworkHost): Promise<number[]> {
    const text = await host.run('cat', '/sys/class/net/eth0/address')
    return text
      .trim()
      .split(':')
      .map((octet) => Number.parseInt(octet, 16))
  }

  /** Packets from the client to the server; their messages are not queries. */
  async packets(): Promise<{ readonly ipv4: PacketFields; readonly ipv6: PacketFields }> {
    const macs = { toMac: await this.macOf(this.server), fromMac: await this.macOf(this.client) }
    const last = [2, 1].map((host) => [0x20, 1, 0xd, 0xb8, ...new Array(11).fill(0), host])
    return {
      ipv4: { ...IPV4_PACKET, ...macs, source: [192, 0, 2, 2], destination: [192, 0, 2, 1] },
      ipv6: { ...IPV6_PACKET, ...macs, source: last[0]!, destination: last[1]! },
    }
  }

  /** Moves the interface of the server to another network namespace and back. */
  async moveInterface(): Promise<void> {
    // The switch has interfaces of its own, so this one would get another index there.
    const [own, away] = [this.#network.nameOf('server'), this.#network.nameOf('away')]
    await run('ip', ['netns', 'add', away])
    await run('ip', ['-n', own, 'link', 'set', 'eth0', 'netns', away])
    await run('ip', ['-n', away, 'link', 'set', 'eth0', 'netns', own])
    await this.server.run('ip', 'address', 'add', `${SERVER}/24`, 'dev', 'eth0')
    await this.server.run('ip', 'link', 'set', 'eth0', 'up')
  }

  /** Removes the interface of the server. */
  async removeInterface(): Promise<void> {
    await this.server.run('ip', 'link', 'del', 'eth0')
  }

  /** Connects the server again, by a new interface with the same name. */
  async addInterface(queues = 1, sendQueues = queues): Promise<void> {
    const hub = this.#network.nameOf('switch')
    const { server } = this
    const numbers = (rx: number, tx: number): string[] => {
      return ['numrxqueues', String(rx), 'numtxqueues', String(tx)]
    }
    const peer = ['peer', 'name', 'server', ...numbers(queues, queues), 'netns', hub]
    const own = ['eth0', ...numbers(queues, sendQueues)]
    await server.run('ip', 'link', 'add', ...own, 'type', 'veth', ...peer)
    await server.run('ip', '-n', hub, 'link', 'set', 'server', 'master', 'br0', 'up')
    await server.run('ip', 'address', 'add', `${SERVER}/24`, 'dev', 'eth0')
    await server.run('ip', 'link', 'set', 'eth0', 'up')
    // Otherwise the client sends to the MAC address of the old interface for half a minute.
    await this.client.run('ip', 'neigh', 'flush', 'dev', 'eth0')
  }
}
