import t from 'tap'
import { RRType } from '../../../src/dns/iana/types.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { scanGeoCode } from '../../../src/geo/code.ts'
import { scanPoint } from '../../../src/geo/point.ts'
import { buildOwnerSets } from '../../../src/publish/build/build-owner-sets.ts'
import type { Contribution } from '../../../src/publish/build/owner-set.ts'
import type { Conflict } from '../../../src/publish/build/record-conflicts.ts'
import type { Endpoint } from '../../../src/records/dns-record.ts'
import { packRecord, unpackRecord } from '../../../src/records/pack.ts'

const OWNER = scanName('app.k.example.com.')!
const B = '52.52,13.40'
const P = '48.86,2.35'
const T = '35.68,139.69'

interface Sketch {
  readonly at?: string
  readonly codes?: readonly string[]
  readonly isDefault?: boolean
  readonly isDown?: boolean
}

function endpointOf({ at, codes = [], isDefault = false }: Sketch, i: number): Endpoint {
  return {
    owner: OWNER,
    type: RRType.A,
    ttlSeconds: 60,
    setIdentifier: `e${i}`,
    weight: undefined,
    codes: codes.map((code) => scanGeoCode(code)!),
    isDefault,
    point: at === undefined ? undefined : scanPoint(at),
    rdata: [Uint8Array.of(192, 0, 2, i)],
    probeAt: undefined,
    aliasOf: undefined,
  }
}

function contributionOf(i: number, endpoint: Endpoint, down: readonly number[] = []): Contribution {
  return { key: `n/r${i}`, place: `n/r${i}`, site: '', endpoint, down: new Set(down) }
}

function build(sketches: readonly Sketch[]) {
  const conflicts: Conflict[] = []
  const contributions = sketches.map((sketch, i) => {
    return contributionOf(i, endpointOf(sketch, i), sketch.isDown === true ? [0] : [])
  })
  const [set] = buildOwnerSets(OWNER, contributions, { isApex: false }, conflicts)
  const sets = set!.pointSets?.map((points) => points.map(({ text }) => text).join(' '))
  return { sets, candidates: set!.candidates, conflicts: conflicts.map(({ text }) => text) }
}

const noLocation = (key: string) =>
  `app.k.example.com. A: an endpoint (${key}) has no location, but others have: it gets no clients whose coordinates are known; add a location`

t.test('the points that compete for clients', async (t) => {
  const table: { name: string; given: Sketch[]; sets?: string[]; conflicts?: string[] }[] = [
    { name: 'no location', given: [{}, { codes: ['DE'] }] },
    { name: 'two points', given: [{ at: B }, { at: P }], sets: [`${P} ${B}`] },
    {
      name: 'also if one is down',
      given: [{ at: B }, { at: P, isDown: true }],
      sets: [`${P} ${B}`],
    },
    { name: 'one point', given: [{ at: B }, { at: B }], sets: [] },
    {
      name: 'one point, partly default',
      given: [{ at: B }, { at: B, isDefault: true }],
      sets: [B],
    },
    {
      name: 'one point and a default',
      given: [{ at: B }, { isDefault: true }],
      sets: [B],
    },
    {
      name: 'by code, by those without, and all',
      given: [{ at: B, codes: ['DE'] }, { at: P, codes: ['DE'] }, { at: T }, { at: P }],
      sets: [`${P} ${B}`, `${T} ${P}`, `${T} ${P} ${B}`],
    },
    {
      name: 'an endpoint without a location beside others',
      given: [{ at: B }, {}],
      sets: [B],
      conflicts: [noLocation('n/r1')],
    },
    {
      name: 'of other codes',
      given: [{ at: B, codes: ['DE'] }, { codes: ['US'] }],
      sets: [B],
    },
  ]
  for (const { name, given, sets, conflicts = [] } of table) {
    const found = build(given)
    t.strictSame(found.sets, sets, name)
    t.strictSame(found.conflicts, conflicts, name)
  }
})

t.test('a candidate has the location of its endpoint', async (t) => {
  const { candidates } = build([{ at: B, codes: ['DE'], isDefault: true }, {}])
  t.strictSame(
    candidates.map(({ point }) => point?.text),
    [B, B, undefined],
  )
})

t.test('endpoints at other locations are not equal', async (t) => {
  const conflicts: Conflict[] = []
  const contributions = [B, P].map((at, i) => {
    return contributionOf(i, { ...endpointOf({ at }, 1), setIdentifier: 'same' })
  })
  const [set] = buildOwnerSets(OWNER, contributions, { isApex: false }, conflicts)
  t.equal(set!.candidates.length, 1)
  t.equal(
    conflicts[0]?.text,
    `app.k.example.com. A: set identifier "same" with location ${B} (n/r0) and ${P} (n/r1): the first is served, because an identifier names one endpoint; give each endpoint its own identifier`,
  )
})

t.test('a packed endpoint keeps its location', async (t) => {
  const endpoints = [{ at: B, codes: ['DE'] }, {}, { at: T, isDefault: true }].map(endpointOf)
  const record = {
    ...{ namespace: 'n', name: 'r', zoneLabel: '', rootHost: OWNER, isWildcardHost: false },
    ...{ isAggregate: false, createdSeconds: 1, endpoints },
  }
  t.strictSame(unpackRecord(packRecord(record)).endpoints, endpoints)
})
