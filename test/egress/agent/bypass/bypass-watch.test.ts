import t, { type Test } from 'tap'
import { createLogger } from '../../../../src/base/telemetry/log.ts'
import { BypassWatch } from '../../../../src/egress/agent/bypass/bypass-watch.ts'
import { HostNetwork, type NetworkHost } from '../../../support/host-network.ts'
import { needs, needsRoot } from '../../../support/peer.ts'
import { FakeTimers } from '../../../support/setup.ts'
import { until } from '../../../support/until.ts'

// Own process: it makes namespaces of the kernel.

const NEEDS = { ...needsRoot(), ...needs('ip', 'nft') }
const NODE_LOCAL = '169.254.20.10'

interface Stage {
  readonly host: NetworkHost
  readonly watch: BypassWatch
  readonly timers: FakeTimers
  readonly lines: string[]
  /** A client has received an answer. */
  hasAnswered: boolean
}

/** A host of its own, with what watches it. */
async function stage(t: Test): Promise<Stage> {
  const network = await HostNetwork.create(t)
  const host = await network.addHost('node', [])
  const timers = new FakeTimers()
  const lines: string[] = []
  const log = createLogger(
    '',
    (line) => lines.push(line),
    () => true,
  )
  // As in the image, which has no iptables: nft then prints targets of iptables by their names.
  const place = ['ip', 'netns', 'exec', network.nameOf('node'), 'env', 'XTABLES_LIBDIR=/dev/null']
  const made = { host, timers, lines, hasAnswered: false }
  const watch = new BypassWatch({
    command: [...place, 'nft'],
    read: (path) => host.run('cat', path),
    hasAnswered: () => made.hasAnswered,
    timers,
    log,
  })
  t.teardown(() => watch.close())
  return Object.assign(made, { watch })
}

/** `servers`: those whose queries are not tracked; '' = all; undefined = the rule is no concern. */
const RULES: readonly (readonly [rule: string, servers: string | undefined])[] = [
  [`ip daddr ${NODE_LOCAL} udp dport 53 counter notrack comment "NodeLocal"`, NODE_LOCAL],
  [`ip daddr ${NODE_LOCAL} tcp dport 53 notrack`, NODE_LOCAL],
  ['ip6 daddr fd00::10 udp dport 53 notrack', 'fd00::10'],
  [
    'ip daddr { 10.96.0.10, 169.254.20.0/24 } meta l4proto { tcp, udp } th dport { 53, 9253 } notrack',
    '10.96.0.10, 169.254.20.0/24',
  ],
  ['ip daddr 10.96.0.10-10.96.0.20 udp dport 50-60 notrack', '10.96.0.10-10.96.0.20'],
  ['ip daddr != 10.96.0.10 udp dport 53 notrack', 'all but 10.96.0.10'],
  ['ip saddr 10.1.0.0/16 udp dport != 80 notrack', ''],
  ['udp dport 53 iifname "eth0" notrack', ''],
  ['notrack', ''],
  ['meta l4proto { tcp, udp } counter notrack', ''],
  ['ip daddr 10.96.0.10 udp dport 54 notrack', undefined],
  ['ip daddr 10.96.0.10 udp dport != 50-60 notrack', undefined],
  ['ip daddr 10.96.0.10 udp dport { 54, 60-70 } notrack', undefined],
  ['ip daddr 10.96.0.10 sctp dport 53 notrack', undefined],
  ['ip daddr 10.96.0.10 udp sport 53 notrack', undefined],
  ['ip daddr 10.96.0.10 udp dport 53 accept', undefined],
  ['iifname "lo" udp dport 53 notrack', undefined],
  ['iifname "lo" notrack', undefined],
  ['meta l4proto icmp notrack', undefined],
  ['ip saddr 127.0.0.0/8 notrack', undefined],
  ['ip daddr 169.254.169.254 notrack', undefined],
]

const HIDDEN = /: rules exempt DNS queries(?: to (.+))? from connection tracking/

t.test('rules of nftables that keep DNS queries from being redirected', NEEDS, async (t) => {
  const { host, watch } = await stage(t)
  await host.run(
    'nft',
    'add table inet x; add chain inet x late { type filter hook prerouting priority -150; }',
  )
  await host.run('nft', 'add rule inet x late udp dport 53 accept')
  await host.run('nft', 'add chain inet x out { type filter hook output priority raw; }')
  await host.run('nft', 'add rule inet x out udp dport 53 notrack')
  for (const where of ['pre', 'jumped']) {
    await host.run('nft', 'add chain inet x pre { type filter hook prerouting priority raw; }')
    await host.run('nft', 'add chain inet x jumped; add chain inet x between')
    for (const [rule, servers] of RULES) {
      await host.run(
        'nft',
        'flush chain inet x pre; flush chain inet x between; flush chain inet x jumped',
      )
      if (where === 'jumped') {
        await host.run('nft', 'add rule inet x pre jump between')
        await host.run('nft', 'add rule inet x between ip protocol udp goto jumped')
      }
      await host.run('nft', `add rule inet x ${where} ${rule}`)
      await watch.check()
      const found = watch.found.map(({ object, isCertain, reason }) => {
        return [object, isCertain, HIDDEN.exec(reason)?.[1] ?? '']
      })
      const expected =
        servers === undefined ? [] : [[`table inet x, chain ${where}`, true, servers]]
      t.strictSame(found, expected, `${where}: ${rule}`)
    }
  }
})

