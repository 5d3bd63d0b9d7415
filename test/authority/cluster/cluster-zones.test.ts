import t, { type Test } from 'tap'
import { ClusterZones } from '../../../src/authority/cluster/cluster-zones.ts'
import {
  externalScheme,
  internalScheme,
  type NameScheme,
} from '../../../src/authority/cluster/name-scheme.ts'
import { type FollowedPlural, ObjectStore } from '../../../src/authority/cluster/object-store.ts'
import { runWhole } from '../../../src/base/slices.ts'
import { printType, Rcode, RRType } from '../../../src/dns/iana/index.ts'
import { nameKey, printName, scanName } from '../../../src/dns/name/name.ts'
import { printRdata } from '../../../src/dns/rdata/index.ts'
import { scanAddress } from '../../../src/dns/text/address.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import { AnswerStatus, ZoneAnswerer } from '../../../src/zone/lookup/answer.ts'
import { FakeClock } from '../../support/setup.ts'
import { transaction } from '../../support/transaction.ts'
import { listRRsets, readRRset } from '../../support/zone-contents.ts'

const INTERNAL = internalScheme({ podNames: false, ignoresEmpty: false, pods: 'verified' })
const EXTERNAL = externalScheme({ apexLabel: 'n1', podNames: false, headless: true })

/** The zones of a cluster in memory. */
class Site {
  readonly clock = new FakeClock()
  readonly store: ObjectStore
  readonly zones: ClusterZones

  constructor(
    own: readonly string[] = ['192.0.2.53'],
    served: readonly string[] = [],
    scheme: NameScheme = INTERNAL,
    zones: readonly string[] = ['cluster.local.', 'in-addr.arpa.', '10.in-addr.arpa.'],
  ) {
    this.store = new ObjectStore(new Set(served))
    this.zones = new ClusterZones({
      zones: zones.map((text) => scanName(text)!),
      ttlSeconds: 5,
      soaTtlSeconds: 5,
      scheme,
      ownAddresses: own.map((text) => scanAddress(text)!),
      clock: this.clock,
    })
  }

  put(plural: FollowedPlural, namespace: string, name: string, more: ApiObject = {}): this {
    const { labels = {}, ...rest } = more
    this.store.put(plural, { metadata: { namespace, name, labels }, ...rest })
    return this
  }

  remove(plural: FollowedPlural, namespace: string, name: string): this {
    this.store.remove(plural, { namespace, name })
    return this
  }

  /** Publishes; returns what changed as `owner TYPE`, without the SOAs. */
  commit(): string[] {
    runWhole(this.zones.apply(this.store.take()))
    const changed = this.zones.publish()
    const sets = changed.flatMap((zone) => zone.changed ?? [])
    this.zones.settle()
    return sets
      .filter(({ type }) => type !== RRType.SOA)
      .map(({ owner, type }) => `${printName(owner)} ${printType(type)}`)
      .sort()
  }

  /** The records of a name and type. */
  read(name: string, type: number = RRType.A): string[] {
    const set = readRRset(this.zones.image.reader(), scanName(name)!, type)
    return (set?.rdata ?? []).map((rdata) => printRdata(type, rdata))
  }

  serial(): number {
    return this.zones.zones[0]!.serial
  }

  /** All records, to compare whole contents; serials left out. */
  content(): string[] {
    const reader = this.zones.image.reader()
    return this.zones.zones
      .flatMap(({ id }) => [...listRRsets(reader, id)])
      .filter(({ type }) => type !== RRType.SOA)
      .flatMap(({ owner, type, rdata }) => {
        return rdata.map((octets) => `${nameKey(owner)} ${type} ${printRdata(type, octets)}`)
      })
      .sort()
  }
}

const headless = { spec: { clusterIPs: ['None'] } }
const clusterIP = (address: string) => ({ spec: { clusterIPs: [address] } })
const slice = (service: string, ...addresses: string[]) => ({
  labels: { 'kubernetes.io/service-name': service },
  endpoints: addresses.map((address) => ({ addresses: [address] })),
})

