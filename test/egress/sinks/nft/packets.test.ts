import fc from 'fast-check'
import t from 'tap'
import { systemClock } from '../../../../src/base/clock.ts'
import { scanAddress, scanCidr } from '../../../../src/dns/text/address.ts'
import { CompiledRules } from '../../../../src/egress/rules/compiled-rules.ts'
import type { Connection } from '../../../../src/egress/rules/connection.ts'
import { type EgressRule, OPEN_RULES, type TierList } from '../../../../src/egress/rules/rule.ts'
import { needs, needsRoot } from '../../../support/peer.ts'
import { type AddressName, decisionOf } from '../../decide-connection.ts'
import { matched, nameOf, rule } from '../../egress-rules.ts'
import { POD, routedPod, TCP_PORTS, UDP_PORTS, WORLD } from './routed-pod.ts'

// Own process: it makes namespaces of the kernel.
const ALLOWED_MS = 60_000
const DROPPED_MS = 400
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

function namesOf(address: string): readonly AddressName[] {
  const endMs = systemClock.monotonic() + 600_000
  return (NAMES[address] ?? []).map(([text, isZombie]) => ({ name: nameOf(text), endMs, isZombie }))
}

const isPossible = { ...needsRoot(), ...needs('nft') }

t.test('packets pass as the rules say', isPossible, async (t) => {
  const { enforcer, pod } = await routedPod(t)
  const targets = WORLD.flatMap((address) => [
    ...TCP_PORTS.map((port) => ({ address, protocol: 'tcp' as const, port })),
    ...UDP_PORTS.map((port) => ({ address, protocol: 'udp' as const, port })),
  ])
  let opened = 0
  const passes = async (lists: readonly TierList[]) => {
    const rules = { lists, dns: undefined }
    const waits: (Promise<string> | undefined)[] = [
      enforcer.setClients([{ id: 'a/b/c', addresses: POD, rules }]),
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
      waits.push(enforcer.allow({ client, address }, allowances))
    }
    for (const wait of waits) t.equal((await wait) ?? '', '')
    const results = targets.map(async (target) => {
      const connection: Connection = { ...target, address: scanAddress(target.address)! }
      const isAllowed = decisionOf(lists, connection, namesOf(target.address)) === 'accept'
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
  await passes([[{ rules: [], otherwise: 'pass' }]])
  const [target] = targets
  t.equal(await pod.connect({ ...target!, port: 853 }, DROPPED_MS), 'dropped', 'DNS over TLS')
  await enforcer.setClients([])
  t.equal(await pod.connect({ ...target!, port: 853 }, ALLOWED_MS), 'open', 'no client')
})

t.test('an open connection outlives what allowed it', isPossible, async (t) => {
  const { enforcer, pod } = await routedPod(t)
  const closed = { lists: [[{ rules: [], otherwise: 'deny' as const }]], dns: undefined }
  await enforcer.setClients([{ id: 'a/b/c', addresses: POD, rules: closed }])
  const pair = { client: POD[0]!, address: WORLD[0]! }
  const target = { address: WORLD[0]!, port: 443 }
  t.equal(await pod.connect(target, DROPPED_MS), 'dropped')
  const endMs = systemClock.monotonic() + 600_000
  await enforcer.allow(pair, [{ ports: { protocol: 'tcp', first: 443, last: 443 }, endMs }])
  t.equal(await pod.open('one', target), 'open')
  await enforcer.allow(pair, [])
  t.equal(await pod.connect(target, DROPPED_MS), 'dropped')
  t.equal(await pod.echo('one'), 'open')
})

t.test('a Pod that is not known yet reaches only the cluster', isPossible, async (t) => {
  const closedNetworks = ['10.1.0.0/24', '10.2.0.0/16', 'fd01::/64'].map((text) => scanCidr(text)!)
  const clusterNetworks = [scanCidr('198.19.0.0/16')!]
  const { enforcer, pod, node } = await routedPod(t, { closedNetworks, clusterNetworks })
  const reach = async (isOpen: boolean) => {
    const waitMs = isOpen ? ALLOWED_MS : DROPPED_MS
    const results = [WORLD[0]!, WORLD[3]!].map((address) =>
      pod.connect({ address, port: 443 }, waitMs),
    )
    return (await Promise.all(results)).join(' ')
  }
  await enforcer.setClients([])
  t.equal(await reach(false), 'dropped dropped')
  t.equal(await pod.connect({ address: WORLD[2]!, port: 443 }, ALLOWED_MS), 'open', 'the cluster')
  await enforcer.setClients([{ id: 'a/b/c', addresses: POD, rules: OPEN_RULES }])
  t.equal(await reach(true), 'open open', 'no policy selects it')
  t.equal(await pod.connect({ address: WORLD[0]!, port: 853 }, ALLOWED_MS), 'open')
  const clients = await node.run('nft', 'list', 'set', 'inet', 'egress', 'clients4')
  t.notMatch(clients, '10.1.0.1', 'and its queries are not redirected')
  await enforcer.glance()
  await enforcer.check()
  t.equal(enforcer.counts.repaired, 0)
  t.equal(await pod.open('one', { address: WORLD[0]!, port: 443 }), 'open')
  await enforcer.setClients([])
  t.equal(await reach(false), 'dropped dropped', 'its address may be of another Pod soon')
  t.equal(await pod.echo('one'), 'open')
  await enforcer.close()
  t.equal(await reach(false), 'dropped dropped', 'also without the agent')
})
