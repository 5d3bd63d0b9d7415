import fc from 'fast-check'
import { printSteering } from '../../src/dnsrecord/print-endpoint.ts'
import { validateEndpoint } from '../../src/dnsrecord/validate/dns-record.ts'
import type { PeerEndpoint, SiteState } from '../../src/peering/peer-endpoint.ts'
import { toPeerEndpoint } from '../../src/peering/to-peer-endpoint.ts'

export const HOST = 'k.example.com'

/** A peer endpoint, canonical: `given` over an A of the host that site `a` exports. */
export function shared(given: Partial<PeerEndpoint> = {}): PeerEndpoint {
  const { weight } = given
  const rootHost = given.rootHost ?? HOST
  const steering = {
    setIdentifier: given.setIdentifier ?? '',
    weight,
    geoCodes: given.geoCodes ?? [],
    isDefault: given.isDefault ?? false,
    ...(given.location === undefined ? {} : { location: given.location }),
  }
  const object = {
    dnsName: given.dnsName ?? HOST,
    recordType: given.recordType ?? 'A',
    recordTTL: given.ttlSeconds ?? 60,
    targets: [...(given.targets ?? ['192.0.2.1'])],
    ...printSteering(steering),
  }
  const checked = validateEndpoint(
    { ...object, providerSpecific: [...(object.providerSpecific ?? [])] },
    rootHost,
  )
  if ('problem' in checked) throw new Error(checked.problem.message)
  return toPeerEndpoint(checked.endpoint, {
    site: given.site ?? 'a',
    rootHost,
    health: given.health ?? 'unknown',
    sinceSeconds: given.sinceSeconds ?? 0,
  })
}

export function share(
  site: string,
  endpoints: readonly Partial<PeerEndpoint>[],
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
