import t from 'tap'
import { NO_DRAINS } from '../../../src/health/drain/drain.ts'
import { findDrains } from '../../../src/health/drain/drain-column.ts'
import { drainOfRecord } from '../../../src/health/drain/record-drain.ts'
import { scanDrainSelector } from '../../../src/health/drain/selector.ts'
import type { ApiObject } from '../../../src/kube/api.ts'
import { unpackRecord } from '../../../src/records/pack.ts'
import {
  type FactEndpoint,
  printSiteFacts,
  SITES_ANNOTATION,
  type SitePart,
} from '../../../src/records/site-facts.ts'
import { ClusterServer } from '../../support/cluster-server.ts'

const HOST = 'k.example.com'
const A = `${HOST}. A`
const OURS = '192.0.2.1'
const THEIRS = '192.0.2.2'

function endpoint(target: string, more: object = {}): ApiObject & FactEndpoint {
  return { dnsName: HOST, recordType: 'A', targets: [target], ...more }
}

function part(site: string, more: Partial<SitePart> = {}): SitePart {
  const name = site === 'here' ? 'app' : ''
  const about = { id: `id-${site}`, name, createdSeconds: 7, settings: {}, down: {} }
  return { site, ...about, endpoints: [], ...more }
}

const MERGED = { 'kuadrant.io/type': 'merged' }
const AUTHORITATIVE = { 'kuadrant.io/authoritative-record': 'true' }

function object(
  endpoints: readonly FactEndpoint[],
  annotations: ApiObject,
  labels: ApiObject = MERGED,
): ApiObject {
  return {
    metadata: {
      namespace: 'a',
      name: 'merged-app',
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { 'kuadrant.io/coredns-zone-name': HOST, ...labels },
      annotations,
    },
    spec: { rootHost: HOST, endpoints: endpoints as readonly ApiObject[] },
  }
}

function sites(endpoints: readonly FactEndpoint[], parts: readonly SitePart[]): ApiObject {
  const text = printSiteFacts({ site: 'here', parts }, endpoints, JSON.stringify)
  return { [SITES_ANNOTATION]: text }
}

const SPEC = [endpoint(OURS)]
/** Our own endpoint, and one of the site `east` that is down. */
const PARTS = [
  part('here', { endpoints: [endpoint(OURS)], settings: { sticky: '24 56' } }),
  part('east', {
    endpoints: [endpoint(THEIRS)],
    createdSeconds: 5,
    down: { [THEIRS]: 'HTTP 503' },
  }),
]

t.test('an object is served as the records that it stands for', async (t) => {
  const server = new ClusterServer()
  server.apply([object(SPEC, sites(SPEC, PARTS))])
  const [own, other] = server.records()
  t.equal(server.records().length, 2)
  t.match(own, { key: 'a/merged-app', origin: { site: 'here', id: 'id-here' }, original: 'a/app' })
  t.match(other, { key: 'a/merged-app@east', origin: { site: 'east', id: 'id-east' } })
  t.equal(other?.original, undefined)
  t.match(unpackRecord(own!.packed), {
    createdSeconds: 7,
    isAggregate: true,
    settings: { sticky: { ipv4Bits: 24, ipv6Bits: 56 } },
  })
  t.match(unpackRecord(other!.packed), { createdSeconds: 5, settings: undefined })
  t.strictSame(server.health.healthOf('a/merged-app@east').down, [THEIRS])
  t.equal(server.health.reasonOf('a/merged-app@east', THEIRS), 'HTTP 503')
  t.equal(server.targets(A), OURS)
  t.strictSame(server.apply([object(SPEC, sites(SPEC, PARTS))]), [], 'the same once more')
})

t.test('a change or removal of the object changes or removes all of it', async (t) => {
  const server = new ClusterServer()
  server.apply([object(SPEC, sites(SPEC, PARTS))])
  const [own, other] = PARTS as [SitePart, SitePart]
  const up = [own, { ...other, down: {} }]
  t.strictSame(server.apply([object(SPEC, sites(SPEC, up))]), [], 'health only')
  t.equal(server.targets(A), `${OURS} ${THEIRS}`)
  const renamed = [own, { ...other, site: 'west' }]
  server.apply([object(SPEC, sites(SPEC, renamed))])
  t.strictSame(
    server.records().map(({ key }) => key),
    ['a/merged-app', 'a/merged-app@west'],
  )
  const moved = [{ ...own, name: 'other' }]
  server.apply([object(SPEC, sites(SPEC, moved))])
  t.match(server.records(), [{ original: 'a/other' }])
  server.apply([object(SPEC, {})])
  t.match(server.records(), [{ key: 'a/merged-app', origin: undefined, original: undefined }])
  server.apply([object(SPEC, sites(SPEC, PARTS))])
  server.apply([])
  t.strictSame(server.records(), [])
  t.strictSame([...server.health.recordKeys], [])
})

