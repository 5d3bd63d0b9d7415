import t from 'tap'
import { scanOperatorArgs } from '../../src/cli/operator-args.ts'

const HOUR_MS = 3_600_000

t.test('without flags the operator works alone, in the cluster that it runs in', (t) => {
  const args = scanOperatorArgs([], {})
  t.match(args, {
    metricsAddress: ':8080',
    probeAddress: ':8081',
    kubeconfig: '',
    context: '',
    namespaces: [],
    sources: ['dnsrecord'],
    level: 'info',
    settings: {
      minMs: 5000,
      maxMs: HOUR_MS / 4,
      site: '',
      silentMs: 24 * HOUR_MS,
      probesPeers: true,
      quorum: 0,
      holdDownMs: 0,
      leaseNamespace: undefined,
    },
  })
  t.end()
})

t.test('flags are taken as Go takes them, and the environment goes before', (t) => {
  const flags = [
    '-kubeconfig=k',
    '--context',
    'main',
    '--watch-namespaces=a, b,',
    '--site=east',
    '--silent-site=remove 90m',
    '--sources=gateway, dnsrecord',
    '--quorum=3',
    '--hold-down=1m',
    '--leader-elect',
    '--metrics-bind-address=0',
    '--health-probe-bind-address=[::1]:9',
    '--log-level=DEBUG',
    '--trace-otlp=https://tracer:4318',
    '--delegation-role=primary',
  ]
  t.match(scanOperatorArgs(flags, { POD_NAMESPACE: 'dns', POD_NAME: 'pod-1' }), {
    kubeconfig: 'k',
    context: 'main',
    namespaces: ['a', 'b'],
    sources: ['gateway', 'dnsrecord'],
    level: 'debug',
    collector: { href: 'https://tracer:4318/v1/traces' },
    metricsAddress: '',
    probeAddress: '[::1]:9',
    settings: {
      site: 'east',
      silentMs: 1.5 * HOUR_MS,
      probesPeers: true,
      quorum: 3,
      holdDownMs: 60_000,
      leaseNamespace: 'dns',
      identity: /^pod-1_/,
    },
  })
  const env = {
    SITE: 'west',
    LEADER_ELECT: 'true',
    WATCH_NAMESPACES: 'c',
    MIN_REQUEUE_TIME: '1s',
    LEADER_ELECT_NAMESPACE: 'lease',
    KUBECONFIG: '',
    PROBE_PEERS: 'false',
  }
  t.match(scanOperatorArgs(['--site=east', '--kubeconfig=k'], env), {
    kubeconfig: 'k',
    namespaces: ['c'],
    settings: { site: 'west', leaseNamespace: 'lease', minMs: 1000, probesPeers: false },
  })
  t.match(scanOperatorArgs(['--leader-elect'], { LEADER_ELECT: 'false' }), {
    settings: { leaseNamespace: undefined },
  })
  t.end()
})

t.test('delegation follows the defaults of Kuadrant, unless flags change it', (t) => {
  const label = 'kuadrant.io/multicluster-kubeconfig'
  t.match(scanOperatorArgs([], {}), {
    settings: {
      role: 'primary',
      removalTimeoutMs: 86_400_000,
      remotes: { secretNamespace: 'dns-operator-system', secretLabel: label, leaveMs: 600_000 },
    },
  })
  t.match(scanOperatorArgs(['--delegation-role=secondary'], { POD_NAMESPACE: 'mine' }), {
    settings: { role: 'secondary', remotes: { secretNamespace: 'mine' } },
  })
  const given = ['--cluster-secret-namespace=theirs', '--cluster-secret-label=example.org/remote']
  t.match(scanOperatorArgs(given, { POD_NAMESPACE: 'mine', CLUSTER_LEAVE_TIME: '5s' }), {
    settings: {
      remotes: { secretNamespace: 'theirs', secretLabel: 'example.org/remote', leaveMs: 5000 },
    },
  })
  t.end()
})

t.test('the controller of address sets has its flags', (t) => {
  t.match(scanOperatorArgs(['--controllers=ovn'], {}), {
    egress: {
      ovn: {
        namespace: 'ovn-kubernetes',
        remotes: [{ kind: 'unix', path: '/var/run/ovn/ovnnb_db.sock' }],
        tls: undefined,
        owner: 'sextant',
        families: [1, 2],
        clusterNetworks: [],
      },
    },
  })
  const flags = [
    '--controllers=ovn',
    '--ovn-nb=ssl:[2001:db8::1]:6641, ssl:nb:6642',
    '--ovn-families=ipv6',
  ]
  const files = ['--ovn-nb-ca=ca', '--ovn-nb-cert=cert', '--ovn-nb-key=key']
  t.match(scanOperatorArgs([...flags, ...files], { CLUSTER_CIDR: '10.0.0.0/8,fd00::/8' }), {
    egress: {
      ovn: {
        remotes: [
          { kind: 'ssl', host: '2001:db8::1', port: 6641 },
          { kind: 'ssl', host: 'nb', port: 6642 },
        ],
        tls: { authority: 'ca', certificate: 'cert', key: 'key', serverName: '' },
        families: [2],
        clusterNetworks: [{ bits: 8 }, { bits: 8 }],
      },
    },
  })
  t.end()
})

