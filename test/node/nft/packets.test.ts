import { spawn } from 'node:child_process'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { scanAddress } from '../../../src/dns/text/address.ts'
import { CompiledRules } from '../../../src/egress/rules/compiled-rules.ts'
import type { AddressName, Connection } from '../../../src/egress/rules/connection.ts'
import type { EgressRule, TierList } from '../../../src/egress/rules/rule.ts'
import { verdictOf } from '../../../src/egress/rules/verdict.ts'
import { startNftPlane } from '../../../src/node/nft/start-plane.ts'
import { EgressPod } from '../../support/egress-node.ts'
import { matched, nameOf, rule } from '../../support/egress-rules.ts'
import { HostNetwork } from '../../support/host-network.ts'
import { needs, needsRoot } from '../../support/peer.ts'
import { root } from '../../support/server.ts'
import { FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

// Own process: it makes namespaces of the kernel.
const ALLOWED_MS = 60_000
const DROPPED_MS = 400
const POD = ['10.1.0.1', 'fd01::1']
const WORLD = ['198.18.0.1', '198.18.0.2', '198.19.0.1', '2001:db8:1::1', '2001:db8:1::2']
/** Names of the addresses. Some are those of zombies. */
const NAMES: Readonly<Record<string, readonly (readonly [string, boolean])[]>> = {
  '198.18.0.1': [['www.a.', false]],
  '198.18.0.2': [
    ['www.b.', false],
    ['old.a.', true],
  ],
  '2001:db8:1::1': [['www.a.', false]],
  '2001:db8:1::2': [['old.a.', true]],
}
const TCP_PORTS = [80, 443]
const UDP_PORTS = [80, 5000]
const RULE_LISTS = 15

const network = fc.constantFrom(
  ...['0.0.0.0/0', '198.18.0.0/15', '198.18.0.0/24', '198.18.0.1/32', '198.18.0.0/30', '::/0'],
  ...['0.0.0.0/0 except 198.18.0.0/31', '2001:db8:1::/64 except 2001:db8:1::2/128'],
)
const ports = fc.constantFrom('tcp 80', 'tcp 80-443', 'tcp 0-65535', 'udp 5000', 'udp 1-4999')
const someRule = fc
  .record({
    action: fc.constantFrom<EgressRule['action']>('accept', 'accept', 'deny', 'pass'),
    networks: fc.array(network, { maxLength: 2 }),
    names: fc.array(fc.constantFrom('www.a', '*.a', 'www.b'), { maxLength: 2 }),
    ports: fc.array(ports, { maxLength: 2 }),
    lasts: fc.constantFrom<EgressRule['lasts']>('ttl', 'connections'),
  })
  .map(({ action, networks, names, ports, lasts }) =>
    rule(action, {
      networks,
      names: action === 'accept' ? names : [],
      ...(ports.length === 0 ? {} : { ports }),
      lasts,
    }),
  )
const tier = fc.record({
  rules: fc.array(someRule, { maxLength: 4 }),
  otherwise: fc.constantFrom<'deny' | 'pass'>('deny', 'deny', 'pass'),
})
const someLists = fc.array(fc.array(tier, { minLength: 1, maxLength: 3 }), { maxLength: 2 })

/** A Pod, a node that routes, and the Internet; the plane of the node. */
async function stage(t: Test) {
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
  const plane = startNftPlane({
    table: 'egress',
    elementsMax: 1000,
    clusterNetworks: [],
    dnsPort: 5300,
    dnsAddresses: [],
    command: ['ip', 'netns', 'exec', net.nameOf('node'), 'nft'],
    clock: systemClock,
    timers: new FakeTimers(),
    onFault: (fault) => t.equal(fault, ''),
    onRepair: () => {},
  })
  t.teardown(() => plane.close())
  return { plane, pod: new EgressPod(child) }
}

function namesOf(address: string): readonly AddressName[] {
  const endMs = systemClock.monotonic() + 600_000
  return (NAMES[address] ?? []).map(([text, isZombie]) => ({ name: nameOf(text), endMs, isZombie }))
}

const isPossible = { ...needsRoot(), ...needs('nft') }

t.test('packets pass as the rules say', isPossible, async (t) => {
  const { plane, pod } = await stage(t)
  const targets = WORLD.flatMap((address) => [
    ...TCP_PORTS.map((port) => ({ address, protocol: 'tcp' as const, port })),
    ...UDP_PORTS.map((port) => ({ address, protocol: 'udp' as const, port })),
  ])
  let opened = 0
  const passes = async (lists: readonly TierList[]) => {
    const rules = { lists, dns: undefined }
    const waits: (Promise<string> | undefined)[] = [
      plane.setClients([{ id: 'a/b/c', addresses: POD, rules }]),
    ]
    const compiled = new CompiledRules(lists)
    for (const address of WORLD) {
      const client = POD[address.includes(':') ? 1 : 0]!
      const now = systemClock.monotonic()
      const allowances = compiled.allowancesOf(
        scanAddress(address)!,
        matched(compiled, namesOf(address)),
        now,
      )
      waits.push(plane.allow({ client, address }, allowances))
    }
    for (const wait of waits) t.equal((await wait) ?? '', '')
    const results = targets.map(async (target) => {
      const connection: Connection = { ...target, address: scanAddress(target.address)! }
      const isAllowed = verdictOf(lists, connection, namesOf(target.address)) === 'accept'
      const result = await pod.connect(target, isAllowed ? ALLOWED_MS : DROPPED_MS)
      if (result === 'open') opened++
      return (result === 'open') === isAllowed ? '' : `${JSON.stringify(target)}: ${result}`
    })
    t.strictSame(
      (await Promise.all(results)).filter((text) => text !== ''),
      [],
      'as the reference decides',
    )
  }
  for (const lists of fc.sample(someLists, { seed: 5, numRuns: RULE_LISTS })) await passes(lists)
  t.ok(opened > 0 && opened < RULE_LISTS * targets.length, `${opened} connections`)
  await passes([])
  const [target] = targets
  t.equal(await pod.connect({ ...target!, port: 853 }, DROPPED_MS), 'dropped', 'DNS over TLS')
  await plane.setClients([])
  t.equal(await pod.connect({ ...target!, port: 853 }, ALLOWED_MS), 'open', 'no client')
})

t.test('an open connection outlives what allowed it', isPossible, async (t) => {
  const { plane, pod } = await stage(t)
  const closed = { lists: [[{ rules: [], otherwise: 'deny' as const }]], dns: undefined }
  await plane.setClients([{ id: 'a/b/c', addresses: POD, rules: closed }])
  const pair = { client: POD[0]!, address: WORLD[0]! }
  const target = { address: WORLD[0]!, port: 443 }
  t.equal(await pod.connect(target, DROPPED_MS), 'dropped')
  const endMs = systemClock.monotonic() + 600_000
  await plane.allow(pair, [{ ports: { protocol: 'tcp', first: 443, last: 443 }, endMs }])
  t.equal(await pod.open('one', target), 'open')
  await plane.allow(pair, [])
  t.equal(await pod.connect(target, DROPPED_MS), 'dropped')
  t.equal(await pod.echo('one'), 'open')
})
