import t from 'tap'
import { Rcode } from '../../../../src/dns/iana/index.ts'
import {
  DNS_NAME_RESOLVERS,
  EGRESS_FIREWALL_DNS_NAMES,
} from '../../../../src/operator/egress/resources.ts'
import { NAMESPACE, Site } from './site.ts'

// Long: thousands of random sequences.

const WWW = 'www.example.com.'
const WILD = '*.example.com.'
const EVENTS = { group: 'events.k8s.io', version: 'v1', plural: 'events' }

t.test('a new name is looked up at once, and again when its TTL ends', async (t) => {
  const site = new Site(t)
  site.zones.set(WWW, { ips: ['192.0.2.1', '2001:db8::1'], ttl: 30 })
  site.start()
  await site.pass(1000)
  site.resolver('www', WWW)
  await site.pass(1000)
  t.strictSame(site.status('www'), [`${WWW} 192.0.2.1 2001:db8::1`.replace(' ', ': ')])
  const first = site.asked.length
  t.equal(first, 2, 'A and AAAA, at one server')
  await site.pass(28_000)
  t.equal(site.asked.length, first)
  await site.pass(5000)
  t.equal(site.asked.length, first + 4, 'two addresses: both servers')
  await site.pass(120_000)
  t.strictSame(site.status('www'), [`${WWW}: 192.0.2.1 2001:db8::1`])
  t.strictSame(site.api.writes, [], 'nothing was removed')
  t.equal(await site.metric('names'), 1)
  t.equal(await site.metric('servers'), 2)
  t.equal(await site.metric('removed_total{what="addresses"}'), 0)
})

t.test('a server that learns of the object after the first lookup gets another', async (t) => {
  const site = new Site(t)
  site.zones.set(WWW, { ips: ['192.0.2.1'], ttl: 3600 })
  site.writesStatus = false
  site.resolver('www', WWW)
  site.start()
  await site.pass(2000)
  t.equal(site.asked.length, 2)
  site.writesStatus = true
  await site.pass(4000)
  t.strictSame(site.status('www'), [`${WWW}: 192.0.2.1`])
  await site.pass(20 * 60_000, 1000)
  t.equal(site.asked.length, 4, 'the status has it: no more lookups')
  site.writesStatus = false
  site.resolver('www', WWW)
  await site.pass(600_000, 1000)
  t.ok(
    site.asked.length < 4 + 2 * 10,
    `a server without the directive: ${site.asked.length - 4} in 10 min`,
  )
})

t.test('an address that is in no answer any more is removed 5 s after its TTL', async (t) => {
  const site = new Site(t)
  site.zones.set(WWW, { ips: ['192.0.2.1'], ttl: 20 })
  site.resolver('www', WWW)
  site.start()
  await site.pass(1000)
  site.zones.set(WWW, { ips: ['192.0.2.2'], ttl: 20 })
  await site.pass(22_000)
  t.strictSame(site.status('www'), [`${WWW}: 192.0.2.1 192.0.2.2`])
  await site.pass(6000)
  t.strictSame(site.status('www'), [`${WWW}: 192.0.2.2`])
  t.equal(await site.metric('removed_total{what="addresses"}'), 1)
  t.match(site.lines.join('\n'), /removed 192\.0\.2\.1 of www\.example\.com\./)
})

t.test('a wildcard is looked up itself, and so are the names below it', async (t) => {
  const site = new Site(t)
  site.zones.set(WWW, { ips: ['192.0.2.1'], ttl: 20 })
  site.resolver('wild', WILD, { [WWW]: { ips: ['192.0.2.1'], ttl: 20, age: 10 } })
  site.start()
  await site.pass(60_000)
  t.strictSame(site.status('wild'), [`${WWW}: 192.0.2.1`])
  const asked = (name: string) => site.asked.filter((one) => one.name === name).length
  t.equal(asked(WILD), 2, 'a wildcard without an address: once in 30 minutes')
  t.ok(asked(WWW) >= 4 && asked(WWW) <= 6, `${asked(WWW)}`)
  site.zones.set(WILD, { ips: ['192.0.2.9'], ttl: 20 })
  await site.pass(31 * 60_000, 1000)
  t.strictSame(site.status('wild'), [`${WILD}: 192.0.2.9`, `${WWW}: 192.0.2.1`])
})