t.test('a change touches the records of one Service only', async (t) => {
  const site = new Site()
  site.put('namespaces', '', 'shop')
  site.put('services', 'shop', 'web', headless).put('services', 'shop', 'db', clusterIP('10.3.0.1'))
  site.put('endpointslices', 'shop', 'web-1', slice('web', '10.1.0.1', '10.1.0.2'))
  site.commit()
  const first = site.serial()
  t.strictSame(site.read('web.shop.svc.cluster.local.'), ['10.1.0.1', '10.1.0.2'])

  site.put('endpointslices', 'shop', 'web-1', slice('web', '10.1.0.2', '10.1.0.3'))
  t.strictSame(site.commit(), [
    '1.0.1.10.in-addr.arpa. PTR',
    '10-1-0-1.web.shop.svc.cluster.local. A',
    '10-1-0-3.web.shop.svc.cluster.local. A',
    '3.0.1.10.in-addr.arpa. PTR',
    'web.shop.svc.cluster.local. A',
  ])
  t.equal(site.serial(), first + 1, 'within a second, too')
  t.strictSame(site.read('web.shop.svc.cluster.local.'), ['10.1.0.2', '10.1.0.3'])
  t.strictSame(site.read('10-1-0-1.web.shop.svc.cluster.local.'), [])

  site.put('endpointslices', 'shop', 'web-1', slice('web', '10.1.0.3', '10.1.0.2'))
  t.strictSame(site.commit(), [], 'another order is no change')
  t.equal(site.serial(), first + 1)
  site.put('endpointslices', 'shop', 'web-1', slice('web', '10.1.0.9'))
  site.put('endpointslices', 'shop', 'web-1', slice('web', '10.1.0.3', '10.1.0.2'))
  t.strictSame(site.commit(), [], 'nor is one that was taken back')
})

t.test('a Service with more endpoints than an RRset has room for', async (t) => {
  const site = new Site().put('namespaces', '', 'shop').put('services', 'shop', 'web', headless)
  const addresses = Array.from(
    { length: 70_000 },
    (_, i) => `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`,
  )
  site.put('endpointslices', 'shop', 'web-1', slice('web', ...addresses)).commit()
  t.equal(site.read('web.shop.svc.cluster.local.').length, 4096)
  t.strictSame(site.read('10-1-17-111.web.shop.svc.cluster.local.'), ['10.1.17.111'])
})

t.test('a Service that changes its kind leaves nothing behind', async (t) => {
  const site = new Site().put('namespaces', '', 'shop')
  const empty = new Site().put('namespaces', '', 'shop')
  empty.commit()
  site.put('endpointslices', 'shop', 'web-1', slice('web', '10.1.0.1'))
  site.commit()
  t.strictSame(site.content(), empty.content(), 'slices without a Service')
  site.put('services', 'shop', 'web', headless).commit()
  site.put('services', 'shop', 'web', clusterIP('10.3.0.1')).commit()
  t.strictSame(site.read('web.shop.svc.cluster.local.'), ['10.3.0.1'])
  site.put('services', 'shop', 'web', { spec: { type: 'ExternalName', externalName: 'a.example' } })
  site.commit()
  t.strictSame(site.read('web.shop.svc.cluster.local.', RRType.CNAME), ['a.example.'])
  t.strictSame(site.read('web.shop.svc.cluster.local.'), [])
  site.remove('services', 'shop', 'web').commit()
  t.strictSame(site.content(), empty.content())
  site.remove('endpointslices', 'shop', 'web-1').commit()
  t.strictSame([...site.store.keys('services', '')], [])
})

