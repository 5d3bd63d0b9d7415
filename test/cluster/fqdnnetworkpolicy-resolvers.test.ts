import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { RRType } from '../../src/dns/iana/index.ts'
import { CLUSTER_TEST_MS } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { digAt, type RunningPeer, startPeer } from '../support/nameservers.ts'
import { needs, run } from '../support/peer.ts'
import { freePort } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { reloadZone, startUnbound } from '../support/unbound.ts'
import { until } from '../support/until.ts'
import { ownAddress, SEEN_MS, Shop, to, Zone } from './fqdn-policies.ts'

const MANY = Array.from({ length: 100 }, (_, i) => i)
const HEAD = `$ORIGIN example.
$TTL 300
@ SOA ns hostmaster 1 3600 600 86400 1
@ NS ns
ns A 192.0.2.53
alias CNAME One
one CNAME two
two A 198.51.100.10
dangling CNAME nowhere
empty TXT "no address"
${MANY.map((i) => `big A 203.0.113.${i}\nbig AAAA 2001:db8::${i}`).join('\n')}
`
/** Unbound would look for the target in the Internet. */
const OUTSIDE = 'outside CNAME www.elsewhere.'
const BIND_ZONE = `${HEAD}${OUTSIDE}
both A 198.51.100.2
both A 198.51.100.1
bind A 198.51.100.4
quick 1 A 198.51.100.20
`
const UNBOUND_ZONE = `${HEAD}both A 198.51.100.3
both A 198.51.100.2
both AAAA 2001:db8::3
quick 1 A 198.51.100.20
`
const BOTH = '198.51.100.1/32 198.51.100.2/32 198.51.100.3/32 2001:db8::3/128'

t.setTimeout(CLUSTER_TEST_MS)

/** Changes the zone of BIND; `lines`: in the syntax of nsupdate. */
async function update(bind: RunningPeer, ...lines: readonly string[]): Promise<void> {
  const path = join(bind.directory, 'update')
  const text = [`server 127.0.0.1 ${bind.port}`, 'zone example', ...lines, 'send', '']
  writeFileSync(path, text.join('\n'))
  const { code, stderr } = await run('nsupdate', [path])
  if (code !== 0) throw new Error(stderr)
}

const options = { ...needsCluster(), ...needs('dig', 'named', 'nsupdate', 'unbound') }