t.test('a name below a wildcard whose lookups fail is removed', async (t) => {
  const site = new Site(t)
  // The plugin of the draft does not count failures.
  site.writesStatus = false
  site.resolver('wild', WILD, { [WWW]: { ips: ['192.0.2.1'], ttl: 10, age: 5 } })
  site.start()
  await site.pass(25_000)
  t.strictSame(site.status('wild'), [`${WWW}: 192.0.2.1`], 'failures keep it for a time')
  await site.pass(20_000)
  t.strictSame(site.status('wild'), [])
  t.equal(await site.metric('removed_total{what="names"}'), 1)
  const reasons = [...site.api.all(EVENTS).values()].map(({ reason }) => reason)
  t.ok(reasons.includes('NameRemoved'), String(reasons))
  const before = site.asked.length
  await site.pass(120_000, 1000)
  t.equal(site.asked.filter(({ name }) => name === WWW).length, before - 2, 'no longer asked')
})

t.test('a name that fails is removed by the server that counts', async (t) => {
  const site = new Site(t)
  site.zones.set(WWW, Rcode.SERVFAIL)
  site.resolver('wild', WILD, { [WWW]: { ips: ['192.0.2.1'], ttl: 10, age: 5 } })
  site.start()
  await site.pass(60_000)
  t.strictSame(site.status('wild'), [])
  t.strictSame(
    site.api.writes.filter((write) => write.startsWith('PATCH')),
    [],
  )
})

t.test('while no server answers, addresses are kept for 30 s', async (t) => {
  const site = new Site(t)
  site.zones.set(WWW, { ips: ['192.0.2.1', '192.0.2.2'], ttl: 20 })
  site.resolver('www', WWW)
  site.start()
  await site.pass(2000)
  for (const server of ['10.0.0.1', '10.0.0.2']) site.silent.add(server)
  await site.pass(45_000)
  t.strictSame(site.status('www'), [`${WWW}: 192.0.2.1 192.0.2.2`])
  await site.pass(7000)
  t.strictSame(site.status('www'), [`${WWW}:`])
  const reasons = [...site.api.all(EVENTS).values()].map(({ reason }) => reason)
  t.strictSame(reasons, ['NoAnswer'])
  site.silent.clear()
  await site.pass(20_000)
  t.strictSame(site.status('www'), [`${WWW}: 192.0.2.1 192.0.2.2`])
})

t.test('a process that stood still loses nothing', async (t) => {
  const site = new Site(t)
  site.zones.set(WWW, { ips: ['192.0.2.1'], ttl: 20 })
  site.resolver('www', WWW)
  site.start()
  await site.pass(15_000)
  // A machine that was suspended: no timer ran, and the system clock went on.
  site.latencyMs = 6000
  await site.pass(300_000, 300_000)
  site.latencyMs = 10
  await site.pass(30_000)
  t.strictSame(site.status('www'), [`${WWW}: 192.0.2.1`])
  t.strictSame(site.api.writes, [], 'nothing was removed')
})

t.test('a restart loses nothing, however old the status is', async (t) => {
  const site = new Site(t)
  site.zones.set(WWW, { ips: ['192.0.2.1'], ttl: 20 })
  site.resolver('www', WWW, { [WWW]: { ips: ['192.0.2.1', '192.0.2.9'], ttl: 20, age: 3600 } })
  site.start()
  await site.pass(500)
  t.strictSame(site.status('www'), [`${WWW}: 192.0.2.1`], 'what is dead is removed at once')
  t.equal(site.api.writes.length, 1)
  await site.stop()
  await site.pass(25_000)
  const before = site.asked.length
  site.start()
  await site.pass(1000)
  t.ok(site.asked.length > before)
  await site.pass(30_000)
  t.strictSame(site.status('www'), [`${WWW}: 192.0.2.1`])
})