/** As NodeLocal DNSCache makes them, for one address. */
const NODE_LOCAL_RULES = ['tcp', 'udp'].flatMap((protocol) => [
  ['PREROUTING', '-p', protocol, '-d', NODE_LOCAL, '--dport', '53', '-j', 'NOTRACK'],
  ['OUTPUT', '-p', protocol, '-s', NODE_LOCAL, '--sport', '53', '-j', 'NOTRACK'],
  ['OUTPUT', '-p', protocol, '-d', NODE_LOCAL, '--dport', '53', '-j', 'NOTRACK'],
])
const COMMENT = ['-m', 'comment', '--comment', 'NodeLocal DNS Cache: skip conntrack']

t.test(
  'rules of NodeLocal DNSCache come and go',
  { ...NEEDS, ...needs('iptables-nft') },
  async (t) => {
    const { host, watch, timers, lines } = await stage(t)
    await watch.start()
    t.strictSame(watch.found, [])
    t.strictSame(lines, [])
    for (const [chain = '', ...rule] of NODE_LOCAL_RULES) {
      await host.run('iptables-nft', '-t', 'raw', '-A', chain, ...rule, ...COMMENT)
    }
    await timers.advance(60_000)
    await until(() => lines.length > 0, 'the line')
    t.strictSame(watch.found, [
      {
        object: 'table ip raw, chain PREROUTING',
        isCertain: true,
        reason:
          'table ip raw, chain PREROUTING: rules exempt DNS queries to 169.254.20.10 from connection tracking, so they are not redirected here, and names allow nothing; if NodeLocal DNSCache has made them, start it with -setupiptables=false, and forward to 169.254.20.10',
      },
    ])
    t.match(lines, [
      /ERROR.*clients bypass this server: table ip raw, chain PREROUTING: rules exempt/,
    ])
    await watch.check()
    t.equal(lines.length, 1, 'one line')
    await host.run('iptables-nft', '-t', 'raw', '-F')
    await timers.advance(60_000)
    await until(() => lines.length > 1, 'the end')
    t.match(lines[1], /INFO.*clients no longer bypass this server: table ip raw, chain PREROUTING$/)
    t.strictSame(watch.found, [])
  },
)

t.test(
  'rules of iptables-legacy, which nft does not show',
  { ...NEEDS, ...needs('iptables-legacy') },
  async (t) => {
    const { host, watch } = await stage(t)
    for (const [chain = '', ...rule] of NODE_LOCAL_RULES) {
      await host.run('iptables-legacy', '-t', 'raw', '-A', chain, ...rule)
    }
    await watch.check()
    t.strictSame(watch.found, [], 'a table raw has other uses')
    await host.run('ip', 'link', 'add', 'nodelocaldns', 'type', 'veth')
    await watch.check()
    t.match(watch.found, [{ object: 'interface nodelocaldns', isCertain: true }])
    t.match(
      watch.found[0]?.reason,
      /^interface nodelocaldns exists, and iptables-legacy has a table raw: /,
    )
  },
)

t.test('interfaces of CNIs that send packets past nftables', NEEDS, async (t) => {
  for (const [name, fix] of [
    ['cilium_host', /bpf\.hostLegacyRouting=true/],
    ['bpfin.cali', /dataplane of Calico/],
    ['ovn-k8s-mp0', /sextant operator/],
  ] as const) {
    const made = await stage(t)
    const { host, watch, lines } = made
    await host.run('ip', 'link', 'add', name, 'type', 'veth')
    await watch.start()
    t.strictSame(watch.found, [], 'no client has asked yet')
    await watch.check()
    t.match(watch.found, [{ object: `interface ${name}`, isCertain: false, reason: fix }])
    t.match(lines, [
      new RegExp(`WARNING.*clients may bypass this server: interface ${name} exists`),
    ])
    // Then queries are redirected, so nftables sees packets of Pods.
    made.hasAnswered = true
    t.strictSame(watch.found, [])
    await watch.check()
    t.match(lines[1], /INFO.*clients no longer bypass this server/)
  }
})

t.test('without nft, or without /proc, nothing is found', async (t) => {
  const timers = new FakeTimers()
  const lines: string[] = []
  const log = createLogger(
    '',
    (line) => lines.push(line),
    () => true,
  )
  for (const read of [async () => '    lo: 0 0\n', () => Promise.reject(new Error('no /proc'))]) {
    const command = ['no-such-program']
    const watch = new BypassWatch({ command, read, hasAnswered: () => false, timers, log })
    await watch.start()
    t.strictSame(watch.found, [])
    watch.close()
    t.equal(timers.count, 0)
  }
  t.strictSame(lines, [])
})

/** An nft that fails for one of its commands; '' = none. Its only chain exempts all DNS queries. */
const failingNft = (failing: string): readonly string[] => {
  const chain =
    '{"chain": {"family": "ip", "table": "raw", "name": "PRE", "hook": "prerouting", "prio": -300}}'
  const rule = '{"rule": {"expr": [{"notrack": null}]}}'
  const script = `
    [ "$*" = "${failing}" ] && exit 1
    [ "$*" = "-j list chains" ] && echo '{"nftables": [${chain}]}' || echo '{"nftables": [${rule}]}'`
  return ['sh', '-c', script, 'nft']
}

t.test('a failure of nft hides nothing that was found before', async (t) => {
  const lines: string[] = []
  const log = createLogger(
    '',
    (line) => lines.push(line),
    () => true,
  )
  const command = [...failingNft('')]
  const watch = new BypassWatch({
    command,
    read: async () => '    lo: 0 0\n',
    hasAnswered: () => true,
    timers: new FakeTimers(),
    log,
  })
  t.teardown(() => watch.close())
  for (const failing of ['', '-j list chains', '-j list chain ip raw PRE']) {
    command.splice(0, command.length, ...failingNft(failing))
    await watch.check()
    t.match(watch.found, [{ object: 'table ip raw, chain PRE' }], failing)
  }
  t.equal(lines.length, 1, 'it is logged once')
})
