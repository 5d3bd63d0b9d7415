import t, { type Test } from 'tap'
import { printName, ROOT_NAME, scanName } from '../../src/dns/name/name.ts'
import { scanAddress } from '../../src/dns/text/address.ts'
import { Explainer } from '../../src/explain/explainer.ts'
import type { AnswerMap, MapShare } from '../../src/plugin/admin-map.ts'
import { composeMmdb } from '../support/mmdb.ts'
import { ASKED, loadText, loadWorld } from './worlds.ts'

const PLACE = (country: string, continent: string, latitude: number, longitude: number) => ({
  country: { iso_code: country },
  continent: { code: continent },
  location: { latitude, longitude },
})

/** One network for each country, and two for the United States. */
const DATABASE = Buffer.from(
  composeMmdb({
    networks: {
      '1.0.0.0/8': PLACE('DE', 'EU', 52.5, 13.4),
      '2.0.0.0/8': PLACE('JP', 'AS', 35.7, 139.7),
      '3.0.0.0/8': PLACE('GB', 'EU', 51.5, -0.1),
      '4.0.0.0/9': PLACE('US', 'NA', 40.7, -74),
      '4.128.0.0/9': { ...PLACE('US', 'NA', 34, -118), subdivisions: [{ iso_code: 'CA' }] },
      '5.0.0.0/8': { country: { iso_code: 'AP' } },
    },
  }),
)
const CLIENTS = { DE: '1.2.3.4', JP: '2.2.3.4', GB: '3.2.3.4', AP: '5.2.3.4', unknown: '9.9.9.9' }
const SEEDS = Number(process.env.SEXTANT_MAP_WORLDS ?? 4)

function sharesAt(map: AnswerMap, code: string): readonly MapShare[] {
  const places = new Map([...map.countries, ...map.others].map((place) => [place.code, place]))
  // Clients of a code that is no country have none.
  const place = places.get(code) ?? places.get('unknown')
  return place === undefined ? [] : map.groups[place.group]!.shares
}

t.test('a map has the shares that explanations have', async (t) => {
  let compared = 0
  for (let seed = 0; seed < SEEDS; seed++) {
    const world = { database: DATABASE, hasAnswers: seed % 3 === 0 }
    const explainer = await Explainer.open((await loadWorld(t, seed, world)).instance)
    t.teardown(() => explainer.close())
    for (const name of ASKED) {
      for (const type of ['A', 'CNAME', 'TXT'] as const) {
        const map = await explainer.map({ name, type })
        for (const [code, client] of Object.entries(CLIENTS)) {
          compared += compare(t, { explainer, map, code, client, seed })
        }
      }
    }
  }
  t.ok(compared > SEEDS * 20, `${compared} answers compared`)
})

const TYPES = { A: 1, CNAME: 5, TXT: 16 } as const

interface Compared {
  readonly explainer: Explainer
  readonly map: AnswerMap
  readonly code: string
  readonly client: string
  readonly seed: number
}

/** Returns how many answers were compared. */
function compare(t: Test, { explainer, map, code, client, seed }: Compared): number {
  const { name, steps, answer } = explainer.explain({
    name: scanName(map.name, ROOT_NAME)!,
    type: TYPES[map.type as 'A'],
    source: scanAddress(client)!,
    subnet: undefined,
    seed,
  })
  const shares = sharesAt(map, code)
  const text = `world ${seed}: ${name} ${map.type} for ${code}`
  const sum = (targets: readonly string[]): number => {
    const own = shares.filter(({ answer: i }) => map.answers[i]!.targets.join() === targets.join())
    return own.reduce((total, { ipv4 }) => total + ipv4, 0)
  }
  const served = new Set(shares.flatMap(({ answer: i }) => map.answers[i]!.targets))
  const last = steps.at(-1)
  const isEnd = last !== undefined && last.type === map.type && last.rdata.length > 0
  for (const one of isEnd ? last.rdata : []) {
    if (!served.has(one)) t.fail(`${text}: ${one} is missing`, { shares, answer, map })
  }
  if (!isEnd && last?.type !== 'CNAME') {
    const isEmpty = shares.some(({ answer: i }) => map.answers[i]!.state === 'no data')
    if (!isEmpty) t.fail(`${text}: has no data`, { shares, answer, steps })
  }
  if (steps.length !== 1 || !isEnd) return 0
  const byTargets = new Map<string, { targets: readonly string[]; share: number }>()
  for (const { out, targets, share } of last.endpoints ?? []) {
    const dead = new Set(out.map(({ target }) => target))
    const own = dead.size === targets.length ? targets : targets.filter((one) => !dead.has(one))
    const known = byTargets.get(own.join())?.share ?? 0
    byTargets.set(own.join(), { targets: own, share: known + share })
  }
  for (const { targets, share } of byTargets.values()) {
    const mapped = sum(targets)
    if (Math.abs(mapped - share) < 1e-6) continue
    t.fail(`${text}: ${targets.join()} has ${mapped}, explained as ${share}`, { map, last })
  }
  return byTargets.size
}