t.test('invalid values are refused', (t) => {
  const table = [
    { given: ['--nothing'], want: /flag provided but not defined: -nothing/ },
    { given: ['here'], want: /extra command line arguments: \[here\]/ },
    { given: ['--site'], want: /flag needs an argument: -site/ },
    { given: ['--site=a b'], want: /invalid value "a b" for --site: must be 1 to 63 of letters/ },
    {
      given: ['--silent-site=24h'],
      want: /invalid value "24h" for --silent-site: must be "keep DURATION" or "remove DURATION"/,
    },
    { given: ['--silent-site=remove 0s'], want: /from 1s to 8760h/ },
    { given: ['--quorum=66'], want: /--quorum: must be from 1 to 65 sites, or 0/ },
    { given: ['--hold-down=2h'], want: /--hold-down: must be from 1s to 1h, or 0s/ },
    { given: ['--min-requeue-time=1h'], want: /must be at most --max-requeue-time/ },
    { given: ['--trace-otlp=ftp://a'], want: /for --trace-otlp: must be HOST:PORT, or http/ },
    { given: ['--metrics-bind-address=8080'], want: /must be HOST:PORT, :PORT or 0/ },
    { given: ['--metrics-bind-address=:99999'], want: /must be HOST:PORT, :PORT or 0/ },
    {
      given: ['--delegation-role=third'],
      want: /invalid value "third" for --delegation-role: must be primary or secondary/,
    },
    {
      given: ['--group=a;b'],
      want: /invalid value "a;b" for --group: must be a name of up to 16 characters without ; &/,
    },
    ...['a&b', 'a,b', 'a"b', "a'b", 'a b', 'x'.repeat(17)].map((name) => ({
      given: [`--group=${name}`],
      want: /for --group: must be a name of up to 16 characters/,
    })),
    {
      given: ['--cluster-secret-label=a,b'],
      want: /invalid value "a,b" for --cluster-secret-label: must be a label key/,
    },
    { given: ['--remote-removal-timeout=0'], want: /must be a duration/ },
    { given: ['--cluster-leave-time=never'], want: /must be a duration/ },
    {
      given: ['--watch-namespaces=a,Team_B'],
      want: /invalid value "a,Team_B" for --watch-namespaces: must be a comma list of names/,
    },
    { given: ['--controllers=dnsrecord,x'], want: /invalid value "dnsrecord,x" for --controllers/ },
    { given: ['--zap-encoder=xml'], want: /for --zap-encoder: must be one of json, console/ },
    { given: ['--zap-stacktrace-level=2'], want: /for --zap-stacktrace-level: must be one of/ },
    { given: ['--zap-time-encoding=utc'], want: /for --zap-time-encoding: must be one of epoch/ },
    {
      given: ['--watch-namespaces=a,b', '--share-hosts=. *, x.example a c'],
      want: /invalid value "x\.example a c" for --share-hosts: must be a host with namespaces of --w/,
    },
    {
      given: ['--sources=gateway'],
      want: /must be a comma list of dnsrecord.* that has dnsrecord/,
    },
    { given: ['--sources=dnsrecord,x'], want: /invalid value "dnsrecord,x" for --sources/ },
    { given: ['--controllers='], want: /must be a comma list of dnsrecord/ },
    { given: ['--ovn-nb=udp:a:1'], want: /invalid value "udp:a:1" for --ovn-nb/ },
    { given: ['--ovn-nb='], want: /must be a comma list of tcp:HOST:PORT/ },
    { given: ['--ovn-nb=ssl:a:1'], want: /for --ovn-nb-ca: must be a file, because --ovn-nb has/ },
    { given: ['--ovn-owner=a:b'], want: /invalid value "a:b" for --ovn-owner/ },
    { given: ['--egress-kind=Pod'], want: /must be DNSNameResolver or EgressFirewallDNSName/ },
    { given: ['--ovn-families='], want: /must be ipv4, ipv6 or both/ },
    { given: ['--ovn-families=ipv4,constructor'], want: /must be ipv4, ipv6 or both/ },
    { given: ['--cluster-cidr=10.0.0.0'], want: /for --cluster-cidr: must be a comma list of net/ },
    { given: ['--log-level=loud'], want: /must be one of debug, info, warning, error/ },
  ]
  for (const { given, want } of table) t.match(scanOperatorArgs(given, {}), want, given.join(' '))
  t.match(scanOperatorArgs([], { LEADER_ELECT: 'perhaps' }), /must be true or false/)
  t.end()
})

