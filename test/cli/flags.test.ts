import { inspect } from 'node:util'
import t from 'tap'
import { scanCheckArgs } from '../../src/cli/check-args.ts'
import { COMMANDS } from '../../src/cli/commands.ts'
import { scanDrainArgs } from '../../src/cli/drain-args.ts'
import { EGRESS_FLAGS } from '../../src/cli/egress-args.ts'
import { scanExplainArgs } from '../../src/cli/explain-args.ts'
import { scanFqdnArgs } from '../../src/cli/fqdn-args.ts'
import { scanGeoArgs } from '../../src/cli/geo-args.ts'
import { scanImportArgs } from '../../src/cli/import-args.ts'
import { scanKeysArgs } from '../../src/cli/keys-args.ts'
import { scanKubectlArgs } from '../../src/cli/kubectl-args.ts'
import { scanNodeArgs } from '../../src/cli/node-args.ts'
import { scanOperatorArgs } from '../../src/cli/operator-args.ts'
import { scanQueryArgs } from '../../src/cli/query-args.ts'
import { scanServeArgs } from '../../src/cli/serve-args.ts'
import { scanStatusArgs } from '../../src/cli/status-args.ts'
import { scanWebhookArgs } from '../../src/cli/webhook-args.ts'
import { scanWhatIfArgs } from '../../src/cli/what-if-args.ts'

const RECORDS = `${t.testdir({ records: 'kind: List\n' })}/records`

/** For each flag with an argument: a valid value that is not the default. For each word: the word. */
const VALUES = new Map(
  `
  --pod p | --port 5 | --drains d | -n n | ARGUMENT... x | SELECTOR... site:a | ID x | @SERVER @h | -conf f | --conf f | -dns.port 5 | -o json | -x ::1
  -cookie-secrets f | --cookie-secrets f | -max-query-age 1s | --max-query-age 1s | -pidfile f | --pidfile f | -p 5 | -e a/b | -s lookup
  --manifests d | --records ${RECORDS} | --old-records ${RECORDS} | --new-conf f | --mmdb f
  --max-share 5% | --client ::1 | --subnet ::/0 | --seed 2 | --token-file f | --ca f | --file f
  --until 2h | --reason r | --actor a | --socket /s | -y k:c2VjcmV0 | +subnet ::1 | +time 9
  +tries 9 | --node-name n | --kubeconfig f | --policies d | --cluster 10.0.0.0/8
  --allow 10.0.0.0/8 | --closed 10.0.0.0/8 | --upstream 192.0.2.1 | --listen :53
  --dialect cilium-1.16 | --deny-rcode NXDOMAIN | --on-timeout servfail | --state f | --api off
  --metrics :1 | --health :1 | --ready :1 | --context c | --controllers ovn | --site s
  --sources gateway,dnsrecord | --watch-namespaces n | --silent-site keep 1h | --quorum 3 | --hold-down 2s | --group g
  --min-requeue-time 6s | --max-requeue-time 16m | --nameserver-allow ::/0 | --probe-allow ::/0
  --leader-elect-namespace n | --delegation-role secondary | --share-hosts example.com a
  --cluster-secret-namespace n | --cluster-secret-label example.com/l | --cluster-leave-time 5m
  --remote-removal-timeout 5m | --metrics-bind-address :1 | --health-probe-bind-address :1
  --notify-bind-address :53 | --notify-allow ::/0 | --log-level debug | --egress-namespace n
  --egress-kind EgressFirewallDNSName | --cluster-cidr ::/0 | --egress-allow ::/0
  --ovn-nb tcp:192.0.2.1:1 | --ovn-nb-ca x | --ovn-nb-cert x | --ovn-nb-key x
  --ovn-nb-server-name x | --ovn-owner o | --ovn-families ipv4 | --dns-environment resolv.conf
  --dns-service-name n | --dns-config-file f | --ip-expiration-period 5m | --next-sync-period 60
  --minimum-sync-period 60 | --max-concurrent-reconciles 2 | --zap-log-level debug
  --trace-otlp h:1 | FILE... f | --zone z | --namespace x | --zones b.example | --exclude c.example | --owner o
  --bind-address :1
  -keys d | -secret n/s | ZONE z | KEY 5 | FILE f | --algorithm ED25519 | --bits 4096 | --to d | --digest SHA-384 | -parent ::1 | --delegation signed
  --zap-encoder json | --zap-stacktrace-level error | --zap-time-encoding epoch
  `
    .trim()
    .split(/ \| |\n/)
    .map((pair) => /^\s*(\S+) (.*)$/.exec(pair)!.slice(1) as [string, string]),
)

/** It has no effect, as its help says. */
const UNREAD = 'serve -windows-service'

interface Command {
  /** Reads the arguments. */
  readonly scan: (argv: readonly string[]) => unknown
  /** Arguments that a flag needs beside it. The first entry that has the flag counts. */
  readonly besides?: readonly (readonly [flags: string, ...argv: string[]])[]
}

const OF_SERVER = ['--token-file --ca', '@'] as const
const OVN = [
  '--controllers=ovn',
  '--ovn-nb=ssl:h:1',
  '--ovn-nb-ca=f',
  '--ovn-nb-cert=f',
  '--ovn-nb-key=f',
]
const OF_EGRESS = EGRESS_FLAGS.map(({ name }) => name).join(' ')
const drain = (name: 'drain' | 'undrain' | 'drains'): Command => {
  return { scan: (argv) => scanDrainArgs(name, argv, 0), besides: [OF_SERVER] }
}

