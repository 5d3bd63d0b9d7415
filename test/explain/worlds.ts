import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Random } from '../../src/base/random.ts'
import { serveExplainable } from '../../src/cli/explain.ts'
import { loadOffline, type OfflineServer } from '../../src/cli/offline.ts'
import { lineBufferTo } from '../support/line-buffer.ts'
import { composeMmdb } from '../support/mmdb.ts'

/** Clients whose places the Corefile sets. */
export const CLIENTS = [
  '10.1.0.1',
  '10.2.0.1',
  '10.3.0.1',
  '10.4.0.1',
  '10.5.0.1',
  '10.6.0.1',
  '10.7.0.1',
  '2001:db8::1',
] as const
const CODES = ['NET-OFFICE', 'AS64500', 'US-CA', 'US', 'GB', 'GEO-NA', 'GEO-EU', '*'] as const

const COREFILE = `k.example.com:5300 {
  root {DIR}
  geoip small.mmdb {
    edns-subnet
    net 10.1.0.0/16 NET-OFFICE
    net 10.1.0.0/17 GB
    net 10.2.0.0/16 US-CA
    net 10.3.0.0/16 GB
    net 10.4.0.0/16 AS64500
    net 10.4.0.0/20 GEO-EU
    net 2001:db8::/32 US
  }
  kuadrant {
    manifests records
    drain drains{ZONE}
  }
}
`
/** Properties of the zone, one world each. */
const ZONES = ['', '\n    sticky', '\n    all-down closed', '\n    all-down shared'] as const
const DRAINS = 'address:192.0.2.4 reason=move\nid:id-3 host:*.k.example.com\n'

/** A few networks, so that a world is loaded quickly. */
const DATABASE = Buffer.from(
  composeMmdb({
    networks: {
      '10.5.0.0/16': { country: { iso_code: 'GB' }, continent: { code: 'EU' } },
      '10.5.0.0/24': {
        ...{ country: { iso_code: 'US' }, continent: { code: 'NA' } },
        location: { latitude: 37.75, longitude: -122.4 },
      },
      '10.6.0.0/16': {
        ...{ country: { iso_code: 'JP' }, continent: { code: 'AS' } },
        location: { latitude: 35.7, longitude: 139.7 },
      },
      '10.7.0.0/16': { country_code: 'GB', latitude: 51.5, longitude: -0.1 },
    },
  }),
)

const pick = <T>(random: Random, list: readonly T[]): T => list[random.below(list.length)]!

const LOCATIONS = ['52.52,13.40', '48.86,2.35', '40.71,-74.01', '35.68,139.69', '-90,0'] as const

/** Names of a world. Some have no record. */
const NAMES = ['a', 'b', 'c', 'd', '*.w', 'e.w', 'deep.x', 'x', 'lost'] as const
const USUAL = ['A', 'CNAME', 'CNAME', 'A', 'CNAME', 'A', 'A', 'MX', 'TXT'] as const
export const ASKED = [
  ...NAMES.map((name) => `${name.replace('*', 'any')}.k.example.com.`),
  'q.w.k.example.com.',
  'y.deep.x.k.example.com.',
  'k.example.com.',
]
export const TYPES = [1, 28, 16, 5, 15, 255] as const

function endpoint(random: Random, name: string, id: number): object {
  // Mostly one type per name: other types beside a CNAME are dropped.
  const usual = USUAL[(NAMES as readonly string[]).indexOf(name)]!
  const type = random.below(5) > 0 ? usual : pick(random, ['A', 'AAAA', 'CNAME', 'TXT', 'MX'])
  const target = (): string => {
    const other = pick(random, NAMES).replace('*', 'some')
    const octet = 1 + random.below(9)
    if (type === 'A') return `192.0.2.${octet}`
    if (type === 'AAAA') return `2001:db8::${octet}`
    if (type === 'CNAME')
      return random.below(6) === 0 ? 'outside.example.' : `${other}.k.example.com`
    return type === 'TXT' ? `text ${octet}` : `${octet} ${other}.k.example.com`
  }
  const count = type === 'CNAME' ? 1 : 1 + random.below(3)
  const properties: { name: string; value: string }[] = []
  if (random.below(2) > 0) {
    const codes = Array.from({ length: 1 + random.below(2) }, () => pick(random, CODES))
    properties.push({ name: 'geo-code', value: [...new Set(codes)].join(',') })
  }
  if (random.below(3) === 0) properties.push({ name: 'location', value: pick(random, LOCATIONS) })
  const weight = pick(random, ['', '0', '1', '60', '120', '120'])
  if (weight !== '') properties.push({ name: 'weight', value: weight })
  return {
    dnsName: `${name}.k.example.com`,
    recordType: type,
    recordTTL: pick(random, [30, 60, 60, 300]),
    setIdentifier:
      random.below(5) > 0 ? `id-${random.next32()}` : pick(random, [`id-${id}`, 'shared']),
    targets: [...new Set(Array.from({ length: count }, target))],
    providerSpecific: properties,
  }
}