t.test('PTR records: Services first, and all endpoints of an address', async (t) => {
  const site = new Site().put('namespaces', '', 'shop')
  const pointers = () => site.read('1.0.1.10.in-addr.arpa.', RRType.PTR)
  site.put('services', 'shop', 'a', headless).put('services', 'shop', 'b', headless)
  site.put('endpointslices', 'shop', 'a-1', slice('a', '10.1.0.1'))
  site.put('endpointslices', 'shop', 'b-1', slice('b', '10.1.0.1'))
  site.put('endpointslices', 'shop', 'b-2', slice('b', '192.0.2.1', '203.0.113.1'))
  site.commit()
  const [a, b] = ['a', 'b'].map((name) => `10-1-0-1.${name}.shop.svc.cluster.local.`)
  t.strictSame(pointers(), [a, b])
  t.equal(site.read('1.2.0.192.in-addr.arpa.', RRType.PTR).length, 1, 'the other reverse zone')
  site.put('services', 'shop', 'c', clusterIP('10.1.0.1')).commit()
  t.strictSame(pointers(), ['c.shop.svc.cluster.local.'])
  site.remove('services', 'shop', 'c').remove('services', 'shop', 'a').commit()
  t.strictSame(pointers(), [b])
  site.remove('endpointslices', 'shop', 'b-1').commit()
  t.strictSame(pointers(), [])
})

t.test('a namespace that is deleted takes its names along, and brings them back', async (t) => {
  const site = new Site().put('namespaces', '', 'shop')
  site.put('services', 'shop', 'web', clusterIP('10.3.0.1'))
  site.put('pods', 'shop', 'p', { status: { podIPs: [{ ip: '10.1.0.1' }] } })
  site.commit()
  const before = site.content()
  site.remove('namespaces', '', 'shop').commit()
  t.strictSame(site.read('web.shop.svc.cluster.local.'), [])
  t.strictSame(site.read('10-1-0-1.shop.pod.cluster.local.'), [])
  site.put('namespaces', '', 'shop').commit()
  t.strictSame(site.content(), before)
})

t.test('only the chosen namespaces are served', async (t) => {
  const site = new Site([], ['shop']).put('namespaces', '', 'shop').put('namespaces', '', 'bank')
  for (const namespace of ['shop', 'bank']) {
    site.put('services', namespace, 'web', clusterIP('10.3.0.1'))
  }
  site.commit()
  t.strictSame(site.read('web.shop.svc.cluster.local.'), ['10.3.0.1'])
  t.strictSame(site.read('web.bank.svc.cluster.local.'), [])
})

t.test('Pods that share an address', async (t) => {
  const site = new Site().put('namespaces', '', 'shop')
  const pod = { status: { podIPs: [{ ip: '10.1.0.1' }] } }
  const read = () => site.read('10-1-0-1.shop.pod.cluster.local.')
  site.put('pods', 'shop', 'a', pod).put('pods', 'shop', 'b', pod).commit()
  site.remove('pods', 'shop', 'a').commit()
  t.strictSame(read(), ['10.1.0.1'])
  const metadata = { namespace: 'shop', name: 'b', deletionTimestamp: '2026-01-01T00:00:00Z' }
  site.store.put('pods', { metadata, ...pod })
  site.commit()
  t.strictSame(read(), [])
})

t.test('the name server is the Service that leads here, or else this address', async (t) => {
  const site = new Site(['10.1.0.53'])
  const read = () => site.read('ns.dns.cluster.local.')
  site.commit()
  t.strictSame(read(), ['10.1.0.53'])
  site.put('namespaces', '', 'kube-system')
  site.put('services', 'kube-system', 'kube-dns', clusterIP('10.3.0.10'))
  site.put('endpointslices', 'kube-system', 'kube-dns-1', slice('kube-dns', '10.1.0.53'))
  site.commit()
  t.strictSame(read(), ['10.3.0.10'])
  site.put('services', 'kube-system', 'headless', headless)
  site.put('endpointslices', 'kube-system', 'h-1', slice('headless', '10.1.0.53', '10.1.0.54'))
  site.commit()
  t.strictSame(read(), ['10.1.0.53', '10.1.0.54', '10.3.0.10'])
  site.remove('services', 'kube-system', 'headless').remove('services', 'kube-system', 'kube-dns')
  site.commit()
  t.strictSame(read(), ['10.1.0.53'])
})