t.test('several parts of a site are numbered', async (t) => {
  const endpoints = [endpoint(OURS)]
  const parts = ['here', 'here', 'east', 'east', 'east'].map((site) => part(site, { endpoints }))
  const server = new ClusterServer()
  server.apply([object(SPEC, sites(SPEC, [...parts, part('west')]), AUTHORITATIVE)])
  t.strictSame(
    server.records().map(({ key }) => key),
    [
      'a/merged-app',
      'a/merged-app@east',
      'a/merged-app@east~2',
      'a/merged-app@east~3',
      'a/merged-app~2',
    ],
    'without the part that has no endpoint',
  )
})

t.test('a setting of the object itself counts for parts without it', async (t) => {
  const own = { 'sextant.io/sticky': '8 32', 'sextant.io/all-down': 'closed' }
  const server = new ClusterServer()
  server.apply([object(SPEC, { ...own, ...sites(SPEC, PARTS) })])
  t.strictSame(
    server.records().map(({ packed }) => unpackRecord(packed).settings),
    [
      { allDown: 'closed', sticky: { ipv4Bits: 24, ipv6Bits: 56 } },
      { allDown: 'closed', sticky: { ipv4Bits: 8, ipv6Bits: 32 } },
    ],
  )
})

t.test('an annotation that is not valid is reported, and spec.endpoints is served', async (t) => {
  const [own] = PARTS as [SitePart]
  const foreign = { ...endpoint('192.0.2.66'), dnsName: 'victim.example.com' }
  const bad = (one: object) =>
    sites(SPEC, [own, part('east', { endpoints: [endpoint(OURS, one)] })])
  const table = [
    { annotations: { [SITES_ANNOTATION]: '{"v":9}' }, want: /has version 9; this version reads 1/ },
    { annotations: { [SITES_ANNOTATION]: '' }, want: undefined },
    { annotations: sites([], PARTS), want: /does not fit spec\.endpoints/ },
    { annotations: bad(foreign), want: /parts\[1\] of east: .* end with the rootHost/ },
    { annotations: bad({ recordType: 'SOA' }), want: /recordType "SOA" must be one of/ },
    { annotations: bad({ targets: ['x'] }), want: /target "x"/ },
    { annotations: bad({ recordTTL: -1 }), want: /recordTTL must be an integer/ },
    {
      annotations: sites(SPEC, [{ ...own, settings: { sticky: '99 99' } }]),
      want: /parts\[0\] of here: sticky must be true, false or two prefix lengths/,
    },
  ]
  for (const { annotations, want } of table) {
    const server = new ClusterServer()
    server.apply([object(SPEC, annotations)])
    t.strictSame(
      server.records().map(({ key }) => key),
      ['a/merged-app'],
    )
    t.equal(server.targets(A), OURS)
    t.match(server.refusals, want === undefined ? [] : [want])
    t.equal(server.store.refusedCount, server.refusals.length)
    if (want === undefined) continue
    t.match(server.refusals, [
      /^a\/merged-app: annotation sextant\.io\/sites .*: spec\.endpoints is served without health/,
    ])
    server.apply([object(SPEC, annotations)])
    t.equal(server.refusals.length, 1, 'once')
    server.apply([object(SPEC, sites(SPEC, PARTS))])
    t.strictSame(server.store.problems(), [])
    t.equal(server.records().length, 2)
  }
})

t.test('an ordinary record decides for no other site', async (t) => {
  const server = new ClusterServer()
  server.apply([object(SPEC, sites(SPEC, PARTS), {})])
  t.strictSame(
    server.records().map(({ key }) => key),
    ['a/merged-app'],
  )
})

t.test('drains select the records of their site', async (t) => {
  const server = new ClusterServer()
  server.apply([object(SPEC, sites(SPEC, PARTS))])
  const table = [
    { selector: 'record:a/*', want: ['a/merged-app'] },
    { selector: 'record:a/app', want: ['a/merged-app'] },
    { selector: 'record:a/merged-app', want: ['a/merged-app'] },
    { selector: 'record:a/merged-app@east', want: ['a/merged-app@east'] },
    { selector: 'record:b/*', want: [] },
    { selector: 'site:here', want: ['a/merged-app'] },
    { selector: 'site:east', want: ['a/merged-app@east'] },
    { selector: 'site:*', want: ['a/merged-app', 'a/merged-app@east'] },
  ]
  for (const { selector: text, want } of table) {
    const selector = scanDrainSelector([text])
    if (typeof selector === 'string') throw new Error(selector)
    const drain = { selector, reason: '', actor: '', createdMs: undefined, untilMs: undefined }
    const drained = server.records().filter((record) => {
      return findDrains(record, [drain], () => []) !== NO_DRAINS
    })
    t.strictSame(
      drained.map(({ key }) => key),
      want,
      text,
    )
  }
})

t.test('a part with a drain is drained, whatever its site', async (t) => {
  const drained = PARTS.map((one) => ({ ...one, settings: { drain: 'racks move' } }))
  const server = new ClusterServer()
  server.apply([object(SPEC, sites(SPEC, drained))])
  for (const record of server.records()) {
    const drain = drainOfRecord(record, 'the site of the Corefile')
    t.not(
      findDrains(record, [drain!], () => []),
      NO_DRAINS,
      record.key,
    )
  }
})