t.test('without servers the controller says so, and goes on when they come', async (t) => {
  const site = new Site(t, [])
  site.zones.set(WWW, { ips: ['192.0.2.1'], ttl: 20 })
  site.resolver('www', WWW)
  const controller = site.start()
  await site.pass(120_000, 500)
  t.match(controller.reason, 'Service kube-system/kube-dns has no ready endpoint')
  t.equal(site.asked.length, 0)
  site.setServers(['10.0.0.3'])
  await site.pass(1000)
  t.equal(controller.reason, '')
  t.strictSame(site.status('www'), [`${WWW}: 192.0.2.1`])
  t.strictSame([...new Set(site.asked.map(({ host }) => host))], ['10.0.0.3'])
})

t.test(
  'without the right to read the servers, dead addresses are removed all the same',
  async (t) => {
    const site = new Site(t)
    site.api.refuse = ({ path }) => (path.includes('endpointslices') ? 403 : undefined)
    site.resolver('www', WWW, { [WWW]: { ips: ['192.0.2.1'], ttl: 20, age: 3600 } })
    const controller = site.start()
    await site.pass(55_000)
    t.match(controller.reason, /endpointslices.*needs get, list and watch/)
    t.strictSame(site.status('www'), [`${WWW}:`])
  },
)

t.test('capitals in names of the draft do not matter', async (t) => {
  const site = new Site(t)
  site.draft('www', 'WWW.Example.com.', ['192.0.2.1', '192.0.2.2'], 20)
  site.draft('new', 'New.example.com.', [], 20)
  site.zones.set(WWW, { ips: ['192.0.2.1'], ttl: 600 })
  site.start()
  await site.pass(100_000, 1000)
  const asked = new Set(site.asked.map(({ name }) => name))
  t.strictSame([...asked].sort(), ['new.example.com.', WWW])
  t.equal(await site.metric('names'), 2)
  t.strictSame(
    site.status('www', EGRESS_FIREWALL_DNS_NAMES),
    ['WWW.Example.com.: 192.0.2.1'],
    'as long as the name has the address',
  )
})

t.test('an object with an invalid name is reported once', async (t) => {
  const site = new Site(t)
  site.resolver('bad', 'www.*.com.')
  site.draft('worse', 'a..example.com.', [], 20)
  site.start()
  await site.pass(2000)
  site.resolver('bad', 'www.*.com.', { [WWW]: { ips: ['192.0.2.1'], ttl: 60, age: 0 } })
  await site.pass(2000)
  const events = [...site.api.all(EVENTS).values()]
  t.match(
    events.sort((a, b) => (String(a.note) < String(b.note) ? -1 : 1)),
    [
      { reason: 'InvalidDNSName', regarding: { kind: 'EgressFirewallDNSName', name: 'worse' } },
      { reason: 'InvalidDNSName', regarding: { kind: 'DNSNameResolver', name: 'bad' } },
    ],
  )
  t.equal(events.length, 2)
  t.equal(site.lines.filter((line) => line.includes('spec.name: invalid name')).length, 2)
})

t.test('the draft of the API is served too, and may be missing', async (t) => {
  const site = new Site(t)
  site.draft('www', WWW, ['192.0.2.1', '192.0.2.2'], 20)
  site.zones.set(WWW, { ips: ['192.0.2.1'], ttl: 600 })
  const controller = site.start()
  await site.pass(30_000)
  t.strictSame(site.status('www', EGRESS_FIREWALL_DNS_NAMES), [`${WWW}: 192.0.2.1`])
  t.equal(controller.reason, '')
  await site.stop()
  site.api.refuse = ({ path }) => (path.includes('egressfirewalldnsnames') ? 404 : undefined)
  const next = site.start()
  site.resolver('other', WWW)
  await site.pass(10_000)
  t.strictSame(site.status('other'), [`${WWW}: 192.0.2.1`])
  t.equal(next.reason, '')
  site.api.refuse = ({ path }) => (path.includes('openshift') ? 404 : undefined)
  site.api.cut()
  await site.pass(10_000)
  t.match(next.reason, /is the CustomResourceDefinition .* installed/)
})

