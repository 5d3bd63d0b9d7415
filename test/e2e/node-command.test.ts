import { join } from 'node:path'
import t from 'tap'
import { HostNetwork } from '../support/host-network.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { root, runSextant } from '../support/server.ts'
import { until } from '../support/until.ts'

t.setTimeout(300_000)

const MAIN = join(root, 'dist/main.js')
const ZONE = '192.0.2.10 www.example.com\n'

t.test('an invalid flag is an error with its line in the output of --print-conf', async (t) => {
  const flags = ['node', '--cluster=10.0.0.0/8', '--dialect=cilium-1.15', '--listen=:10599']
  const printed = (await runSextant(root, [...flags, '--print-conf'])).stdout.split('\n')
  const line = printed.findIndex((one) => one.includes('dialect')) + 1
  const { code, stderr } = await runSextant(root, flags)
  t.equal(code, 1)
  t.match(stderr, `sextant node --print-conf:${line} - Error during parsing: must be cilium-1.16`)
})

t.test(
  'sextant node answers the networks of --cluster and the node only',
  {
    ...needsRoot(),
    ...needs('ip', 'dig'),
  },
  async (t) => {
    const cwd = t.testdir({
      names: ZONE,
      Corefile: '.:53 {\n    hosts names\n}\n',
      'objects.yaml': 'apiVersion: v1\nkind: Namespace\nmetadata: { name: a }\n',
    })
    const network = await HostNetwork.create(t)
    const node = await network.addHost('node', ['10.1.0.1/24', '192.0.2.1/24', 'fd01::1/64'])
    const pod = await network.addHost('pod', ['10.1.0.2/24', 'fd01::2/64'])
    const world = await network.addHost(
      'world',
      ['192.0.2.10/24', '2001:db8::10/64'],
      ['fd01::/64'],
    )
    await node.run('ip', 'route', 'add', '2001:db8::/64', 'dev', 'eth0')
    const upstream = world.start([process.execPath, MAIN, 'serve', '-conf', 'Corefile'], { cwd })
    const flags = [
      '--policies=objects.yaml',
      '--cluster=10.1.0.0/24,fd01::/64',
      '--upstream=192.0.2.10',
      '--listen=:53',
      '--dry-run',
      '--state=',
      '--api=off',
      '--metrics=',
    ]
    const agent = node.start([process.execPath, MAIN, 'node', ...flags], { cwd })
    for (const { output } of [upstream, agent]) {
      await until(() => output().includes('Sextant-'), 'the start', 120_000).catch(() => {
        throw new Error(output())
      })
    }
    const ask = async (from: typeof node, server: string) => {
      const printed = await from.run('dig', `@${server}`, 'www.example.com', '+time=5', '+tries=6')
      return /status: (\w+)/.exec(printed)?.[1] ?? printed
    }
    t.equal(await ask(pod, '10.1.0.1'), 'NOERROR')
    t.equal(await ask(pod, 'fd01::1'), 'NOERROR')
    t.equal(await ask(node, '127.0.0.1'), 'NOERROR')
    t.equal(await ask(world, '192.0.2.1'), 'REFUSED')
    t.equal(await ask(world, 'fd01::1'), 'REFUSED')
    t.notMatch(agent.output(), /cluster is not set/)
  },
)