t.test('FQDNNetworkPolicies with the answers of BIND and Unbound', options, async (t) => {
  const host = ownAddress()
  if (host === undefined) return void t.comment('skipped: this machine has only loopback addresses')
  const shop = await Shop.start(t)
  const bind = await startPeer(t, 'named', {
    zone: 'example',
    zoneText: BIND_ZONE,
    host,
    port: await freePort(),
    signed: false,
  })
  const first = await startUnbound(t, { zoneText: UNBOUND_ZONE, host })
  await shop.addServer('bind', { host, port: bind.port })
  await shop.addServer('unbound', { host, port: first.port })
  let operator = await shop.startOperator()

  await t.test('the addresses of both servers', async (t) => {
    await shop.create('both', to('both.example'))
    await shop.has('both', BOTH)
    await shop.isIn('both', 'Active')
    t.equal(await operator.metric('sextant_fqdnnetworkpolicy_dns_servers'), 2)
  })

  await t.test('names that one of the servers or both do not have', async () => {
    const rules = ['bind', 'missing', 'empty', 'dangling', 'outside'].map((name) => ({
      to: [{ fqdns: [`${name}.example`] }],
    }))
    await shop.create('parts', { egress: rules })
    await shop.has('parts', '198.51.100.4/32')
    await shop.isIn('parts', 'Active')
  })

  await t.test('a chain of CNAMEs', async () => {
    await shop.create('alias', to('alias.example'))
    await shop.has('alias', '198.51.100.10/32')
  })

  await t.test('an answer that does not fit into a datagram', async (t) => {
    for (const type of ['A', 'AAAA']) {
      const query = ['+ignore', '+bufsize=1232', 'big.example', type]
      t.match(await digAt(bind.port, query), /flags: qr aa tc/, `${type} is truncated`)
    }
    await shop.create('big', to('big.example'))
    const cidrs = MANY.flatMap((i) => [`203.0.113.${i}/32`, addressOf(i)])
    await shop.has('big', cidrs.sort().join(' '))
  })

  await t.test('a change of both zones', async () => {
    await shop.create('quick', to('quick.example'))
    await shop.has('quick', '198.51.100.20/32')
    await update(bind, 'update delete quick.example', 'update add quick.example 1 A 198.51.100.21')
    await shop.has('quick', '198.51.100.20/32 198.51.100.21/32')
    reloadZone(first, UNBOUND_ZONE.replace('quick 1 A 198.51.100.20', 'quick 1 A 198.51.100.22'))
    await shop.has('quick', '198.51.100.20/32 198.51.100.21/32 198.51.100.22/32')
  })

  await t.test('a server that is stopped, and then both', async (t) => {
    first.process.kill('SIGKILL')
    await update(bind, 'update add quick.example 1 A 198.51.100.23')
    const all = [20, 21, 22, 23].map((last) => `198.51.100.${last}/32`).join(' ')
    await shop.has('quick', all)
    await shop.create('one', to('both.example', 'bind.example'))
    await shop.has(
      'one',
      '198.51.100.1/32 198.51.100.2/32 198.51.100.3/32 198.51.100.4/32 2001:db8::3/128',
    )
    // Its answer must be there when it continues: the next one is 300 s later.
    await update(bind, 'update add new.example 300 A 198.51.100.30')
    bind.signal('SIGSTOP')
    const count = 'sextant_fqdnnetworkpolicy_lookup_failures_total{rcode="none"}'
    const before = (await operator.metric(count)) ?? 0
    await shop.create('none', to('new.example'))
    await shop.has('none', '')
    await until(async () => ((await operator.metric(count)) ?? 0) > before + 2, 'silence', SEEN_MS)
    t.equal(await shop.cidrs('quick'), all)
    t.equal(await shop.cidrs('both'), BOTH)
    await shop.isIn('both', 'Active')
  })

  await t.test('both are back', async () => {
    const { port, tlsPort } = first
    const zoneText = `${UNBOUND_ZONE}new A 198.51.100.31\n`
    await startUnbound(t, { zoneText, host, ports: { port, tlsPort } })
    bind.signal('SIGCONT')
    await shop.has('none', '198.51.100.30/32 198.51.100.31/32')
  })

  await t.test('an address is removed after the expiration period', async () => {
    await operator.stop()
    operator = await shop.startOperator('-ip-expiration-period=8s')
    await update(bind, 'update delete quick.example')
    await shop.has('quick', '198.51.100.20/32')
    // No server has it: NXDOMAIN removes nothing before its time.
    await update(bind, 'update delete bind.example')
    await shop.has('parts', '')
    await shop.has('both', BOTH)
    await operator.stop()
  })

  await t.test('over TCP', async (t) => {
    const [udp, tcp] = [await Zone.open(t, host), await Zone.open(t, host)]
    tcp.set('tcp.example', 300, '198.51.100.40', '2001:db8::40')
    udp.set('tcp.example', 300, '198.51.100.41')
    for (const name of ['bind', 'unbound']) await shop.removeServer(name)
    await shop.addServer('scripted', udp.server, tcp.server.port)
    operator = await shop.startOperator('-dns-tcp')
    await shop.create('tcp', to('tcp.example'))
    await shop.has('tcp', '198.51.100.40/32 2001:db8::40/128')
    t.ok(tcp.server.asked.every(({ isTcp }) => isTcp))
    t.equal(udp.server.asked.length, 0)
    await operator.stop()
    await shop.removeServer('scripted')
  })

  await t.test('the servers of a file', async (t) => {
    const file = join(temporaryDirectory(t), 'resolv.conf')
    const write = (...servers: readonly { port: number }[]): void => {
      const lines = servers.map(({ port }) => `nameserver 127.0.0.1:${port}`)
      writeFileSync(
        file,
        ['search example', ...lines, 'options timeout:1 attempts:1', ''].join('\n'),
      )
    }
    const flags = ['-dns-environment', 'resolv.conf', '-dns-config-file', file]
    write(bind, first)
    operator = await shop.startOperator(...flags)
    await shop.create('file', to('both.example'))
    await shop.has('file', BOTH)
    await shop.isIn('file', 'Active')
    await operator.stop()

    operator = await shop.startOperator(...flags, '-dns-tcp', '-skip-aaaa')
    await shop.create('file-tcp', to('big.example'))
    await shop.has(
      'file-tcp',
      MANY.map((i) => `203.0.113.${i}/32`)
        .sort()
        .join(' '),
    )
    const [udp, tcp] = [await Zone.open(t, '127.0.0.1'), await Zone.open(t, '127.0.0.1')]
    for (const zone of [udp, tcp]) zone.set('edited.example', 300, '198.51.100.50')
    await shop.create('edited', to('edited.example'))
    await shop.has('edited', '')
    write(tcp.server)
    await shop.has('edited', '198.51.100.50/32')
    t.ok(tcp.server.asked.every(({ isTcp }) => isTcp))
    t.equal(tcp.count('edited.example', RRType.AAAA), 0)
    rmSync(file)
    await operator.stop()

    // An address in the status does not need a server.
    operator = await shop.startOperator(...flags)
    await shop.isIn('edited', 'Pending')
    t.match((await shop.status('edited')).reason, /resolv.conf cannot be read: ENOENT/)
    t.equal(await shop.cidrs('edited'), '198.51.100.50/32')
    await shop.create('later', to('edited.example', 'later.example'))
    udp.set('later.example', 300, '198.51.100.51')
    write(udp.server)
    await shop.has('later', '198.51.100.50/32 198.51.100.51/32')
    for (const name of ['later', 'edited']) await shop.isIn(name, 'Active')
    t.ok(udp.server.asked.every(({ isTcp }) => !isTcp))
  })

  shop.checkOutput(t)
})

function addressOf(i: number): string {
  return i === 0 ? '2001:db8::/128' : `2001:db8::${i}/128`
}