t.test('the name server exists although it has no address', async (t) => {
  for (const scheme of [INTERNAL, EXTERNAL]) {
    const site = new Site([], [], scheme)
    site.commit()
    const answerer = new ZoneAnswerer(site.zones.image.reader())
    const tx = transaction({ name: `${scheme.nameserver}.cluster.local.` })
    t.equal(answerer.answer(tx.query, tx.response), AnswerStatus.Answered)
    t.equal(tx.response.rcode, Rcode.NOERROR, scheme.nameserver)
    t.equal(tx.response.type[0], RRType.SOA)
  }
})

t.test(
  'each zone names a name server of its own, reverse zones that of the first one',
  async (t) => {
    const table = [
      { scheme: INTERNAL, server: 'ns.dns', mailbox: 'hostmaster' },
      { scheme: EXTERNAL, server: 'ns1.n1', mailbox: 'hostmaster.n1' },
    ]
    for (const { scheme, server, mailbox } of table) {
      const site = new Site(['10.1.0.53'], [], scheme, [
        '10.in-addr.arpa.',
        'a.example.',
        'b.example.',
      ])
      site.commit()
      for (const zone of ['a.example.', 'b.example.']) {
        const ns = `${server}.${zone}`
        t.strictSame(site.read(zone, RRType.NS), [ns])
        t.equal(site.read(zone, RRType.SOA)[0]!.indexOf(`${ns} ${mailbox}.${zone} `), 0, zone)
        t.strictSame(site.read(ns), ['10.1.0.53'])
      }
      t.strictSame(site.read('10.in-addr.arpa.', RRType.NS), [`${server}.a.example.`])
      t.equal(site.read('10.in-addr.arpa.', RRType.SOA)[0]!.indexOf(`${server}.a.example. `), 0)
    }
  },
)

for (const scheme of [INTERNAL, EXTERNAL]) {
  t.test(`random changes end at the content of a fresh start: ${scheme.nameserver}`, async (t) => {
    await testRandomChanges(t, scheme)
  })
}

async function testRandomChanges(t: Test, scheme: NameScheme): Promise<void> {
  let seed = 1
  const below = (n: number): number => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    return (seed >>> 8) % n
  }
  const own = ['10.1.0.3']
  const site = new Site(own, [], scheme)
  const last = new Map<string, (to: Site) => void>()
  for (let i = 0; i < 3000; i++) {
    const [namespace, name] = [`n${below(3)}`, `s${below(6)}`]
    const plural = (['namespaces', 'services', 'endpointslices', 'pods'] as const)[below(4)]!
    const address = `10.1.0.${below(5)}`
    const kinds = [
      headless,
      clusterIP(`10.3.0.${below(9)}`),
      { spec: { type: 'ExternalName', externalName: 'x.example' } },
      { spec: { clusterIPs: ['None'], externalIPs: [`10.4.0.${below(4)}`] } },
      { spec: { externalIPs: [`10.4.0.${below(4)}`], ports: [{ name: 'p', port: below(3) }] } },
      { status: { loadBalancer: { ingress: [{ hostname: `h${below(3)}.example` }] } } },
    ]
    const content: Record<FollowedPlural, ApiObject> = {
      namespaces: {},
      services: kinds[below(kinds.length)]!,
      endpointslices: slice(`s${below(6)}`, address, `10.1.1.${below(5)}`),
      pods: { status: { podIPs: [{ ip: address }] } },
    }
    const scope = plural === 'namespaces' ? '' : namespace
    const own = plural === 'namespaces' ? namespace : name
    const key = `${plural} ${scope}/${own}`
    if (below(3) === 0) {
      site.remove(plural, scope, own)
      last.delete(key)
    } else {
      const given = content[plural]
      const put = (to: Site): void => void to.put(plural, scope, own, given)
      put(site)
      last.set(key, put)
    }
    if (below(5) === 0) site.commit()
  }
  site.commit()
  const fresh = new Site(own, [], scheme)
  for (const put of last.values()) put(fresh)
  fresh.commit()
  t.strictSame(site.content(), fresh.content())
  t.ok(fresh.content().length > 10)
}
