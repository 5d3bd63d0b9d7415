import t, { type Test } from 'tap'
import { systemClock } from '../../../../src/base/clock.ts'
import { Random } from '../../../../src/base/random.ts'
import { createLogger } from '../../../../src/base/telemetry/log.ts'
import { MetricsRegistry } from '../../../../src/base/telemetry/metrics.ts'
import { systemTimers } from '../../../../src/base/timers.ts'
import { scanCidr } from '../../../../src/dns/text/address.ts'
import { addressSetRow, insertRow } from '../../../../src/egress/sinks/ovn/address-set-row.ts'
import { textOf } from '../../../../src/kube/api.ts'
import type { Controller } from '../../../../src/operator/controller.ts'
import { createOvnController } from '../../../../src/operator/egress/ovn/ovn-controller.ts'
import { NAME_KINDS, type NameKind } from '../../../../src/operator/egress/resources.ts'
import { scanRemotes } from '../../../../src/ovsdb/remote.ts'
import { eventRecorder } from '../../../support/event-recorder.ts'
import { MemoryApi } from '../../../support/memory-api.ts'
import { NorthboundServer } from '../../../support/ovsdb.ts'
import { needs } from '../../../support/peer.ts'
import { until } from '../../../support/until.ts'

const NEEDS = needs('ovsdb-server', 'ovn-northd')
const NAMESPACE = 'ovn-kubernetes'
const WWW = 'www.example.com.'
const EVENTS = { group: 'events.k8s.io', version: 'v1', plural: 'events' }

/** A controller, the API server in memory, and a real server of OVN Northbound. */
class Bench {
  readonly api = new MemoryApi()
  readonly registry = new MetricsRegistry()
  readonly lines: string[] = []
  readonly server: NorthboundServer
  mayWrite = true
  controller: Controller

  readonly nameKind: NameKind

  private constructor(server: NorthboundServer, nameKind: NameKind) {
    this.server = server
    this.nameKind = nameKind
    const env = {
      api: this.api,
      namespaces: [],
      log: createLogger(
        '',
        (line) => this.lines.push(line),
        () => false,
      ),
      clock: systemClock,
      timers: systemTimers,
      random: new Random(7),
    }
    const { registry } = this
    const mayWrite = (): boolean => this.mayWrite
    this.controller = createOvnController(
      { ...env, events: eventRecorder(env), registry, mayWrite },
      {
        namespace: NAMESPACE,
        nameKind,
        remotes: scanRemotes(server.remote)!,
        tls: undefined,
        owner: 'sextant',
        families: [1, 2],
        clusterNetworks: [scanCidr('10.128.0.0/14')!],
        allowedNetworks: [scanCidr('10.131.0.0/16')!],
      },
    )
  }

  static async start(t: Test, nameKind = NAME_KINDS[0]): Promise<Bench> {
    const bench = new Bench(await NorthboundServer.start(t), nameKind)
    t.teardown(() => bench.controller.end())
    return bench
  }

  /** Writes an object whose status has these addresses of names. */
  put(
    name: string,
    dnsName: string,
    status: Readonly<Record<string, readonly string[]>> = {},
  ): void {
    const resolvedNames = Object.entries(status).map(([dnsName, ips]) => {
      const lastLookupTime = '2020-01-01T00:00:00Z'
      if (this.nameKind.kind === 'EgressFirewallDNSName') {
        return { dnsName, ips, ttl: 5, lastLookupTime }
      }
      const resolvedAddresses = ips.map((ip) => ({ ip, ttlSeconds: 5, lastLookupTime }))
      return { dnsName, resolvedAddresses }
    })
    const metadata = { namespace: NAMESPACE, name }
    this.api.put(this.nameKind.resource, {
      metadata,
      spec: { name: dnsName },
      status: { resolvedNames },
    })
  }

  drop(name: string): void {
    this.api.drop(this.nameKind.resource, `${NAMESPACE}/${name}`)
  }

