import t from 'tap'
import { scanFqdnArgs } from '../../src/cli/fqdn-args.ts'
import { scanNodeArgs } from '../../src/cli/node-args.ts'

t.test('the Corefile of sextant node', async (t) => {
  const args = scanNodeArgs([
    '--node-name',
    'a',
    '--cluster=10.0.0.0/8,fd00::/8',
    '--closed=10.1.0.0/16,fd01::/16',
    '--upstream',
    '192.0.2.1',
  ])
  if (typeof args === 'string') throw new Error(args)
  t.equal(
    args.corefile,
    `.:10053 {
    errors
    health 127.0.0.1:9964
    ready 127.0.0.1:9965
    prometheus :9963
    egress {
        kubernetes a
        nftables
        cluster 10.0.0.0/8 fd00::/8
        closed 10.1.0.0/16 fd01::/16
        state /var/lib/sextant/node.state
        api /run/sextant/node.sock
    }
    acl {
        allow net 127.0.0.0/8 ::1/128 10.0.0.0/8 fd00::/8
        block
    }
    cache 30
    forward . 192.0.2.1
}
`,
  )
  const cluster = '--cluster=10.0.0.0/8'
  const files = ['--policies', 'p', cluster, '--dry-run', '--listen', '[::1]:53', '--state=']
  const dry = scanNodeArgs(files)
  if (typeof dry === 'string') throw new Error(dry)
  t.match(dry.corefile, /^\.:53 \{\n {4}bind ::1\n/)
  t.match(dry.corefile, /egress \{\n {8}policies p\n {8}dry_run\n {8}cluster 10\S+\n {8}api/)
  const conf = ['--conf', 'Corefile', '--takeover', '--cookie-secrets=s', '--pidfile=p', '--quiet']
  t.match(scanNodeArgs(conf), { conf: 'Corefile', takesOver: true }, 'it has its own networks')
  t.match(scanNodeArgs([cluster, '--cookie-secrets', 's']), { cookieSecrets: 's' })
})

t.test('faults of the arguments', async (t) => {
  const node: [readonly string[], RegExp][] = [
    [['--listen', '53', '--cluster=10.0.0.0/8'], /-listen must be \[HOST\]:PORT/],
    [[], /^-cluster is missing: set it to the networks of Pods, Services and nodes, such as/],
    [['--cluster', ','], /^-cluster is missing/],
    [['--cluster', '10.0.0.0/8,10.0.0.1'], /^-cluster must be the networks .*: 10\.0\.0\.1$/],
    [['--policies', 'p', '--node-name', 'a'], /-policies reads no cluster/],
    [['--cluster', 'a}\n'], /invalid value for flag -cluster/],
    [['--conf', 'f', '--print-conf'], /^-conf serves a file as it is: remove -print-conf$/],
    [
      ['--conf', 'f', '--quiet', '--cluster=10.0.0.0/8', '--dry-run'],
      /^-conf serves a file as it is: remove -cluster, -dry-run$/,
    ],
    [['x'], /extra command line arguments/],
    [['--foo'], /not defined: -foo/],
  ]
  for (const [argv, want] of node) t.match(scanNodeArgs(argv), want)
  const fqdn: [readonly string[], RegExp][] = [
    [[], /^use: sextant fqdn/],
    [['cache'], /^use: /],
    [['cache', 'list', '-s', 'x'], /-s must be lookup or connection: x/],
    [['cache', 'list', '-o', 'text'], /^invalid value text for -o/],
    [['cache', 'list', 'x'], /extra command line arguments: \[x\]/],
    [['cache', 'clean', '-e', 'a'], /not defined: -e/],
    [['names', '-s', 'lookup'], /not defined: -s/],
  ]
  for (const [argv, want] of fqdn) t.match(scanFqdnArgs(argv), want)
  t.match(scanFqdnArgs(['cache', 'list', '-e', 'a/b', '-p', '*.x', '-s', 'lookup', '-o', 'json']), {
    action: 'list',
    endpoint: 'a/b',
    pattern: '*.x',
    source: 'lookup',
    format: 'json',
  })
  t.match(scanFqdnArgs(['cache', 'clean', '-f']), { action: 'clean', isForced: true })
  t.match(scanFqdnArgs(['names', '--socket', '/s']), { action: 'names', socket: '/s' })
})