const FAILOVER = [
  'GEO-EU: US, *',
  '*: GEO-NA, shared\nGB: US, id-1',
  'US: NET-OFFICE\nGEO-NA: *\nNET-OFFICE: id-2, GB',
] as const

const ANSWERS = ['1', '2', '2', '3', '3', 'off'] as const

/** Random records: owners shared by records, chains, wildcards, standbys, targets that are down, settings. */
function resources(random: Random, answers: Random | undefined): object[] {
  const items: object[] = []
  for (let r = 0; r < 6; r++) {
    const annotations = {
      ...(random.below(4) === 0 && { 'sextant.io/sticky': pick(random, ['true', 'false']) }),
      ...(random.below(4) === 0 && { 'sextant.io/all-down': pick(random, ['open', 'closed']) }),
      ...(random.below(4) === 0 && { 'sextant.io/failover': pick(random, FAILOVER) }),
      ...(answers !== undefined && { 'sextant.io/answers': pick(answers, ANSWERS) }),
    }
    const metadata = {
      name: `r${r}`,
      namespace: 'n',
      annotations,
      creationTimestamp: `2026-01-0${1 + random.below(9)}T00:00:00Z`,
    }
    const endpoints = Array.from({ length: 3 + random.below(8) }, (_, i) =>
      endpoint(random, pick(random, NAMES), i),
    )
    const spec = { rootHost: 'k.example.com', endpoints }
    items.push({ apiVersion: 'kuadrant.io/v1alpha1', kind: 'DNSRecord', metadata, spec })
    for (const octet of [1, 2, 3]) {
      if (random.below(2) === 0) continue
      items.push({
        apiVersion: 'kuadrant.io/v1alpha1',
        kind: 'DNSHealthCheckProbe',
        metadata: {
          name: `r${r}-${octet}`,
          namespace: 'n',
          labels: { 'kuadrant.io/health-probes-owner': `r${r}` },
        },
        spec: { address: `192.0.2.${octet}` },
        status: { healthy: false },
      })
    }
  }
  return items
}

/** What a world has beside its random records. */
interface WorldParts {
  /** Lines to add to the drain file. */
  readonly drains?: string
  /** Content of the location database; undefined = clients in 10.0.0.0/8. */
  readonly database?: Buffer
  /** True: the records have `answers`. */
  readonly hasAnswers?: boolean
}

/** Loads a Corefile over random records. */
export async function loadWorld(
  t: Test,
  seed: number,
  { drains = '', hasAnswers = false, database = DATABASE }: WorldParts = {},
): Promise<OfflineServer> {
  const items = resources(new Random(seed), hasAnswers ? new Random(seed) : undefined)
  const list = items.map((item, i) => [`${i}.json`, JSON.stringify(item)])
  const directory = t.testdir({ records: Object.fromEntries(list), drains: DRAINS + drains })
  writeFileSync(join(directory, 'small.mmdb'), database)
  const zone = ZONES[seed % ZONES.length]!
  return loadText(t, COREFILE.replace('{DIR}', directory).replace('{ZONE}', zone))
}

export async function loadText(t: Test, text: string): Promise<OfflineServer> {
  const lines: string[] = []
  const corefile = { kind: 'text', name: 'Corefile', text } as const
  const request = { corefile, dnsPort: 53, answers: true }
  const server = await loadOffline(request, { lines: lineBufferTo(lines) })
  t.teardown(() => server.close())
  const errors: string[] = []
  for (const block of server.blocks) {
    const output = { printError: (line: string) => errors.push(line) }
    await serveExplainable(block, server.instance, output, 0)
  }
  t.strictSame(errors, [])
  return server
}