  /** `NAME FAMILY: ADDRESSES` of each row. */
  async rows(): Promise<readonly string[]> {
    const [result] = await this.server.transact({ op: 'select', table: 'Address_Set', where: [] })
    const { rows } = result as {
      rows: { addresses: unknown; external_ids: [string, string[][]] }[]
    }
    return rows
      .map(({ addresses, external_ids }) => {
        const ids = Object.fromEntries(external_ids[1])
        const set = Array.isArray(addresses) ? addresses[1] : [addresses]
        return `${ids['k8s.ovn.org/name']} ${ids['ip-family']}: ${set.sort().join(' ')}`
      })
      .sort()
  }

  async hasRows(...rows: readonly string[]): Promise<void> {
    let found: readonly string[] = []
    await until(
      async () => {
        found = await this.rows()
        return found.join('\n') === rows.join('\n')
      },
      `rows ${rows.join(', ')}`,
    ).catch((error) => {
      throw new Error(`${error}: ${found.join(', ')}`)
    })
  }

  async metric(series: string): Promise<number> {
    const line = (await this.registry.print())
      .split('\n')
      .find((one) => one.startsWith(`${series} `))
    return Number(line?.split(' ').at(-1))
  }
}

for (const nameKind of NAME_KINDS) {
  t.test(
    `address sets have the union of the names of their objects: ${nameKind.kind}`,
    NEEDS,
    async (t) => {
      const bench = await Bench.start(t, nameKind)
      bench.put('dns-1', '*.example.com.', {
        '*.example.com.': ['192.0.2.1'],
        'a.example.com.': ['192.0.2.1', '192.0.2.2', '2001:db8::1'],
      })
      bench.controller.begin()
      await bench.hasRows(
        '*.example.com. v4: 192.0.2.1 192.0.2.2',
        '*.example.com. v6: 2001:db8::1',
      )
      bench.put('dns-2', WWW)
      await bench.hasRows(
        ...['*.example.com. v4: 192.0.2.1 192.0.2.2', '*.example.com. v6: 2001:db8::1'],
        ...[`${WWW} v4: `, `${WWW} v6: `],
      )
      bench.put('dns-1', '*.example.com.', { 'b.example.com.': ['192.0.2.9'] })
      await bench.hasRows(
        ...['*.example.com. v4: 192.0.2.9', '*.example.com. v6: '],
        ...[`${WWW} v4: `, `${WWW} v6: `],
      )
      bench.drop('dns-1')
      await bench.hasRows(`${WWW} v4: `, `${WWW} v6: `)
      t.equal(bench.controller.reason, '')
      t.equal(await bench.metric('sextant_ovn_connected'), 1)
      t.equal(await bench.metric('sextant_ovn_address_sets'), 2)
      t.equal(await bench.metric('sextant_ovn_pending_names'), 0)
      t.equal(await bench.metric('sextant_ovn_repairs_total'), 0)
      t.ok((await bench.metric('sextant_ovn_commit_seconds_count')) >= 3)
      t.equal(await bench.metric('sextant_ovn_transactions_total{result="failed"}'), 0)
    },
  )
}

t.test('denied addresses are left out, counted and reported, unless allowed', NEEDS, async (t) => {
  const bench = await Bench.start(t)
  bench.put('dns-1', WWW, { [WWW]: ['192.0.2.1', '10.129.0.1', '10.131.0.1', '127.0.0.1'] })
  bench.controller.begin()
  await bench.hasRows(`${WWW} v4: 10.131.0.1 192.0.2.1`, `${WWW} v6: `)
  t.equal(await bench.metric('sextant_ovn_denied_addresses'), 2)
  await until(() => bench.api.all(EVENTS).size === 2, 'two Events')
  t.match([...bench.api.all(EVENTS).values()].map(({ note }) => note).sort(), [
    `${WWW}: 10.129.0.1 is in a network of the cluster`,
    `${WWW}: 127.0.0.1 is a loopback address`,
  ])
  for (const { reason, regarding } of bench.api.all(EVENTS).values()) {
    t.match({ reason, regarding }, { reason: 'AddressDenied', regarding: { name: 'dns-1' } })
  }
  bench.put('dns-1', WWW, { [WWW]: ['192.0.2.2', '10.129.0.1'] })
  await bench.hasRows(`${WWW} v4: 192.0.2.2`, `${WWW} v6: `)
  t.equal(await bench.metric('sextant_ovn_denied_addresses'), 1)
  t.equal(bench.lines.filter((line) => line.includes('10.129.0.1')).length, 1, 'once')
  bench.drop('dns-1')
  await bench.hasRows()
  t.equal(await bench.metric('sextant_ovn_denied_addresses'), 0)
})

