import t from 'tap'
import {
  ALLOWED_MS,
  composePodAndPolicy,
  DROPPED_MS,
  EgressNode,
  UPSTREAM,
} from '../support/egress-node.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { startServer } from '../support/server.ts'

t.setTimeout(300_000)

const NODE_LOCAL = '169.254.20.10'
const OBJECTS = composePodAndPolicy(['10.1.0.2'])
const ZONE = `$TTL 300
@ SOA ns hostmaster 1 3600 600 86400 60
@ NS ns
ns A ${UPSTREAM}
www A 198.18.0.1
v2 A 198.18.0.2
`

t.test(
  'Pods that ask NodeLocal DNSCache on the node',
  { ...needsRoot(), ...needs('ip', 'nft', 'conntrack', 'dig', 'curl') },
  async (t) => {
    const node = await EgressNode.start(t, {
      objects: OBJECTS,
      podAddresses: { app: ['10.1.0.2'] },
      zones: { 'example.com.': ZONE },
      properties: 'decisions',
      chain: `ready 127.0.0.1:8181\n    forward . ${NODE_LOCAL}`,
      mustStart: false,
    })
    const { host } = node
    await host.run('ip', 'link', 'add', 'nodelocaldns', 'type', 'veth')
    await host.run('ip', 'addr', 'add', `${NODE_LOCAL}/32`, 'dev', 'nodelocaldns')
    await startServer(t, {
      corefile: `.:53 {\n bind ${NODE_LOCAL}\n forward . ${UPSTREAM}\n}\n`,
      wrapper: ['ip', 'netns', 'exec', node.network.nameOf('node')],
    })
    const app = node.pod('app')
    const ready = () => host.run('curl', '-sS', 'http://127.0.0.1:8181/ready')

    await t.test('without its rules, its queries are redirected as all others', async (t) => {
      const agent = await node.startAgent()
      const { addresses } = await app.resolve('www.example.com', 'A', NODE_LOCAL)
      t.strictSame(addresses, ['198.18.0.1'])
      await agent.prints(/decision: a\/app\S*, www\.example\.com\., allowed 198\.18\.0\.1/)
      t.equal(await app.connect({ address: '198.18.0.1', port: 443 }, ALLOWED_MS), 'open')
      t.equal(await ready(), 'OK')
      agent.process.kill('SIGTERM')
      t.equal(await agent.exited(), 0)
    })

    await t.test('with its rules, log and ready page say why all is denied', async (t) => {
      for (const statement of [
        'add table ip raw',
        'add chain ip raw PREROUTING { type filter hook prerouting priority raw; }',
        `add rule ip raw PREROUTING ip daddr ${NODE_LOCAL} udp dport 53 counter notrack`,
        `add rule ip raw PREROUTING ip daddr ${NODE_LOCAL} tcp dport 53 counter notrack`,
      ])
        await host.run('nft', statement)
      const agent = await node.startAgent()
      await agent.prints(
        /ERROR.*clients bypass this server: table ip raw, chain PREROUTING: .*169\.254\.20\.10/,
      )
      t.match(
        await ready(),
        /^OK\negress: table ip raw, chain PREROUTING: rules exempt DNS queries/,
      )
      const { addresses } = await app.resolve('v2.example.com', 'A', NODE_LOCAL)
      t.strictSame(addresses, ['198.18.0.2'], 'NodeLocal DNSCache answers')
      t.equal(await app.connect({ address: '198.18.0.2', port: 443 }, DROPPED_MS), 'dropped')
      t.notMatch(agent.output(), /decision: .*v2/)
      // Queries to other servers are redirected.
      t.equal((await app.visit('v2.example.com', 443)).result, 'open')
    })
  },
)
