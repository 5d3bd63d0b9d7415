import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import { NO_CONFLICTS } from '../../../src/operator/conflicts/record-conflicts.ts'
import type { KnownPeer } from '../../../src/operator/peers/peer-state-store.ts'
import { decide } from '../../../src/operator/plan/decide.ts'
import { composeLocal, roomForOthers } from '../../../src/operator/plan/desired.ts'
import { composeOwn } from '../../../src/operator/plan/own.ts'
import { planPublish } from '../../../src/operator/plan/plan-publish.ts'
import { DnsRecordView } from '../../../src/operator/record/record-view.ts'
import { acceptedCondition, degradedCondition } from '../../../src/operator/status/conditions.ts'
import { printPeers } from '../../../src/operator/status/peer-status.ts'
import { jsonOctets } from '../../../src/peering/merge/endpoint-octets.ts'
import type { PeerEndpoint } from '../../../src/peering/peer-endpoint.ts'
import { peerEndpoint, ToyCluster } from '../../support/operator-cluster.ts'
import { dnsRecord, secret } from '../../support/operator-objects.ts'

const OBJECT_OCTETS_MAX = 1_300_000

const HEALTHY = { down: [], up: [], probes: [] }

function publishingOf(spec: ApiObject) {
  const cluster = new ToyCluster()
  const zone = String(spec.rootHost ?? 'k.example.com').replace(/^.*?([^.]+\.[^.]+)$/, '$1')
  cluster.put(secret('a', 'coredns', { ZONES: zone, NAMESERVERS: '192.0.2.53' }))
  const record = new DnsRecordView(dnsRecord({ spec }))
  const action = decide(record, cluster.secretsOf('a'), 'primary')
  if (action.kind !== 'publish') throw new Error(JSON.stringify(action))
  return action.publishing
}

const endpointsOf = (host: string, count: number, characters: number): ApiObject[] =>
  Array.from({ length: count }, (_, i) => ({
    dnsName: `n${i}.${host}`,
    recordType: 'TXT',
    targets: ['x'.repeat(characters)],
  }))

function pageOf(site: string, exporter: string, count: number): KnownPeer {
  const endpoints: PeerEndpoint[] = Array.from({ length: count }, (_, i) =>
    peerEndpoint({
      site,
      dnsName: `n${i}.k.example.com`,
      recordType: 'TXT',
      targets: ['<'.repeat(500)],
    }),
  )
  const about = { seenMs: 1, generation: 'v2' as const }
  const share = { ...about, site, exporter, isOwn: true, rootHost: 'k.example.com', endpoints }
  return {
    reason: '',
    state: { ...about, seenTimeMs: 1, serial: 1, problems: [], siteStates: [share] },
  }
}

const OWN = {
  site: 'e',
  health: HEALTHY,
  membership: undefined,
  isElsewhere: () => false,
  before: undefined,
  nowMs: 0,
}

t.test('our own endpoints come before those of peers', async (t) => {
  const small = publishingOf({})
  t.equal(roomForOthers(small.record, []), 400_000)
  const large = publishingOf({ endpoints: endpointsOf('k.example.com', 200, 3000) })
  const { shared } = composeOwn(large, OWN)
  const room = roomForOthers(large.record, shared)
  t.ok(room > 0 && room < 100_000, String(room))
  // Spec, and in the status what is served and what peers say.
  t.ok(2 * jsonOctets(large.record.spec) + 2 * room < OBJECT_OCTETS_MAX + 10_000)
})

t.test('the endpoints of peers are cut to the free room, the same each time', async (t) => {
  const pages = new Map([
    ['a:53', pageOf('a', 'a:53', 300)],
    ['b:53', pageOf('b', 'b:53', 3)],
  ])
  const addresses = ['a:53', 'b:53']
  const print = (roomOctets: number) => printPeers(addresses, pages, { form: 'whole', roomOctets })
  const printed = print(200_000)
  const counts = printed.map(({ endpoints }) => (endpoints as ApiObject[]).length)
  t.ok(counts[0]! > 20 && counts[0]! < 80, String(counts[0]))
  t.equal(counts[1], 3, 'the small one is whole')
  t.ok(jsonOctets(printed) <= 200_000)
  t.strictSame(print(200_000), printed)
  const none = print(0)
  const live = { state: 'Live', generation: 'v2', endpoints: [] }
  const want = addresses.map((address) => ({ address, ...live }))
  t.strictSame(none, want, 'what there is no room for is not taken back')
})

t.test(
  'a host too long for the zone kdrnt is served, and the status says that no peer gets it',
  async (t) => {
    const host = `${`${'a'.repeat(60)}.`.repeat(4)}ex.co`
    t.equal(host.length, 249)
    const publishing = publishingOf({
      rootHost: host,
      endpoints: [{ dnsName: host, recordType: 'A', targets: ['192.0.2.1'] }],
    })
    const own = composeOwn(publishing, OWN)
    t.equal(own.unexportable, 1)
    t.equal(composeLocal(publishing, own.composeLocal([])), undefined)
    const merged = [{ dnsName: host, recordType: 'A', targets: ['192.0.2.1'] }]
    const accepted = acceptedCondition([], false)
    const hearing = { silent: [], nameservers: 1, isIsolated: false }
    const degraded = degradedCondition(hearing, [])
    const conditions = { healthy: undefined, accepted, degraded }
    const content = {
      local: own.composeLocal([]),
      merged,
      facts: { site: 'here', parts: [] },
      peers: [],
      membership: undefined,
      ...conditions,
      conflicts: NO_CONFLICTS,
      counts: undefined,
      note: '',
      zoneFault: '',
    }
    const plan = planPublish(publishing, { local: undefined, merged: undefined }, content, 0)
    t.strictSame(
      plan.writes.map(({ kind }) => kind),
      ['hold', 'apply', 'status'],
    )
    t.match(plan.ready, {
      isTrue: true,
      message: /not exported to other sites: the host is too long/,
    })
  },
)

t.test('an object that the API would refuse is reported before it is written', async (t) => {
  const publishing = publishingOf({ endpoints: endpointsOf('k.example.com', 240, 3000) })
  const own = composeOwn(publishing, OWN)
  const local = composeLocal(publishing, own.composeLocal([]))
  t.match(local, /gateway-local form has \d+ octets, at most 1300000 are allowed; split/)
})