t.test('a write of a server in between is not undone', async (t) => {
  const site = new Site(t)
  site.zones.set(WWW, { ips: ['192.0.2.1'], ttl: 3600 })
  site.writesStatus = false
  site.resolver('www', WWW, { [WWW]: { ips: ['192.0.2.9'], ttl: 20, age: 10 } })
  let written = 0
  site.api.refuse = ({ method, body }) => {
    if (method !== 'PATCH' || written++ > 0) return undefined
    t.type((body.metadata as { resourceVersion: string }).resourceVersion, 'string')
    site.resolver('www', WWW, { [WWW]: { ips: ['192.0.2.9', '192.0.2.7'], ttl: 60, age: 0 } })
    return undefined
  }
  site.start()
  await site.pass(30_000)
  t.strictSame(site.status('www'), [`${WWW}: 192.0.2.9 192.0.2.7`])
  t.ok(written > 0)
  t.strictSame(site.api.writes, [], 'it was refused')
})

t.test('a deleted object, and a process that does not lead, ask and write nothing', async (t) => {
  const site = new Site(t)
  site.zones.set(WWW, { ips: ['192.0.2.1'], ttl: 5 })
  site.resolver('www', WWW)
  site.resolver('invalid', 'WWW..example.com')
  const controller = site.start()
  await site.pass(10_000)
  site.api.drop(DNS_NAME_RESOLVERS, `${NAMESPACE}/www`)
  await site.pass(1000)
  const before = site.asked.length
  await site.pass(60_000, 1000)
  t.equal(site.asked.length, before)
  t.equal(await site.metric('names'), 0)
  site.mayWrite = false
  site.writesStatus = false
  site.resolver('www', WWW, { [WWW]: { ips: ['192.0.2.9'], ttl: 5, age: 60 } })
  await site.pass(60_000, 1000)
  t.match(site.api.writes, [/^POST events invalid/])
  t.equal(site.api.writes.length, 1, 'while it led')
  await controller.end()
  const last = site.asked.length
  await site.pass(60_000, 1000)
  t.equal(site.asked.length, last)
})

/** 1 000 names with one TTL, all due at once. */
const CROWDS: { name: string; latencyMs: number; silent: readonly string[] }[] = [
  { name: 'quick servers', latencyMs: 20, silent: [] },
  { name: 'slow servers', latencyMs: 500, silent: [] },
  { name: 'a server of two that does not reply', latencyMs: 20, silent: ['10.0.0.2'] },
]

t.test('1 000 names that are due at once lose no address', async (t) => {
  for (const { name, latencyMs, silent } of CROWDS) {
    await t.test(name, async (t) => {
      const site = new Site(t)
      site.latencyMs = latencyMs
      for (const server of silent) site.silent.add(server)
      const names = Array.from({ length: 1000 }, (_, i) => `n${i}.example.com.`)
      for (const [i, dnsName] of names.entries()) {
        const ips = [`10.1.${i >> 8}.${i & 255}`]
        site.zones.set(dnsName, { ips, ttl: 30 })
        site.resolver(`n${i}`, dnsName, { [dnsName]: { ips, ttl: 30, age: 25 } })
      }
      site.start()
      let most = 0
      let seen = 0
      await site.pass(70_000, 250, () => {
        most = Math.max(most, site.asked.length - seen)
        seen = site.asked.length
      })
      t.strictSame(site.api.writes, [], 'no address was removed')
      t.ok(site.asked.length >= 4000, `${site.asked.length} queries: each name at least twice`)
      t.ok(most <= 400, `at most ${most} queries in 250 ms`)
      t.equal(await site.metric('names'), 1000)
    })
  }
})
