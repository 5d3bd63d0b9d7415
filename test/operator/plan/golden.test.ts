import t from 'tap'
import { RRType } from '../../../src/dns/iana/types.ts'
import { printName } from '../../../src/dns/name/name.ts'
import { composeServed } from '../../../src/operator/plan/served-endpoints.ts'
import { EXPIRY_DEFAULT_MS } from '../../../src/peering/expiry.ts'
import { chooseEndpoints } from '../../../src/peering/merge/choose-endpoints.ts'
import { chooseOthers } from '../../../src/peering/merge/choose-site-states.ts'
import { metadataNames } from '../../../src/peering/old-metadata.ts'
import type { SiteState } from '../../../src/peering/peer-endpoint.ts'
import { bareHost } from '../../../src/peering/peer-status.ts'
import { readOldAnswers } from '../../../src/peering/read-v1.ts'
import { readV2Host } from '../../../src/peering/read-v2.ts'
import { RecordSet } from '../../../src/peering/record-set.ts'
import { buildSiteRecords } from '../../../src/peering/site-records.ts'
import { toPeerEndpoints } from '../../../src/peering/to-peer-endpoint.ts'
import { composePeerEndpoint } from '../../../src/peering/v2-codec.ts'
import { deriveLocalEndpoints } from '../../../src/records/kdrnt.ts'
import { type EndpointObject, printSteered } from '../../../src/records/print-endpoint.ts'
import { dnsRecord, type Gateway, layout } from '../../peering/records.ts'

/** What a v1 peer with that record answers when it is asked for the host. */
function askOld(peer: string, host: string, endpoints: readonly EndpointObject[]): SiteState {
  const zone = deriveLocalEndpoints(dnsRecord({ rootHost: host, endpoints }))
  const text = (prefix: 'w' | 'g') => {
    const names = metadataNames(prefix, host)
    const found = zone.filter((e) => names.includes(printName(e.owner).slice(0, -1)))
    return found.flatMap((e) => e.rdata)
  }
  const records = zone
    .filter((e) => e.type !== RRType.TXT)
    .flatMap((e) => e.rdata.map((rdata) => ({ ...e, rdata })))
  const answers = { records, weights: text('w'), geos: text('g') }
  const { siteState: share, problems } = readOldAnswers(answers, {
    peer,
    rootHost: host,
    seenMs: 0,
  })
  t.strictSame(problems, [])
  return share
}

/** What a v2 peer with that record exports of the host. */
function askNew(site: string, host: string, endpoints: readonly EndpointObject[]): SiteState {
  const record = dnsRecord({ rootHost: host, endpoints })
  const facts = { site, key: 'n/r', down: [], up: [], sinceSeconds: 7 }
  const exported = toPeerEndpoints(record, facts).map((e) => composePeerEndpoint(e)!)
  const zone = deriveLocalEndpoints(record, exported)
  const base = host.replace(/^\*\./, '')
  const owner = `v2.${base}.kdrnt.`
  const records = zone.filter((e) => printName(e.owner) === owner).flatMap((e) => e.rdata)
  const { siteStates: shares, problems } = readV2Host(records, {
    host: base,
    seenMs: 0,
    exporter: 'c',
  })
  t.strictSame(problems, [])
  t.equal(shares.length, 1)
  return shares[0]!
}

/** What an operator without endpoints of its own lists for other programs. */
function merged(states: readonly SiteState[]): EndpointObject[] {
  const { endpoints, leftOut } = chooseEndpoints([], chooseOthers('m', states, EXPIRY_DEFAULT_MS))
  const { rootHost } = states[0]!
  const records = buildSiteRecords(bareHost(rootHost), endpoints, '', RecordSet.EMPTY)
  t.strictSame(leftOut, [])
  const content = { ...dnsRecord({ rootHost, endpoints: layout(EU) }), endpoints: [] }
  const host = {
    site: 'm',
    foreign: records,
    down: [],
    foreignDown: new Set<string>(),
    drain: undefined,
    timeMs: 0,
  }
  return composeServed({ record: { key: 'n/r' }, content, rootHost }, host).map(({ endpoint }) =>
    printSteered(endpoint),
  )
}

const host = 'k.example.com'
const EU: Gateway = {
  host,
  label: 'lb',
  cluster: 'c1',
  geo: 'GEO-EU',
  isDefault: false,
  weight: 100,
  addresses: ['192.0.2.1'],
}
const NA: Gateway = {
  ...EU,
  cluster: 'c2',
  geo: 'GEO-NA',
  isDefault: true,
  weight: 200,
  addresses: ['192.0.2.2'],
}