t.test('flags that have no effect with the others are refused', async (t) => {
  const ovn = '--controllers=ovn'
  const fqdn = '--controllers=fqdnnetworkpolicy'
  const idle: readonly (readonly [given: string[], flag: string, why: RegExp])[] = [
    [['--quorum=2', '--probe-peers=false'], 'quorum', /--probe-peers is off/],
    [['--hold-down=1m', '--probe-peers=0'], 'hold-down', /--probe-peers is off/],
    [['--quorum=2', '--enable-probes=false'], 'quorum', /--enable-probes is off/],
    [['--leader-elect-namespace=a'], 'leader-elect-namespace', /--leader-elect is off/],
    [['--context=a'], 'context', /--kubeconfig is not set/],
    [['--notify-allow=10.0.0.0/8'], 'notify-allow', /--notify-bind-address is 0/],
    ...['ca', 'cert', 'key', 'server-name'].map((name) => {
      const given = [ovn, `--ovn-nb-${name}=a`]
      return [given, `ovn-nb-${name}`, /--ovn-nb has no address ssl:HOST:PORT/] as const
    }),
    [[fqdn, '--dns-config-file=a'], 'dns-config-file', /--dns-environment is not resolv\.conf/],
    [
      [fqdn, '--dns-environment=resolv.conf', '--dns-service-name=a'],
      'dns-service-name',
      /--dns-environment is resolv\.conf/,
    ],
    [['--ovn-nb=tcp:a:1'], 'ovn-nb', /--controllers does not have ovn: /],
    [
      ['--egress-namespace=a'],
      'egress-namespace',
      /--controllers does not have dnsnameresolver or egressfirewall or ovn/,
    ],
    [[ovn, '--skip-aaaa'], 'skip-aaaa', /--controllers does not have fqdnnetworkpolicy/],
    [[ovn, '--site=a'], 'site', /--controllers does not have dnsrecord/],
  ]
  for (const [given, flag, why] of idle) {
    const got = scanOperatorArgs(given, {})
    t.match(got, new RegExp(`^--${flag} has no effect, because ${why.source}`), given.join(' '))
    t.match(got, new RegExp(`: remove --${flag}, or change --`))
  }
  const works: readonly (readonly [given: string[], env: NodeJS.ProcessEnv])[] = [
    // Written defaults say nothing.
    [['--quorum=0', '--hold-down=0s', '--probe-peers=false'], {}],
    [['--dns-config-file=/etc/resolv.conf', '--notify-allow='], {}],
    [['--quorum=2'], { PROBE_PEERS: 'true' }],
    // Probes that are off for a while keep their settings.
    [['--probe-allow=10.0.0.0/8', '--enable-probes=false'], {}],
    [[ovn, '--egress-allow=10.0.0.0/8', '--zap-devel', '--notify-bind-address=:1'], {}],
    [['--controllers=dnsnameresolver', '--dns-service-name=a'], {}],
    // Operators with other controllers may have the same environment.
    [[], { OVN_NB: 'tcp:a:1', SKIP_AAAA: 'true' }],
  ]
  for (const [given, env] of works) t.type(scanOperatorArgs(given, env), 'object', given.join(' '))
  t.match(scanOperatorArgs([], { QUORUM: '2', PROBE_PEERS: '0' }), /^--quorum has no effect/)
})

t.test('NOTIFY is received on the given addresses only', (t) => {
  t.match(scanOperatorArgs([], {}), { notifyAddresses: [], settings: { notifyAllowed: [] } })
  const table = [
    { text: ':5353', want: [{ host: '', port: 5353 }] },
    {
      text: '192.0.2.1:53, [2001:DB8::1]:5353,',
      want: [
        { host: '192.0.2.1', port: 53 },
        { host: '2001:db8::1', port: 5353 },
      ],
    },
    { text: ':53,:53', want: [{ host: '', port: 53 }] },
  ]
  for (const { text, want } of table) {
    t.match(scanOperatorArgs([`--notify-bind-address=${text}`], {}), { notifyAddresses: want })
  }
  t.match(scanOperatorArgs(['--notify-allow=192.0.2.0/24,::/0'], { NOTIFY_BIND_ADDRESS: ':53' }), {
    notifyAddresses: [{ host: '', port: 53 }],
    settings: { notifyAllowed: [{ bits: 24 }, { bits: 0 }] },
  })
  const many = Array.from({ length: 9 }, (_, i) => `:${5300 + i}`).join()
  for (const bad of [
    '53',
    'ns1:53',
    '2001:db8::1:53',
    ':65536',
    '192.0.2.1',
    ':53,0',
    '[:53',
    many,
  ]) {
    const got = scanOperatorArgs([`--notify-bind-address=${bad}`], {})
    t.match(got, /--notify-bind-address: must be 0, or a comma list of up to 8 addresses/, bad)
  }
  t.match(
    scanOperatorArgs(['--notify-allow=192.0.2.1'], {}),
    /--notify-allow: must be a comma list of networks/,
  )
  t.end()
})
