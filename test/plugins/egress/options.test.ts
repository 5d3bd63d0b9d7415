import t from 'tap'
import { Dispenser } from '../../../src/corefile/dispenser.ts'
import { scanTokens } from '../../../src/corefile/lexer.ts'
import { Rcode } from '../../../src/dns/iana/index.ts'
import { scanConfig } from '../../../src/plugins/egress/options.ts'
import { egress } from '../../../src/plugins/egress/setup.ts'
import { blockConfig, SetUp, setupError } from '../../support/setup.ts'

const block = (...lines: readonly string[]) => `egress {\n${lines.join('\n')}\n}`
const files = (...lines: readonly string[]) => block('policies p', ...lines)
const configOf = (corefile: string) => {
  return scanConfig(new Dispenser(scanTokens(corefile, 'Corefile')), blockConfig(['.']))
}

t.test('options', async (t) => {
  const table: [string, Partial<ReturnType<typeof configOf>>][] = [
    [
      files(),
      { table: 'sextant', denyRcode: Rcode.REFUSED, onTimeout: 'release', maxDelayMs: 100 },
    ],
    [block('kubernetes'), { node: '', policies: '' }],
    [block('kubernetes a', 'kubeconfig /k c'), { node: 'a', kubeconfig: '/k', context: 'c' }],
    [files('nftables table other'), { table: 'other' }],
    [files('dry_run', 'decisions', 'endpoint_label'), { table: undefined, logsDecisions: true }],
    [files('port 5353', 'deny_rcode nxdomain'), { port: 5353, denyRcode: Rcode.NXDOMAIN }],
    [files('on_timeout servfail', 'max_delay 1s'), { onTimeout: 'servfail', maxDelayMs: 1000 }],
    [
      files('dialect cilium-1.16', 'cut_connections'),
      { dialect: 'cilium-1.16', cutsConnections: true },
    ],
    [files('min_ttl 1m', 'idle_grace 2s'), { minTtlSeconds: 60, idleGraceMs: 2000 }],
    [files('addresses_per_name 7', 'zombies 0'), { addressesPerName: 7, zombies: 0 }],
    [files('concurrency 9'), { concurrency: { total: 9, perClient: 512 } }],
    [files('concurrency 9 per-client 3'), { concurrency: { total: 9, perClient: 3 } }],
    [files('state /s', 'api off'), { stateFile: '/s', api: '' }],
  ]
  for (const [corefile, want] of table) t.match(configOf(corefile), want, corefile)
  t.equal(configOf(files('cluster 10.0.0.0/8', 'cluster fd00::/8')).cluster.length, 2)
})

t.test('faults', async (t) => {
  const count = 'Wrong argument count'
  const table: [string, string][] = [
    ['egress', 'egress needs policies: add `kubernetes`, or `policies` with a folder'],
    ['egress x', count],
    [block('kubernetes', 'policies p'), 'kubernetes and policies exclude each other'],
    [files('nftables', 'dry_run'), 'nftables and dry_run exclude each other'],
    [files('zombies 0', 'cut_connections'), 'cut_connections needs the names of open connections'],
    [files('nftables other'), 'write it as `nftables table NAME`'],
    [files('nftables table "a b"'), "not the name of a table: 'a b'"],
    [files('port 0'), "not a number from 1 to 65535: '0'"],
    [files('max_delay 5s'), "must be from 1ms to 4000ms: '5s'"],
    [files('max_delay soon'), 'not a duration: "soon"'],
    [files('dialect npep'), "must be cilium-1.16 or cilium-1.19: 'npep'"],
    [files('deny_rcode SERVFAIL'), "must be REFUSED or NXDOMAIN: 'SERVFAIL'"],
    [files('on_timeout drop'), "must be release or servfail: 'drop'"],
    [files('concurrency'), count],
    [files('concurrency 1 2'), 'write it as `concurrency N per-client N`'],
    [files('concurrency 1 per-client'), 'write it as `concurrency N per-client N`'],
    [files('cluster 10.0.0.1'), "not a network: '10.0.0.1'"],
    [files(`api /${'a'.repeat(96)}`), 'the path of a socket has at most 96 octets'],
    [files('policies q'), 'policies names one file or folder'],
    [files('constructor'), "unknown property 'constructor'"],
    [`${files()}\n${files()}`, 'this plugin can only be used once per Server Block'],
  ]
  for (const [corefile, want] of table) t.match(setupError(egress, corefile), want, corefile)
})

t.test('without the networks of the cluster, setup warns', async (t) => {
  t.match(new SetUp(egress, files('dry_run')).warnings, [/^1: cluster is not set/])
  t.strictSame(new SetUp(egress, files('cluster 10.0.0.0/8')).warnings, [])
})