const cname = (dnsName: string, target: string, recordTTL: number) => {
  return { dnsName, recordType: 'CNAME', targets: [target], recordTTL }
}
const property = (name: string, value: string) => ({ providerSpecific: [{ name, value }] })
const named = (setIdentifier: string, name: string, value: string) => {
  return { setIdentifier, ...property(name, value) }
}

/** Of the tests of 2025: two servers, EU with weight 100, NA with weight 200 as the default. */
const SEVEN: readonly EndpointObject[] = [
  { dnsName: 'c1.lb.k.example.com', recordType: 'A', targets: ['192.0.2.1'], recordTTL: 60 },
  { dnsName: 'c2.lb.k.example.com', recordType: 'A', targets: ['192.0.2.2'], recordTTL: 60 },
  {
    ...cname('geo-eu.lb.k.example.com', 'c1.lb.k.example.com', 60),
    ...named('c1.lb.k.example.com', 'weight', '100'),
  },
  {
    ...cname('geo-na.lb.k.example.com', 'c2.lb.k.example.com', 60),
    ...named('c2.lb.k.example.com', 'weight', '200'),
  },
  cname('k.example.com', 'lb.k.example.com', 300),
  {
    ...cname('lb.k.example.com', 'geo-eu.lb.k.example.com', 300),
    ...named('GEO-EU', 'geo-code', 'GEO-EU'),
  },
  {
    ...cname('lb.k.example.com', 'geo-na.lb.k.example.com', 300),
    ...named('default', 'geo-code', 'GEO-NA'),
  },
]

t.test('two v1 servers make seven endpoints', async (t) => {
  const shares = [
    askOld('192.0.2.53:53', host, layout(EU)),
    askOld('198.51.100.53:53', host, layout(NA)),
  ]
  t.strictSame(merged(shares), SEVEN)
  t.strictSame(merged([...shares].reverse()), SEVEN)
})

/** DNSPolicy's own: the default is an endpoint of its own, with the code `*`. */
const CLUSTERS: readonly Gateway[] = [
  { ...EU, label: 'klb', cluster: 'eu1', weight: 120 },
  { ...EU, label: 'klb', cluster: 'eu2', weight: 60, addresses: ['192.0.2.3', '192.0.2.4'] },
  { ...NA, label: 'klb', cluster: 'us1', weight: 120 },
]

/** What one cluster that had all three gateways would write, in the order of a merge. */
function whole(gateways: readonly Gateway[]): EndpointObject[] {
  const all = new Map(gateways.flatMap(layout).map((e) => [JSON.stringify(e), e]))
  const key = (e: EndpointObject) =>
    JSON.stringify([e.dnsName, e.recordType, e.setIdentifier ?? ''])
  return [...all.values()].sort((a, b) => (key(a) < key(b) ? -1 : 1))
}

t.test(
  'three clusters of a DNSPolicy come to what one with all gateways would write',
  async (t) => {
    for (const name of ['k.example.com', '*.k.example.com']) {
      const gateways = CLUSTERS.map((gateway) => ({ ...gateway, host: name }))
      const shares = gateways.map((gateway) => askNew(gateway.cluster, name, layout(gateway)))
      t.strictSame(merged(shares), whole(gateways), name)
      t.equal(merged(shares).length, 10)
      t.strictSame(shares[0]!.rootHost, name)
    }
  },
)

t.test('a v1 server among them adds what it has and spoils nothing', async (t) => {
  const [eu1, eu2, us1] = CLUSTERS.map((gateway) => layout(gateway)) as [
    EndpointObject[],
    EndpointObject[],
    EndpointObject[],
  ]
  const shares = [
    askNew('eu1', host, eu1),
    askOld('192.0.2.54:53', host, eu1),
    askOld('192.0.2.53:53', host, eu2),
    askNew('us1', host, us1),
  ]
  t.strictSame(merged(shares), whole(CLUSTERS))
})

t.test('a merge is a record that validation takes, endpoint by endpoint', async (t) => {
  const states = CLUSTERS.map((gateway) => askNew(gateway.cluster, host, layout(gateway)))
  const labels = { 'kuadrant.io/type': 'merged', 'kuadrant.io/coredns-zone-name': 'k.example.com' }
  const record = dnsRecord({ rootHost: host, endpoints: merged(states), labels })
  t.strictSame(record.endpoints.map(printSteered), whole(CLUSTERS))
  t.equal(record.isAggregate, true)
})