/** Without a word that a command needs, it reads nothing. */
function messageOf(scan: Command['scan']): Command['scan'] {
  return (argv) => {
    try {
      return scan(argv)
    } catch (error) {
      return (error as Error).message
    }
  }
}

const SCANS: Readonly<Record<string, Command>> = {
  serve: { scan: scanServeArgs },
  check: { scan: scanCheckArgs },
  geo: {
    scan: scanGeoArgs,
    besides: [
      ['--records', '::1', '-conf=f'],
      ['', '::1'],
    ],
  },
  'what-if': {
    scan: scanWhatIfArgs,
    besides: [
      ['--manifests --records', '--mmdb=x'],
      ['', '--manifests=x'],
    ],
  },
  import: {
    scan: scanImportArgs,
    besides: [['', 'bind', 'f']],
  },
  operator: {
    scan: (argv) => scanOperatorArgs(argv, { POD_NAMESPACE: 'here' }),
    besides: [
      ['--ovn-nb-ca --ovn-nb-cert --ovn-nb-key --ovn-nb-server-name', ...OVN],
      ['--leader-elect-namespace', '--leader-elect'],
      ['--dns-config-file', '--controllers=fqdnnetworkpolicy', '--dns-environment=resolv.conf'],
      ['--context', '--kubeconfig=f'],
      ['--notify-allow', '--notify-bind-address=:1'],
      [OF_EGRESS, '--controllers=ovn,fqdnnetworkpolicy'],
    ],
  },
  webhook: { scan: (argv) => scanWebhookArgs(argv, {}), besides: [['', '--zones=a.example']] },
  node: { scan: scanNodeArgs, besides: [['--conf'], ['', '--cluster=::/0']] },
  fqdn: {
    scan: scanFqdnArgs,
    besides: [
      ['-f', 'cache', 'clean'],
      ['', 'cache', 'list'],
    ],
  },
  query: { scan: scanQueryArgs, besides: [['-x'], ['', 'a.example']] },
  explain: {
    scan: scanExplainArgs,
    besides: [
      ['--client', 'a.example', '--subnet=::/0'],
      ['--token-file --ca', 'a.example', '--client=::2', '@'],
      ['', 'a.example', '--client=::2'],
    ],
  },
  status: { scan: scanStatusArgs },
  peers: { scan: scanStatusArgs },
  kubectl: {
    scan: scanKubectlArgs,
    besides: [
      [
        '--kubeconfig --context -n --pod --all --port --drains ARGUMENT...',
        'status',
        '--client=::1',
      ],
    ],
  },
  keys: {
    scan: messageOf(scanKeysArgs),
    besides: [
      ['ZONE -o', 'list'],
      ['KEY', 'export', 'a.example'],
      ['FILE', 'import', 'a.example'],
      ['--public', 'import', 'a.example', 'f'],
      ['--pem --to', 'export', 'a.example', '5'],
      ['--digest -parent --published', 'ds', 'a.example'],
      ['--delegation', 'roll', 'a.example'],
      ['--bits', 'generate', 'a.example', '--algorithm=RSASHA256'],
      ['--kubeconfig', 'generate', 'a.example', '-secret=n/s'],
      ['', 'generate', 'a.example'],
    ],
  },
  drain: drain('drain'),
  undrain: drain('undrain'),
  drains: drain('drains'),
}

t.test('each flag of the help is read by its command, under each of its names', async (t) => {
  for (const { name, args } of COMMANDS) {
    for (const { name: flag, aliases, argument, value } of (await args()).flags) {
      if (`${name} ${flag}` === UNREAD) continue
      const { scan, besides = [] } = SCANS[name]!
      const found = besides.find(([flags]) => flags === '' || flags.split(' ').includes(flag))
      /** What the command read, without the random part of the operator's identity. */
      const read = (...given: readonly string[]): string => {
        const args = scan([...(found ?? []).slice(1), ...given])
        return inspect(args, { depth: 9 }).replace(/_[-0-9a-f]{36}/, '')
      }
      const readFlag = (form: string): string => {
        const text = VALUES.get(flag) ?? ''
        if (!/^[-+]/.test(form)) return read(text)
        if (argument !== '')
          return form.startsWith('+') ? read(`${form}=${text}`) : read(form, text)
        if (value === 'on') return read(form.replace('+', '+no'))
        return read(value === 'true' ? `${form}=false` : form)
      }
      const got = readFlag(flag)
      t.match(got, /^\{/, `${name} ${flag} is valid`)
      t.not(got, read(), `${name} ${flag} is read`)
      for (const alias of aliases) t.equal(readFlag(alias), got, `${name} ${alias}`)
    }
  }
})

t.test('each flag of the help is suggested for a wrong letter in it', async (t) => {
  for (const { name, args } of COMMANDS) {
    for (const { name: flag } of (await args()).flags) {
      if (!/^(--?|\+)\w{3}/.test(flag)) continue
      const { scan, besides = [] } = SCANS[name]!
      const wrong = `${flag.slice(0, -1)}0`
      const [, ...beside] = besides.find(([flags]) => flags === '') ?? []
      let fault: unknown
      try {
        fault = scan([...beside, wrong])
      } catch (error) {
        fault = (error as Error).message
      }
      t.match(fault, `did you mean ${flag.replace(/^--?/, '')}?`, `${name} ${wrong}`)
    }
  }
})