t.test('any number of denied addresses does not hide a refused change', NEEDS, async (t) => {
  const bench = await Bench.start(t)
  const row = addressSetRow('sextant', WWW, 1, [])
  await bench.server.transact(insertRow({ ...row, externalIds: {}, addresses: [] }))
  const loopback = Array.from({ length: 150 }, (_, i) => `127.0.0.${i}`)
  bench.put('dns-1', 'a.example.com.', { 'a.example.com.': loopback })
  bench.put('dns-2', WWW, { [WWW]: ['192.0.2.1'] })
  bench.controller.begin()
  const linesWith = (text: string) => bench.lines.filter((line) => line.includes(text)).length
  await until(() => linesWith('does not belong to sextant') === 1, 'the line of the refused change')
  t.equal(linesWith('is a loopback address'), 100)
  t.equal(await bench.metric('sextant_ovn_denied_addresses'), 150)
})

t.test('an object with an invalid name is reported, and ignored', NEEDS, async (t) => {
  const bench = await Bench.start(t)
  bench.put('dns-1', 'www.*.com.', { 'www.a.com.': ['192.0.2.1'] })
  bench.put('dns-2', WWW, { [WWW]: ['192.0.2.2'] })
  bench.controller.begin()
  await bench.hasRows(`${WWW} v4: 192.0.2.2`, `${WWW} v6: `)
  await until(() => bench.api.all(EVENTS).size > 0, 'an Event')
  const [event] = bench.api.all(EVENTS).values()
  t.match(event, { reason: 'InvalidDNSName', type: 'Warning', regarding: { name: 'dns-1' } })
  t.match(textOf(event, 'note'), /^spec\.name: invalid name "www\.\*\.com\.": a wildcard must be/)
  bench.put('dns-1', 'www.*.com.', { 'www.a.com.': ['192.0.2.9'] })
  bench.put('dns-2', WWW, { [WWW]: ['192.0.2.3'] })
  await bench.hasRows(`${WWW} v4: 192.0.2.3`, `${WWW} v6: `)
  t.equal(bench.lines.filter((line) => line.includes('spec.name')).length, 1, 'once')
})

t.test('one object counts for each name: the oldest, then the next', NEEDS, async (t) => {
  const bench = await Bench.start(t)
  bench.put('dns-b', WWW, { [WWW]: ['192.0.2.1'] })
  bench.controller.begin()
  await bench.hasRows(`${WWW} v4: 192.0.2.1`, `${WWW} v6: `)
  bench.put('dns-a', WWW, { [WWW]: ['203.0.113.1'] })
  bench.put('dns-b', WWW, { [WWW]: ['192.0.2.2'] })
  await bench.hasRows(`${WWW} v4: 192.0.2.2`, `${WWW} v6: `)
  bench.drop('dns-b')
  await bench.hasRows(`${WWW} v4: 203.0.113.1`, `${WWW} v6: `)
  bench.drop('dns-a')
  bench.put('dns-a', 'other.example.com.', { 'other.example.com.': ['192.0.2.3'] })
  await bench.hasRows('other.example.com. v4: 192.0.2.3', 'other.example.com. v6: ')
})

