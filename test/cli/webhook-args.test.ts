import t from 'tap'
import { scanWebhookArgs } from '../../src/cli/webhook-args.ts'

t.test('defaults, and all flags', async (t) => {
  t.same(scanWebhookArgs(['--zones', 'Example.ORG.,bücher.example'], {}), {
    address: 'localhost:8888',
    metricsAddress: ':8080',
    zones: ['example.org', 'xn--bcher-kva.example'],
    excluded: [],
    owner: 'default',
    kubeconfig: '',
    context: '',
    namespace: 'default',
    manifests: '',
  })
  const args = [
    ...['--zones=a.example', '--exclude=b.a.example', '--owner=one', '--namespace=dns'],
    ...['--manifests=records', '--bind-address=[::1]:1', '--metrics-bind-address=0'],
  ]
  t.match(scanWebhookArgs(args, { POD_NAMESPACE: 'pod' }), {
    address: '[::1]:1',
    metricsAddress: '',
    excluded: ['b.a.example'],
    owner: 'one',
    namespace: 'dns',
    manifests: 'records',
  })
  t.match(scanWebhookArgs(['--zones=a.example'], { POD_NAMESPACE: 'pod' }), { namespace: 'pod' })
})

t.test('invalid arguments', async (t) => {
  const cases: readonly [readonly string[], RegExp][] = [
    [[], /--zones: must be a comma list of at least one zone/],
    [['--zones', 'a..b'], /"a\.\.b" for --zones/],
    [['--zones', `${'a'.repeat(40)}.${'b'.repeat(40)}`], /up to 63 characters/],
    [['--zones', 'a', '--exclude', '*.a'], /--exclude/],
    [['--zones', 'a', '--owner', ''], /--owner/],
    [['--zones', 'a', '--owner', 'a b'], /--owner/],
    [['--zones', 'a', '--namespace', 'A'], /--namespace/],
    [['--zones', 'a', '--bind-address', 'localhost'], /--bind-address: must be HOST:PORT/],
    [['--zones', 'a', '--bind-address', ':70000'], /--bind-address/],
    [['--zones', 'a', '--manifests', 'd', '--kubeconfig', 'f'], /without --kubeconfig/],
    [['--zones', 'a', 'b'], /extra command line arguments/],
    [['--zone', 'a'], /not defined: -zone/],
  ]
  for (const [args, reason] of cases) t.match(scanWebhookArgs(args, {}), reason, args.join(' '))
})
