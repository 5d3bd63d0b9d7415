import t from 'tap'
import { Dispenser } from '../../../src/corefile/dispenser.ts'
import { scanTokens } from '../../../src/corefile/lexer.ts'
import { NameFollower } from '../../../src/plugins/egressfirewall/name-follower.ts'
import { scanOptions } from '../../../src/plugins/egressfirewall/options.ts'
import { egressfirewall, ocpDnsNameResolver } from '../../../src/plugins/egressfirewall/setup.ts'
import { blockConfig, SetUp, setupError } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

const block = (text: string) => `egressfirewall {\n${text}\n}`
const optionsOf = (corefile: string) => {
  const dispenser = new Dispenser(scanTokens(corefile, 'Corefile'))
  return scanOptions(dispenser, blockConfig(['.']), 'egressfirewall')
}

t.test('options', async (t) => {
  const table: { corefile: string; want: Partial<ReturnType<typeof optionsOf>> }[] = [
    {
      corefile: 'ocp_dnsnameresolver',
      want: { namespaces: [], limits: { minTtlSeconds: 5, failureThreshold: 5 } },
    },
    { corefile: block('namespaces foo'), want: { namespaces: ['foo'] } },
    { corefile: block('namespaces foo bar'), want: { namespaces: ['foo', 'bar'] } },
    {
      corefile: block('namespaces foo bar foobar'),
      want: { namespaces: ['foo', 'bar', 'foobar'] },
    },
    { corefile: block('namespaces foo\nnamespaces bar foo'), want: { namespaces: ['foo', 'bar'] } },
    { corefile: block('minTTL 1'), want: { limits: { minTtlSeconds: 1, failureThreshold: 5 } } },
    { corefile: block('minTTL 10'), want: { limits: { minTtlSeconds: 10, failureThreshold: 5 } } },
    {
      corefile: block('failureThreshold 1'),
      want: { limits: { minTtlSeconds: 5, failureThreshold: 1 } },
    },
    {
      corefile: block('failureThreshold 10'),
      want: { limits: { minTtlSeconds: 5, failureThreshold: 10 } },
    },
    { corefile: block('gate 50ms'), want: { gateMs: 50 } },
    { corefile: block('startup_timeout 1m'), want: { startupMs: 60_000 } },
    // Node.js would run a timer of 2 ** 31 ms at once.
    { corefile: block('startup_timeout 9999h'), want: { startupMs: 2 ** 31 - 1 } },
    { corefile: block('kubeconfig /k c'), want: { kubeconfig: '/k', context: 'c' } },
    {
      corefile: block('endpoint http://127.0.0.1:8001'),
      want: { endpoint: 'http://127.0.0.1:8001' },
    },
    {
      corefile: block('cluster 10.128.0.0/14\ncluster fd00::/8\nallow 127.0.0.0/8'),
      want: {
        cluster: [
          { family: 1, bytes: new Uint8Array([10, 128, 0, 0]), bits: 14 },
          { family: 2, bytes: new Uint8Array([0xfd, ...new Uint8Array(15)]), bits: 8 },
        ],
        allowed: [{ family: 1, bytes: new Uint8Array([127, 0, 0, 0]), bits: 8 }],
      },
    },
  ]
  for (const { corefile, want } of table) t.match(optionsOf(corefile), want, corefile)
})

t.test('faults', async (t) => {
  const count = 'Wrong argument count or unexpected line ending after'
  const table: { corefile: string; want: string }[] = [
    {
      corefile: 'egressfirewall extra',
      want: `Corefile:1 - Error during parsing: ${count} 'extra'`,
    },
    { corefile: block('namespaces'), want: `${count} 'namespaces'` },
    { corefile: block('minTTL'), want: `${count} 'minTTL'` },
    { corefile: block('minTTL 1 2'), want: `${count} '2'` },
    { corefile: block('minTTL x'), want: 'value of minTTL should be an integer: x' },
    { corefile: block('minTTL 0'), want: 'value of minTTL should be greater than 0: 0' },
    { corefile: block('minTTL -1'), want: 'value of minTTL should be greater than 0: -1' },
    {
      corefile: block('minTTL 2147483648'),
      want: 'value of minTTL is above 2147483647: 2147483648',
    },
    { corefile: block('failureThreshold'), want: `${count} 'failureThreshold'` },
    { corefile: block('failureThreshold 0'), want: 'failureThreshold should be greater than 0: 0' },
    { corefile: block('gate'), want: `${count} 'gate'` },
    { corefile: block('gate 0'), want: 'gate must be above 0 and at most 5s' },
    { corefile: block('gate 6s'), want: 'gate must be above 0 and at most 5s' },
    { corefile: block('gate soon'), want: 'not a duration: "soon"' },
    { corefile: block('cluster 10.0.0.1'), want: "not a network: '10.0.0.1'" },
    { corefile: block('allow 300.0.0.0/8'), want: "not a network: '300.0.0.0/8'" },
    { corefile: block('endpoint x'), want: 'endpoint must be a URL' },
    { corefile: block('kubeconfig'), want: `${count} 'kubeconfig'` },
    { corefile: block('ttl 5'), want: "Corefile:2 - Error during parsing: unknown property 'ttl'" },
    {
      corefile: 'egressfirewall\negressfirewall',
      want: 'Corefile:2 - Error during parsing: this plugin can only be used once per Server Block',
    },
  ]
  for (const { corefile, want } of table) {
    t.match(setupError(egressfirewall, corefile), want, corefile)
  }
  t.throws(
    () =>
      new SetUp(ocpDnsNameResolver, 'ocp_dnsnameresolver', ['.'], { above: ['egressfirewall'] }),
    /egressfirewall and ocp_dnsnameresolver are the same; remove one/,
  )
})

t.test('a configuration that cannot be used fails the start and the check', async (t) => {
  const c = new SetUp(egressfirewall, block('kubeconfig /nonexistent'))
  await t.rejects(c.start(), /plugin\/egressfirewall: .*\/nonexistent/)
  t.match((await c.check()).faults, [/\/nonexistent/])
  await c.stop()
})

t.test('without the networks of the cluster, setup warns', async (t) => {
  const want = [/^1: cluster is not set: addresses of nodes, Pods and Services are written; set it/]
  t.match(new SetUp(egressfirewall, block('minTTL 5')).warnings, want)
  t.match(new SetUp(ocpDnsNameResolver, 'ocp_dnsnameresolver').warnings, want)
  t.strictSame(new SetUp(egressfirewall, block('cluster 10.0.0.0/8')).warnings, [])
})

t.test('a stop during the start leaves no watch behind', async (t) => {
  const c = new SetUp(egressfirewall, block('endpoint http://127.0.0.1:1\nstartup_timeout 100ms'))
  const followers = () => c.resources.withPrefix(NameFollower, '')
  const started = c.start()
  await until(() => followers().length === 1, 'the start of the watches')
  await c.stop()
  await started
  t.strictSame(followers(), [])
})
