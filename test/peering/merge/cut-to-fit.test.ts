import fc from 'fast-check'
import t from 'tap'
import { RRType } from '../../../src/dns/iana/types.ts'
import { EXPIRY_DEFAULT_MS } from '../../../src/peering/expiry.ts'
import { chooseEndpoints } from '../../../src/peering/merge/choose-endpoints.ts'
import { chooseOthers } from '../../../src/peering/merge/choose-site-states.ts'
import { cutToFit, describeLeftOut } from '../../../src/peering/merge/cut-to-fit.ts'
import {
  endpointOctets,
  endpointOctetsAtMost,
  jsonOctets,
} from '../../../src/peering/merge/endpoint-octets.ts'
import type { Part } from '../../../src/peering/merge/part.ts'
import type { PeerEndpoint, SiteState } from '../../../src/peering/peer-endpoint.ts'
import type { Endpoint } from '../../../src/records/dns-record.ts'
import { printSteered } from '../../../src/records/print-endpoint.ts'
import { composeStrings } from '../../../src/records/validate/target.ts'
import { targetsOf } from '../../support/peer-text.ts'
import { runs } from '../../support/runs.ts'
import { HOST, share, shared } from '../samples.ts'

const RUNS = { seed: 4, numRuns: runs(300) }

const parts: fc.Arbitrary<readonly Part[]> = fc.array(
  fc
    .record({
      exporter: fc.constantFrom('a:53', 'b:53', 'c:53'),
      site: fc.constantFrom('a', 'b', 'c', 'd'),
      generation: fc.constantFrom('v1' as const, 'v2' as const),
      text: fc.string({ minLength: 1, maxLength: 60, unit: 'grapheme' }),
      health: fc.constantFrom('up' as const, 'down' as const),
      sinceSeconds: fc.nat(),
    })
    .map(({ exporter, site, generation, text, health, sinceSeconds }) => {
      const about = { ...shared(), site, health, sinceSeconds }
      return { endpoint: withTexts(about, [text]), generation, exporter }
    }),
  { maxLength: 40 },
)

/** Texts as targets, whatever is in them. */
function withTexts(
  one: PeerEndpoint,
  texts: readonly string[],
  more: Partial<Endpoint> = {},
): PeerEndpoint {
  const rdata = texts.map(
    (text) => composeStrings([Buffer.from(text).subarray(0, 255)]) as Uint8Array,
  )
  return { ...one, endpoint: { ...one.endpoint, type: RRType.TXT, rdata, ...more } }
}

const octetsOf = (list: readonly Part[]): number =>
  list.reduce((sum, { endpoint, generation }) => sum + endpointOctets(endpoint, generation), 0)
const texts = (list: readonly Part[]): string[] =>
  list
    .map(({ endpoint, exporter }) => `${exporter} ${endpoint.site} ${targetsOf([endpoint])}`)
    .sort()

t.test('the kept endpoints fit, and do not depend on order, health or age', async (t) => {
  const property = fc.property(parts, fc.nat(8000), fc.nat(40), (given, octets, endpoints) => {
    const room = { endpoints, octets }
    const fitting = cutToFit(given, room)
    t.ok(octetsOf(fitting.parts) <= octets)
    t.ok(fitting.parts.length <= endpoints)
    t.strictSame(texts(cutToFit([...given].reverse(), room).parts), texts(fitting.parts))
    const later = given.map((part): Part => {
      const endpoint: PeerEndpoint = { ...part.endpoint, health: 'unknown', sinceSeconds: 7 }
      return { ...part, endpoint }
    })
    t.strictSame(texts(cutToFit(later, room).parts), texts(fitting.parts))
    const missing = fitting.leftOut.reduce((sum, one) => sum + one.endpoints, 0)
    t.equal(missing, given.length - fitting.parts.length)
    t.strictSame(cutToFit(fitting.parts, room).leftOut, [], 'what is kept fits the next time')
  })
  fc.assert(property, RUNS)
})

t.test('an endpoint is never counted for less than the API stores', async (t) => {
  const wild = fc.string({ minLength: 1, unit: 'binary' })
  const property = fc.property(wild, wild, fc.nat(), (text, set, weight) => {
    const steered = shared({ geoCodes: ['GEO-EU', 'DE'], isDefault: true })
    const endpoint = withTexts(steered, [text, `<${text}>`], { setIdentifier: set, weight })
    const octets = endpointOctets(endpoint, 'v2')
    const more = [
      { name: 'health', value: 'unknown' },
      { name: 'since', value: '999999999999' },
    ]
    const printed = { ...printSteered(endpoint.endpoint) }
    const providerSpecific = [...(printed.providerSpecific ?? []), ...more]
    t.ok(jsonOctets({ ...printed, providerSpecific }) <= octets)
    t.ok(octets <= endpointOctetsAtMost(endpoint))
    t.ok(endpointOctets(endpoint, 'v1') <= endpointOctetsAtMost(endpoint))
  })
  fc.assert(property, RUNS)
})

t.test('octets are those of JSON in UTF-8, as Go escapes it', async (t) => {
  for (const [given, want] of [
    ['a', 3],
    ['é', 4],
    ['<', 8],
    ['\u0001', 8],
    ['\u2028', 8],
    ['&<>', 20],
  ] as const) {
    t.ok(jsonOctets(given) >= want, `${want} octets`)
  }
})

/** `count` endpoints of about `characters` each. */
function many(site: string, count: number, characters: number) {
  const text = 'x'.repeat(characters)
  return Array.from({ length: count }, (_, i) => ({
    site,
    recordType: 'TXT',
    dnsName: `n${String(i).padStart(5, '0')}.${HOST}`,
    targets: [text],
  }))
}

t.test('a loud peer takes no room from a quiet one', async (t) => {
  const own = many('m', 50, 100).map((one) => shared({ ...one, dnsName: `own-${one.dnsName}` }))
  const quiet = share('quiet', many('quiet', 100, 100), { exporter: 'quiet:53' })
  // One peer under many names has no more than one name would have.
  const loud = Array.from({ length: 16 }, (_, i) =>
    share(`loud${i}`, many(`loud${i}`, 500, 200), { exporter: 'loud:53', isOwn: false }),
  )
  const choose = (reported: readonly SiteState[]) => {
    return chooseEndpoints(own, chooseOthers('m', reported, EXPIRY_DEFAULT_MS), 200_000)
  }
  const chosen = choose([...loud, quiet])
  const count = (site: string) => chosen.endpoints.filter((e) => e.site === site).length
  t.equal(count('quiet'), 100)
  t.ok(count('loud0') > 0)
  t.ok(chosen.leftOut.every(({ exporter }) => exporter === 'loud:53'))
  t.equal(chosen.leftOut.length, 16)
  t.match(
    describeLeftOut(HOST, chosen.leftOut[0]!),
    /of loud0, exported by loud:53: no room for some endpoints/,
  )
  t.strictSame(choose([quiet, ...[...loud].reverse()]), chosen)
})

t.test('without room no endpoint of others is accepted, and all are reported', async (t) => {
  const chosen = chooseEndpoints([shared({ site: 'm' })], [share('a', [{}])], 0)
  t.strictSame(chosen.endpoints, [])
  t.strictSame(chosen.leftOut, [{ site: 'a', exporter: 'a', endpoints: 1 }])
})