const COREFILE = `k.example.com:5300 {
  root {DIR}
  geoip small.mmdb
  kuadrant {
    manifests records
  }
}
`

function record(endpoints: readonly object[]): string {
  return JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'app', namespace: 'n' },
    spec: { rootHost: 'k.example.com', endpoints },
  })
}

function endpoint(target: string, codes: string, more: object = {}): object {
  return {
    ...{ dnsName: 'app.k.example.com', recordType: 'A', recordTTL: 60, setIdentifier: target },
    targets: [target],
    providerSpecific: [
      ...(codes === '' ? [] : [{ name: 'geo-code', value: codes }]),
      ...Object.entries(more).map(([name, value]) => ({ name, value })),
    ],
  }
}

async function open(t: Test, endpoints: readonly object[]): Promise<Explainer> {
  const directory = t.testdir({ records: { 'a.json': record(endpoints) }, 'small.mmdb': DATABASE })
  const server = await loadText(t, COREFILE.replace('{DIR}', directory))
  const explainer = await Explainer.open(server.instance)
  t.teardown(() => explainer.close())
  return explainer
}

t.test('a country that is split has the shares of its address space', async (t) => {
  const explainer = await open(t, [
    endpoint('192.0.2.1', 'US-CA'),
    endpoint('192.0.2.2', 'US', { weight: '30' }),
    endpoint('192.0.2.3', 'US', { weight: '10' }),
    endpoint('192.0.2.4', '*'),
  ])
  const map = await explainer.map({ name: 'app.k.example.com' })
  const texts = (code: string): string[] => {
    return sharesAt(map, code).map(({ answer, ipv4 }) => `${map.answers[answer]!.targets} ${ipv4}`)
  }
  t.strictSame(texts('US'), ['192.0.2.1 0.5', '192.0.2.2 0.375', '192.0.2.3 0.125'])
  for (const code of ['DE', 'JP', 'AP', 'unknown', 'private']) {
    t.strictSame(texts(code), ['192.0.2.4 1'], code)
  }
  t.strictSame(
    map.countries.map(({ code }) => code),
    ['DE', 'GB', 'JP', 'US'],
  )
  t.strictSame(
    map.others.map(({ code }) => code),
    ['private', 'unknown'],
  )
  t.equal(map.groups.length, 2)
  t.equal(await explainer.map({ name: 'app.k.example.com' }), map, 'cached')
})

t.test('a name that is not steered has one group', async (t) => {
  const explainer = await open(t, [endpoint('192.0.2.1', ''), endpoint('192.0.2.2', '')])
  const map = await explainer.map({ name: 'app.k.example.com', type: 'A' })
  t.strictSame(map.groups, [
    { shares: [0, 1].map((answer) => ({ answer, ipv4: 1, ipv6: 1 })), sharesOmitted: 0 },
  ])
  t.equal(map.isByPlace, false)
  t.equal(map.countries.length, 250)
})

t.test('questions without an answer are refused', async (t) => {
  const explainer = await open(t, [endpoint('192.0.2.1', '')])
  await t.rejects(explainer.map({ name: 'a..b' }), { name: 'InputError' })
  await t.rejects(explainer.map({ name: 'app.k.example.com', type: 'NONE' }), { message: /type/ })
  await t.rejects(explainer.map({ name: 'other.example' }), { message: /no server block serves/ })
  const lost = await explainer.map({ name: printName(scanName('lost.k.example.com', ROOT_NAME)!) })
  t.equal(lost.answers[0]!.state, 'no data')
})