t.test('the next leader deletes what is gone, once it knows all objects', NEEDS, async (t) => {
  const bench = await Bench.start(t)
  bench.put('dns-1', WWW, { [WWW]: ['192.0.2.1'] })
  bench.put('dns-2', 'old.example.com.', { 'old.example.com.': ['192.0.2.2'] })
  bench.controller.begin()
  const rows = ['old.example.com. v4: 192.0.2.2', 'old.example.com. v6: ']
  await bench.hasRows(...rows, `${WWW} v4: 192.0.2.1`, `${WWW} v6: `)
  await bench.controller.end()
  bench.drop('dns-2')
  bench.put('dns-1', WWW, { [WWW]: ['192.0.2.7'] })
  bench.api.refuse = () => 500
  bench.controller.begin()
  await until(() => bench.controller.reason !== '', 'the fault of the API server')
  await bench.hasRows(...rows, `${WWW} v4: 192.0.2.1`, `${WWW} v6: `)
  bench.api.refuse = () => undefined
  await bench.hasRows(`${WWW} v4: 192.0.2.7`, `${WWW} v6: `)
})

t.test('only the leader writes', NEEDS, async (t) => {
  const bench = await Bench.start(t)
  bench.mayWrite = false
  bench.put('dns-1', WWW, { [WWW]: ['192.0.2.1'] })
  bench.controller.begin()
  await until(() => bench.controller.reason === 'this operator is not the leader', 'the refusal')
  await bench.hasRows()
  t.equal(bench.api.all(EVENTS).size, 0)
  bench.mayWrite = true
  await bench.hasRows(`${WWW} v4: 192.0.2.1`, `${WWW} v6: `)
})

t.test('a refused change is reported once, and repeated until it succeeds', NEEDS, async (t) => {
  const bench = await Bench.start(t)
  const row = addressSetRow('sextant', WWW, 1, [])
  await bench.server.transact(insertRow({ ...row, externalIds: {}, addresses: ['203.0.113.1'] }))
  bench.put('dns-1', WWW, { [WWW]: ['192.0.2.1'] })
  bench.put('dns-2', 'fine.example.com.', { 'fine.example.com.': ['192.0.2.2'] })
  bench.controller.begin()
  await until(() => bench.api.all(EVENTS).size > 0, 'an Event')
  const [event] = bench.api.all(EVENTS).values()
  t.match(event, { reason: 'AddressSetFailed', type: 'Warning', regarding: { name: 'dns-1' } })
  t.match(textOf(event, 'note'), /^address set a\d+ or a\d+ exists and does not belong to sextant$/)
  t.ok((await bench.rows()).includes('fine.example.com. v4: 192.0.2.2'), 'others are written')
  t.equal(await bench.metric('sextant_ovn_pending_names'), 1)
  const where = [['name', '==', row.name]]
  await bench.server.transact({ op: 'delete', table: 'Address_Set', where })
  const fine = ['fine.example.com. v4: 192.0.2.2', 'fine.example.com. v6: ']
  await bench.hasRows(...fine, `${WWW} v4: 192.0.2.1`, `${WWW} v6: `)
  t.equal(bench.lines.filter((line) => line.includes(WWW)).length, 1)
})

t.test('a database that is away delays changes, and its reason is shown', NEEDS, async (t) => {
  const bench = await Bench.start(t)
  await bench.server.kill()
  bench.put('dns-1', WWW, { [WWW]: ['192.0.2.1'] })
  bench.controller.begin()
  await until(() => /ECONNREFUSED/.test(bench.controller.reason), 'the reason')
  t.match(bench.controller.reason, /^OVN Northbound: tcp:127\.0\.0\.1:\d+: connect ECONNREFUSED/)
  t.equal(await bench.metric('sextant_ovn_connected'), 0)
  t.equal(await bench.metric('sextant_ovn_pending_names'), 1)
  bench.put('dns-1', WWW, { [WWW]: ['192.0.2.2'] })
  await bench.server.resume()
  await bench.hasRows(`${WWW} v4: 192.0.2.2`, `${WWW} v6: `)
  t.equal(bench.controller.reason, '')
  await bench.server.kill()
  await bench.controller.end()
  t.equal(await bench.metric('sextant_ovn_address_sets'), 0)
})
