import fc from 'fast-check'
import type { PeerEndpoint, SiteState } from '../../src/peering/peer-endpoint.ts'
import type { RecordFields } from '../../src/peering/record-texts.ts'
import { recordId } from '../../src/records/record-source.ts'
import type { RecordSettings } from '../../src/records/settings.ts'
import { endpoint, type PeerText } from '../support/peer-text.ts'

export const HOST = 'k.example.com'

/** A peer endpoint, canonical: `given` over an A of the host that site `a` exports. */
export function shared(given: Partial<PeerText> = {}): PeerEndpoint {
  return endpoint({ site: 'a', rootHost: HOST, dnsName: HOST, ...given })
}

export function share(
  site: string,
  endpoints: readonly Partial<PeerText>[],
  given: Partial<SiteState> = {},
): SiteState {
  return {
    site,
    exporter: site,
    isOwn: true,
    rootHost: HOST,
    endpoints: endpoints.map((e) => shared({ ...e, site })),
    seenMs: 0,
    generation: 'v2',
    ...given,
  }
}

const names = fc.constantFrom(
  HOST,
  `klb.${HOST}`,
  `geo-eu.klb.${HOST}`,
  `c1.klb.${HOST}`,
  `*.${HOST}`,
)
const targetsByType: Readonly<Record<string, readonly string[]>> = {
  A: ['192.0.2.1', '192.0.2.2', '192.0.2.3'],
  AAAA: ['2001:db8::1', '2001:db8::2'],
  CNAME: [`klb.${HOST}`, `geo-eu.klb.${HOST}`, `c1.klb.${HOST}`, 'lb.example.net'],
}

const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

/** Without the keys that are undefined: as records and their readers have them. */
function compact<T extends object>(value: T) {
  const known = Object.entries(value).filter(([, one]) => one !== undefined)
  return Object.fromEntries(known) as { [K in keyof T]?: Exclude<T[K], undefined> }
}

/** As `fc.record`, of ordinary objects: `strictSame` compares prototypes. */
const record = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }) =>
  fc.record(model, { noNullPrototype: true })

const entries = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
  .filter((text) => text.trim() === text && !/[,\n]/.test(text))

/** Settings as annotations of a record may make them. */
export const settings: fc.Arbitrary<RecordSettings> = record({
  allDown: optional(
    fc.oneof(
      fc.constantFrom('open', 'closed', 'a;b c'),
      entries.filter((text) => text !== ''),
    ),
  ),
  sticky: optional(
    fc.oneof(
      fc.constant('off' as const),
      record({
        ipv4Bits: fc.integer({ min: 1, max: 32 }),
        ipv6Bits: fc.integer({ min: 1, max: 64 }),
      }),
    ),
  ),
  answers: optional(fc.oneof(fc.constant('off' as const), fc.integer({ min: 1, max: 64 }))),
  failover: optional(
    fc.uniqueArray(
      record({
        code: fc.constantFrom('*', 'DE', 'GEO-EU', 'GEO-NA', 'US-CA', 'AS64500', 'NET-LAB'),
        entries: fc.uniqueArray(fc.oneof(entries, fc.constantFrom('*', 'a;b', '#', ': ')), {
          minLength: 1,
          maxLength: 4,
        }),
      }),
      { minLength: 1, maxLength: 5, selector: ({ code }) => code },
    ),
  ).map((lines) =>
    lines?.map(({ code, entries }) => ({
      code,
      entries: [...new Set(entries.map((entry) => entry.trim()))],
    })),
  ),
  drain: optional(
    record({
      reason: fc.string({ unit: 'grapheme', maxLength: 300 }),
      untilMs: optional(fc.integer({ min: 0, max: 4e12 })),
    }).map(({ reason, untilMs }) => (untilMs === undefined ? { reason } : { reason, untilMs })),
  ),
  shift: optional(
    record({
      to: entries.map((text) => text.replaceAll(/\s/g, '_')),
      steps: fc
        .uniqueArray(fc.integer({ min: 1, max: 10_000 }), { minLength: 1, maxLength: 20 })
        .map((steps) => steps.sort((a, b) => a - b).map((step) => step / 100)),
      bakeMs: fc.integer({ min: 1000, max: 604_800_000 }),
    }),
  ),
}).map(compact)

/** What an endpoint carries of its record. */
export const recordFields: fc.Arbitrary<RecordFields> = record({
  createdSeconds: optional(fc.integer({ min: 1, max: 0xffff_ffff })),
  isUndated: fc.constantFrom(undefined, true),
  recordId: optional(fc.string().map((text) => recordId(text))),
  settings: optional(settings.filter((one) => Object.keys(one).length > 0)),
}).map(compact)

/** Endpoints that meet each other often: few names, types, set identifiers and targets. */
export const endpoints: fc.Arbitrary<PeerEndpoint> = fc
  .constantFrom('A', 'AAAA', 'CNAME')
  .chain((recordType) => {
    const maxLength = recordType === 'CNAME' ? 1 : 3
    return fc.record({
      recordType: fc.constant(recordType),
      dnsName: names,
      ttlSeconds: fc.constantFrom(0, 60, 300),
      setIdentifier: fc.constantFrom('', 'default', 'x', 'y'),
      weight: fc.constantFrom(undefined, 0, 120, 200),
      geoCodes: fc.subarray(['DE', 'GEO-EU', 'GEO-NA']),
      isDefault: fc.boolean(),
      location: fc.constantFrom(undefined, '52.52,13.40', '-33.87,151.21'),
      targets: fc.uniqueArray(fc.constantFrom(...targetsByType[recordType]!), {
        minLength: 1,
        maxLength,
      }),
      health: fc.constantFrom('up' as const, 'down' as const, 'unknown' as const),
      sinceSeconds: fc.nat(9),
    })
  })
  .map(shared)

export const shares: fc.Arbitrary<readonly SiteState[]> = fc.array(
  fc
    .record({
      site: fc.constantFrom('a', 'b', 'c', '192.0.2.53:53'),
      by: fc.constantFrom('', '1', '2'),
      isOwn: fc.boolean(),
      seenMs: fc.nat(20),
      reported: fc.array(endpoints, { maxLength: 6 }),
    })
    .map(({ site, by, isOwn, seenMs, reported }) => {
      const generation = site.includes(':') ? 'v1' : 'v2'
      const exporter = generation === 'v1' ? site : `${site}${by}`
      const own = reported.map((e) => ({ ...e, site }))
      const about = { site, exporter, isOwn: isOwn || generation === 'v1', rootHost: HOST, seenMs }
      return { ...about, endpoints: own, generation } as const
    }),
  { maxLength: 6 },
)
