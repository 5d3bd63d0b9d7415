import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Test } from 'tap'
import { systemClock } from '../../../../src/base/clock.ts'
import type { Cidr } from '../../../../src/dns/text/address.ts'
import { startNftEnforcer } from '../../../../src/egress/sinks/nft/start-enforcer.ts'
import { EgressPod } from '../../../support/egress-node.ts'
import { HostNetwork } from '../../../support/host-network.ts'
import { root } from '../../../support/server.ts'
import { FakeTimers } from '../../../support/setup.ts'
import { until } from '../../../support/until.ts'

/** Addresses of the Pod. */
export const POD = ['10.1.0.1', 'fd01::1']
/** Addresses of the Internet. */
export const WORLD = ['198.18.0.1', '198.18.0.2', '198.19.0.1', '2001:db8:1::1', '2001:db8:1::2']
/** Where the Internet echoes. */
export const TCP_PORTS = [80, 443]
export const UDP_PORTS = [80, 5000]

/** A Pod, a node that routes, and the Internet; the enforcer of the node, with real time. */
export async function routedPod(
  t: Test,
  {
    cutsConnections = false,
    clusterNetworks = [] as readonly Cidr[],
    closedNetworks = [] as readonly Cidr[],
  } = {},
) {
  const net = await HostNetwork.create(t)
  const pod = await net.addHost('pod', ['10.1.0.1/24', 'fd01::1/64'])
  const own = ['10.1.0.254/24', 'fd01::fe/64', '192.0.2.1/24', '2001:db8::1/64']
  const node = await net.addHost('node', own)
  const world = await net.addHost('world', ['192.0.2.10/24', '2001:db8::10/64'])
  const commands: [typeof pod, string][] = [
    [node, 'sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1'],
    [node, 'sysctl -qw net.ipv4.conf.all.send_redirects=0 net.ipv4.conf.eth0.send_redirects=0'],
    [node, 'ip route add 198.18.0.0/15 via 192.0.2.10'],
    [node, 'ip route add 2001:db8:1::/64 via 2001:db8::10'],
    [pod, 'ip route add default via 10.1.0.254'],
    [pod, 'ip -6 route add default via fd01::fe'],
    [world, 'ip route add 10.1.0.0/24 via 192.0.2.1'],
    [world, 'ip route add fd01::/64 via 2001:db8::1'],
    [world, 'ip route add local 198.18.0.0/15 dev lo'],
    [world, 'ip route add local 2001:db8:1::/64 dev lo'],
    [world, 'sysctl -qw net.ipv6.ip_nonlocal_bind=1'],
  ]
  for (const [host, command] of commands) t.equal(await host.run(...command.split(' ')), '')
  const program = (name: string) => join(root, 'test/support', name)
  const lists = [[...TCP_PORTS, 853], WORLD, [...UDP_PORTS, 853]].map((list) => list.join())
  const echo = world.start([process.execPath, program('egress-echo.mjs'), ...lists])
  await until(() => echo.output().includes('ready'), 'the echo server')
  const words = ['netns', 'exec', net.nameOf('pod'), process.execPath, program('egress-pod.mjs')]
  const child = spawn('ip', words, { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.kill('SIGKILL'))
  const inNode = ['ip', 'netns', 'exec', net.nameOf('node')]
  const enforcer = startNftEnforcer({
    table: 'egress',
    elementsMax: 1000,
    clusterNetworks,
    closedNetworks,
    dnsPort: 5300,
    dnsAddresses: [],
    cutsConnections,
    isDenied: () => false,
    command: [...inNode, 'nft'],
    clock: systemClock,
    timers: new FakeTimers(),
    onFault: (fault) => t.equal(fault, ''),
    onRepair: () => {},
  })
  t.teardown(() => enforcer.close())
  return { enforcer, pod: new EgressPod(child), node, world, inNode }
}
